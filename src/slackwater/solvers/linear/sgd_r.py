"""SGD-r: examples drawn with replacement, n draws per epoch; the mathematics is in ``growing_margin``.

An example may be drawn more than T times in T epochs, so alpha_i is C_i times the share of margin errors among the
draws of i itself. w(alpha) is then close to w without being it, and the estimated bound, which is that of w, is a
little too good: a trigger only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.solvers.linear.growing_margin import GrowingMargin


@dataclass(frozen=True)
class SGDR(GrowingMargin):
    """Stochastic gradient descent over independent draws."""

    name: ClassVar[str] = "sgd-r"
    replacement: ClassVar[bool] = True
