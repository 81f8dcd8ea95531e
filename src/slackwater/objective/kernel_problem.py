"""The problem that kernel solvers get: a kernel matrix by rows, labels, a cost for every example, a loss, a bias.

    J(w, b) = ||w||^2/2 + sum_i C_i l(y_i f_i),   w = sum_j beta_j Phi(x_j),   f = K beta + b,   P = lambda J.

``weights`` are the coefficients beta and the bias b behind them. A penalised bias is a constant feature: its square is
in the kernel's values already, and b stays 0. Kernel values are the problem's data: they are float32 unless asked for
otherwise, and what is proven is proven for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import (
    Certificate,
    DualPoint,
    Evaluation,
    GradientPoint,
    certify,
    dual_half,
    rule_of,
    total_loss,
)
from slackwater.objective.losses import Loss, loss_family, value
from slackwater.objective.penalties import Penalty, l2
from slackwater.objective.problem import BiasKind, Problem, checked_labels, costs_of
from slackwater.rows import CSRRows, DenseRows, inner

_ROUNDED = 64.0 * float(np.finfo(float).eps)


class KernelMatrix(Protocol):
    """What a problem needs of ``gram.Gram``."""

    points: Any
    requests: int
    evaluations: int

    @property
    def n_rows(self) -> int: ...

    @property
    def diagonal(self) -> np.ndarray: ...

    def times(self, coefficients: np.ndarray) -> np.ndarray: ...


class OverKernelMatrix(Problem):
    """A problem over a kernel matrix. Costs are positive: rows of weight 0 are left out before the matrix is made."""

    gram: Any  # a KernelMatrix; solvers use more of gram.Gram than that
    known: dict[str, Any]  # the last sum, for who asks next

    @property
    def rows(self) -> DenseRows | CSRRows:  # type: ignore[override]
        """The points, without a constant feature."""
        return self.gram.points.rows

    @property
    def n_rows(self) -> int:
        return self.gram.n_rows

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return (self.n_rows + 1,)

    def squared_norm_of_sum(self, coefficients: np.ndarray) -> float:
        """||sum_j coefficients_j Phi(x_j)||^2."""
        return inner(coefficients, self.scores(coefficients))

    def scores(self, coefficients: np.ndarray) -> np.ndarray:
        """K coefficients from the rows of the matrix; those of the last certificate are remembered."""
        if self.known and _equal_but_for_rounding(coefficients, self.known["coefficients"]):
            return self.known["scores"]
        return self.gram.times(coefficients)

    def remembered_scores(self, coefficients: np.ndarray) -> np.ndarray:
        """The same, a copy; it is the last certificate's from now on."""
        scores = self.scores(coefficients)
        self.known.update(coefficients=coefficients.copy(), scores=scores)
        return scores.copy()


def _equal_but_for_rounding(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether coefficients differ by no more than the balance of a free bias rounds them: their sums round as much."""
    return bool((np.abs(one - other) <= _ROUNDED * np.abs(other)).all())


@dataclass(frozen=True)
class KernelProblem(OverKernelMatrix):
    """Classification over a kernel matrix."""

    task: ClassVar[str] = "kernel"
    penalty: ClassVar[Penalty] = l2()

    gram: Any
    labels: np.ndarray  # float64, -1 or +1
    costs: np.ndarray
    loss: Loss
    bias: BiasKind = "free"
    known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def loss_family(self) -> str:
        return loss_family(self.loss)

    @property
    def at_zero(self) -> float:
        return float(value(self.loss, 0.0))


def kernel_problem(gram, labels, loss: Loss, C: float = 1.0, weights=None, bias: BiasKind = "free") -> KernelProblem:
    """Build a problem over a kernel matrix."""
    labels = checked_labels(labels, gram.n_rows)
    return KernelProblem(gram, labels, positive_costs(C, weights, gram.n_rows), loss, checked_bias(bias))


def checked_bias(bias: BiasKind) -> BiasKind:
    """The kind, if it is one."""
    if bias not in ("none", "penalised", "free"):
        raise ValueError(f"bias={bias!r} is not known; the kinds are none, penalised, free")
    return bias


def positive_costs(C: float, weights, n_rows: int) -> np.ndarray:
    """C times the weight of every example, none of them 0."""
    costs = costs_of(n_rows, C, weights)
    if not (costs > 0.0).all():
        raise ValueError("a kernel problem needs positive costs: leave rows of weight 0 out of the kernel matrix")
    return costs


# ------------------------------------------------------------------------------------------------ the certificate


@certify.register
def _certify_kernel(problem: KernelProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Responses are summed again from rows of the kernel matrix, in float64."""
    weights = np.array(weights, dtype=np.float64)
    scores = problem.remembered_scores(weights[:-1])
    square = inner(weights[:-1], scores)
    primal = math.inf
    if np.isfinite(scores).all() and np.isfinite(weights).all():
        if problem.bias == "free":
            weights[-1] = optimal_bias(problem.loss, scores, problem.labels, problem.costs).chosen
        scores += weights[-1]
        losses = total_loss(problem.loss, scores, problem.labels, problem.costs)
        primal = problem.regularisation * (0.5 * square + losses)
    point = point or GradientPoint(weights)
    dual = dual_half(problem, point, scores)
    return Evaluation(Certificate(float(primal), dual.value, rule_of(problem, point)), weights, dual.alpha)
