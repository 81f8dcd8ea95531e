"""What is met on the way from a dense predictor to a small one: a line for every predictor that was looked at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """A predictor of the curve."""

    support: int  # vectors
    n_bytes: int  # of its numbers
    train_error: float
    holdout_error: float
    shortfall: float  # F of Problem 4.1; minus infinity where the dense predictor is right nowhere
    evaluations: int  # kernel values computed since the start, for all settings together
    seconds: float  # since the start
    setting: int  # its place in the grid; -1 for what comes before all settings


class Curve(list[Point]):
    """The points in the order in which they were met."""

    def columns(self) -> dict[str, np.ndarray]:
        """Every field as one array, ready for a data frame."""
        return {name: np.array([getattr(point, name) for point in self]) for name in Point._fields}

    def front(self) -> Curve:
        """The points than which none smaller has as few errors on the holdout, the smallest first."""
        best, kept = np.inf, Curve()
        for point in sorted(self, key=lambda p: (p.support, p.holdout_error)):
            if point.holdout_error < best:
                best = point.holdout_error
                kept.append(point)
        return kept
