"""Regression: losses that cost nothing within a tube of half width eps, and the problem that solvers get.

    J(w) = ||w||^2/2 + sum_i C_i l(y_i - <w, x_i>),      P(w) = lambda J(w),   lambda = 1 / sum_i C_i.

With s = max(0, |r| - eps), the part of the residual r = y - f beyond the tube,

===========================  =====  ====  ======
loss                         width  cap   l(r)
===========================  =====  ====  ======
epsilon insensitive          0      1     s
squared epsilon insensitive  1/2    inf   s^2
===========================  =====  ====  ======

so that l(r) is the margin loss of the target -eps, this width and this cap at the margin -|r|. The dual is

    max  y'beta - eps ||beta||_1 - ||X'beta||^2 / 2 - sum_i (width / C_i) beta_i^2 / 2,    |beta_i| <= cap C_i,

and sum beta_i = 0 where the bias is free; w = X'beta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective import losses
from slackwater.objective.losses import Loss
from slackwater.objective.problem import BiasKind, OneVectorProblem, priced
from slackwater.rows import CSRRows, DenseRows


class TubeLoss(NamedTuple):
    """A loss of residuals by its three numbers; build one with the functions below."""

    epsilon: float
    width: float
    cap: float


def epsilon_insensitive(epsilon: float = 0.0) -> TubeLoss:
    """max(0, |r| - eps)."""
    return TubeLoss(_checked(epsilon), 0.0, 1.0)


def squared_epsilon_insensitive(epsilon: float = 0.0) -> TubeLoss:
    """max(0, |r| - eps)^2, without a factor 1/2 (LIBLINEAR's convention)."""
    return TubeLoss(_checked(epsilon), 0.5, math.inf)


def _checked(epsilon: float) -> float:
    if not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be a number of at least 0, got {epsilon!r}")
    return float(epsilon)


TUBE_LOSSES: dict[str, Callable[[float], TubeLoss]] = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
}


def tube_loss(name: str, epsilon: float = 0.0) -> TubeLoss:
    """The loss of this name."""
    if name not in TUBE_LOSSES:
        raise ValueError(f"loss={name!r} is not known; the losses of regression are {', '.join(TUBE_LOSSES)}")
    return TUBE_LOSSES[name](epsilon)


def tube_family(loss: TubeLoss) -> str:
    """The name of a loss, without its tube: what solvers declare."""
    return next(name for name, make in TUBE_LOSSES.items() if make(loss.epsilon) == loss)


def checked_targets(targets, n_rows: int) -> np.ndarray:
    """The targets as float64."""
    targets = np.ascontiguousarray(targets, dtype=np.float64)
    if targets.shape != (n_rows,) or not np.isfinite(targets).all():
        raise ValueError(f"targets must be {n_rows} finite numbers")
    return targets


@compiled
def beyond(loss):
    """The margin loss that this loss is, at the margin -|r|."""
    return Loss(-loss.epsilon, loss.width, loss.cap)


@compiled
def tube_value(loss, r):
    """l(r)."""
    return losses.value(beyond(loss), -abs(r))


@compiled
def tube_slope(loss, r):
    """l'(r) in [-cap, cap]; where there is none, at the edge of the tube, that of the outer side, and 0 at r = 0."""
    return math.copysign(losses.slope(beyond(loss), -abs(r)), r) if r != 0.0 else 0.0


@compiled
def tube_conjugate(loss, b):
    """sup over r of (b r - l(r)) = eps |b| + width b^2 / 2 for |b| <= cap, infinite elsewhere."""
    return losses.conjugate(beyond(loss), abs(b))


@dataclass(frozen=True)
class RegressionProblem(OneVectorProblem):
    """Rows end with the constant feature ``rows.bias``, 0 for ``bias="none"``; weight vectors are one longer than rows.

    ``bias="penalised"`` regularises the weight of the constant feature, ``bias="free"`` does not.
    """

    task: ClassVar[str] = "regression"

    rows: DenseRows | CSRRows
    targets: np.ndarray  # float64
    costs: np.ndarray
    loss: TubeLoss
    bias: BiasKind = "none"

    @property
    def loss_family(self) -> str:
        return tube_family(self.loss)

    @property
    def at_zero(self) -> float:
        return self.regularisation * float(total_tube_loss(self.loss, self.targets, self.costs))


@compiled
def total_tube_loss(loss, residuals, costs):
    """sum_i C_i l(r_i)."""
    total = 0.0
    for i in range(np.uint64(residuals.size)):
        total += costs[i] * tube_value(loss, residuals[i])
    return total


def regression_problem(
    rows, targets, loss: TubeLoss, C: float = 1.0, weights=None, bias: BiasKind = "none", scale: float | None = None
) -> RegressionProblem:
    """Build a problem; rows of weight zero are left out.

    ``scale`` is the constant feature's value: 1 by default, the size of a typical row for a free bias, where it changes
    nothing but the speed.
    """
    targets = checked_targets(targets, rows.n_rows)
    rows, targets, costs = priced(rows, targets, C, weights, bias, scale)
    return RegressionProblem(rows, targets, costs, loss, bias)
