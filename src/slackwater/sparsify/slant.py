"""Slant: optimally sparse support vector machines, by subgradient steps on Problem 4.1.

Problem    min over wt of  F(wt) = max over i in A of  h_i - y_i <wt, Phi(x_i)>,   A = { i : y_i f(x_i) > 0 },
           f = <w, Phi> + b the dense predictor; h_i = min(1, y_i f(x_i)) - y_i b under a fixed bias bt = b. Under a
           learned one h_i = min(1, y_i f(x_i)), F = (r+ + r-)/2 and bt = (r+ - r-)/2, r+ and r- the largest
           h_i - y_i <wt, Phi(x_i)> over A among the rows of either label.
Update     i = argmax;  a_i <- a_i + eta/R^2;  stop when F <= eps.  R^2 = max K_ii.  Learned bias: half of that on the
           argmax of either label. Ties go to the smallest i.
State      a, and the responses of all rows.
Cost       a kernel row (two with a learned bias) and n additions a step. Rows are computed in blocks: those of the
           largest residuals come next. All settings share them.
Certificate  every step with F > eps brings wt nearer to w: R^2 ||wt - w||^2 falls by 2 eta eps - eta^2 G^2/R^2 at
           least, G^2 = R^2 (under a learned bias R^2/2 where the kernel is nowhere negative). So no more than
           R^2 ||w||^2/eps^2 steps and vectors for eta = eps: 4 ||w||^2 for R = 1, eps = 1/2. F <= 1/2 in turn bounds
           the slant loss of the result by the hinge loss of w, row by row.

Cotter, Shalev-Shwartz, Srebro. Learning Optimally Sparse Support Vector Machines. ICML 2013; sections 4 and 4.6,
appendix D for the learned bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from slackwater.solvers.kernel.lowest import rows_ahead
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.demand import Demand, constant
from slackwater.sparsify.steps import MISSING, OUTSIDE, PAUSED, Field, Rule, descend

_WORK = 2**27  # additions between two looks of the driver, at most
_PATIENCE, _SPARE = 2.0, 100  # times the proven number of steps, and some: step sizes without a proof end there
_NOWHERE_NEGATIVE = ("rbf", "laplacian", "chi2")


@dataclass(frozen=True)
class Slant(Sparsifier):
    """Subgradient steps, each on the row that falls short most; the whole trajectory comes by.

    ``eta`` None is the step with the proof. ``bias`` is "fixed" or "learned".
    """

    name: ClassVar[str] = "slant"
    paper: ClassVar[str] = "Cotter, Shalev-Shwartz, Srebro, ICML 2013"

    eta: float | None = None
    eps: float = 0.5
    bias: Literal["fixed", "learned"] = "fixed"

    def __post_init__(self) -> None:
        if self.eta is not None and not 0.0 < self.eta < math.inf:
            raise ValueError(f"eta must be positive and finite, or None, got {self.eta!r}")
        if not 0.0 < self.eps < math.inf:
            raise ValueError(f"eps must be positive and finite, got {self.eps!r}")
        if self.bias not in ("fixed", "learned"):
            raise ValueError(f"bias={self.bias!r} is not known; it is 'fixed' or 'learned'")

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """Before every new vector the predictor so far, and the last one."""
        demand = Demand.of(teacher)
        if demand.empty:
            yield constant(teacher)
            return
        course = self.course(teacher, demand)
        most_steps = _PATIENCE * self.proven_steps(teacher) + _SPARE
        while True:
            ended, new = course.descend()
            yield course.small()
            if ended == OUTSIDE and course.size + new.size <= most and course.steps < most_steps:
                course.admit(new)
            elif ended != PAUSED or course.steps >= most_steps:
                return

    def course(self, teacher: Teacher, demand: Demand) -> Course:
        """The steps of this method."""
        return Course(self, teacher, demand)

    def grid(self, teacher: Teacher) -> list[Self]:
        """eta in 4^-4 .. 4^2."""
        return [self.with_settings(eta=4.0**power) for power in range(-4, 3)]

    def rule(self, teacher: Teacher, demand: Demand) -> Rule:
        """The step in the kernel's units; a bias cannot be learned from one class."""
        learned = self.bias == "learned" and not demand.one_class
        return Rule(self.eta_for(teacher) / radius_squared(teacher), float(self.eps), learned)

    def eta_for(self, teacher: Teacher) -> float:
        """eta, by default eps R^2/G^2."""
        return float(self.eps / self._slope(teacher) if self.eta is None else self.eta)

    def proven_steps(self, teacher: Teacher) -> float:
        """How many steps there can be; where no proof holds of this eta, how many there would be with the default."""
        eta, slope = self.eta_for(teacher), self._slope(teacher)
        gain = 2.0 * eta * self.eps - eta**2 * slope
        if gain <= 0.0:
            gain = self.eps**2 / slope
        return radius_squared(teacher) * max(teacher.squared_norm, 0.0) / gain

    def _slope(self, teacher: Teacher) -> float:
        """G^2/R^2, a bound."""
        return 0.5 if self.bias == "learned" and teacher.model.kernel.name in _NOWHERE_NEGATIVE else 1.0


class Course:
    """A run of the method: steps on the support while these are the worst rows."""

    def __init__(self, slant: Slant, teacher: Teacher, demand: Demand) -> None:
        n = demand.labels.size
        self.gram, self.rule = teacher.gram, slant.rule(teacher, demand)
        self.bias = teacher.bias
        numbers = -demand.heights
        if not self.rule.learned:
            numbers += demand.labels * self.bias
        self.field = Field(demand.labels, np.arange(n), np.zeros(n, dtype=np.bool_), numbers, np.zeros(n))
        self.steps = 0
        self.size = 0  # of the support

    def descend(self, most: int | None = None) -> tuple[int, np.ndarray]:
        """Steps until F <= eps, or until the worst rows are new: what ended them, and the new rows.

        After many steps, ``most`` of them if given, there is a pause, with neither.
        """
        left = max(1, _WORK // self.field.labels.size) if most is None else most
        while True:
            kept = self.gram.kept
            ended, done, a, b = descend(kept.values, kept.slots, self.field, self.rule, left)
            self.steps += done
            self.gram.take(done)
            left -= done
            if ended != MISSING:
                return ended, self._outside(a, b)
            self._bring(a, b)

    def admit(self, rows: np.ndarray) -> None:
        """New vectors."""
        self.field.inside[rows] = True
        self.size += rows.size

    def small(self) -> Small:
        """The predictor as it stands."""
        ids = np.flatnonzero(self.field.beta)
        return Small(self.field.beta[ids], self._bias(), ids)

    def _outside(self, *rows: int) -> np.ndarray:
        return np.array([i for i in rows if i >= 0 and not self.field.inside[i]], dtype=np.int64)

    def _bring(self, a: int, b: int) -> None:
        """The rows of a step, and of those that may follow."""
        ahead = rows_ahead(self.field.numbers, self.gram.kept.slots, max(1, self.gram.capacity - 1), a)
        self.gram.keep(ahead if b < 0 else np.union1d(ahead, [b]))

    def _bias(self) -> float:
        if not self.rule.learned:
            return self.bias
        numbers, up = self.field.numbers, self.field.labels > 0.0
        return 0.5 * float(numbers[~up].min() - numbers[up].min())


def radius_squared(teacher: Any) -> float:
    """R^2 = max K_ii; 1 where the kernel is zero."""
    return float(np.abs(teacher.gram.diagonal).max(initial=0.0)) or 1.0
