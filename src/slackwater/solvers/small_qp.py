"""The quadratic program of the bundle methods: a concave function of a few hundred variables on the simplex.

    max over beta >= 0, sum beta = 1  of  b'beta - beta'H beta / 2,

with H a matrix of inner products, often close to singular. A face of the simplex (its members) is climbed by Newton
steps from a Cholesky factor that grows by one row per member; at its top the variable with the steepest way up joins,
at its edge a member leaves. Every step is an exact search along its direction, with H itself: rounding in the factor
can make a step short, but the value never falls. From the last round's answer a new cut takes a handful of steps.

On programs of runs of ocas, svm-perf and bmrm on a9a and covtype (up to 177 variables) it is 3 to 175 times as fast as
daqp, which starts anew each time: 12 times in the geometric mean. The values agree to 7e-10, and neither solver's is
always the higher one (``benchmarks/small_programs.py``).
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import compiled

_RIDGE = 1e-14  # smallest pivot, relative to the diagonal: members that depend on each other
_EXACT = 4e-15  # of the largest terms: slopes that rounding cannot tell from a flat top
_STEPS_PER_VARIABLE, _STEPS = 20, 100


@compiled
def simplex_qp(H, b, beta):
    """Move the feasible ``beta`` to the maximum, in place; how many steps it took."""
    n = np.uint64(b.size)
    members, count = np.empty(n, dtype=np.uint64), np.uint64(0)
    for j in range(n):
        if beta[j] > 0.0:
            members[count] = j
            count += np.uint64(1)
    slopes = np.empty(n)  # b - H beta
    _slopes(H, b, beta, members, count, slopes)
    shift = _typical(H, beta)
    L = np.empty((n, n))
    _factor(H, shift, members, np.uint64(0), count, L)
    direction, ones, bend = np.empty(n), np.empty(n), np.empty(n)
    tops = 0  # visits to the top of one face
    limit = _STEPS + _STEPS_PER_VARIABLE * b.size
    for steps in range(limit):
        rise = _newton(L, slopes, members, count, direction, ones)
        left = np.int64(-1)
        if rise > 0.0:
            left = _climb(H, beta, members, count, slopes, direction, rise, bend)
        if left >= 0:
            tops = 0
            count -= np.uint64(1)
            for k in range(np.uint64(left), count):
                members[k] = members[k + np.uint64(1)]
            _factor(H, shift, members, np.uint64(left), count, L)
            _slopes(H, b, beta, members, count, slopes)
            continue
        best, gain, size = _steepest(b, slopes, beta)
        if gain <= _EXACT * size:
            return steps + 1
        if beta[best] > 0.0:  # not yet at the top
            tops += 1
            if tops > 3:
                return steps + 1
            continue
        tops = 0
        _slopes(H, b, beta, members, count, slopes)
        members[count] = np.uint64(best)
        count += np.uint64(1)
        _factor(H, shift, members, count - np.uint64(1), count, L)
    return limit


@compiled
def _typical(H, beta):
    """A positive number of the size of the members' H_jj: added to all of H it changes nothing on the simplex."""
    mean, largest = 0.0, 0.0
    for j in range(np.uint64(beta.size)):
        mean += beta[j] * H[j, j]
        largest = max(largest, H[j, j])
    if mean > 0.0:
        return mean
    return largest if largest > 0.0 else 1.0


@compiled
def _slopes(H, b, beta, members, count, out):
    """out = b - H beta."""
    for j in range(np.uint64(b.size)):
        line, total = H[j], b[j]
        for k in range(count):
            total -= line[members[k]] * beta[members[k]]
        out[j] = total


@compiled
def _factor(H, shift, members, first, count, L):
    """The rows of the Cholesky factor of H + shift over the members, from row ``first`` on."""
    for k in range(first, count):
        line, row = H[members[k]], L[k]
        diagonal = line[members[k]] + shift
        pivot = diagonal
        for q in range(k):
            other, total = L[q], line[members[q]] + shift
            for s in range(q):
                total -= row[s] * other[s]
            total /= other[q]
            row[q] = total
            pivot -= total * total
        row[k] = math.sqrt(max(pivot, _RIDGE * diagonal))


@compiled
def _solve(L, count, x):
    """x <- (L L')^-1 x."""
    for k in range(count):
        row, total = L[k], x[k]
        for s in range(k):
            total -= row[s] * x[s]
        x[k] = total / row[k]
    for k in range(count):
        last = count - np.uint64(1) - k
        row = L[last]
        x[last] /= row[last]
        for s in range(last):
            x[s] -= row[s] * x[last]


@compiled
def _newton(L, slopes, members, count, direction, ones):
    """The step to the top of the face's plane, and how steep the way there is."""
    for k in range(count):
        direction[k], ones[k] = slopes[members[k]], 1.0
    _solve(L, count, direction)
    _solve(L, count, ones)
    along, across = 0.0, 0.0
    for k in range(count):
        along += direction[k]
        across += ones[k]
    rest = 0.0
    for k in range(count):
        direction[k] -= along / across * ones[k]
        rest += direction[k]
    rise = 0.0
    for k in range(count):
        direction[k] -= rest / np.float64(count)
        rise += slopes[members[k]] * direction[k]
    return rise


@compiled
def _climb(H, beta, members, count, slopes, direction, rise, bend):
    """Go to the highest point in this direction; which member came to zero first, -1 for none."""
    curvature = 0.0
    for j in range(np.uint64(beta.size)):
        line, total = H[j], 0.0
        for k in range(count):
            total += line[members[k]] * direction[k]
        bend[j] = total
    edge, left = math.inf, np.int64(-1)
    for k in range(count):
        curvature += direction[k] * bend[members[k]]
        if direction[k] < 0.0 and -beta[members[k]] / direction[k] < edge:
            edge, left = -beta[members[k]] / direction[k], np.int64(k)
    length = rise / curvature if curvature > 0.0 else math.inf
    if length < edge:
        left = np.int64(-1)
    length = min(length, edge)
    if length == math.inf:
        return np.int64(-1)
    total = 0.0
    for k in range(count):
        j = members[k]
        beta[j] = max(beta[j] + length * direction[k], 0.0)
        if np.int64(k) == left:
            beta[j] = 0.0
        total += beta[j]
    for k in range(count):
        beta[members[k]] /= total
    for j in range(np.uint64(beta.size)):
        slopes[j] -= length * bend[j]
    return left


@compiled
def _steepest(b, slopes, beta):
    """The variable with the largest slope, how far it exceeds their mean, and the size of the terms in a slope."""
    best, mean, size = np.uint64(0), 0.0, 0.0
    for j in range(np.uint64(b.size)):
        mean += beta[j] * slopes[j]
        size = max(size, abs(b[j]) + abs(b[j] - slopes[j]))
        if slopes[j] > slopes[best]:
            best = np.uint64(j)
    return best, slopes[best] - mean, size
