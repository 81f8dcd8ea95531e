"""The exact line search of OCAS (Franc, Sonnenburg 2008), for every loss of the family.

    min over k >= 0 of  P(w + k d) = lambda/2 ||w + k d||^2 + sum_i p_i l(m_i + k dm_i).

The derivative rises from left to right and is piecewise linear. Its kinks are the k at which an example's shortfall
r = target - m passes zero, and where the loss is rounded off the end of the parabola too. The hinge's derivative jumps
there by p |dm|, that of a rounded loss bends by p dm^2 / width. A few bracketing steps, each one sum over all kinks,
leave a short piece around the zero; only the kinks on it are sorted and walked. So the search costs O(n), not a sort.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import compiled

_FEW = 48  # kinks worth sorting without another bracketing step
_MOST_STEPS = 40


def line_search(loss, shares, margins, change, curvature: float, rise: float) -> float:
    """The best k >= 0, given m, dm, the weights p_i of the losses, lambda ||d||^2 > 0 and lambda <w, d>."""
    kinks = np.empty((2, (1 if math.isinf(loss.cap) or loss.width == 0.0 else 2) * margins.size))
    slope, bend, count = _start(loss, shares, margins, change, curvature, rise, kinks)
    if not slope < 0.0 or not curvature > 0.0:
        return 0.0
    return float(_zero(kinks[0, :count], kinks[1, :count], loss.width > 0.0, slope, bend, -slope / curvature))


@compiled
def _start(loss, shares, margins, change, curvature, rise, kinks):
    """The derivative at 0+ and its bend, and the kinks beyond: where, and the jump or the change of the bend."""
    slope, bend = rise, curvature
    rounded, knee = loss.width > 0.0, loss.cap * loss.width if loss.width > 0.0 else 0.0
    count = np.uint64(0)
    for i in range(np.uint64(margins.size)):
        p, dm, r = shares[i], change[i], loss.target - margins[i]
        if dm == 0.0:
            continue
        steepness = p * abs(dm)
        where = r / dm
        if not rounded:
            if r > 0.0 or (r == 0.0 and dm < 0.0):
                slope -= p * dm * loss.cap
            if where > 0.0:
                kinks[0, count], kinks[1, count] = where, steepness * loss.cap
                count += np.uint64(1)
            continue
        steepness *= abs(dm) / loss.width
        slope -= p * dm * min(max(r, 0.0) / loss.width, loss.cap)
        if (r > 0.0 or (r == 0.0 and dm < 0.0)) and (r < knee or (r == knee and dm > 0.0)):
            bend += steepness
        if where > 0.0:
            kinks[0, count], kinks[1, count] = where, math.copysign(steepness, -dm)
            count += np.uint64(1)
        if knee < math.inf:
            where = (r - knee) / dm
            if where > 0.0:
                kinks[0, count], kinks[1, count] = where, math.copysign(steepness, dm)
                count += np.uint64(1)
    return slope, bend, count


@compiled
def _zero(places, sizes, rounded, slope, bend, furthest):
    """Where the derivative passes zero; ``furthest`` lies at or beyond."""
    low, g_low, h_low, before = 0.0, slope, bend, 0
    high, g_high, upto = furthest, 0.0, places.size
    k = min(1.0, 0.5 * furthest)
    for step in range(_MOST_STEPS):
        if upto - before <= _FEW and step > 0:
            break
        g, h, passed = _derivative(places, sizes, rounded, slope, bend, k)
        if g < 0.0:
            low, g_low, h_low, before = k, g, h, passed
        else:
            high, g_high, upto = k, g, passed
        # The secant's zero, kept off the ends, so that both of them move.
        share = -g_low / (g_high - g_low) if g_high > 0.0 else 0.5
        k = low + (high - low) * min(max(share, 0.05), 0.95)
        if not low < k < high:
            break
    inside = np.flatnonzero((places > low) & (places <= high))
    order = inside[np.argsort(places[inside])]
    g, h, at = g_low, h_low, low
    for s in range(np.uint64(order.size)):
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


@compiled
def _derivative(places, sizes, rounded, slope, bend, k):
    """The derivative and its bend right of k, and how many kinks lie up to k."""
    total, moment, passed = 0.0, 0.0, 0
    for e in range(np.uint64(places.size)):
        size = sizes[e] if places[e] <= k else 0.0
        total += size
        moment += size * places[e]
        passed += places[e] <= k
    if rounded:
        return slope + (bend + total) * k - moment, bend + total, passed
    return slope + bend * k + total, bend, passed
