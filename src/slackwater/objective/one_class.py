"""One class over a kernel matrix: the half space farthest from the origin that leaves out a share nu of the examples.

    J(w, rho) = ||w||^2/2 - m rho + sum_i s_i max(0, rho - f_i),   w = sum_j alpha_j Phi(x_j),   f = K alpha,

with weights s_i of the examples and the mass m = nu sum_i s_i, is the problem as LIBSVM scales it. Its dual is

    max  -alpha'K alpha / 2,    0 <= alpha_i <= s_i,    sum alpha_i = m.

P = J / m^2 is the objective of Schoelkopf et al. (2001), with w/m and rho/m for w and rho. ``weights`` are the
coefficients alpha and the bias -rho behind them.

The optimum is P* = -||w*||^2 / 2 <= 0, so the gap is measured by -P <= |P*|; or, where that is smaller, by half of

    sum_i (s_i / sum s)^2 K_ii,

the squared norm that the mean of the examples had if they were at right angles. So small a ||w*||^2 tells nothing: the
origin lies among the examples, or as good as. Where no kernel value is negative, ||w*||^2 is no smaller than the least
K_ii over n, and the second measure is idle for the kernels with K_ii = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import BoxPoint, Certificate, DualPoint, Evaluation, certify, total_loss
from slackwater.objective.kernel_problem import OverKernelMatrix, positive_costs
from slackwater.objective.losses import Loss
from slackwater.objective.problem import BiasKind
from slackwater.rows import inner

_SUMS = 1e-9  # of a multiple of alpha: what sums over many examples may lose
_TIED, _ROUNDING = 1e-9, 1e-13  # of the largest score: what differs by less is one score; what a score may be off


@dataclass(frozen=True)
class OneClassProblem(OverKernelMatrix):
    """One class over a kernel matrix; the costs C_i are the weights s_i."""

    task: ClassVar[str] = "one-class"
    loss: ClassVar[Loss] = Loss(0.0, 0.0, 1.0)  # max(0, rho - f): a hinge with the corner at 0

    gram: Any
    labels: np.ndarray  # every example is on the positive side
    costs: np.ndarray
    nu: float
    bias: BiasKind = "free"
    known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def mass(self) -> float:
        """m = sum alpha_i."""
        return self.nu * float(self.costs.sum())

    @property
    def loss_family(self) -> str:
        return "hinge"

    @property
    def at_zero(self) -> float:
        return 0.0

    @property
    def least(self) -> float:
        """The smallest size that the optimum is taken to have."""
        shares = self.costs * self.regularisation
        return 0.5 * float(shares**2 @ np.maximum(self.gram.diagonal, 0.0))

    def certificate(self, primal: float, dual: float, rule: str = "C1") -> Certificate:
        """Of values of J and its dual."""
        return Certificate(primal / self.mass**2, dual / self.mass**2, rule, self.least)


def one_class_problem(gram, nu: float = 0.5, weights=None) -> OneClassProblem:
    """Build a problem over a kernel matrix."""
    if not 0.0 < nu <= 1.0:
        raise ValueError(f"nu must be in (0, 1], got {nu!r}")
    return OneClassProblem(gram, np.ones(gram.n_rows), positive_costs(1.0, weights, gram.n_rows), float(nu))


def primal_of(problem: OneClassProblem, square: float, scores: np.ndarray) -> tuple[float, float]:
    """J with the best bias, and that bias, at ||w||^2 and f."""
    bias = _best_bias(problem, scores)
    losses = total_loss(problem.loss, scores + bias, problem.labels, problem.costs)
    return 0.5 * square + problem.mass * bias + losses, bias


def _best_bias(problem: OneClassProblem, scores: np.ndarray) -> float:
    """-rho, rho the quantile of the scores that leaves the mass m below: the middle of all that do.

    m max(0, max f - rho) is what a negative example of cost m at the largest score pays; no rho is best beyond that.
    Examples on the plane are no outliers: where the scores of several differ by rounding, rho lies below them all.
    """
    both, labels = np.append(scores, scores.max()), np.append(problem.labels, -1.0)
    rho = -optimal_bias(problem.loss, both, labels, np.append(problem.costs, problem.mass)).chosen
    size = float(np.abs(scores).max())
    tied = scores[np.abs(scores - rho) <= _TIED * size]
    return -(float(tied.min(initial=rho)) - _ROUNDING * size)


def subgradient(problem: OneClassProblem, scores: np.ndarray) -> np.ndarray:
    """The mass laid on the examples with the lowest scores: of all feasible alpha that with the least <alpha, f>."""
    alpha, order = np.zeros(problem.n_rows), np.argsort(scores, kind="stable")
    costs = problem.costs[order]
    alpha[order] = np.clip(problem.mass - (np.cumsum(costs) - costs), 0.0, costs)
    return alpha


def put_into_box(problem: OneClassProblem, alpha: np.ndarray) -> np.ndarray | None:
    """min(k alpha, s), k such that the sum is m; None where all of s on the examples of alpha is less."""
    put = np.clip(alpha, 0.0, problem.costs)
    support = np.flatnonzero(put)
    ends = problem.costs[support] / put[support]  # the k at which a coordinate is at its bound
    support, ends = support[np.argsort(ends)], np.sort(ends)
    costs, part = problem.costs[support], put[support]
    multiples = (problem.mass - (np.cumsum(costs) - costs)) / np.cumsum(part[::-1])[::-1]
    fitting = np.flatnonzero(multiples <= ends * (1.0 + _SUMS))
    return np.minimum(multiples[fitting[0]] * put, problem.costs) if fitting.size else None


@certify.register
def _certify(problem: OneClassProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Scores are summed again from rows of the kernel matrix, in float64."""
    if not isinstance(point, BoxPoint | None):
        raise TypeError(f"one class knows no bound of a {type(point).__name__}")
    weights = np.array(weights, dtype=np.float64)
    scores = problem.remembered_scores(weights[:-1])
    primal, alpha = math.inf, None
    if np.isfinite(scores).all() and np.isfinite(weights).all():
        primal, weights[-1] = primal_of(problem, inner(weights[:-1], scores), scores)
        alpha = subgradient(problem, scores) if point is None else None
    if point is not None and np.isfinite(point.alpha).all():
        alpha = put_into_box(problem, point.alpha)
    dual = -math.inf if alpha is None else -0.5 * problem.squared_norm_of_sum(alpha)
    if not math.isfinite(dual):
        dual, alpha = -math.inf, None
    return Evaluation(problem.certificate(primal, dual, "C6" if point is None else "C1"), weights, alpha)
