"""One text for all margin losses: the hinge, rounded off over a width and capped in slope.

With shortfall r = max(0, target - m) of the margin m,

    l(m) = r^2 / (2 width)               while r <= cap * width,
    l(m) = cap (r - cap * width / 2)     beyond.

=================  ======  =====  ====
loss               target  width  cap
=================  ======  =====  ====
hinge              1       0      1
squared hinge      1       1/2    inf
smoothed hinge(g)  1       g      1
huber(h)           1 + h   2h     1
=================  ======  =====  ====

The dual of  ||w||^2/2 + sum_i C_i l(y_i <w, x_i>)  is

    max  target sum alpha - alpha'Q alpha / 2 - sum_i (width / C_i) alpha_i^2 / 2,    0 <= alpha_i <= cap C_i,

so these three numbers are all that a dual solver needs to know of a loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from slackwater.compiled import compiled


class Loss(NamedTuple):
    """A margin loss by its three numbers; build one with the functions below."""

    target: float
    width: float
    cap: float


def hinge() -> Loss:
    """max(0, 1 - m)."""
    return Loss(1.0, 0.0, 1.0)


def squared_hinge() -> Loss:
    """max(0, 1 - m)^2, without a factor 1/2 (LIBLINEAR's convention)."""
    return Loss(1.0, 0.5, math.inf)


def smoothed_hinge(width: float = 1.0) -> Loss:
    """The hinge with a parabola of this width, 0 < width <= 1, below the margin 1."""
    if not 0.0 < width <= 1.0:
        raise ValueError(f"the width of the smoothed hinge must lie in (0, 1], got {width}")
    return Loss(1.0, float(width), 1.0)


def huber(half_width: float = 0.5) -> Loss:
    """The hinge with a parabola on both sides of the margin 1 (Chapelle)."""
    if not 0.0 < half_width <= 1.0:
        raise ValueError(f"the half width of the Huber loss must lie in (0, 1], got {half_width}")
    return Loss(1.0 + half_width, 2.0 * half_width, 1.0)


LOSSES: dict[str, Callable[..., Loss]] = {
    "hinge": hinge,
    "squared_hinge": squared_hinge,
    "smoothed_hinge": smoothed_hinge,
    "huber": huber,
}


def parse_loss(text: str | Loss) -> Loss:
    """The loss that ``text`` names: "hinge", "squared_hinge", "smoothed_hinge:0.5", "huber:0.25"."""
    if isinstance(text, Loss):
        return text
    name, _, width = str(text).partition(":")
    if name not in LOSSES:
        raise ValueError(f"loss={text!r} is not known; the losses are {', '.join(LOSSES)}")
    if not width:
        return LOSSES[name]()
    if name in ("hinge", "squared_hinge"):
        raise ValueError(f"loss={text!r}: {name} has no width")
    try:
        number = float(width)
    except ValueError:
        raise ValueError(f"loss={text!r}: the width {width!r} is not a number") from None
    return LOSSES[name](number)


def loss_name(loss: Loss) -> str:
    """The text that ``parse_loss`` reads back as this loss."""
    if loss == hinge():
        return "hinge"
    if loss == squared_hinge():
        return "squared_hinge"
    if loss.target == 1.0:
        return f"smoothed_hinge:{_shortest(loss.width)}"
    return f"huber:{_shortest(loss.width / 2)}"


def _shortest(number: float) -> str:
    """The fewest digits that are read back as the same number."""
    return repr(float(number)).removesuffix(".0")


def loss_family(loss: Loss) -> str:
    """The name without the width: what solvers declare."""
    return loss_name(loss).partition(":")[0]


@compiled
def value(loss, m):
    """l(m)."""
    r = max(0.0, loss.target - m)
    knee = loss.cap * loss.width
    if r <= knee:
        return r * r / (2.0 * loss.width) if r > 0.0 else 0.0
    return loss.cap * (r - 0.5 * knee)


@compiled
def slope(loss, m):
    """-l'(m) in [0, cap]; at the kink of the hinge the left derivative, as *SGD revisited* takes it."""
    r = loss.target - m
    if r < 0.0:
        return 0.0
    if loss.width == 0.0:
        return loss.cap
    return min(r / loss.width, loss.cap)


@compiled
def conjugate(loss, a):
    """sup over m of (-a m - l(m)) for 0 <= a <= cap, infinite elsewhere."""
    if a < 0.0 or a > loss.cap:
        return math.inf
    return 0.5 * loss.width * a * a - loss.target * a
