"""SGD-s: every example once per epoch, in a fresh random order; the mathematics is in ``growing_margin``.

After T whole epochs alpha_i = C_i I_i / T lies in the box and w = w(alpha), so P(w) - D(alpha) is known without any
work beyond the epochs' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.solvers.linear.growing_margin import GrowingMargin


@dataclass(frozen=True)
class SGDS(GrowingMargin):
    """Stochastic gradient descent over permuted epochs."""

    name: ClassVar[str] = "sgd-s"
