"""Margin perceptron: Rosenblatt's rule with a margin, on the squared hinge's problem made separable.

Problem    min over w of  ||w||^2/2 + sum_i C_i max(0, 1 - y_i <w, x_i>)^2,  which is the largest margin without slack
           of the longer rows [x_i, sqrt(d_i) e_i], one more column for every example, d_i = 1 / (2 C_i).
Update     for i in a random permutation: if  y_i <a, x_i> + d_i p_i <= b,  p_i <- p_i + 1,  a <- a + y_i x_i.
           p_i sqrt(d_i) is the weight of i's own column: it is never stored.
           With R^2 = max_i ||x_i||^2 + d_i and the largest margin gamma, no more than (R^2 + 2b)/gamma^2 updates are
           made, and the margin at the end is at least b/(R^2 + 2b) of gamma: half of it as b grows, more in practice.
Threshold  b = ``threshold`` R^2; whenever an epoch finds nothing to update, it is multiplied by ``growth``. growth=1 is
           the plain rule, which ends there.
State      a, p.
Cost       one inner product a visit, one addition an update; a round is one epoch.
Certificate  C5, from p: the length of p that proves most.

Krauth, Mezard. Learning algorithms with optimal stability in neural networks. Journal of Physics A 20, 1987.
Duda, Hart. Pattern classification and scene analysis. 1973.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import DirectionPoint
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot_ahead, sqnorms
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.line_search import line_search
from slackwater.solvers.linear.dual_coordinates import weights_of
from slackwater.solvers.sweeps import margins_at
from slackwater.solvers.visits import Visits, new_visits, visited

_AHEAD = 4.0  # a warm start has a margin of so many times b at its support


@dataclass
class MarginPerceptronState(State):
    """The weights, the updates of every example, the threshold."""

    table: np.ndarray  # of each example: p_i, y_i, d_i, one column to spare
    a: np.ndarray
    visits: Visits
    b: float


@dataclass(frozen=True)
class MarginPerceptron(Solver):
    """Perceptron with a margin; ``threshold`` is b as a multiple of the largest squared norm."""

    name: ClassVar[str] = "margin-perceptron"
    paper: ClassVar[str] = "Krauth, Mezard, Journal of Physics A 1987"
    losses: ClassVar[tuple[str, ...]] = ("squared_hinge",)
    rule: ClassVar[str] = "C5"
    optimises: ClassVar[bool] = False

    threshold: float = 1.0
    growth: float = 2.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold < math.inf:
            raise ValueError(f"threshold must be at least 0 and finite, got {self.threshold}")
        if not 1.0 <= self.growth < math.inf:
            raise ValueError(f"growth must be at least 1 and finite, got {self.growth}")

    def start(
        self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None
    ) -> MarginPerceptronState:
        """a = 0, or w(alpha) with a length at which its margin is above b."""
        ridge = problem.loss.width / problem.costs
        table = np.zeros((problem.n_rows, 4))
        squares = np.empty(problem.n_rows)
        sqnorms(problem.rows, squares)
        b = self.threshold * float((squares + ridge).max())
        if alpha is not None:
            table[:, 0] = _AHEAD * b * np.maximum(alpha, 0.0)
        table[:, 1], table[:, 2] = problem.labels, ridge
        return MarginPerceptronState(Counters(), table, weights_of(problem, table), new_visits(problem.rows, rng), b)

    def advance(self, problem: LinearProblem, state: MarginPerceptronState) -> None:
        """One epoch, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        updates, state.b = _epochs(problem.rows, state.table, state.a, state.visits, state.b, self.growth, epochs)
        done.epochs += epochs
        done.updates += updates
        done.inner_products += epochs * problem.n_rows

    def model(self, problem: LinearProblem, state: MarginPerceptronState) -> LinearModel:
        """a at its best length."""
        return LinearModel.from_weights(at_its_best_length(problem, state.a), problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: MarginPerceptronState) -> DirectionPoint:
        """The updates."""
        return DirectionPoint(state.table[:, 0])


def at_its_best_length(problem: LinearProblem, a: np.ndarray) -> np.ndarray:
    """The multiple of ``a``, not negative, with the smallest P; a perceptron's length means nothing."""
    length = math.sqrt(problem.squared_norm(a))
    if not length > 0.0:
        return np.zeros_like(a)
    a, lam = a / length, problem.regularisation
    change = np.empty(problem.n_rows)
    margins_at(problem, a, change)
    return a * line_search(problem.loss, lam * problem.costs, np.zeros(problem.n_rows), change, lam, 0.0)


@compiled(borrows=True)
def _epochs(rows, table, a, visits, b, growth, epochs):
    """Some epochs; returns how many updates, and the threshold."""
    order, ahead = visits.order, np.uint64(visits.ahead)
    n = np.uint64(order.size)
    updates = 0
    for _ in range(epochs):
        shuffle(order, n, visits.random)
        before = updates
        for s in range(n):
            i, coming = visited(rows, table, order, s, n, ahead)
            y = table[i, 1]
            if y * dot_ahead(rows, i, a, coming) + table[i, 2] * table[i, 0] <= b:
                table[i, 0] += 1.0
                add(rows, i, y, a)
                updates += 1
        if updates == before:
            b *= growth
            if growth == 1.0:
                break
    return updates, b
