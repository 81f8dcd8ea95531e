"""The bias that minimises the loss for fixed scores, found exactly.

F(b) = sum_i C_i l(y_i (f_i + b)) is convex and piecewise linear (hinge) or piecewise quadratic (the other losses). With
t_i = y_i target - f_i, a positive example is short of the target while b < t_i and pulls b up, a negative one while
b > t_i and pulls it down. F' = down - up bends only at t_i and, where the slope reaches its cap, at
t_i - y_i cap width. The kinks are searched by bisection, one pass per step, those of a sample first, so that few need
to be sorted; F' is linear between them.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.losses import Loss

_ROUNDING = 1e-12  # of the balance of the two pulls: what the order of summation may change
_SAMPLE = 256  # kinks that tell where the others need to be looked at


class Interval(NamedTuple):
    """Every bias in [low, high] is optimal; ``chosen`` is the middle, or a finite choice where one end is infinite."""

    low: float
    high: float
    chosen: float


def optimal_bias(loss: Loss, scores: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> Interval:
    """All minimisers b of sum_i costs_i l(labels_i (scores_i + b)). Scores must be finite."""
    turns = labels * loss.target - scores
    if labels.min() == labels.max():
        return _one_class(float(labels[0]), loss.target, turns)

    def pulls(b: float) -> tuple[float, float]:
        return _pulls(loss, turns, labels, costs, b)

    def balance(b: float) -> float:
        """F'(b) / (down + up): it has the sign of F' and is monotone too."""
        down, up = pulls(b)
        return (down - up) / (down + up) if down != up else 0.0

    kinks = _sorted_where_it_turns(_kinks(loss, turns, labels), balance)
    rises = bisect.bisect_right(kinks, _ROUNDING, key=balance)  # the first kink with F' > 0
    flat = bisect.bisect_left(kinks, -_ROUNDING, hi=rises, key=balance)  # the first kink with F' >= 0
    if loss.width == 0.0:
        low, high = kinks[flat], kinks[rises]
    elif flat < rises:
        low, high = kinks[flat], kinks[rises - 1]
    else:
        low = high = _crossing(kinks[flat - 1], kinks[flat], pulls)
    return Interval(float(low), float(high), float(low + 0.5 * (high - low)))


def _one_class(label: float, target: float, turns: np.ndarray) -> Interval:
    """Every bias beyond all t_i costs nothing; label * target if that is one of them."""
    if label > 0.0:
        low = float(turns.max())
        return Interval(low, np.inf, max(low, target))
    high = float(turns.min())
    return Interval(-np.inf, high, min(high, -target))


def _sorted_where_it_turns(kinks: np.ndarray, balance: Callable[[float], float]) -> np.ndarray:
    """Sorted kinks: all from the last one known to lie where F falls to the first known to lie where F rises."""
    if kinks.size <= 8 * _SAMPLE:
        return np.sort(kinks)
    sample = np.sort(kinks[:: kinks.size // _SAMPLE])
    falls = bisect.bisect_left(sample, -_ROUNDING, key=balance)
    rises = bisect.bisect_right(sample, _ROUNDING, lo=falls, key=balance)
    low = sample[falls - 1] if falls > 0 else -np.inf
    high = sample[rises] if rises < sample.size else np.inf
    return np.sort(kinks[(kinks >= low) & (kinks <= high)])


def _kinks(loss: Loss, turns: np.ndarray, labels: np.ndarray) -> np.ndarray:
    knee = loss.cap * loss.width
    if knee == 0.0 or not np.isfinite(knee):
        return turns
    return np.concatenate((turns, turns - labels * knee))


def _crossing(left: float, right: float, pulls: Callable[[float], tuple[float, float]]) -> float:
    """The zero of F' between two neighbouring kinks, F'(left) < 0 < F'(right)."""
    down, up = pulls(left)
    below = up - down
    down, up = pulls(right)
    return left + (right - left) * (below / (below + down - up))


@compiled
def _pulls(loss, turns, labels, costs, b):
    """The two parts of F'(b) = down - up, from the right where F has a corner."""
    both, signed = 0.0, 0.0
    for i in range(np.uint64(turns.size)):
        y = labels[i]
        r = y * (turns[i] - b)
        if loss.width == 0.0:
            steep = loss.cap if r > 0.0 or (r == 0.0 and y < 0.0) else 0.0
        else:
            steep = min(max(r, 0.0) / loss.width, loss.cap)
        both += costs[i] * steep
        signed += costs[i] * steep * y
    return 0.5 * (both - signed), 0.5 * (both + signed)
