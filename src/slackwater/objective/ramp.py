"""The ramp loss: the hinge that stops growing at the margin s, and what can be said of a problem that is not convex.

    J(w, b) = ||w||^2/2 + sum_i C_i l(y_i f_i),   l(m) = min(max(0, 1 - m), 1 - s),   s <= 0,   P = lambda J.

At any model let B be the examples with m_i < s. The convex problem that touches P there has for them

    l_B(m) = 1 - s + max(0, m - 1),  the hinge of the other label at the target -1 and a constant;

it is nowhere below P, because l(m) <= 1 - s. In signed coefficients sigma_i = y_i alpha_i, with y'_i = -y_i in B and
y_i elsewhere, its dual is

    D_B = lambda ( sum y_i sigma_i + (1 - s) sum_B C_i - sigma'K sigma/2 ),   0 <= y'_i sigma_i <= C_i,

and sum sigma = 0 where the bias is free. This is the box [-C_i [i in B], C_i - C_i [i in B]] of alpha.

No bound of the optimum is known. The certificate is local: P of the model against D_B, with B of that very model. Its
gap is what the best step of the convex-concave procedure could gain there; it is 0 where the procedure stands still.

R. Collobert, F. Sinz, J. Weston, L. Bottou. Trading convexity for scalability. ICML 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import BoxPoint, Certificate, DualPoint, Evaluation, balanced, certify, rule_of
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import inner


@dataclass(frozen=True)
class RampProblem(KernelProblem):
    """Classification over a kernel matrix with the hinge cut off at the margin ``s``."""

    s: float = -1.0

    @classmethod
    def of(cls, problem: KernelProblem, s: float) -> RampProblem:
        """The same data with the hinge cut off."""
        return cls(problem.gram, problem.labels, problem.costs, problem.loss, problem.bias, s=s)

    def value(self, square: float, scores: np.ndarray) -> float:
        """J at ||w||^2 and f."""
        hinge = np.maximum(0.0, 1.0 - self.labels * scores)
        return 0.5 * square + float(self.costs @ np.minimum(hinge, 1.0 - self.s))

    def beyond(self, scores: np.ndarray) -> np.ndarray:
        """B: which margins are below s."""
        return self.labels * scores < self.s


class Touching:
    """The convex problem above the ramp's that has the examples ``beyond`` on the other side."""

    def __init__(self, problem: RampProblem, beyond: np.ndarray) -> None:
        self.problem, self.beyond = problem, beyond
        self.labels = np.where(beyond, -problem.labels, problem.labels)
        self._constant = (1.0 - problem.s) * float(problem.costs[beyond].sum())

    def feasible(self, sigma: np.ndarray) -> np.ndarray:
        """sigma in its box, its positive or its negative part scaled down where a free bias demands it."""
        return balanced(self.problem, self.labels * np.clip(self.labels * sigma, 0.0, self.problem.costs))

    def bias(self, scores: np.ndarray) -> float:
        """The bias with the least loss at K sigma; 0 unless it is free."""
        problem = self.problem
        if problem.bias != "free":
            return 0.0
        moved = scores - 2.0 * problem.labels * self.beyond  # the target -1 of those beyond
        return optimal_bias(problem.loss, moved, self.labels, problem.costs).chosen

    def primal(self, square: float, scores: np.ndarray) -> float:
        """Its objective, on the scale of J."""
        short = 1.0 - self.problem.labels * scores
        losses = np.maximum(0.0, np.where(self.beyond, -short, short))
        return 0.5 * square + float(self.problem.costs @ losses) + self._constant

    def dual(self, square: float, sigma: np.ndarray) -> float:
        """Its dual objective at a feasible point, on the scale of J."""
        return float(self.problem.labels @ sigma) + self._constant - 0.5 * square


@certify.register
def _certify_ramp(problem: RampProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """P at the weights, their bias as it is; the bound of the convex problem that touches P there."""
    weights = np.array(weights, dtype=np.float64)
    scores = problem.remembered_scores(weights[:-1])
    square = inner(weights[:-1], scores)
    scores += weights[-1]
    if not (np.isfinite(scores).all() and np.isfinite(weights).all()):
        return Evaluation(Certificate(math.inf, -math.inf, "C1 local"), weights, None)
    if not isinstance(point, BoxPoint):
        raise TypeError(f"no local bound of the ramp loss follows from a {type(point).__name__}")
    touching = Touching(problem, problem.beyond(scores))
    sigma = touching.feasible(problem.labels * np.asarray(point.alpha, dtype=np.float64))
    primal = problem.regularisation * problem.value(square, scores)
    dual = problem.regularisation * touching.dual(problem.squared_norm_of_sum(sigma), sigma)
    certificate = Certificate(primal, dual, f"{rule_of(problem, point)} local")
    return Evaluation(certificate, weights, problem.labels * sigma)
