"""The suffix form of the epoch certificate (rule C2): over which of the last epochs it proves most.

The slopes that the examples had at their presentations, averaged over any stretch of whole epochs, are a point of the
dual box. The first epochs are far from the optimum, so windows that leave them out prove more. A few snapshots of the
running sums are kept; a window reaches from one of them to now, and its bound costs one difference of weight vectors.
The best length, from half of all epochs on small data to a few epochs on large data, is found on the way: snapshots
lie a third of it apart, and those before the best start are dropped, since the best start only moves on.

The mean of the iterates in the same window is the steadier model: those of a stochastic method scatter around it.

A vector of a kernel's space comes as two lines, its coefficients and its scores at all rows: their inner product is its
squared norm, so that windows of kernel solvers need no kernel values either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slackwater.objective.best_scale import Ray, best_scale
from slackwater.objective.certificate import CountPoint, epoch_bound
from slackwater.objective.penalties import Penalty, l2
from slackwater.rows import squared_distance

_L2 = l2()
_KEPT = 6
_PIECES = 3  # snapshots in the best window
_EQUAL = 1e-9  # bounds this close, relatively, are equal
_FEWEST_APART = 32  # but no closer than this part of all epochs


class Sums(NamedTuple):
    """What has been presented since the start, for ``epoch_bound``."""

    epochs: float
    mass: float  # M
    total: np.ndarray  # S, a vector of weights or the two lines of a kernel's vector
    counts: np.ndarray  # the slopes of each example, summed
    path: np.ndarray  # the iterates at the ends of the epochs, summed
    loss: float  # the losses met at the presentations, summed over the epochs
    draws: np.ndarray | None = None  # presentations of each example where they differ
    jumps: int = 0  # how often ``total`` left the sum: no bound follows from a difference over a jump

    def snapshot(self, precision: type[np.floating] = np.float64) -> Sums:
        """A copy, with the numbers per example in this precision."""
        draws = None if self.draws is None else self.draws.astype(precision)
        counts = self.counts.astype(precision)
        return self._replace(total=self.total.copy(), counts=counts, path=self.path.copy(), draws=draws)


def window_bound(earlier: Sums, later: Sums, lam: float, penalty: Penalty = _L2) -> float:
    """D over the epochs between, not clipped to the box; minus infinity where it cannot be told from the sums."""
    epochs = later.epochs - earlier.epochs
    if epochs <= 0.0 or later.jumps != earlier.jumps:
        return -math.inf
    if penalty.absolute:
        presented = later.counts.size * epochs
        v = np.abs(later.total - earlier.total) / (lam * presented)
        mean = (later.mass - earlier.mass) / presented
        return lam * best_scale(penalty, Ray(mean / lam, 0.0, v, 1.0))[1]
    squared_norm = _squared_distance(later.total, earlier.total)
    return epoch_bound(later.mass - earlier.mass, squared_norm, epochs, later.counts.size, lam)


def _squared_distance(later: np.ndarray, earlier: np.ndarray) -> float:
    if later.ndim == 1:
        return squared_distance(later, earlier)
    coefficients, scores = later - earlier
    return float(coefficients @ scores)


def window_point(earlier: Sums, later: Sums) -> CountPoint:
    """The slopes averaged over the epochs between.

    Of examples drawn with replacement each is averaged over its own draws: what is hit at every draw gets the end of
    its box exactly, not a random number around it.
    """
    if later.draws is None or earlier.draws is None:
        return CountPoint.between(CountPoint(earlier.counts, earlier.epochs), CountPoint(later.counts, later.epochs))
    draws = np.maximum(later.draws - earlier.draws, 1.0)
    return CountPoint((later.counts - earlier.counts) / draws, 1.0)


class Found(NamedTuple):
    """A window: its bound, the dual point that belongs to it and the mean iterate."""

    bound: float
    point: CountPoint
    weights: np.ndarray


@dataclass
class Windows:
    """The snapshots, oldest first; ``precision`` float32 will do for slopes 0 and 1, whose sums are whole numbers."""

    snapshots: list[Sums]
    precision: type[np.floating] = np.float64
    sliding: bool = True  # False: one window, from the start
    penalty: Penalty = _L2
    due: int = 1  # epoch of the next snapshot
    paused: bool = False
    held: Found | None = None  # the best window before the pause

    def keep(self, now: Sums) -> None:
        """A new snapshot."""
        self.snapshots.append(now.snapshot(self.precision))

    def until_next(self, epoch: int) -> int:
        """Epochs until the next snapshot is due."""
        if not self.sliding or self.paused:
            return 2**62
        return self.due - epoch

    def pause(self, now: Sums, lam: float) -> None:
        """A disturbance begins: keep the best window, its snapshots may go."""
        if self.sliding:
            self.held = self.find(now, lam)
            self.snapshots = [now.snapshot(self.precision)]
            self.paused = True

    def resume(self, now: Sums, epoch: int) -> None:
        """Calm again: windows begin here."""
        if self.sliding:
            self.snapshots = [now.snapshot(self.precision)]
            self.due, self.paused = epoch + 1, False

    def after(self, now: Sums, epoch: int, lam: float) -> None:
        """Take a snapshot if it is due."""
        if self.until_next(epoch) > 0:
            return
        _, best = self._best(now, lam)
        del self.snapshots[:best]
        length = now.epochs - self.snapshots[0].epochs
        if len(self.snapshots) == _KEPT:
            del self.snapshots[1]
        self.keep(now)
        self.due = epoch + max(1, int(length / _PIECES), epoch // _FEWEST_APART)

    def promise(self, now: Sums, lam: float) -> tuple[float, float]:
        """The largest bound, and the mean loss met in its window; none where no bound can grow."""
        bound, best = self._best(now, lam)
        if self.paused or bound == -math.inf:
            return -math.inf, math.inf
        earlier = self.snapshots[best]
        loss = (now.loss - earlier.loss) / ((now.epochs - earlier.epochs) * now.counts.size)
        return bound, loss

    def find(self, now: Sums, lam: float) -> Found:
        """The bound and the point of the window that proves most; the weights of the latest calm one."""
        bound, best = self._best(now, lam)
        earlier, held = self.snapshots[best], self.held
        weights = (now.path - earlier.path) / max(now.epochs - earlier.epochs, 1.0)
        if held is None or held.bound == -math.inf:
            return Found(bound, window_point(earlier, now), weights)
        weights = held.weights if self.paused else weights
        if held.bound >= bound:
            return Found(held.bound, held.point, weights)
        return Found(bound, window_point(earlier, now), weights)

    def _best(self, now: Sums, lam: float) -> tuple[float, int]:
        """The largest bound and which snapshot gives it.

        Where bounds cannot be told, or are those of random draws, the largest of which would be the luckiest, the
        last snapshot in the first half of all epochs.
        """
        bounds = [window_bound(earlier, now, lam, self.penalty) for earlier in self.snapshots]
        if max(bounds) == -math.inf or now.draws is not None:
            best = max(0, sum(earlier.epochs <= 0.5 * now.epochs for earlier in self.snapshots) - 1)
        else:
            good = max(bounds) - _EQUAL * abs(max(bounds))  # of equal bounds the last: later iterates are better
            best = max(k for k in range(len(bounds)) if bounds[k] >= good)
        return bounds[best], best
