"""The small problem on a working set: steps on single coordinates, or on pairs where a free bias binds them.

    max over lower <= beta <= upper  of  the dual with all other coordinates fixed,

given K between the members and v, the derivative there. Variables are chosen by second order: a step's exact gain.
"""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled

_FLAT = 1e-12  # curvature of a pair that a kernel which is not positive definite may bring below zero


@compiled
def improve_pairs(K, ridge, beta, lower, upper, v, tolerance, most):
    """Steps on pairs, beta_i up and beta_j down, until v differs by no more than ``tolerance``: how many."""
    n = np.uint64(beta.size)
    for step in range(most):
        i, highest = n, -np.inf
        for t in range(n):
            if beta[t] < upper[t] and v[t] > highest:
                i, highest = t, v[t]
        if i == n:
            return step
        j, best, lowest = n, 0.0, np.inf
        row, own = K[i], K[i, i] + ridge[i]
        for t in range(n):
            if beta[t] > lower[t]:
                lowest = min(lowest, v[t])
                rise = highest - v[t]
                if rise > 0.0:
                    bend = own + K[t, t] + ridge[t] - 2.0 * row[t]
                    gain = rise * rise / (bend if bend > 0.0 else _FLAT)
                    if gain > best:
                        j, best = t, gain
        if j == n or highest - lowest <= tolerance:
            return step
        bend = own + K[j, j] + ridge[j] - 2.0 * row[j]
        length = (v[i] - v[j]) / (bend if bend > 0.0 else _FLAT)
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        if length >= min(up, down):
            length = min(up, down)
        beta[i] = upper[i] if length == up else beta[i] + length
        beta[j] = lower[j] if length == down else beta[j] - length
        other = K[j]
        for t in range(n):
            v[t] -= length * (row[t] - other[t])
        v[i] -= length * ridge[i]
        v[j] += length * ridge[j]
    return most


@compiled
def improve_singles(K, ridge, beta, lower, upper, v, tolerance, most):
    """Steps on single coordinates until no v that a step could follow exceeds ``tolerance``: how many."""
    n = np.uint64(beta.size)
    for step in range(most):
        j, best, worst, length = n, 0.0, 0.0, 0.0
        for t in range(n):
            slope = v[t]
            if (slope > 0.0 and beta[t] < upper[t]) or (slope < 0.0 and beta[t] > lower[t]):
                worst = max(worst, abs(slope))
                bend = K[t, t] + ridge[t]
                move = slope / (bend if bend > 0.0 else _FLAT)
                move = min(max(move, lower[t] - beta[t]), upper[t] - beta[t])
                gain = move * slope - 0.5 * move * move * bend
                if gain > best:
                    j, best, length = t, gain, move
        if j == n or worst <= tolerance:
            return step
        if length == upper[j] - beta[j]:
            beta[j] = upper[j]
        elif length == lower[j] - beta[j]:
            beta[j] = lower[j]
        else:
            beta[j] += length
        row = K[j]
        for t in range(n):
            v[t] -= length * row[t]
        v[j] -= length * ridge[j]
    return most
