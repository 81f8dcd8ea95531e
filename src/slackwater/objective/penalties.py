"""One text for the penalties of the weights: a parabola and an absolute value in each of them.

    Omega(w) = sum_j omega(w_j),      omega(w) = square w^2 / 2 + absolute |w|.

===============  ========  ========
penalty          square    absolute
===============  ========  ========
l2               1         0
l1               0         1
elastic net(r)   1 - r     r
===============  ========  ========

r is scikit-learn's ``l1_ratio``. The dual of  Omega(w) + sum_i C_i l(y_i <w, x_i>)  is

    max  target sum alpha - sum_i (width / C_i) alpha_i^2 / 2 - Omega*(v),   0 <= alpha_i <= cap C_i,

with v = sum_i alpha_i y_i x_i and Omega* the conjugate: S(v)^2 / (2 square) with the soft threshold
S(v) = sign(v) max(0, |v| - absolute), and for square = 0 the condition that no |v_j| exceeds ``absolute``.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from slackwater.compiled import compiled


class Penalty(NamedTuple):
    """A penalty by its two numbers; build one with the functions below."""

    square: float
    absolute: float


def l2() -> Penalty:
    """w^2 / 2."""
    return Penalty(1.0, 0.0)


def l1() -> Penalty:
    """|w|."""
    return Penalty(0.0, 1.0)


def elastic_net(l1_ratio: Any = 0.5) -> Penalty:
    """(1 - r) w^2 / 2 + r |w|."""
    if not (isinstance(l1_ratio, Real) and 0.0 <= float(l1_ratio) <= 1.0):
        raise ValueError(f"l1_ratio must lie between 0 and 1, got {l1_ratio!r}")
    return Penalty(1.0 - float(l1_ratio), float(l1_ratio))


PENALTIES = ("l2", "l1", "elasticnet")


def parse_penalty(text: str | Penalty, l1_ratio: Any = 0.5) -> Penalty:
    """The penalty that ``text`` names: "l2", "l1", "elasticnet"; the last is the mixture that ``l1_ratio`` says."""
    if isinstance(text, Penalty):
        return text
    if text not in PENALTIES:
        raise ValueError(f"penalty={text!r} is not known; the penalties are {', '.join(PENALTIES)}")
    return {"l2": l2, "l1": l1}[text]() if text != "elasticnet" else elastic_net(l1_ratio)


def penalty_family(penalty: Penalty) -> str:
    """What solvers declare: an elastic net at either end is the plain penalty there."""
    if penalty.absolute == 0.0:
        return "l2"
    return "elasticnet" if penalty.square else "l1"


def penalty_name(penalty: Penalty) -> str:
    """The family, an elastic net with its share of |w|: "elasticnet:0.5"."""
    family = penalty_family(penalty)
    return f"elasticnet:{penalty.absolute:g}" if family == "elasticnet" else family


@compiled(inline=True)
def soft(v, threshold):
    """S(v) = sign(v) max(0, |v| - threshold)."""
    return v - threshold if v > threshold else v + threshold if v < -threshold else 0.0


@compiled
def value(penalty, w):
    """omega(w)."""
    return 0.5 * penalty.square * w * w + penalty.absolute * abs(w)


@compiled
def prox(penalty, v, eta):
    """The w that minimises (w - v)^2 / 2 + eta omega(w): soft threshold, then division."""
    return soft(v, eta * penalty.absolute) / (1.0 + eta * penalty.square)


@compiled
def conjugate(penalty, v):
    """sup over w of (v w - omega(w)), infinite for |v| > absolute where there is no parabola."""
    beyond = max(0.0, abs(v) - penalty.absolute)
    if beyond == 0.0:
        return 0.0
    return 0.5 * beyond * beyond / penalty.square if penalty.square > 0.0 else math.inf


def best_weights(penalty: Penalty, v: np.ndarray) -> np.ndarray:
    """The w that attains Omega* at v; 0 where there is no parabola, and many do."""
    if not penalty.square:
        return np.zeros_like(v)
    return np.sign(v) * np.maximum(np.abs(v) - penalty.absolute, 0.0) / penalty.square


@compiled
def total(penalty, w):
    """Omega(w)."""
    found = 0.0
    for j in range(np.uint64(w.size)):
        found += value(penalty, w[j])
    return found
