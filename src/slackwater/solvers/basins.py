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
being a sum; only these few are sorted. Where the level moves far, a random sample tells the window: O(n) expected.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, random_state

_FEW = 256  # are sorted without a window
_SHARE = 16  # a window of more than this part of all responses is opened by a sample instead
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

    centre: np.ndarray  # (2,) of the windows
    width: np.ndarray  # (1,) of both windows, to either side; infinite: not known
    before: np.ndarray  # (2,) where the last water stood
    room: np.ndarray  # (2, 2, n): basin, value and weight, examples
    random: np.ndarray


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


def new_pool(n: int, rng: np.random.Generator) -> Pool:
    """For n responses."""
    return Pool(np.zeros(2), np.full(1, np.inf), np.zeros(2), np.empty((2, 2, n)), random_state(rng))


def basins_of(labels: np.ndarray, free: bool) -> np.ndarray:
    """The basin of every example."""
    return np.where(labels < 0.0, 1, 0).astype(np.uint8) if free else np.zeros(labels.size, dtype=np.uint8)


def two_basins(responses, labels, volume: float) -> Level:
    """The level over both classes with the best bias, all weights one."""
    responses, labels = np.asarray(responses, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if labels.min() == labels.max():
        raise ValueError("two basins need examples of both classes")
    pool = new_pool(responses.size, np.random.default_rng(0))
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
    n = responses.size
    sums, fresh = np.empty((2, 5)), pool.width[0] == np.inf
    if fresh and n > _FEW:
        _open(goal, responses, basin, weights, pool)
    for attempt in range(3):
        _gather(responses, basin, weights, pool, sums)
        level = _search(goal, pool, sums)
        if level.found:
            break
        pool.width[0] = np.inf
        if attempt == 0 and not fresh:
            _open(goal, responses, basin, weights, pool)
    moved, inside = 0.0, sums[0, _COUNT] + sums[1, _COUNT]
    for k in range(goal.basins):
        last = level.last1 if k else level.last0
        if -np.inf < last < np.inf:
            moved = max(moved, abs(last - pool.before[k]))
            pool.centre[k] = pool.before[k] = last
    width = 2.0 * moved  # of the next window, if that is a narrow one
    narrow = n > _FEW and 0.0 < width and inside * min(width / pool.width[0], 1.0) * _SHARE < n
    pool.width[0] = width if narrow and pool.width[0] < np.inf else np.inf
    return level


@compiled
def _open(goal, responses, basin, weights, pool):
    """A window where the water stands over a random sample, give or take its uncertainty."""
    n = np.uint64(responses.size)
    size = np.uint64(2.0 * responses.size ** (2.0 / 3.0))
    some, sides, shares = np.empty(size), np.empty(size, dtype=np.uint8), np.empty(size)
    for k in range(size):
        i = np.uint64(next_below(pool.random, np.int64(n)))
        some[k], sides[k], shares[k] = responses[i], basin[i], weights[i]
    part = float(size) / float(n)
    sums = np.empty((2, 5))
    _gather(some, sides, shares, pool, sums)
    level = _search(Goal(goal.volume * part, goal.ridge * part, goal.basins), pool, sums)
    width, off = 0.0, int(1.5 * math.sqrt(float(size))) + 1
    for k in range(goal.basins):
        count, last = int(sums[k, _COUNT]), level.last1 if k else level.last0
        if not level.found or count == 0 or not -np.inf < last < np.inf:
            return
        at = 0
        while at < count and pool.room[k, _VALUE, at] < last:
            at += 1
        low, high = pool.room[k, _VALUE, max(0, at - off)], pool.room[k, _VALUE, min(count - 1, at + off)]
        width = max(width, max(high - last, last - low))
        pool.centre[k] = last
    if width > 0.0:
        pool.width[0] = width


@compiled
def _gather(responses, basin, weights, pool, sums):
    """What lies in each window, sorted, and the sums of what lies below."""
    width, everything = pool.width[0], pool.width[0] == np.inf
    low0, low1 = pool.centre[0] - width, pool.centre[1] - width
    high0, high1 = pool.centre[0] + width, pool.centre[1] + width
    below0, below1, heights0, heights1, total0, total1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(np.uint64(responses.size)):
        c, u, side = responses[i], weights[i], np.float64(basin[i])
        wet = u if c < (low1 if basin[i] else low0) else 0.0
        total0 += u
        total1 += u * side
        below0 += wet
        below1 += wet * side
        heights0 += wet * c
        heights1 += wet * c * side
    sums[0, _BELOW], sums[0, _HEIGHTS], sums[0, _TOTAL] = below0 - below1, heights0 - heights1, total0 - total1
    sums[1, _BELOW], sums[1, _HEIGHTS], sums[1, _TOTAL] = below1, heights1, total1
    sums[0, _LAST], sums[1, _LAST] = high0, high1
    count0, count1 = np.uint64(0), np.uint64(0)
    for i in range(np.uint64(responses.size)):
        c = responses[i]
        low, high = (low1, high1) if basin[i] else (low0, high0)
        if (c >= low) & (c <= high) | everything:
            if basin[i]:
                pool.room[1, _VALUE, count1], pool.room[1, _WEIGHT, count1] = c, weights[i]
                count1 += np.uint64(1)
            else:
                pool.room[0, _VALUE, count0], pool.room[0, _WEIGHT, count0] = c, weights[i]
                count0 += np.uint64(1)
    sums[0, _COUNT], sums[1, _COUNT] = count0, count1
    _sort(pool.room[0, _VALUE], pool.room[0, _WEIGHT], count0)
    _sort(pool.room[1, _VALUE], pool.room[1, _WEIGHT], count1)


@compiled
def _sort(values, weights, count):
    """Values rising, weights with them: quicksort, short pieces by insertion."""
    stack, depth = np.empty((64, 2), dtype=np.int64), 1
    stack[0, 0], stack[0, 1] = 0, np.int64(count) - 1
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        while last - first > 16:
            a, b, c = values[first], values[(first + last) // 2], values[last]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = first, last
            while i <= j:
                while values[i] < pivot:
                    i += 1
                while values[j] > pivot:
                    j -= 1
                if i <= j:
                    values[i], values[j] = values[j], values[i]
                    weights[i], weights[j] = weights[j], weights[i]
                    i += 1
                    j -= 1
            if j - first > last - i:  # the longer piece waits: the stack stays short
                stack[depth, 0], stack[depth, 1] = first, j
                first = i
            else:
                stack[depth, 0], stack[depth, 1] = i, last
                last = j
            depth += 1
        for i in range(first + 1, last + 1):
            value, weight, j = values[i], weights[i], i - 1
            while j >= first and values[j] > value:
                values[j + 1], weights[j + 1] = values[j], weights[j]
                j -= 1
            values[j + 1], weights[j + 1] = value, weight


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
