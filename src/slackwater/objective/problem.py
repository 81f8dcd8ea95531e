"""The linear problem that solvers get: rows, labels, a cost for every example, a loss, a kind of bias.

    J(w) = ||w||^2/2 + sum_i C_i l(y_i <w, x_i>),      P(w) = lambda J(w),   lambda = 1 / sum_i C_i.

Another penalty may stand in the place of ||w||^2/2 (``penalties``). Weights of examples and classes are folded into the
costs C_i. Everything is reported on the scale of P, where w = 0 has the value l(0).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from slackwater.objective.losses import Loss, loss_family, value
from slackwater.objective.penalties import Penalty, l2, penalty_family, total
from slackwater.rows import CSRRows, DenseRows, sqnorms, squared_norm, take, times, transpose_times, with_bias

BiasKind = Literal["none", "penalised", "free"]
_L2 = l2()


class Problem(ABC):
    """What the training loop needs to know of a problem of any task; ``certify`` is registered for each kind."""

    task: ClassVar[str]
    rows: DenseRows | CSRRows
    costs: np.ndarray  # float64, C_i > 0
    bias: BiasKind

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def regularisation(self) -> float:
        """lambda = 1 / sum_i C_i; 1 / (n C) where all costs are C."""
        return 1.0 / float(self.costs.sum())

    @property
    def shares(self) -> np.ndarray:
        """n C_i / sum C: the weight of each example relative to the mean, all 1 without weights."""
        return self.costs * (self.n_rows * self.regularisation)

    @property
    @abstractmethod
    def loss_family(self) -> str:
        """The loss as solvers declare it."""

    @property
    def penalty_family(self) -> str:
        """The penalty of the weights as solvers declare it."""
        return "l2"

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """P(0), without any bias."""

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """One vector of weights, that of the constant feature last."""
        return (self.rows.n_columns + 1,)

    @property
    def dual_shape(self) -> tuple[int, ...]:
        """One dual variable for every example."""
        return (self.n_rows,)


class OneVectorProblem(Problem):
    """A problem whose answer is one vector of weights, that of the constant feature last."""

    threads = 1  # that passes over all rows may use, and solvers that can

    @property
    def n_weights(self) -> int:
        return self.rows.n_columns + 1

    def squared_norm(self, w: np.ndarray) -> float:
        """||w||^2 as the regulariser sees it: a free bias is left out."""
        return float(squared_norm(w[:-1] if self.bias == "free" else w))

    def squared_norm_of_sum(self, coefficients: np.ndarray) -> float:
        """||sum_i coefficients_i x_i||^2, summed from the rows."""
        return self.squared_norm(self.sum_of_rows(coefficients))

    def scores(self, w: np.ndarray) -> np.ndarray:
        """<w, x_i> of every row."""
        out = np.empty(self.n_rows)
        times(self.rows, w, out, self.threads)
        return out

    def sum_of_rows(self, coefficients: np.ndarray) -> np.ndarray:
        """sum_i coefficients_i x_i."""
        w = np.zeros(self.n_weights)
        transpose_times(self.rows, coefficients, w, self.threads)
        return w


@dataclass(frozen=True)
class LinearProblem(OneVectorProblem):
    """Rows end with the constant feature ``rows.bias``, 0 for ``bias="none"``; weight vectors are one longer than rows.

    ``bias="penalised"`` regularises the weight of the constant feature, ``bias="free"`` does not.
    """

    task: ClassVar[str] = "classification"

    rows: DenseRows | CSRRows
    labels: np.ndarray  # float64, -1 or +1
    costs: np.ndarray
    loss: Loss
    bias: BiasKind = "none"
    penalty: Penalty = _L2
    threads: int = 1

    @property
    def loss_family(self) -> str:
        return loss_family(self.loss)

    @property
    def penalty_family(self) -> str:
        return penalty_family(self.penalty)

    @property
    def at_zero(self) -> float:
        return float(value(self.loss, 0.0))

    def regulariser(self, w: np.ndarray) -> float:
        """Omega(w), ||w||^2 / 2 unless another penalty was asked for; a free bias is left out."""
        if self.penalty == _L2:
            return 0.5 * self.squared_norm(w)
        return float(total(self.penalty, w[:-1] if self.bias == "free" else w))


def linear_problem(
    rows, labels, loss: Loss, C: float = 1.0, weights=None, bias: BiasKind = "none", scale=None, penalty=None
):
    """Build a problem; rows of weight zero are left out.

    ``scale`` is the constant feature's value: 1 by default, the size of a typical row for a free bias, where it changes
    nothing but the speed.
    """
    rows, labels, costs = priced(rows, checked_labels(labels, rows.n_rows), C, weights, bias, scale)
    return LinearProblem(rows, labels, costs, loss, bias, _L2 if penalty is None else penalty)


def priced(rows, answers: np.ndarray, C: float, weights, bias: BiasKind, scale: float | None):
    """Rows with their constant feature, labels or targets, and costs; without the rows of weight zero."""
    if bias not in ("none", "penalised", "free"):
        raise ValueError(f"bias={bias!r} is not known; the kinds are none, penalised, free")
    costs = costs_of(len(answers), C, weights)
    return without_weightless(with_bias(rows, constant_feature(rows, bias, scale)), answers, costs)


def costs_of(n: int, C: float, weights) -> np.ndarray:
    """C_i = C times the weight of example i."""
    if not (C > 0 and np.isfinite(C)):
        raise ValueError(f"C must be positive and finite, got {C}")
    costs = np.full(n, float(C)) if weights is None else C * np.asarray(weights, dtype=np.float64)
    if costs.shape != (n,) or not np.isfinite(costs).all() or (costs < 0).any():
        raise ValueError(f"sample weights must be {n} finite numbers, none negative")
    return costs


def without_weightless(rows, labels: np.ndarray, costs: np.ndarray):
    """Rows, labels and costs of the examples that cost anything."""
    kept = np.flatnonzero(costs > 0)
    if kept.size == 0:
        raise ValueError("every sample weight is zero: nothing to learn from")
    return (rows, labels, costs) if kept.size == costs.size else (take(rows, kept), labels[kept], costs[kept])


def checked_labels(labels, n_rows: int) -> np.ndarray:
    """The labels as float64, each -1 or +1."""
    labels = np.ascontiguousarray(labels, dtype=np.float64)
    if labels.shape != (n_rows,) or not np.all(np.abs(labels) == 1.0):
        raise ValueError(f"labels must be {n_rows} numbers, each -1 or +1")
    return labels


def constant_feature(rows, bias: BiasKind, scale: float | None) -> float:
    """The value of the constant feature."""
    if bias == "none":
        return 0.0
    if scale is None and bias == "free":
        squares = np.empty(rows.n_rows)
        sqnorms(with_bias(rows, 0.0), squares)
        scale = math.sqrt(squares.mean()) or 1.0
    scale = 1.0 if scale is None else float(scale)
    if not 0.0 < scale < math.inf:
        raise ValueError(f"the constant feature of a bias must be positive and finite, got {scale}")
    return scale
