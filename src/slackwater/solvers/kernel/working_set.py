"""The small problem on a working set: steps on single coordinates, or on pairs where a free bias binds them.

    max over lower <= beta <= upper  of  the dual with all other coordinates fixed,

given K between the members and v, the derivative there. Variables are chosen by second order: a step's exact gain.
"""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled, larger

FLAT = 1e-12  # in place of a curvature that is not positive: equal points, or an indefinite kernel (tau of LIBSVM)


@compiled
def improve_pairs(K, ridge, beta, lower, upper, v, tolerance, most):
    """Steps on pairs, beta_i up and beta_j down, until v differs by no more than ``tolerance``: how many.

    A step is two passes that vectorise: one moves v and finds the largest that may rise, one weighs its partners.
    """
    n = np.uint64(beta.size)
    rising, falling = np.empty(n), np.empty(n)  # what hides a v that must not rise, or fall
    bends, gains = np.empty(n), np.empty(n)
    for t in range(n):
        rising[t] = 0.0 if beta[t] < upper[t] else -np.inf
        falling[t] = 0.0 if beta[t] > lower[t] else np.inf
        bends[t] = K[t, t] + ridge[t]
    row, other, length = K[0], K[0], 0.0
    for step in range(most):
        highest = -np.inf
        for t in range(n):
            v[t] -= length * (row[t] - other[t])
            highest = larger(highest, v[t] + rising[t])
        if highest == -np.inf:
            return step
        i = np.uint64(0)
        while v[i] + rising[i] != highest:
            i += np.uint64(1)
        row, own = K[i], bends[i]
        best, lowest = 0.0, np.inf
        for t in range(n):
            low = v[t] + falling[t]
            lowest = -larger(-lowest, -low)
            rise = max(highest - low, 0.0)
            bend = own + bends[t] - 2.0 * row[t]
            gains[t] = rise * rise / (bend if bend > 0.0 else FLAT)
            best = larger(best, gains[t])
        if best <= 0.0 or highest - lowest <= tolerance:
            return step
        j = np.uint64(0)
        while gains[j] != best:
            j += np.uint64(1)
        bend = own + bends[j] - 2.0 * row[j]
        length = (v[i] - v[j]) / (bend if bend > 0.0 else FLAT)
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        if length >= min(up, down):
            length = min(up, down)
        beta[i] = upper[i] if length == up else beta[i] + length
        beta[j] = lower[j] if length == down else beta[j] - length
        rising[i] = 0.0 if beta[i] < upper[i] else -np.inf
        rising[j], falling[i] = 0.0, 0.0
        falling[j] = 0.0 if beta[j] > lower[j] else np.inf
        v[i] -= length * ridge[i]
        v[j] += length * ridge[j]
        other = K[j]
    for t in range(n):
        v[t] -= length * (row[t] - other[t])
    return most


@compiled
def improve_singles(K, ridge, beta, lower, upper, v, tolerance, most):
    """Steps on single coordinates until no v that a step could follow exceeds ``tolerance``: how many."""
    n = np.uint64(beta.size)
    bends, gains = np.empty(n), np.empty(n)
    for t in range(n):
        bend = K[t, t] + ridge[t]
        bends[t] = bend if bend > 0.0 else FLAT
    row, length = K[0], 0.0
    for step in range(most):
        best, worst = 0.0, 0.0
        for t in range(n):
            v[t] -= length * row[t]
            slope = v[t]
            move = min(max(slope / bends[t], lower[t] - beta[t]), upper[t] - beta[t])
            gains[t] = move * slope - 0.5 * move * move * bends[t]
            best = larger(best, gains[t])
            worst = larger(worst, abs(slope) if move != 0.0 else 0.0)
        if best <= 0.0 or worst <= tolerance:
            return step
        j = np.uint64(0)
        while gains[j] != best:
            j += np.uint64(1)
        slope = v[j]
        length = min(max(slope / bends[j], lower[j] - beta[j]), upper[j] - beta[j])
        if length == upper[j] - beta[j]:
            beta[j] = upper[j]
        elif length == lower[j] - beta[j]:
            beta[j] = lower[j]
        else:
            beta[j] += length
        v[j] -= length * ridge[j]
        row = K[j]
    for t in range(n):
        v[t] -= length * row[t]
    return most
