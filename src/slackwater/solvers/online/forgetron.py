"""Forgetron: a perceptron that shrinks all weights before it forgets the oldest vector.

Problem    none that it minimises: few mistakes with at most B stored vectors, relative to the best u with ||u|| <= U.
Update     on a mistake, y f(x) <= 0: M <- M + 1, f' = f + y K(x, .), the new weight is 1. Where more than B vectors are
           stored now, r the oldest, sigma its weight, mu = y_r f'(x_r):
           Psi(phi) = (sigma phi)^2 + 2 sigma phi (1 - phi mu);
           self-tuned: the largest phi in (0, 1] with Q + Psi(phi) <= 15 M / 32, Q <- Q + Psi(phi);
           fixed: phi = min{ (B+1)^(-1/(2(B+1))), U / ||f'|| }, U = sqrt((B+1) / log(B+1)) / 4;
           all weights times phi, forget r.
State      weights with one factor before them all, in the order of their age; M, Q, ||f||^2.
Cost       at most B kernel values an example, those among the examples of a block, and B for a vector that is
           forgotten: those of the oldest are computed a few dozen at a time.
Certificate  C5: the weights over the stored examples, rescaled; valid, and loose.

The bounds on mistakes need K(x, x) <= 1.
O. Dekel, S. Shalev-Shwartz, Y. Singer. The Forgetron: a kernel-based perceptron on a budget. SIAM J. Computing 37(5),
2008; NIPS 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.solvers.online.learner import (
    END,
    FACTOR,
    FIRST,
    MISTAKES,
    SQUARE,
    STEPS,
    USED,
    Active,
    Block,
    Known,
    OnlineLearner,
    append,
    bound,
    drop_oldest,
    require_budget,
    score,
    shrink,
)

RULES = ("self-tuned", "fixed")
_SHARE = 15.0 / 32.0
_AHEAD = 32  # of the oldest vectors whose kernel values are computed at a time


class Rule(NamedTuple):
    """The settings as the compiled loop takes them; ``largest`` and ``radius`` are those of the fixed rule."""

    budget: int
    self_tuned: bool
    largest: float
    radius: float


class Oldest(NamedTuple):
    """Kernel values of stored vectors that may be forgotten soon: column c has values[places[c]], if that is >= 0."""

    values: np.ndarray
    places: np.ndarray


@dataclass(frozen=True)
class Forgetron(OnlineLearner):
    """The perceptron with ``budget`` vectors; ``rule`` for the shrinking is "self-tuned" or "fixed"."""

    name: ClassVar[str] = "forgetron"
    paper: ClassVar[str] = "Dekel, Shalev-Shwartz, Singer, SIAM J. Computing 2008"

    budget: int | None = 1000
    shrinking: str = "self-tuned"

    def __post_init__(self) -> None:
        require_budget(self.budget)
        if self.shrinking not in RULES:
            raise ValueError(f"shrinking={self.shrinking!r} is not known; the rules are {', '.join(RULES)}")

    @property
    def settled(self) -> Rule:
        """For the compiled loop."""
        budget = bound(self.budget)
        return Rule(budget, self.shrinking == "self-tuned", *fixed_rule(budget))

    def learn(self, block: Block, known: Known, signs: np.ndarray, active: Active, scores: np.ndarray) -> None:
        """Store the mistakes, shrink and forget; stops for kernel values of vectors about to be forgotten."""
        rule, t = self.settled, 0
        oldest = Oldest(np.empty((0, active.beta.size), block.values.dtype), np.full(active.beta.size, -1))
        while True:
            t = int(_learn(block, oldest, signs, t, active, scores, rule))
            if t == signs.size:
                return
            first, end = active.listed.start, active.listed.stop
            columns = active.order[first : min(first + _AHEAD, end)]
            columns = columns[columns < block.stored]
            places = np.full(active.beta.size, -1)
            places[columns] = np.arange(columns.size)
            oldest = Oldest(known.rows(columns), places)


def fixed_rule(budget: int) -> tuple[float, float]:
    """(B+1)^(-1/(2(B+1))) and U."""
    more = float(budget) + 1.0
    return more ** (-0.5 / more), 0.25 * math.sqrt(more / math.log(more))


@compiled
def self_tuned(sigma, mu, slack):
    """The largest phi in (0, 1] with (sigma phi)^2 + 2 sigma phi (1 - phi mu) <= slack, for slack > 0."""
    a = sigma * sigma - 2.0 * sigma * mu
    if a + 2.0 * sigma <= slack:
        return 1.0
    return slack / (sigma + math.sqrt(sigma * sigma + a * slack))


@compiled
def _learn(block, oldest, signs, start, active, scores, rule):
    """Examples from number ``start`` on: the number of one that wants unknown kernel values, or how many there are."""
    counts, sums, stored = active.counts, active.sums, np.uint64(block.stored)
    for t in range(np.uint64(start), np.uint64(signs.size)):
        line, sign = block.values[t], signs[t]
        scores[t] = sums[FACTOR] * score(line, active.beta, stored + t)
        wrong = sign * scores[t] <= 0.0
        full = counts[END] - counts[FIRST] >= rule.budget
        if wrong and full:
            first = active.order[counts[FIRST]]
            if first < block.stored and oldest.places[first] < 0:
                return t
        counts[STEPS] += 1
        if wrong:
            counts[MISTAKES] += 1
            append(active, block.homes[t], sign / sums[FACTOR])
            sums[SQUARE] += 2.0 * sign * scores[t] + line[stored + t]
            if full:
                _forget(block, oldest, active, stored + t + np.uint64(1), rule)
    return np.uint64(signs.size)


@compiled
def _forget(block, oldest, active, columns, rule):
    """Shrink all weights and forget the oldest vector."""
    sums, column = active.sums, active.order[active.counts[FIRST]]
    line = oldest.values[oldest.places[column]] if column < block.stored else block.values[column - block.stored]
    weight = sums[FACTOR] * active.beta[column]
    sigma, f = abs(weight), sums[FACTOR] * score(line, active.beta, columns)
    mu = f if weight > 0.0 else -f
    if rule.self_tuned:
        phi = self_tuned(sigma, mu, _SHARE * active.counts[MISTAKES] - sums[USED])
    else:
        phi = min(rule.largest, rule.radius / math.sqrt(max(sums[SQUARE], 1e-300)))
    sums[USED] += sigma * phi * (sigma * phi + 2.0 * (1.0 - phi * mu))
    shrink(active, phi)
    sums[SQUARE] = phi * phi * (sums[SQUARE] - 2.0 * sigma * mu + sigma * sigma * line[column])
    drop_oldest(active)
