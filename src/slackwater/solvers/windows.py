"""The suffix form of the epoch certificate (rule C2): over which of the last epochs it proves most.

The slopes that the examples had at their presentations, averaged over any stretch of whole epochs, are a point of the
dual box. The first epochs are far from the optimum, so windows that leave them out prove more. A few snapshots of the
running sums are kept, at 0, 1, 2, 3, 4, 6, 8, 12, .. epochs after an origin; a window reaches from one of them to now.
Its bound costs one difference of weight vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import CountPoint, epoch_bound

_KEPT = 6


class Sums(NamedTuple):
    """What has been presented since the start, for ``epoch_bound``."""

    epochs: float
    mass: float  # M
    total: np.ndarray  # S
    counts: np.ndarray  # the slopes of each example, summed
    draws: np.ndarray | None = None  # presentations of each example where they differ
    jumps: int = 0  # how often ``total`` left the sum: no bound follows from a difference over a jump

    def snapshot(self) -> Sums:
        """A copy; float32 holds whole numbers up to 2^24, and the certificate needs no more of the others."""
        draws = None if self.draws is None else self.draws.astype(np.float32)
        return self._replace(total=self.total.copy(), counts=self.counts.astype(np.float32), draws=draws)


@compiled
def squared_distance(x, y):
    """||x - y||^2 without a temporary array, and without the threads of a BLAS, which cost more than they gain here."""
    total = 0.0
    for j in range(np.uint64(x.size)):
        change = x[j] - y[j]
        total += change * change
    return total


def window_bound(earlier: Sums, later: Sums, lam: float) -> float:
    """D over the epochs between, not clipped to the box; minus infinity where it cannot be told from the sums."""
    epochs = later.epochs - earlier.epochs
    if epochs <= 0.0 or later.jumps != earlier.jumps:
        return -math.inf
    squared_norm = squared_distance(later.total, earlier.total)
    return epoch_bound(later.mass - earlier.mass, squared_norm, epochs, later.counts.size, lam)


def window_point(earlier: Sums, later: Sums) -> CountPoint:
    """The slopes averaged over the epochs between.

    Of examples drawn with replacement each is averaged over its own draws: what is hit at every draw gets the end of
    its box exactly, not a random number around it.
    """
    if later.draws is None or earlier.draws is None:
        return CountPoint.between(CountPoint(earlier.counts, earlier.epochs), CountPoint(later.counts, later.epochs))
    draws = np.maximum(later.draws - earlier.draws, 1.0)
    return CountPoint((later.counts - earlier.counts) / draws, 1.0)


class Held(NamedTuple):
    """The best window of a calm stretch that is over."""

    bound: float
    point: CountPoint


@dataclass
class Windows:
    """The snapshots, oldest first. Those before the best one are dropped: the best start only moves on."""

    snapshots: list[Sums]
    sliding: bool = True  # False: one window, from the start
    origin: int = 0
    taken: int = 0  # epochs after the origin at the last snapshot
    paused: bool = False
    held: Held | None = field(default=None)

    def until_next(self, epoch: int) -> int:
        """Epochs until the next snapshot is due."""
        if not self.sliding or self.paused:
            return 2**62
        return self.origin + _following(self.taken) - epoch

    def pause(self, now: Sums, lam: float) -> None:
        """A disturbance begins: keep the best window, its snapshots may go."""
        if self.sliding:
            self.held = self._better_of_held(now, lam)
            self.snapshots = [self.snapshots[0]]
            self.paused = True

    def resume(self, now: Sums, epoch: int) -> None:
        """Calm again: windows begin here."""
        if self.sliding:
            self.snapshots = [now.snapshot()]
            self.origin, self.taken, self.paused = epoch, 0, False

    def after(self, now: Sums, epoch: int, lam: float) -> None:
        """Take a snapshot if it is due."""
        if self.until_next(epoch) > 0:
            return
        bounds = [window_bound(earlier, now, lam) for earlier in self.snapshots]
        del self.snapshots[: bounds.index(max(bounds))]
        if len(self.snapshots) == _KEPT:
            del self.snapshots[1]
        self.snapshots.append(now.snapshot())
        self.taken = epoch - self.origin

    def best(self, now: Sums, lam: float) -> float:
        """The largest bound."""
        bound = max(window_bound(earlier, now, lam) for earlier in self.snapshots)
        return bound if self.held is None else max(bound, self.held.bound)

    def best_point(self, now: Sums, lam: float) -> CountPoint:
        """The dual point that the largest bound belongs to."""
        held = self._better_of_held(now, lam)
        return window_point(self.snapshots[0], now) if held is None else held.point

    def _better_of_held(self, now: Sums, lam: float) -> Held | None:
        bounds = [window_bound(earlier, now, lam) for earlier in self.snapshots]
        bound = max(bounds)
        if self.held is not None and self.held.bound >= bound:
            return self.held
        if bound > -math.inf:
            return Held(bound, window_point(self.snapshots[bounds.index(bound)], now))
        half = 0.5 * now.epochs
        middle = min(self.snapshots, key=lambda earlier: abs(earlier.epochs - half))
        return Held(bound, window_point(middle, now)) if middle.epochs < now.epochs else None


def _following(epoch: int) -> int:
    """The number after ``epoch`` among 0, 1, 2, 3, 4, 6, 8, 12, .., 2^k, 3 * 2^(k-1)."""
    if epoch < 2:
        return epoch + 1
    power = 1 << (epoch.bit_length() - 1)
    return 3 * power // 2 if epoch < 3 * power // 2 else 2 * power
