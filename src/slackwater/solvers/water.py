"""The level that a volume of water reaches over bumps of given heights: the slack that a perceptron of batches pours.

    f = max over xi >= 0, sum xi <= V  of  min_i (c_i + xi_i),   the level gamma of   sum_i max(0, gamma - c_i) = V.

With c sorted and A(k) the sum of its k smallest, gamma = min_k (A(k) + V) / k; for V = 0 it is the lowest c.

Cotter, Shalev-Shwartz, Srebro. The kernelized stochastic batch perceptron. ICML 2012.
"""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled, next_below


@compiled
def water_level(responses, volume, room, random):
    """gamma, in expected time O(n): a random pivot is either under water, with all below it, or above with the rest.

    ``room`` is overwritten: as many numbers as there are responses, at least one.
    """
    n = np.uint64(responses.size)
    lowest = responses[0]
    for i in range(n):
        room[i] = responses[i]
        lowest = min(lowest, responses[i])
    count, total = 0, 0.0  # of what is known to be under water, heights above the lowest
    first, end = np.uint64(0), n
    while first < end:
        pivot = room[first + np.uint64(next_below(random, np.int64(end - first)))]
        middle, below = _split(room, first, end, pivot)
        above = _ties(room, middle, end, pivot)
        k = count + np.int64(above - first)
        A = total + (below - lowest * np.int64(middle - first)) + (pivot - lowest) * np.int64(above - middle)
        if k * (pivot - lowest) - A < volume:
            count, total, first = k, A, above
        else:
            end = middle
    return lowest + (total + volume) / count if count else lowest


@compiled
def _split(room, first, end, pivot):
    """What is lower than the pivot comes to the front: where it ends, and its sum."""
    middle, below = first, 0.0
    for i in range(first, end):
        value = room[i]
        if value < pivot:
            room[i] = room[middle]
            room[middle] = value
            middle += np.uint64(1)
            below += value
    return middle, below


@compiled
def _ties(room, middle, end, pivot):
    """What equals the pivot follows: where it ends."""
    above = middle
    for i in range(middle, end):
        value = room[i]
        if value == pivot:
            room[i] = room[above]
            room[above] = value
            above += np.uint64(1)
    return above
