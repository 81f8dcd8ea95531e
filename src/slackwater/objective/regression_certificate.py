"""The certificate of regression: the primal value, and the bound of weak duality for every beta in the box.

    D(beta) = lambda (y'beta - eps ||beta||_1 - ||w(beta)||^2 / 2 - sum_i width beta_i^2 / (2 C_i)) <= P* <= P(w),

|beta_i| <= cap C_i (and sum beta_i = 0 where the bias is free), w(beta) = sum_i beta_i x_i. As for classification, the
point that a solver hands over is put into the box and w(beta) is summed again from the rows. All sums are float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.bias import Interval, optimal_bias
from slackwater.objective.certificate import (
    BoxPoint,
    Certificate,
    DualPoint,
    Evaluation,
    GradientPoint,
    _vector,
    balanced,
    certify,
)
from slackwater.objective.problem import Problem
from slackwater.objective.regression import RegressionProblem, TubeLoss, beyond, total_tube_loss, tube_slope

_RULES = {BoxPoint: "C1", GradientPoint: "C6"}


@certify.register
def _certify_regression(problem: RegressionProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    primal, weights = _primal(problem, weights)
    point = point or GradientPoint(weights)
    if not isinstance(point, BoxPoint | GradientPoint):
        raise TypeError(f"regression knows no bound of a {type(point).__name__}")
    dual, beta = _dual(problem, point)
    return Evaluation(Certificate(primal, dual, tube_rule(problem, point)), weights, beta)


def tube_rule(problem: Problem, point: DualPoint) -> str:
    """The name of the rule that a point's bound follows from."""
    return _RULES[type(point)] + ("+C7" if problem.bias == "free" else "")


# ------------------------------------------------------------------------------------------------------- primal


def _primal(problem: RegressionProblem, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """P(w), infinite where it is not a number, and w; a free bias is put at its optimum first."""
    weights = _vector("weights", weights, problem.n_weights).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        if problem.bias == "free":
            weights[-1] = 0.0
        residuals = _residuals(problem, weights)
        if not (np.isfinite(weights).all() and np.isfinite(residuals).all()):
            return math.inf, weights
        if problem.bias == "free":
            bias = best_offset(problem.loss, residuals, problem.costs).chosen
            weights[-1] = bias / problem.rows.bias
            residuals -= bias
        losses = total_tube_loss(problem.loss, residuals, problem.costs)
        return float(problem.regularisation * (0.5 * problem.squared_norm(weights) + losses)), weights


def _residuals(problem: RegressionProblem, weights: np.ndarray) -> np.ndarray:
    """y - X w."""
    return problem.targets - problem.scores(weights)


def best_offset(loss: TubeLoss, residuals: np.ndarray, costs: np.ndarray) -> Interval:
    """All minimisers b of sum_i costs_i l(residuals_i - b).

    l(r - b) is what a margin loss of the target -eps pays for the score -r of a positive and of a negative example.
    """
    both = np.concatenate((-residuals, -residuals))
    sides = np.repeat([1.0, -1.0], residuals.size)
    return optimal_bias(beyond(loss), both, sides, np.concatenate((costs, costs)))


# --------------------------------------------------------------------------------------------------------- dual


def _dual(problem: RegressionProblem, point: BoxPoint | GradientPoint) -> tuple[float, np.ndarray | None]:
    """D at a point, and the beta that it belongs to."""
    if isinstance(point, BoxPoint):
        return tube_bound(problem, point.alpha)
    weights = _vector("weights", point.weights, problem.n_weights)
    return tube_bound(problem, gradient_beta(problem, _residuals(problem, weights)))


def gradient_beta(problem: Any, residuals: np.ndarray) -> np.ndarray:
    """Rule C6: beta_i = C_i l'(r_i)."""
    beta = np.empty(problem.n_rows)
    _slopes(problem.loss, residuals, beta)
    return problem.costs * beta


def tube_bound(problem: Any, beta: np.ndarray) -> tuple[float, np.ndarray | None]:
    """D(beta) and beta, put into the box; minus infinity for a point that is not finite."""
    beta = _vector("alpha", beta, problem.n_rows)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = problem.loss.cap * problem.costs
        beta = balanced(problem, np.clip(beta, -bound, bound))
        value = _bound(problem, beta)
    return (value, beta) if math.isfinite(value) else (-math.inf, None)


@compiled
def _slopes(loss, residuals, out):
    """out_i = l'(r_i)."""
    for i in range(np.uint64(residuals.size)):
        out[i] = tube_slope(loss, residuals[i])


def _bound(problem: Any, beta: np.ndarray) -> float:
    """D(beta), with w(beta) summed from the rows."""
    conjugates = _total_conjugate(problem.loss, problem.targets, beta, problem.costs)
    return float(problem.regularisation * (conjugates - 0.5 * problem.squared_norm_of_sum(beta)))


@compiled
def _total_conjugate(loss, targets, beta, costs):
    """sum_i y_i beta_i - C_i l*(beta_i / C_i); no BLAS, whose threads cost more to wake than they gain."""
    total = 0.0
    for i in range(np.uint64(beta.size)):
        b, C = beta[i], costs[i]
        total += targets[i] * b - loss.epsilon * abs(b) - 0.5 * loss.width * b * b / C
    return total
