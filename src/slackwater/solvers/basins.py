"""Water in one basin or two, with weights: the levels that a perceptron of batches draws its examples from.

Without a bias all examples lie in one basin. A free bias b raises the positive ones and lowers the negative ones by the
same height, so that each class is a basin of its own and both share one volume:

    gamma = max over b, xi >= 0, sum u_i xi_i <= V  of  min_i (c_i + y_i b + xi_i)
          = min over p in the simplex (with p'y = 0 where b is free) of  p'c + V max_i p_i / u_i.

The best p lies evenly on the lowest examples up to a depth K, the same weight in each basin (Cotter et al.). With
A(K) the sum of the responses up to there and H(K) the sum over the basins of the response that comes next,

    K is the smallest depth with  K H(K) - A(K) >= V,     gamma = (A(K) + V) / (K basins).

Where lambda is given and not V, w = v / gamma with the gamma and b that minimise lambda ||w||^2 / 2 + the mean hinge:
the derivative by the scale vanishes at gamma A(K) = lambda n ||v||^2, so K is the smallest depth with
H(K) A(K) >= basins lambda n ||v||^2, and the last example may count in part: it lies on the margin.

K is searched among the responses inside a window around the last level, as wide as the level moves, everything below it
being a sum; only these few are sorted. Where they are many a histogram tells a narrower window: O(n), a few passes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.solvers.sorted_pairs import sort_pairs

_FEW = 256  # are sorted without a window
_CROWD = 512  # responses in a window, from which on it is made narrower by a histogram
_BINS = 256  # of the histogram
_STRIP = 64
_ROUNDING = 1e-12
_VALUE, _WEIGHT = 0, 1
_COUNT, _BELOW, _HEIGHTS, _TOTAL, _LAST = 0, 1, 2, 3, 4


class Goal(NamedTuple):
    """How deep: a volume V, or lambda n ||v||^2 where ``ridge`` is not negative; in 1 or 2 basins."""

    volume: float
    ridge: float
    basins: int


class Pool(NamedTuple):
    """Where the last water stood, and room to search the next."""

    low: np.ndarray  # (2,) of the window in each basin
    high: np.ndarray  # (2,); infinite ends: not known
    crowd: np.ndarray  # (1,) how many responses they will hold, about
    before: np.ndarray  # (2,) where the last water stood
    room: np.ndarray  # (2, 2, n): basin, value and weight, examples


class Level(NamedTuple):
    """The water: below ``last`` everything in the basin is wet, of what stands at it the part ``shares``."""

    gamma: float
    depth: float  # K, the weight under water in each basin
    last0: float
    last1: float
    share0: float
    share1: float
    low: float  # every bias from low
    high: float  # to high is the best; infinite where nothing limits it
    found: bool


def new_pool(n: int) -> Pool:
    """For n responses."""
    room = np.empty((2, 2, max(n, _BINS)))
    return Pool(np.full(2, -np.inf), np.full(2, np.inf), np.full(1, np.inf), np.zeros(2), room)


def basins_of(labels: np.ndarray, free: bool) -> np.ndarray:
    """The basin of every example."""
    return np.where(labels < 0.0, 1, 0).astype(np.uint8) if free else np.zeros(labels.size, dtype=np.uint8)


def two_basins(responses, labels, volume: float) -> Level:
    """The level over both classes with the best bias, all weights one."""
    responses, labels = np.asarray(responses, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if labels.min() == labels.max():
        raise ValueError("two basins need examples of both classes")
    pool = new_pool(responses.size)
    goal = Goal(float(volume), -1.0, 2)
    return pour(goal, responses, basins_of(labels, True), np.ones(responses.size), pool)


@compiled
def bias_of(level):
    """The middle of the best biases, or the end that there is."""
    if level.low == -math.inf:
        return 0.0 if level.high == math.inf else level.high
    return level.low if level.high == math.inf else 0.5 * (level.low + level.high)


@compiled
def part_of(level, basin, response):
    """Whether an example is wet: 1, 0, or the part of what stands at the edge."""
    last = level.last1 if basin else level.last0
    if response < last:
        return 1.0
    if response > last:
        return 0.0
    return level.share1 if basin else level.share0


@compiled
def pour(goal, responses, basin, weights, pool):
    """The level; the pool remembers where it stood and how far it had moved."""
    few, sums = responses.size <= _FEW, np.empty((2, 5))
    if not few and pool.crowd[0] > _CROWD and not _narrow(goal, responses, basin, weights, pool, sums):
        _narrow(goal, responses, basin, weights, pool, sums)
    for attempt in range(3):
        _gather(responses, basin, weights, pool, sums)
        level = _search(goal, pool, sums)
        if level.found:
            break
        _forget(pool)
        if attempt == 0 and not few:
            _narrow(goal, responses, basin, weights, pool, sums)
    moved, width = 0.0, 0.0
    for k in range(goal.basins):
        last = level.last1 if k else level.last0
        width = max(width, pool.high[k] - pool.low[k])
        if -np.inf < last < np.inf:
            moved = max(moved, abs(last - pool.before[k]))
            pool.before[k] = last
    if few or moved == 0.0 or width == np.inf:
        _forget(pool)
        return level
    pool.crowd[0] = (sums[0, _COUNT] + sums[1, _COUNT]) * 4.0 * moved / width
    for k in range(goal.basins):
        pool.low[k], pool.high[k] = pool.before[k] - 2.0 * moved, pool.before[k] + 2.0 * moved
    return level


@compiled
def _forget(pool):
    """Where the water may stand is not known."""
    pool.low[:], pool.high[:], pool.crowd[0] = -np.inf, np.inf, np.inf


@compiled
def _narrow(goal, responses, basin, weights, pool, sums):
    """Windows around the level over a histogram, a few bins wide: of what the windows hold so far, or of all.

    False where the level lies outside: all windows are forgotten.
    """
    if pool.high[0] == np.inf:
        _span(responses, basin, goal.basins, pool)
    bins = np.zeros((2 * _BINS + 4, 2))  # of both basins: weight and heights; the first and the last bin are open
    width0, width1 = (pool.high[0] - pool.low[0]) / _BINS, (pool.high[1] - pool.low[1]) / _BINS
    if not (0.0 < width0 < np.inf and (goal.basins == 1 or 0.0 < width1 < np.inf)):
        _forget(pool)
        return False
    _count(responses, basin, weights, pool, bins)
    sums[:] = 0.0
    for k in range(goal.basins):
        first, count = np.uint64(k * (_BINS + 2)), np.uint64(0)
        last = first + np.uint64(_BINS + 1)
        for e in range(first, last + np.uint64(1)):
            u = bins[e, _WEIGHT]
            if u > 0.0 and e != first and e != last:
                pool.room[k, _VALUE, count], pool.room[k, _WEIGHT, count] = bins[e, _VALUE] / u, u
                count += np.uint64(1)
            sums[k, _TOTAL] += u
        sums[k, _COUNT], sums[k, _LAST] = count, pool.high[k] if bins[last, _WEIGHT] > 0.0 else np.inf
        sums[k, _BELOW], sums[k, _HEIGHTS] = bins[first, _WEIGHT], bins[first, _VALUE]
    level = _search(goal, pool, sums)
    if not level.found:
        _forget(pool)
        return False
    slack = 0.0  # what the bins at the level hide
    for k in range(goal.basins):
        slack = max(slack, _at_depth(bins, k, level.depth))
    for k in range(goal.basins):
        _open(bins, k, level.depth, slack, pool)
    return True


@compiled
def _span(responses, basin, basins, pool):
    """Windows that hold everything."""
    for k in range(basins):
        low, high = np.inf, -np.inf
        for i in range(np.uint64(responses.size)):
            c = responses[i]
            low = min(low, c if basin[i] == k else np.inf)
            high = max(high, c if basin[i] == k else -np.inf)
        pool.low[k], pool.high[k] = low - _ROUNDING * (high - low), high + _ROUNDING * (high - low)


@compiled
def _count(responses, basin, weights, pool, bins):
    """Weight and heights of each bin, those beyond the windows in the open ones."""
    low0, low1, edge = pool.low[0], pool.low[1], _BINS + 1.0
    scale0 = _BINS / (pool.high[0] - low0)
    scale1 = _BINS / (pool.high[1] - low1)
    for i in range(np.uint64(responses.size)):
        c, u = responses[i], weights[i]
        low, scale = (low1, scale1) if basin[i] else (low0, scale0)
        at = min(max((c - low) * scale + 1.0, 0.0), edge)
        at += basin[i] * (_BINS + 2.0)
        e = np.uint64(np.int64(at))
        bins[e, _VALUE] += u * c
        bins[e, _WEIGHT] += u


@compiled
def _at_depth(bins, k, depth):
    """The weight of the bin in which the depth is reached."""
    below, first = 0.0, np.uint64(k * (_BINS + 2))
    for e in range(first, first + np.uint64(_BINS + 2)):
        below += bins[e, _WEIGHT]
        if below >= depth:
            return bins[e, _WEIGHT]
    return 0.0


@compiled
def _open(bins, k, depth, slack, pool):
    """The window of the bins in which the depth is reached, give or take ``slack``, and those beside them."""
    below, first = 0.0, np.uint64(k * (_BINS + 2))
    start, width = pool.low[k], (pool.high[k] - pool.low[k]) / _BINS
    fresh = True
    for e in range(_BINS + 2):
        weight = bins[first + np.uint64(e), _WEIGHT]
        if fresh and below + weight >= depth - slack:
            fresh, pool.low[k] = False, start + max(e - 2, 0) * width
        if weight > 0.0 and below >= depth + slack:
            pool.high[k] = start + min(e + 1, _BINS) * width
            break
        below += weight


@compiled
def _gather(responses, basin, weights, pool, sums):
    """What lies in each window, sorted, and the sums of what lies below."""
    low0, low1, high0, high1 = pool.low[0], pool.low[1], pool.high[0], pool.high[1]
    sums[:] = 0.0
    n, above0, above1 = np.uint64(responses.size), 0, 0
    for start in range(np.uint64(0), n, np.uint64(_STRIP)):
        end = min(start + np.uint64(_STRIP), n)
        below0, below1, heights0, heights1, total0, total1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        inside = 0
        for i in range(start, end):
            c, u, side = responses[i], weights[i], np.float64(basin[i])
            low, high = (low1, high1) if basin[i] else (low0, high0)
            wet = u if c < low else 0.0
            total0 += u
            total1 += u * side
            below0 += wet
            below1 += wet * side
            heights0 += wet * c
            heights1 += wet * c * side
            inside += 1 if (c >= low) & (c <= high) else 0
            above0 += 1 if (c > high) & (side == 0.0) else 0
            above1 += 1 if (c > high) & (side == 1.0) else 0
        sums[0, _BELOW] += below0 - below1
        sums[0, _HEIGHTS] += heights0 - heights1
        sums[0, _TOTAL] += total0 - total1
        sums[1, _BELOW] += below1
        sums[1, _HEIGHTS] += heights1
        sums[1, _TOTAL] += total1
        if inside > 0:
            _take_in(responses, basin, weights, pool, (start, end), sums)
    sums[0, _LAST], sums[1, _LAST] = high0 if above0 > 0 else np.inf, high1 if above1 > 0 else np.inf
    for k in range(2):
        sort_pairs(pool.room[k, _VALUE], pool.room[k, _WEIGHT], sums[k, _COUNT])


@compiled
def _take_in(responses, basin, weights, pool, strip, sums):
    """The part of a strip that lies in its window."""
    for i in range(strip[0], strip[1]):
        k, c = np.uint64(basin[i]), responses[i]
        if (c >= pool.low[k]) & (c <= pool.high[k]):
            at = np.uint64(sums[k, _COUNT])
            pool.room[k, _VALUE, at], pool.room[k, _WEIGHT, at] = c, weights[i]
            sums[k, _COUNT] += 1.0


@compiled
def _search(goal, pool, sums):
    """Walk the windows upwards, the same weight in each basin, to the depth K; not found where they are too narrow."""
    basins = goal.basins
    at, left, last = np.zeros(2, dtype=np.int64), np.zeros(2), np.full(2, -np.inf)
    lost = Level(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)
    K, most = sums[0, _BELOW], sums[0, _TOTAL]
    if basins == 2:
        K, most = max(K, sums[1, _BELOW]), min(most, sums[1, _TOTAL])
    below, A = K, 0.0
    for k in range(basins):
        A += sums[k, _HEIGHTS]
        left[k] = pool.room[k, _WEIGHT, 0] if sums[k, _COUNT] > 0 else 0.0
        more = K - sums[k, _BELOW]
        while more > 0.0:
            if at[k] == sums[k, _COUNT]:
                return lost
            step = min(more, left[k])
            last[k] = pool.room[k, _VALUE, at[k]]
            A += step * last[k]
            more -= step
            _advance(pool, sums, k, at, left, step)
    before_A, before_H, before_K = A, np.nan, K
    while True:
        H = 0.0
        for k in range(basins):
            if at[k] < sums[k, _COUNT]:
                H += pool.room[k, _VALUE, at[k]]
            elif sums[k, _LAST] == np.inf:
                H = np.inf
            else:
                return lost
        if H == np.inf or K >= most * (1.0 - _ROUNDING):
            break
        if K > 0.0 and _enough(goal, K, A, H):
            if K == below:
                return lost
            break
        step = left[0] if basins == 1 else min(left[0], left[1])
        before_A, before_H, before_K = A, H, K
        K, A = K + step, A + step * H
        for k in range(basins):
            last[k] = pool.room[k, _VALUE, at[k]]
            _advance(pool, sums, k, at, left, step)
    for k in range(basins):
        if K > 0.0 and last[k] == -np.inf:
            return lost  # the depth is that of the window's lower end
    gamma, ends_inside = (A + goal.volume) / (basins * K) if K > 0.0 else np.inf, False
    if goal.ridge >= 0.0:
        gamma = np.inf
        if A > 0.0 and before_H > 0.0 and A * before_H >= basins * goal.ridge:
            gamma, ends_inside = before_H / basins, True
            K = min(K, max(before_K, before_K + (basins * goal.ridge / before_H - before_A) / before_H))
        elif A > 0.0:
            gamma = goal.ridge / A
    share0 = _share(pool, sums, 0, last[0], K)
    share1 = _share(pool, sums, 1, last[1], K) if basins == 2 else 0.0
    low, high = 0.0, 0.0
    if basins == 2 and gamma < np.inf:
        after0 = pool.room[0, _VALUE, at[0]] if at[0] < sums[0, _COUNT] else np.inf
        after1 = pool.room[1, _VALUE, at[1]] if at[1] < sums[1, _COUNT] else np.inf
        if ends_inside:
            after0, after1 = last[0], last[1]
        low = gamma - min(after0, 2.0 * gamma - last[1])
        high = gamma - max(last[0], 2.0 * gamma - after1)
    return Level(gamma, K, last[0], last[1], share0, share1, low, high, True)


@compiled
def _advance(pool, sums, k, at, left, step):
    """So much of the next example's weight is under water; at the end of it the one after is next."""
    left[k] -= step
    if left[k] <= 0.0:
        at[k] += 1
        left[k] = pool.room[k, _WEIGHT, at[k]] if at[k] < sums[k, _COUNT] else 0.0


@compiled
def _enough(goal, K, A, H):
    """Whether the water ends at the depth K."""
    if goal.ridge < 0.0:
        return K * H - A >= goal.volume
    return A > 0.0 and H > 0.0 and A * H >= goal.basins * goal.ridge


@compiled
def _share(pool, sums, k, last, K):
    """Which part of the weight at the height ``last`` is needed for the depth K."""
    below, equal = sums[k, _BELOW], 0.0
    for e in range(np.int64(sums[k, _COUNT])):
        value = pool.room[k, _VALUE, e]
        if value > last:
            break
        if value == last:
            equal += pool.room[k, _WEIGHT, e]
        else:
            below += pool.room[k, _WEIGHT, e]
    return min(max((K - below) / equal, 0.0), 1.0) if equal > 0.0 else 0.0
