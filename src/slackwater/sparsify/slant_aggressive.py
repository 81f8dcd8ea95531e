"""Aggressive slant: Problem 4.1 by steps on the vectors that are there, new ones only when these are satisfied.

Problem    that of ``slant``: min over wt of F(wt) = max over i in A of  h_i - y_i <wt, Phi(x_i)>, under a fixed bias or
           a learned one.
Update     i = argmax over the support if the residual there exceeds eps, else i = argmax over A, a new vector;
           a_i <- a_i + eta/R^2;  stop when no residual exceeds eps.
State      a, the responses of all rows, and the kernel values between support vectors.
Cost       a step on the support costs |S| additions; responses of all rows are brought up to date when the support is
           satisfied, by one addition for each row and each coefficient that changed. A kernel row per vector.
Certificate  that of ``slant``: the steps, and so the vectors, are bounded by R^2 ||w||^2/eps^2 for eta = eps.

Cotter, Shalev-Shwartz, Srebro. Learning Optimally Sparse Support Vector Machines. ICML 2013; section 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from slackwater.sparsify.contract import Teacher
from slackwater.sparsify.demand import Demand
from slackwater.sparsify.slant import Course, Slant
from slackwater.sparsify.steps import OUTSIDE, PAUSED, REACHED, Field, descend

_FIRST_ROOM = 64
_WORK = 2**26  # additions within the support between two looks at all rows, at most


@dataclass(frozen=True)
class SlantAggressive(Slant):
    """New vectors only when those that are there cannot do more; usually needs fewer of them."""

    name: ClassVar[str] = "slant-aggressive"
    takes_offers: ClassVar[bool] = True

    def course(self, teacher: Teacher, demand: Demand) -> Course:
        """Steps within the support."""
        return SupportFirst(self, teacher, demand)

    def grid(self, teacher: Teacher) -> list[Self]:
        """eta in 4^-4 .. 4^2, eps in 2^-4 .. 1."""
        return [
            self.with_settings(eta=4.0**power, eps=2.0**halvings) for halvings in range(-4, 1) for power in range(-4, 3)
        ]


class SupportFirst(Course):
    """A run of the aggressive method; vectors that other problems keep are there from the beginning."""

    def __init__(self, slant: Slant, teacher: Teacher, demand: Demand) -> None:
        super().__init__(slant, teacher, demand)
        self.support = np.empty(0, dtype=np.int64)
        self._square = np.empty((_FIRST_ROOM, _FIRST_ROOM), dtype=self.gram.points.dtype)
        if teacher.offered is not None and teacher.offered.size:
            self.admit(teacher.offered)

    def descend(self, most: int | None = None) -> tuple[int, np.ndarray]:
        """Steps on the support until it is satisfied, then a look at all rows."""
        left = max(1, _WORK // max(1, self.size)) if most is None else most
        while True:
            before = self.steps
            self._satisfy(left)
            left -= self.steps - before
            if left <= 0:
                return PAUSED, self._outside()
            kept = self.gram.kept
            ended, _, a, b = descend(kept.values, kept.slots, self.field, self.rule, 0)
            if ended in (REACHED, OUTSIDE):
                return ended, self._outside(a, b)

    def admit(self, rows: np.ndarray) -> None:
        """New vectors, with their kernel values among all."""
        super().admit(rows)
        size, old = self.size, self.support.size
        self.support = np.concatenate((self.support, rows))
        if size > len(self._square):
            room = min(2 * size, self.field.labels.size)
            grown = np.empty((room, room), dtype=self._square.dtype)
            grown[:old, :old] = self._square[:old, :old]
            self._square = grown
        for start in range(0, rows.size, max(1, self.gram.capacity)):
            part = rows[start : start + self.gram.capacity]
            self._fetch(part)
            block = self.gram.kept.values[self.gram.kept.slots[part]][:, self.support]
            places = slice(old + start, old + start + part.size)
            self._square[places, :size] = block
            self._square[:size, places] = block.T

    def _fetch(self, rows: np.ndarray) -> None:
        if rows.size <= 2 and (self.gram.kept.slots[rows] < 0).any():
            self._bring(int(rows[0]), int(rows[1]) if rows.size == 2 else -1)
        else:
            self.gram.keep(rows)

    def _satisfy(self, most: int) -> None:
        """Steps among the support vectors; the responses of all rows follow."""
        ids, field = self.support, self.field
        if ids.size == 0 or most <= 0:
            return
        part = Field(field.labels[ids], ids, np.ones(ids.size, dtype=np.bool_), field.numbers[ids], field.beta[ids])
        _, done, _, _ = descend(self._square, np.arange(ids.size), part, self.rule, most)
        self.steps += done
        if done == 0:
            return
        change = np.zeros(field.beta.size)
        change[ids] = part.beta - field.beta[ids]
        field.beta[ids] = part.beta
        field.numbers[:] += field.labels * self.gram.times(change)
