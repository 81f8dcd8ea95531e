"""SGD-m: SGD-s that in some epochs presents each example several times in a row, for one inner product.

Epochs come in periods that begin with ``repeated`` epochs of ``multiplicity`` presentations a visit; the rest of the
period presents once. An epoch of l presentations counts as l epochs. Repeats bring the clock t, whose reciprocal is
the step, further for the same work; the epochs without let w and the shares of margin errors settle, and only they
prove a bound. Settling takes the longer the smaller the steps are, so each period is ``growth`` times as long as the
one before. ``growth=1`` is the paper's schedule: 5 presentations in the epochs e with 0 < e mod 9 < 5.

The mathematics is in ``growing_margin``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.solvers.linear.growing_margin import GrowingMargin


@dataclass(frozen=True)
class SGDM(GrowingMargin):
    """Stochastic gradient descent with repeated presentations."""

    name: ClassVar[str] = "sgd-m"

    multiplicity: int = 5
    period: int = 9
    repeated: int = 4
    growth: float = 2.0

    def __post_init__(self) -> None:
        if self.multiplicity < 1:
            raise ValueError(f"multiplicity must be at least 1, got {self.multiplicity}")
        if not 0 <= self.repeated <= self.period or self.period < 1:
            raise ValueError(f"repeated must lie between 0 and period, got {self.repeated} of {self.period}")
        if not self.growth >= 1.0:
            raise ValueError(f"growth must be at least 1, got {self.growth}")

    def stretch(self, epoch: int) -> tuple[int, int]:
        """Presentations per visit after ``epoch`` epochs, and for how many epochs it stays so."""
        done, length = epoch, float(self.period)
        if self.growth == 1.0:
            done %= self.period
        while done >= round(length):
            done -= round(length)
            length *= self.growth
        repeated = round(length * self.repeated / self.period)
        if done < repeated:
            return self.multiplicity, repeated - done
        return 1, round(length) - done
