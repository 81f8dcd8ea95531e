"""The multiclass problem of Crammer and Singer, and its certificate.

    J(W) = sum_y ||w_y||^2/2 + sum_i C_i max_y ( [y != y_i] + f_y(x_i) - f_{y_i}(x_i) ),   f_y(x) = <w_y, x>,
    P(W) = lambda J(W),   lambda = 1 / sum_i C_i;

    D(beta) = lambda ( sum_i beta_i^{y_i} - sum_y ||w_y||^2/2 ) <= P*,   w_y = sum_i beta_i^y x_i,
    for every beta with  beta_i^y <= C_i [y = y_i]  and  sum_y beta_i^y = 0.

For two classes w = w_1 - w_0 has the hinge's P with twice the costs, where alpha_i = 2 beta_i^{y_i}.

A dual point holds 8 n k bytes. A certificate makes one array of that size, the feasible point, and two matrices of
weights; scores are never kept for more than one row.

K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based vector machines. JMLR 2, 2001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import BoxPoint, Certificate, DualPoint, Evaluation, GradientPoint, certify
from slackwater.objective.problem import BiasKind, Problem, constant_feature, costs_of, without_weightless
from slackwater.rows import CSRRows, DenseRows, add_some, dot_each, padded, squared_norm, with_bias

_ROUNDING = 2.0**-52


@dataclass(frozen=True)
class MulticlassProblem(Problem):
    """One weight vector for each of ``n_classes`` classes, of which some may have no row."""

    task: ClassVar[str] = "multiclass"

    rows: DenseRows | CSRRows
    codes: np.ndarray  # int64, the number of each example's class
    n_classes: int
    costs: np.ndarray
    bias: BiasKind = "none"

    @property
    def loss_family(self) -> str:
        return "hinge"

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return self.n_classes, self.rows.n_columns + 1

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.n_rows, self.n_classes


def multiclass_problem(
    rows, codes, n_classes: int, C: float = 1.0, weights=None, bias: BiasKind = "none", scale: float | None = None
) -> MulticlassProblem:
    """Build a problem of two classes or more; rows of weight zero are left out."""
    if bias not in ("none", "penalised"):
        raise ValueError(f"bias={bias!r} is not treated for crammer_singer; the kinds are none, penalised")
    codes = np.ascontiguousarray(codes, dtype=np.int64)
    if codes.shape != (rows.n_rows,) or codes.min(initial=0) < 0 or codes.max(initial=0) >= n_classes:
        raise ValueError(f"codes must be {rows.n_rows} whole numbers from 0 to {n_classes - 1}")
    if n_classes < 2:
        raise ValueError(f"a multiclass problem needs at least two classes, got {n_classes}")
    costs = costs_of(rows.n_rows, C, weights)
    rows, codes, costs = without_weightless(with_bias(rows, constant_feature(rows, bias, scale)), codes, costs)
    return MulticlassProblem(rows, codes, n_classes, costs, bias)


# ----------------------------------------------------------------------------------------------- the certificate


@certify.register
def _certify_multiclass(problem: MulticlassProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Rule C1 at a point of coefficients beta, put into the feasible set; rule C6, beta of the slopes, without one."""
    weights = _shaped("weights", weights, problem.weights_shape).copy()
    W = _by_feature(weights)
    primal = _primal(problem, W)
    if isinstance(point, BoxPoint):
        beta, rule = _shaped("beta", point.alpha, problem.dual_shape).copy(), "C1"
    elif point is None or isinstance(point, GradientPoint):
        beta, rule = np.zeros(problem.dual_shape), "C6"
        at = W if point is None else _by_feature(_shaped("weights", point.weights, problem.weights_shape))
        _slopes(problem.rows, at, problem.codes, problem.costs, problem.n_classes, beta)
    else:
        raise TypeError(f"no bound of a multiclass problem follows from a {type(point).__name__}")
    dual = _dual(problem, beta)
    if not math.isfinite(dual):
        return Evaluation(Certificate(primal, -math.inf, rule), weights, None)
    return Evaluation(Certificate(primal, dual, rule), weights, beta)


def _primal(problem: MulticlassProblem, W: np.ndarray) -> float:
    """P(W), infinite where it is not a number."""
    losses = _total_loss(problem.rows, W, problem.codes, problem.costs, problem.n_classes)
    with np.errstate(over="ignore", invalid="ignore"):
        total = problem.regularisation * (0.5 * squared_norm(W.ravel()) + losses)
    return float(total) if np.isfinite(W).all() and math.isfinite(total) else math.inf


def _dual(problem: MulticlassProblem, beta: np.ndarray) -> float:
    """D(beta), after beta was made feasible in place; not finite where beta is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _put_into_the_feasible_set(beta, problem.codes, problem.costs)
        W = np.zeros((problem.weights_shape[1], padded(problem.n_classes)))
        _weights_of(problem.rows, beta, W)
        return float(problem.regularisation * (total - 0.5 * squared_norm(W.ravel())))


def _by_feature(weights: np.ndarray) -> np.ndarray:
    """W with the classes last, padded."""
    W = np.zeros((weights.shape[1], padded(weights.shape[0])))
    W[:, : weights.shape[0]] = weights.T
    return W


def _shaped(name: str, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    if numbers.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {numbers.shape}")
    return numbers


@compiled
def _total_loss(rows, W, codes, costs, k):
    """sum_i C_i max_y ( [y != y_i] + f_y(x_i) - f_{y_i}(x_i) ); NaN where a score is not a number."""
    scores = np.empty(W.shape[1])
    total = 0.0
    for i in range(np.uint64(codes.size)):
        dot_each(rows, i, W, scores)
        own = np.uint64(codes[i])
        worst = scores[own]
        for y in range(np.uint64(k)):
            if y != own:
                worst = max(worst, 1.0 + scores[y])
            if math.isnan(scores[y]):
                return math.nan
        total += costs[i] * (worst - scores[own])
    return total


@compiled
def _slopes(rows, W, codes, costs, k, beta):
    """The subgradient's beta: C_i for the own class and -C_i for the one that costs most, where that is another."""
    scores = np.empty(W.shape[1])
    for i in range(np.uint64(codes.size)):
        dot_each(rows, i, W, scores)
        own = np.uint64(codes[i])
        worst = own
        scores[own] -= 1.0
        for y in range(np.uint64(k)):
            if scores[y] > scores[worst]:
                worst = y
        if worst != own:
            beta[i, own], beta[i, worst] = costs[i], -costs[i]


@compiled
def _put_into_the_feasible_set(beta, codes, costs):
    """Row by row: the other classes' coefficients at most 0, scaled down where they come to more than C_i.

    The own class's is then minus their sum, whatever it was before. Returns sum_i beta_i^{y_i}.
    """
    total = 0.0
    for i in range(np.uint64(codes.size)):
        line, own = beta[i], np.uint64(codes[i])
        line[own] = 0.0
        taken = 0.0
        for y in range(np.uint64(line.size)):
            line[y] = min(line[y], 0.0)
            taken -= line[y]
        factor = costs[i] / taken
        while taken > costs[i]:  # once, and once more where the sum is rounded up
            before, taken = taken, 0.0
            for y in range(np.uint64(line.size)):
                line[y] *= factor
                taken -= line[y]
            factor = 1.0 - line.size * _ROUNDING if taken < before else 0.5
        line[own] = taken
        total += taken
    return total


@compiled
def _weights_of(rows, beta, W):
    """w_y += sum_i beta_i^y x_i."""
    which, amounts = np.empty(beta.shape[1], dtype=np.uint32), np.empty(beta.shape[1])
    for i in range(np.uint64(beta.shape[0])):
        count = np.uint64(0)
        for y in range(np.uint64(beta.shape[1])):
            if beta[i, y] != 0.0:
                which[count], amounts[count] = y, beta[i, y]
                count += np.uint64(1)
        if count:
            add_some(rows, i, which, amounts, count, W)
