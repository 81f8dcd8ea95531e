"""What cvm and bvm share: the squared hinge as the smallest ball around points of a kernel's space.

    max over alpha >= 0 of D  <=>  min over p in the simplex of  q = p'Kt p,  Kt = Q + diag(1 / (2 C_i)),
    alpha = p / q,  D* = lambda / (2 q).

It is the smallest ball around points with inner products Kt where Kt_ii is constant. Otherwise each point gets one more
coordinate, delta_i^2 = eta - Kt_ii with eta = max Kt_ii, and the centre keeps 0 there (the centre-constrained ball of
the generalised core vector machine). With g = Kt p the centre sum p_i phi_i has the squared distance q - 2 g_i + eta
from point i, and the ball's squared radius is eta - q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import DirectionPoint
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import State
from slackwater.solvers.kernel.kernel_solver import KernelSolver, best_multiple


@dataclass
class BallState(State):
    """The coefficients p of the centre, and g = Kt p."""

    p: np.ndarray
    g: np.ndarray
    ridge: np.ndarray  # 1 / (2 C_i)
    eta: float


@dataclass(frozen=True)
class Ball(KernelSolver):
    """The solver without its way to the centre; ``eps`` is how far beyond the radius, relatively, a point may lie."""

    losses: ClassVar[tuple[str, ...]] = ("squared_hinge",)
    rule: ClassVar[str] = "C5"

    beta: float = 1.05
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if not 0.0 < self.eps < 1.0:
            raise ValueError(f"eps must lie between 0 and 1, got {self.eps}")

    def model(self, problem: KernelProblem, state: BallState) -> Expansion:
        """The best multiple of the centre."""
        coefficients = problem.labels * state.p
        scores = problem.labels * (state.g - state.ridge * state.p)
        return Expansion(best_multiple(problem, coefficients, scores) * coefficients)

    def dual_point(self, problem: KernelProblem, state: BallState) -> DirectionPoint:
        """p as a direction."""
        return DirectionPoint(state.p.copy())


def centre(problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None, most: int):
    """p, g, the ridge and eta: at a random point, or where the ``most`` largest of alpha put it."""
    n, labels = problem.n_rows, problem.labels
    ridge = problem.loss.width / problem.costs
    eta = float((problem.gram.diagonal + ridge).max())
    p = np.zeros(n)
    p[rng.integers(n)] = 1.0
    if alpha is not None and np.any(alpha > 0.0):
        largest = np.argsort(-alpha, kind="stable")[:most]
        p[:] = 0.0
        p[largest] = np.maximum(alpha[largest], 0.0)
        p /= p.sum()
    return p, labels * problem.gram.times(labels * p) + ridge * p, ridge, eta
