"""Kernel SGD-s: every example once per epoch, in a fresh random order; the mathematics is in ``growing_margin``.

After T whole epochs alpha_i = C_i I_i / T lies in the box, so that P - D is known from counts and scores alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.solvers.kernel.growing_margin import KernelGrowingMargin


@dataclass(frozen=True)
class KernelSGDS(KernelGrowingMargin):
    """Stochastic gradient descent over permuted epochs, in a kernel's space."""

    name: ClassVar[str] = "kernel-sgd-s"
    paper: ClassVar[str] = "Panagiotakopoulos, Tsampouka, ECML/PKDD 2013"
