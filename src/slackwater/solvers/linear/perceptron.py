"""Perceptron: Rosenblatt's rule, its last or its averaged weights.

Problem    find w with y_i <w, x_i> > 0 for all i. No objective is minimised: what a run ends with is measured as a
           solution of  min ||w||^2/2 + sum_i C_i l(y_i <w, x_i>),  at the length of w that suits it best.
Update     for i in a random permutation: if y_i <a, x_i> <= 0 (a mistake),  a <- a + u_i y_i x_i,
           u_i = n C_i / sum C, 1 without weights. With a margin gamma = max over ||u|| = 1 of min_i y_i <u, x_i> > 0
           at most (R / gamma)^2 mistakes are made, R = max_i ||x_i||, whatever the order.
Output     the last a, or the average of the a after every visit: a_t = sum of the mistakes' vectors, so that
           sum_{t <= T} a_t = T a_T - sum over the mistakes of (visits before it) u_i y_i x_i.
           The vote of all a_t (Freund, Schapire) is no linear model; they put the average in its place.
State      a, the second sum, the mistakes of every example.
Cost       one inner product a visit, two additions a mistake; a round is one epoch.
Certificate  C5, from the mistakes of each example, p_i = u_i times their number: valid and loose.

Rosenblatt. The perceptron. Psychological Review 65, 1958. Freund, Schapire. Large margin classification using the
perceptron algorithm. Machine Learning 37, 1999.
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
from slackwater.rows import add, dot_ahead
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.linear.dual_coordinates import weights_of
from slackwater.solvers.linear.margin_perceptron import at_its_best_length
from slackwater.solvers.visits import Visits, new_visits, visited

_OUTPUTS = ("average", "last")


@dataclass
class PerceptronState(State):
    """The weights, what their average needs, the mistakes."""

    table: np.ndarray  # of each example: p_i = u_i times its mistakes, u_i y_i
    a: np.ndarray
    late: np.ndarray  # every change of a times the visits before it; empty where no average is wanted
    visits: Visits
    seen: int  # visits


@dataclass(frozen=True)
class Perceptron(Solver):
    """Rosenblatt's perceptron; ``output`` is average or last."""

    name: ClassVar[str] = "perceptron"
    paper: ClassVar[str] = "Rosenblatt, Psychological Review 1958; Freund, Schapire, Machine Learning 1999"
    rule: ClassVar[str] = "C5"
    optimises: ClassVar[bool] = False

    output: str = "average"

    def __post_init__(self) -> None:
        if self.output not in _OUTPUTS:
            raise ValueError(f"output={self.output!r} is not known; the outputs are {', '.join(_OUTPUTS)}")

    def start(
        self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None
    ) -> PerceptronState:
        """a = 0, or as if the mistakes had been such that a = w(alpha) up to its length."""
        table = np.zeros((problem.n_rows, 2))
        if alpha is not None:
            table[:, 0] = _AHEAD * np.clip(alpha / problem.costs, 0.0, problem.loss.cap) * problem.shares
        table[:, 1] = problem.labels * problem.shares
        a = weights_of(problem, table)
        late = np.zeros(a.size if self.output == "average" else 0)
        return PerceptronState(Counters(), table, a, late, new_visits(problem.rows, rng), 0)

    def advance(self, problem: LinearProblem, state: PerceptronState) -> None:
        """One epoch, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        mistakes = _epochs(problem.rows, state.table, state.a, state.late, state.visits, state.seen, epochs)
        state.seen += epochs * problem.n_rows
        done.epochs += epochs
        done.updates += mistakes
        done.inner_products += epochs * problem.n_rows

    def model(self, problem: LinearProblem, state: PerceptronState) -> LinearModel:
        """The output at its best length."""
        a = state.a - state.late / max(1, state.seen) if state.late.size else state.a
        return LinearModel.from_weights(at_its_best_length(problem, a), problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: PerceptronState) -> DirectionPoint:
        """The mistakes."""
        return DirectionPoint(state.table[:, 0])


_AHEAD = 10.0  # epochs of mistakes that a warm start stands for


@compiled(borrows=True)
def _epochs(rows, table, a, late, visits, seen, epochs):
    """Some epochs; how many mistakes."""
    order, ahead = visits.order, np.uint64(visits.ahead)
    n = np.uint64(order.size)
    mistakes = 0
    for _ in range(epochs):
        shuffle(order, n, visits.random)
        before = mistakes
        for s in range(n):
            i, coming = visited(rows, table, order, s, n, ahead)
            step = table[i, 1]
            if math.copysign(1.0, step) * dot_ahead(rows, i, a, coming) <= 0.0:
                add(rows, i, step, a)
                if late.size:
                    add(rows, i, step * (np.float64(seen) + s), late)
                table[i, 0] += abs(step)
                mistakes += 1
        seen += np.int64(n)
        if mistakes == before:
            break
    return mistakes
