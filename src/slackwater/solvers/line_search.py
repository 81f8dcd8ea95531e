"""The exact line search of OCAS (Franc, Sonnenburg 2008), for every loss of the family.

    min over k >= 0 of  lambda/2 ||w + k d||^2 + sum_i p_i l(m_i + k dm_i).

The derivative rises from left to right and is piecewise linear. Its kinks are the k at which an example's shortfall
r = target - m passes zero, and where the loss is rounded off the end of the parabola too. The hinge's derivative jumps
there by p |dm|, that of a rounded loss bends by p dm^2 / width. Bracketing steps, each one sum over the kinks that the
bracket still holds, leave a short piece around the zero; only the kinks on it are sorted and walked. So the search
costs O(n), not a sort, and its answer is exact.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import compiled

_FEW = 48  # kinks worth sorting without another bracketing step
_MOST_STEPS = 40


def room_for_kinks(loss, n: int) -> np.ndarray:
    """What a search over n examples writes to: callers that search often keep it."""
    return np.empty((2, (1 if math.isinf(loss.cap) or loss.width == 0.0 else 2) * n + 1))


def line_search(loss, shares, margins, change, curvature: float, rise: float, room=None) -> float:
    """The best k >= 0, given m, dm, the weights p_i of the losses, lambda ||d||^2 > 0 and lambda <w, d>."""
    if room is None:
        room = room_for_kinks(loss, margins.size)
    return float(_best_k(loss, shares, margins, change, curvature, rise, room[0], room[1]))


@compiled
def _best_k(loss, shares, margins, change, curvature, rise, places, sizes):
    if loss.width > 0.0:
        slope, bend, count = _rounded_kinks(loss, shares, margins, change, places, sizes)
    else:
        slope, bend, count = _corners(loss, shares, margins, change, places, sizes)
    slope, bend = slope + rise, bend + curvature
    if not slope < 0.0 or not curvature > 0.0:
        return 0.0
    return _zero(places, sizes, count, loss.width > 0.0, slope, bend, -slope / curvature)


# Candidates are written before it is known whether they count: a branch a row would be guessed wrong too often. Where
# dm = 0 the place is infinite or not a number.


@compiled
def _corners(loss, shares, margins, change, places, sizes):
    """The hinge's derivative at 0+, its bend 0, and its kinks beyond: where they are, and the jumps."""
    slope, count = 0.0, np.uint64(0)
    for i in range(np.uint64(margins.size)):
        dm, r = change[i], loss.target - margins[i]
        fall = loss.cap * shares[i] * dm
        slope -= fall if r > 0.0 or (r == 0.0 and dm < 0.0) else 0.0
        where = r / dm
        places[count], sizes[count] = where, abs(fall)
        count += np.uint64(0.0 < where < math.inf)
    return slope, 0.0, count


@compiled
def _rounded_kinks(loss, shares, margins, change, places, sizes):
    """The derivative of a rounded loss at 0+ and its bend, and the kinks beyond: where, and the change of the bend."""
    slope, bend, knee = 0.0, 0.0, loss.cap * loss.width
    count = np.uint64(0)
    for i in range(np.uint64(margins.size)):
        dm, r = change[i], loss.target - margins[i]
        fall = shares[i] * dm / loss.width
        steepness = fall * dm
        slope -= fall * min(max(r, 0.0), knee)
        curved = (r > 0.0 or (r == 0.0 and dm < 0.0)) and (r < knee or (r == knee and dm > 0.0))
        bend += steepness if curved else 0.0
        where = r / dm
        places[count], sizes[count] = where, math.copysign(steepness, -dm)
        count += np.uint64(0.0 < where < math.inf)
        if knee < math.inf:
            where = (r - knee) / dm
            places[count], sizes[count] = where, math.copysign(steepness, dm)
            count += np.uint64(0.0 < where < math.inf)
    return slope, bend, count


@compiled
def _zero(places, sizes, count, rounded, slope, bend, furthest):
    """Where the derivative passes zero; ``furthest`` lies at or beyond. The kinks outside the bracket are forgotten."""
    low, g_low, h_low = 0.0, slope, bend
    high, g_high = furthest, 0.0
    k = min(1.0, 0.5 * furthest)
    for _ in range(_MOST_STEPS):
        if count <= np.uint64(_FEW) or not low < k < high:
            break
        g, h = _derivative(places, sizes, count, rounded, g_low, h_low, low, k)
        if g < 0.0:
            low, g_low, h_low = k, g, h
        else:
            high, g_high = k, g
        count = _keep(places, sizes, count, low, high)
        # The secant's zero, kept off the ends, so that both of them move.
        share = -g_low / (g_high - g_low) if g_high > 0.0 else 0.5
        k = low + (high - low) * min(max(share, 0.05), 0.95)
    count = _keep(places, sizes, count, low, high)
    return _walk(places, sizes, count, rounded, low, g_low, h_low, furthest)


@compiled
def _derivative(places, sizes, count, rounded, g, h, low, k):
    """The derivative and its bend right of k, from those right of ``low``."""
    total, moment = 0.0, 0.0
    for e in range(count):
        size = sizes[e] if places[e] <= k else 0.0
        total += size
        moment += size * (k - places[e])
    g += h * (k - low)
    return (g + moment, h + total) if rounded else (g + total, h)


@compiled
def _keep(places, sizes, count, low, high):
    """The kinks in (low, high] to the front; how many they are."""
    kept = np.uint64(0)
    for e in range(count):
        place = places[e]
        places[kept], sizes[kept] = place, sizes[e]
        kept += np.uint64(low < place <= high)
    return kept


@compiled
def _walk(places, sizes, count, rounded, at, g, h, furthest):
    """From kink to kink until the derivative is no longer negative."""
    order = np.argsort(places[:count])
    for s in range(count):
        e = np.uint64(order[s])
        here = g + h * (places[e] - at)
        if here >= 0.0:
            break
        g, at = here, places[e]
        if rounded:
            h += sizes[e]
        else:
            g += sizes[e]
            if g >= 0.0:
                return at
    return min(at - g / h, furthest)
