"""Regression over a kernel matrix: targets, a cost for every example, a loss with a tube, a bias.

    J(w, b) = ||w||^2/2 + sum_i C_i l(y_i - f_i),   w = sum_j beta_j Phi(x_j),   f = K beta + b,   P = lambda J.

The losses and the dual are those of ``regression.py`` with K instead of X X'. A penalised bias sits in the kernel's
values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slackwater.objective.certificate import BoxPoint, Certificate, DualPoint, Evaluation, GradientPoint, certify
from slackwater.objective.kernel_problem import OverKernelMatrix, checked_bias, positive_costs
from slackwater.objective.problem import BiasKind
from slackwater.objective.regression import TubeLoss, checked_targets, total_tube_loss, tube_family
from slackwater.objective.regression_certificate import best_offset, gradient_beta, tube_bound, tube_rule
from slackwater.rows import inner


@dataclass(frozen=True)
class KernelRegressionProblem(OverKernelMatrix):
    """Regression over a kernel matrix."""

    task: ClassVar[str] = "kernel-regression"

    gram: Any
    targets: np.ndarray  # float64
    costs: np.ndarray
    loss: TubeLoss
    bias: BiasKind = "free"
    known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def loss_family(self) -> str:
        return tube_family(self.loss)

    @property
    def at_zero(self) -> float:
        return self.regularisation * float(total_tube_loss(self.loss, self.targets, self.costs))


def kernel_regression_problem(
    gram, targets, loss: TubeLoss, C: float = 1.0, weights=None, bias: BiasKind = "free"
) -> KernelRegressionProblem:
    """Build a problem over a kernel matrix."""
    targets = checked_targets(targets, gram.n_rows)
    return KernelRegressionProblem(gram, targets, positive_costs(C, weights, gram.n_rows), loss, checked_bias(bias))


@certify.register
def _certify(problem: KernelRegressionProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Responses are summed again from rows of the kernel matrix, in float64."""
    weights = np.array(weights, dtype=np.float64)
    scores = problem.remembered_scores(weights[:-1])
    residuals = problem.targets - scores
    square, primal = inner(weights[:-1], scores), math.inf
    if np.isfinite(residuals).all() and np.isfinite(weights).all():
        if problem.bias == "free":
            weights[-1] = best_offset(problem.loss, residuals, problem.costs).chosen
        residuals -= weights[-1]
        primal = problem.regularisation * (0.5 * square + total_tube_loss(problem.loss, residuals, problem.costs))
    point = point or GradientPoint(weights)
    if not isinstance(point, BoxPoint | GradientPoint):
        raise TypeError(f"regression knows no bound of a {type(point).__name__}")
    beta = point.alpha if isinstance(point, BoxPoint) else gradient_beta(problem, residuals)
    dual, beta = tube_bound(problem, beta)
    return Evaluation(Certificate(float(primal), dual, tube_rule(problem, point)), weights, beta)
