"""Problem 4.1: what a small predictor owes to the dense one.

    minimise  F(wt, bt) = max over i in A of  min(1, y_i f(x_i)) - y_i (<wt, Phi(x_i)> + bt),
    A = { i : y_i f(x_i) > 0 },

f = <w, Phi> + b the dense predictor. F(w, b) <= 0. Where F(wt, bt) <= 1/2, the slant loss of the small predictor is at
most the hinge loss of the dense one, row by row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.sparsify.contract import Small, Teacher


class Demand(NamedTuple):
    """The rows' heights h_i = min(1, y_i f(x_i)), minus infinity outside of A."""

    heights: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, teacher: Teacher) -> Demand:
        """What a teacher asks for on its training rows."""
        labels = teacher.problem.labels
        margins = labels * teacher.values
        return cls(np.where(margins > 0.0, np.minimum(margins, 1.0), -np.inf), labels)

    @property
    def empty(self) -> bool:
        """Whether the teacher is right nowhere."""
        return not np.isfinite(self.heights).any()

    @property
    def one_class(self) -> bool:
        """Whether it is right on one class only, or nowhere: no bias can then be learned."""
        return np.unique(self.labels[np.isfinite(self.heights)]).size < 2

    def shortfall(self, values: np.ndarray) -> float:
        """F of a predictor with these decision values; minus infinity where A is empty."""
        return float(np.max(self.heights - self.labels * values, initial=-np.inf))


def constant(teacher: Teacher) -> Small:
    """The mean label: the best that can be had without vectors."""
    costs = teacher.problem.costs
    return Small(np.empty(0), float(costs @ teacher.problem.labels / costs.sum()), np.empty(0, dtype=np.int64))


def slant_loss(margins: np.ndarray) -> np.ndarray:
    """clip(1/2 - m, 0, 1): the chance that sign(f + Z) is wrong, Z uniform in [-1/2, 1/2]."""
    return np.clip(0.5 - margins, 0.0, 1.0)
