"""How far to go along a dual direction where the penalty has a corner: the best bound among the multiples of alpha.

    D(s alpha) / lambda = s a - s^2 b / 2 - Omega*(s v),    a = target sum alpha,  b = sum_i width alpha_i^2 / C_i,

is concave in s. Of the pure l1 penalty Omega* only says how far: s <= absolute / max |v_j|; without the scaling almost
no alpha would be feasible. With a parabola in the penalty the derivative

    a - s b - sum_j |v_j| max(0, s |v_j| - absolute) / square

is concave and falling, so that Newton's method comes down to its zero from above in finitely many steps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.objective.penalties import Penalty

_MOST_STEPS = 100


class Ray(NamedTuple):
    """The direction: a, b, |v| without the weight of a free bias, and the end of the box."""

    gain: float
    bend: float
    v: np.ndarray
    most: float


def best_scale(penalty: Penalty, ray: Ray) -> tuple[float, float]:
    """The s in [0, most] with the largest bound, and that bound in units of lambda."""
    if not (ray.gain > 0.0 and math.isfinite(ray.gain + float(ray.v.sum()))):
        return 0.0, 0.0
    largest = float(ray.v.max(initial=0.0))
    corner = penalty.absolute / largest if largest > 0.0 else math.inf
    s = min(corner, ray.most, ray.gain / ray.bend if ray.bend > 0.0 else math.inf)
    if s == corner and penalty.square > 0.0:
        s = _beyond(penalty, ray, s)
    if not math.isfinite(s):
        return 0.0, 0.0
    above = np.maximum(s * ray.v - penalty.absolute, 0.0) if penalty.square else np.zeros(0)
    lost = 0.5 * float(above @ above) / penalty.square if penalty.square else 0.0
    return s, s * ray.gain - 0.5 * s * s * ray.bend - lost


def _beyond(penalty: Penalty, ray: Ray, s: float) -> float:
    """The zero of the derivative from the corner ``s`` on, or the end of the box if that comes first."""
    for step in range(_MOST_STEPS):
        past = ray.v[s * ray.v >= penalty.absolute]
        slope = ray.bend + float(past @ past) / penalty.square
        rest = ray.gain - s * ray.bend - float(past @ (s * past - penalty.absolute)) / penalty.square
        further = min(s + rest / slope, ray.most) if slope > 0.0 else ray.most
        if step and not further < s:  # from the second step on Newton's points fall
            break
        s = further
    return s
