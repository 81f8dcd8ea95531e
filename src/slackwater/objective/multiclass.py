"""The multiclass problem of Crammer and Singer, and its certificate.

    J(W) = sum_y ||w_y||^2/2 + sum_i C_i max_y ( [y != y_i] + f_y(x_i) - f_{y_i}(x_i) ),   f_y(x) = <w_y, x>,
    P(W) = lambda J(W),   lambda = 1 / sum_i C_i;

    D(beta) = lambda ( sum_i beta_i^{y_i} - sum_y ||w_y||^2/2 ) <= P*,   w_y = sum_i beta_i^y x_i,
    for every beta with  beta_i^y <= C_i [y = y_i]  and  sum_y beta_i^y = 0.

For two classes w = w_1 - w_0 has the hinge's P with twice the costs, where alpha_i = 2 beta_i^{y_i}. With a kernel
(``kernel_multiclass``) all is the same but for where scores and norms come from.

A dual point holds 8 n k bytes. A certificate makes one array of that size, the feasible point, and two matrices of
weights; scores are never kept for more than one row.

K. Crammer, Y. Singer. On the algorithmic implementation of multiclass kernel-based vector machines. JMLR 2, 2001.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import BoxPoint, Certificate, DualPoint, Evaluation, GradientPoint, certify
from slackwater.objective.problem import BiasKind, Problem, constant_feature, costs_of, without_weightless
from slackwater.rows import CSRRows, DenseRows, add_some, dot_each, padded, squared_norm, with_bias

_ROUNDING = 2.0**-52


class OfAllClasses(Problem):
    """One weight vector for each of ``n_classes`` classes, of which some may have no row."""

    codes: np.ndarray  # int64, the number of each example's class
    n_classes: int

    @property
    def loss_family(self) -> str:
        return "hinge"

    @property
    def at_zero(self) -> float:
        return 1.0

    @property
    def dual_shape(self) -> tuple[int, ...]:
        return self.n_rows, self.n_classes

    @abstractmethod
    def at(self, weights: np.ndarray) -> Any:
        """The weights in the form that the following look at."""

    @abstractmethod
    def objective(self, at: Any) -> float:
        """J; not finite where a score is not."""

    @abstractmethod
    def slopes(self, at: Any) -> np.ndarray:
        """The subgradient's beta."""

    @abstractmethod
    def squares(self, beta: np.ndarray) -> float:
        """sum_y ||w_y||^2 of these coefficients."""


@dataclass(frozen=True)
class MulticlassProblem(OfAllClasses):
    """The linear problem."""

    task: ClassVar[str] = "multiclass"

    rows: DenseRows | CSRRows
    codes: np.ndarray
    n_classes: int
    costs: np.ndarray
    bias: BiasKind = "none"

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return self.n_classes, self.rows.n_columns + 1

    def at(self, weights: np.ndarray) -> np.ndarray:
        """W with the classes last, padded."""
        W = np.zeros((weights.shape[1], padded(weights.shape[0])))
        W[:, : weights.shape[0]] = weights.T
        return W

    def objective(self, at: np.ndarray) -> float:
        """J(W)."""
        losses = _total_loss(self.rows, at, self.codes, self.costs, self.n_classes)
        return 0.5 * squared_norm(at.ravel()) + losses

    def slopes(self, at: np.ndarray) -> np.ndarray:
        """From the scores of one row after the other."""
        beta = np.zeros(self.dual_shape)
        _slopes(self.rows, at, self.codes, self.costs, self.n_classes, beta)
        return beta

    def squares(self, beta: np.ndarray) -> float:
        """||W(beta)||^2, summed from the rows."""
        W = np.zeros((self.weights_shape[1], padded(self.n_classes)))
        _weights_of(self.rows, beta, W)
        return float(squared_norm(W.ravel()))


def multiclass_problem(
    rows, codes, n_classes: int, C: float = 1.0, weights=None, bias: BiasKind = "none", scale: float | None = None
) -> MulticlassProblem:
    """Build a problem of two classes or more; rows of weight zero are left out."""
    codes = checked_codes(codes, rows.n_rows, n_classes, bias)
    costs = costs_of(rows.n_rows, C, weights)
    rows, codes, costs = without_weightless(with_bias(rows, constant_feature(rows, bias, scale)), codes, costs)
    return MulticlassProblem(rows, codes, n_classes, costs, bias)


def checked_codes(codes, n_rows: int, n_classes: int, bias: BiasKind) -> np.ndarray:
    """The numbers of classes as int64, after a look at what cannot be."""
    if bias not in ("none", "penalised"):
        raise ValueError(f"bias={bias!r} is not treated for crammer_singer; the kinds are none, penalised")
    codes = np.ascontiguousarray(codes, dtype=np.int64)
    if codes.shape != (n_rows,) or codes.min(initial=0) < 0 or codes.max(initial=0) >= n_classes:
        raise ValueError(f"codes must be {n_rows} whole numbers from 0 to {n_classes - 1}")
    if n_classes < 2:
        raise ValueError(f"a multiclass problem needs at least two classes, got {n_classes}")
    return codes


# ----------------------------------------------------------------------------------------------- the certificate


@certify.register
def _certify_all_classes(problem: OfAllClasses, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """Rule C1 at a point of coefficients beta, put into the feasible set; rule C6, beta of the slopes, without one."""
    weights = _shaped("weights", weights, problem.weights_shape).copy()
    with np.errstate(over="ignore", invalid="ignore"):
        at = problem.at(weights)
        primal = problem.regularisation * problem.objective(at)
        if isinstance(point, BoxPoint):
            beta, rule = _shaped("beta", point.alpha, problem.dual_shape).copy(), "C1"
        elif point is None or isinstance(point, GradientPoint):
            there = at if point is None else problem.at(_shaped("weights", point.weights, problem.weights_shape))
            beta, rule = problem.slopes(there), "C6"
        else:
            raise TypeError(f"no bound of a multiclass problem follows from a {type(point).__name__}")
        total = _put_into_the_feasible_set(beta, problem.codes, problem.costs)
        dual = float(problem.regularisation * (total - 0.5 * problem.squares(beta)))
    if not (np.isfinite(weights).all() and math.isfinite(primal)):
        primal = math.inf
    if not math.isfinite(dual):
        return Evaluation(Certificate(float(primal), -math.inf, rule), weights, None)
    return Evaluation(Certificate(float(primal), dual, rule), weights, beta)


def _shaped(name: str, numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    if numbers.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {numbers.shape}")
    return numbers


@compiled(inline=True)
def worst_short(scores, own, k):
    """max_y ( [y != own] + f_y - f_own ); NaN where a score is not a number."""
    worst = scores[own]
    for y in range(np.uint64(k)):
        if y != own:
            worst = max(worst, 1.0 + scores[y])
        if math.isnan(scores[y]):
            return math.nan
    return worst - scores[own]


@compiled(inline=True)
def costliest(scores, own, k):
    """The class that costs most; the own one where none costs anything."""
    worst, most = own, scores[own] - 1.0
    for y in range(np.uint64(k)):
        if y != own and scores[y] > most:
            worst, most = y, scores[y]
    return worst


@compiled
def _total_loss(rows, W, codes, costs, k):
    """sum_i C_i max_y ( [y != y_i] + f_y(x_i) - f_{y_i}(x_i) ); NaN where a score is not a number."""
    scores = np.empty(W.shape[1])
    total = 0.0
    for i in range(np.uint64(codes.size)):
        dot_each(rows, i, W, scores)
        total += costs[i] * worst_short(scores, np.uint64(codes[i]), k)
    return total


@compiled
def _slopes(rows, W, codes, costs, k, beta):
    """The subgradient's beta: C_i for the own class and -C_i for the one that costs most, where that is another."""
    scores = np.empty(W.shape[1])
    for i in range(np.uint64(codes.size)):
        dot_each(rows, i, W, scores)
        own = np.uint64(codes[i])
        worst = costliest(scores, own, k)
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
        factor, times = costs[i] / taken, 0
        while taken > costs[i]:  # once, and by a hair where the sum is rounded up; by half where numbers are too small
            taken = 0.0
            for y in range(np.uint64(line.size)):
                line[y] *= factor
                taken -= line[y]
            times += 1
            factor = 1.0 - line.size * _ROUNDING if times < 4 else 0.5
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
