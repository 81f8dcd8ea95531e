"""Randomized budget perceptron: a mistake beyond the budget takes the place of a stored vector drawn at random.

Problem    none that it minimises: few mistakes with at most B stored vectors.
Update     on a mistake, y f(x) <= 0: with B vectors stored, delete one of them, each as likely; store the example with
           weight 1, f <- f + y K(x, .).
State      the stored vectors, a random generator.
Cost       at most B kernel values an example, and those among the examples of a block.
Certificate  C5: the weights over the stored examples, rescaled; valid, and loose.

G. Cavallanti, N. Cesa-Bianchi, C. Gentile. Tracking the best hyperplane with a simple budget perceptron. Machine
Learning 69, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled, next_below
from slackwater.solvers.online.learner import (
    END,
    FIRST,
    MISTAKES,
    STEPS,
    Active,
    Block,
    Known,
    OnlineLearner,
    append,
    bound,
    require_budget,
    score,
)


@dataclass(frozen=True)
class RandomizedBudgetPerceptron(OnlineLearner):
    """The perceptron with ``budget`` vectors, a random one of which makes room."""

    name: ClassVar[str] = "rbp"
    paper: ClassVar[str] = "Cavallanti, Cesa-Bianchi, Gentile, Machine Learning 2007"

    budget: int | None = 1000

    def __post_init__(self) -> None:
        require_budget(self.budget)

    def learn(self, block: Block, known: Known, signs: np.ndarray, active: Active, scores: np.ndarray) -> None:
        """Store the mistakes, in place of others when all places are taken."""
        _learn(block, signs, active, scores, bound(self.budget))


@compiled
def _learn(block, signs, active, scores, budget):
    values, counts, stored = block.values, active.counts, np.uint64(block.stored)
    for t in range(np.uint64(signs.size)):
        counts[STEPS] += 1
        scores[t] = score(values[t], active.beta, stored + t)
        if signs[t] * scores[t] <= 0.0:
            counts[MISTAKES] += 1
            if counts[END] - counts[FIRST] >= budget:
                _delete_one(active)
            append(active, block.homes[t], signs[t])


@compiled
def _delete_one(active):
    """A random entry goes; the youngest takes its place in the list, whose order means nothing here."""
    first, last = np.uint64(active.counts[FIRST]), np.uint64(active.counts[END] - 1)
    victim = first + next_below(active.random, last - first + np.uint64(1))
    active.beta[active.order[victim]] = 0.0
    active.order[victim], active.born[victim] = active.order[last], active.born[last]
    active.counts[END] -= 1
