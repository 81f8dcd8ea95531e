"""Kernel Pegasos: examples drawn with replacement; the mathematics is in ``growing_margin``.

The counts I_i of margin errors are those of the paper's figure; there is no projection. alpha_i = C_i I_i / (draws of
i) lies in the box, but differs from w, so that its bound needs a sum over kernel rows when a certificate is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.solvers.kernel.growing_margin import KernelGrowingMargin


@dataclass(frozen=True)
class KernelPegasos(KernelGrowingMargin):
    """Primal estimated subgradient solver in a kernel's space."""

    name: ClassVar[str] = "kernel-pegasos"
    paper: ClassVar[str] = "Shalev-Shwartz, Singer, Srebro, ICML 2007; with Cotter, Math. Programming 2011"
    replacement: ClassVar[bool] = True
