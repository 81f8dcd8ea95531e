"""What a small model costs: the objective and the errors before and after."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.models import KernelModel
from slackwater.objective.certificate import total_loss
from slackwater.objective.losses import Loss


class Price(NamedTuple):
    """Before and after; the objective is P, the mean over the binary problems where there are several."""

    support_before: int
    support: int
    objective_before: float
    objective: float
    train_error_before: float
    train_error: float
    holdout_error_before: float
    holdout_error: float


class Target(NamedTuple):
    """What a binary problem asks of some of the rows."""

    ids: np.ndarray | slice
    signs: np.ndarray
    costs: np.ndarray


def objective(output: KernelModel, values: np.ndarray, target: Target, loss: Loss) -> float:
    """P of a binary predictor with these decision values on all training rows, its vectors being some of them."""
    square = float(output.coef[0] @ (values[output.support] - output.intercept[0]))
    losses = total_loss(loss, np.ascontiguousarray(values[target.ids]), target.signs, target.costs)
    return float((0.5 * square + losses) / target.costs.sum())
