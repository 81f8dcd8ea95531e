"""The walk of the Stochastic Batch Perceptron: levels, draws of examples under water, steps, sums over the last half.

Draws are proposals, numbered words of a random sequence for each class, uniform over all examples, of which those under
water are taken. So the draws of any level are p* exactly, and which rows the next levels will probably need is known
beforehand. The draws of a level are spread over the classes as p* is, as evenly as whole numbers allow: the mean is
that of independent draws, without the chance that one class is drawn more often, which moves all responses at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.solvers.basins import Goal, Pool, part_of, pour

_RARE = 1.0 / 128.0  # of all weight is under water: draw from a list
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_A, _C, _P = 0, 1, 2  # sums of alpha, of c, of p*
_N, _SQUARES = 0, 1


class Task(NamedTuple):
    """What does not change."""

    labels: np.ndarray
    weights: np.ndarray  # u_i, 1 on average
    basin: np.ndarray
    diagonal: np.ndarray
    basins: int
    volume: float  # n nu
    ridge: float  # lambda n, negative where nu is given
    radius: float  # R
    heaviest: float  # max u_i
    adaptive: bool  # one step for all draws of a level


class Walk(NamedTuple):
    """What a step changes."""

    alpha: np.ndarray
    c: np.ndarray
    sums: np.ndarray  # (2, 3, n): since the last power of two of levels, and between the last two
    listed: np.ndarray  # (n,), room for the examples under water where they are rare
    facts: np.ndarray  # ||w||^2, the sum of all ||g||^2
    times: np.ndarray  # t, levels, levels in each of the sums; int64
    proposals: np.ndarray  # (3, 2) of each class: seed, the number of the next, and of that after the draws; uint64
    pool: Pool


class Chosen(NamedTuple):
    """The draws of a level."""

    ids: np.ndarray
    coefs: np.ndarray


def averages(walk: Walk) -> np.ndarray:
    """The means of alpha, c and p* over the last half of the levels, or a little more."""
    return (walk.sums[0] + walk.sums[1]) / max(1, int(walk.times[2] + walk.times[3]))


@compiled
def take_levels(task, walk, kept, chosen, most, clock):
    """So many levels with their draws; fewer where a row is missing."""
    for done in range(most):
        level = _level(task, walk)
        _draw(task, walk, level, chosen.ids)
        for k in range(np.uint64(chosen.ids.size)):
            if kept.slots[chosen.ids[k]] < 0:
                return done
        _average_in(task, walk, level)
        _step(task, walk, kept, chosen, clock)
    return most


@compiled
def _level(task, walk):
    """The water over c."""
    goal = Goal(task.volume, task.ridge * walk.facts[_N] if task.ridge >= 0.0 else -1.0, task.basins)
    return pour(goal, walk.c, task.basin, task.weights, walk.pool)


@compiled
def _hashed(seed, number):
    """The number-th word of a random sequence (splitmix64; Steele, Lea, Flood)."""
    x = seed + number * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def _accepted(task, walk, level, side, number, listed, heaviest):
    """The example that proposal ``number`` of a class names if it is drawn, else -1: p* by rejection.

    ``heaviest`` is what one example of this class has of p* at most.
    """
    seed = walk.proposals[0, side]
    x = _hashed(seed, np.uint64(2) * number)
    size = listed if listed else task.labels.size
    j = np.int64(((x >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
    if listed:
        j = walk.listed[j]
    if (task.labels[j] < 0.0) != (side == 1):
        return np.int64(-1)
    part = part_of(level, task.basin[j], walk.c[j]) * task.weights[j]
    if part >= heaviest:
        return j
    if part == 0.0:
        return np.int64(-1)
    coin = _hashed(seed, np.uint64(2) * number + np.uint64(1)) >> np.uint64(11)
    return j if np.float64(coin) * (heaviest / 9007199254740992.0) < part else np.int64(-1)


@compiled
def _negative_share(task, walk, level):
    """The part of p* that lies on negative examples."""
    if task.basins == 2:
        return 0.5
    low, share, negative, both = level.last0, level.share0, 0.0, 0.0
    for i in range(np.uint64(task.labels.size)):
        r = walk.c[i]
        p = task.weights[i] * (1.0 if r < low else (share if r == low else 0.0))
        both += p
        negative += p if task.labels[i] < 0.0 else 0.0
    return negative / both


@compiled
def _list(task, walk, level):
    """Where little is under water, all that is: how many; 0 where proposals may go everywhere. The heaviest per class.

    A little of one example alone may be all of its class: of that, too, proposals are taken.
    """
    n = task.labels.size
    if task.basins * level.depth > _RARE * n:
        return 0, (task.heaviest, task.heaviest)
    count, positive, negative = 0, 0.0, 0.0
    for i in range(np.uint64(n)):
        part = part_of(level, task.basin[i], walk.c[i]) * task.weights[i]
        if part > 0.0:
            walk.listed[count] = i
            count += 1
            positive = max(positive, part if task.labels[i] > 0.0 else 0.0)
            negative = max(negative, part if task.labels[i] < 0.0 else 0.0)
    return count, (positive, negative)


@compiled
def _draw(task, walk, level, ids):
    """As many draws from p* as there is room; they are taken back where a row is missing."""
    listed, heaviest = _list(task, walk, level)
    share = _negative_share(task, walk, level)
    start = np.float64(_hashed(walk.proposals[0, 0], ~np.uint64(walk.times[1])) >> np.uint64(11)) / 9007199254740992.0
    walk.proposals[2] = walk.proposals[1]
    for k in range(ids.size):
        side = np.int64(start + (k + 1) * share) - np.int64(start + k * share)
        j = np.int64(-1)
        while j < 0:
            j = _accepted(task, walk, level, side, walk.proposals[2, side], listed, heaviest[side])
            walk.proposals[2, side] += np.uint64(1)
        ids[k] = j


@compiled
def rows_ahead(task, walk, slots, first, ids):
    """The rows ``first``, then those of later proposals that are under water now and not in memory; each once."""
    level = _level(task, walk)
    listed, heaviest = _list(task, walk, level)
    share = _negative_share(task, walk, level)
    seen = np.zeros(task.labels.size, dtype=np.uint8)
    count = np.uint64(0)
    for k in range(np.uint64(first.size)):
        if not seen[first[k]]:
            seen[first[k]] = 1
            ids[count] = first[k]
            count += np.uint64(1)
    numbers, drawn = walk.proposals[1].copy(), np.zeros(2)
    for _ in range(8 * ids.size + (0 if listed else 2 * task.labels.size)):
        if count == ids.size:
            break
        side = 1 if drawn[1] < share * (drawn[0] + drawn[1] + 1.0) else 0
        j = _accepted(task, walk, level, side, numbers[side], listed, heaviest[side])
        numbers[side] += np.uint64(1)
        if j < 0:
            continue
        drawn[side] += 1.0
        if slots[j] < 0 and not seen[j]:
            seen[j] = 1
            ids[count] = j
            count += np.uint64(1)
    return count


@compiled
def _step(task, walk, kept, chosen, clock):
    """The steps on the draws of a level, their rows added in one pass."""
    ids, coefs = chosen.ids, chosen.coefs
    shrunk = _adaptive_step(task, walk, kept, ids, coefs) if task.adaptive else _steps(task, walk, kept, ids, coefs)
    walk.times[0] += ids.size
    walk.proposals[1] = walk.proposals[2]
    if shrunk != 1.0:
        for i in range(np.uint64(walk.alpha.size)):
            walk.alpha[i] *= shrunk
    for k in range(np.uint64(ids.size)):
        walk.alpha[ids[k]] += coefs[k]
        coefs[k] *= task.labels[ids[k]]
        kept.used[kept.slots[ids[k]]] = clock
    _add_rows(task.labels, kept.values, kept.slots, ids, coefs, shrunk, walk.c)


@compiled
def _steps(task, walk, kept, ids, coefs):
    """The perceptron's steps as far as coefficients and ||w|| go: what the w before them is to be multiplied by."""
    N, shrunk = walk.facts[_N], 1.0
    for k in range(np.uint64(ids.size)):
        j = ids[k]
        response = shrunk * walk.c[j]
        for e in range(k):
            response += coefs[e] * _between(task, kept, ids[e], j)
        eta = 1.0 / (task.radius * math.sqrt(np.float64(walk.times[0]) + np.float64(k) + 1.0))
        N += 2.0 * eta * response + eta * eta * task.diagonal[j]
        coefs[k] = eta
        if N > 1.0:
            r = 1.0 / math.sqrt(N)
            N, shrunk = 1.0, shrunk * r
            for e in range(k + np.uint64(1)):
                coefs[e] *= r
    walk.facts[_N] = max(N, 0.0)
    return shrunk


@compiled
def _adaptive_step(task, walk, kept, ids, coefs):
    """The same for one step along the mean g of the draws, eta = 1 / sqrt(the sum of all ||g||^2)."""
    m, square, response = np.float64(ids.size), 0.0, 0.0
    for k in range(np.uint64(ids.size)):
        j = ids[k]
        response += walk.c[j]
        square += task.diagonal[j]
        for e in range(k):
            square += 2.0 * _between(task, kept, ids[e], j)
    square = max(square, 0.0) / (m * m)
    walk.facts[_SQUARES] += square
    eta = 1.0 / math.sqrt(walk.facts[_SQUARES]) if walk.facts[_SQUARES] > 0.0 else 0.0
    N = max(walk.facts[_N] + 2.0 * eta * response / m + eta * eta * square, 0.0)
    shrunk = 1.0 / math.sqrt(N) if N > 1.0 else 1.0
    walk.facts[_N] = min(N, 1.0)
    coefs[:] = eta * shrunk / m
    return shrunk


@compiled(inline=True)
def _between(task, kept, i, j):
    """Q_ij from a row that is kept."""
    return task.labels[i] * task.labels[j] * np.float64(kept.values[kept.slots[i], j])


@compiled
def _add_rows(labels, values, slots, ids, coefs, shrunk, c):
    """c <- shrunk c + y sum_k coefs_k K[ids_k], four rows at a time."""
    k, count, n = np.uint64(0), np.uint64(ids.size), np.uint64(c.size)
    while k + np.uint64(4) <= count:
        a, b = values[slots[ids[k]]], values[slots[ids[k + np.uint64(1)]]]
        d, e = values[slots[ids[k + np.uint64(2)]]], values[slots[ids[k + np.uint64(3)]]]
        p, q, r, s = coefs[k], coefs[k + np.uint64(1)], coefs[k + np.uint64(2)], coefs[k + np.uint64(3)]
        for i in range(n):
            c[i] = shrunk * c[i] + labels[i] * ((p * a[i] + q * b[i]) + (r * d[i] + s * e[i]))
        shrunk = 1.0
        k += np.uint64(4)
    while k < count:
        a, p = values[slots[ids[k]]], coefs[k]
        for i in range(n):
            c[i] = shrunk * c[i] + labels[i] * (p * a[i])
        shrunk = 1.0
        k += np.uint64(1)


@compiled
def _average_in(task, walk, level):
    """The sums over the last half: at powers of two of levels the older of them is forgotten."""
    levels = walk.times[1] + 1
    walk.times[1] = levels
    if levels & (levels - 1) == 0:
        walk.sums[1] = walk.sums[0]
        walk.times[3] = walk.times[2]
        walk.sums[0] = 0.0
        walk.times[2] = 0
    walk.times[2] += 1
    mass = 1.0 if task.ridge >= 0.0 else 1.0 / (task.basins * level.depth)
    a, c, p = walk.sums[0, _A], walk.sums[0, _C], walk.sums[0, _P]
    for i in range(np.uint64(a.size)):
        a[i] += walk.alpha[i]
        c[i] += walk.c[i]
    low0, low1, share0, share1 = level.last0, level.last1, mass * level.share0, mass * level.share1
    for i in range(np.uint64(a.size)):
        low, share = (low1, share1) if task.basin[i] else (low0, share0)
        r = walk.c[i]
        p[i] += task.weights[i] * (mass if r < low else (share if r == low else 0.0))
