"""What folos and truncated-gradient share: stochastic descents whose weights shrink by soft thresholds, lazily.

w = now[0] v, now[1] = t, now[2] = Theta, the sum of the thresholds so far on the scale of v; v carries behind its
weights the Theta of each column's last visit (``rows.lazy``). The slopes met, averaged over a window of epochs and
scaled into the dual set, prove the bound.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.objective.certificate import primal_value
from slackwater.objective.problem import LinearProblem
from slackwater.rows.lazy import shrink_all
from slackwater.solvers.linear.descent import (
    DescentState,
    Moving,
    StochasticDescent,
    add_row,
    example_table,
    learn,
    learn_nothing,
    move,
    present,
    rescale,
    step,
    to_scale_one,
)
from slackwater.solvers.linear.svm_sgd import check_first_step
from slackwater.solvers.steps import Steps, best_first_step, constant, sample_of
from slackwater.solvers.visits import new_visits


def lazy_step(method: type):
    """Register a step for a method whose weights are scaled, and shrunk when they are met."""
    learn.register(method)(learn_nothing)
    move.register(method)(add_row)
    rescale.register(method)(_rescale_shrunk)
    return step.register(method)


def _rescale_shrunk(method, v, aside, now):
    shrink_all(v, now[2], method.cutoff)
    now[2] = 0.0
    to_scale_one(v, now)


@dataclass(frozen=True)
class LazyDescent(StochasticDescent):
    """The solver without its method; ``eta0=None`` searches the first step size."""

    eta0: float | None = None

    def __post_init__(self) -> None:
        check_first_step(self.eta0)

    @abstractmethod
    def method(self, problem: LinearProblem, steps: Steps) -> Any:
        """The constants of the steps; ``cutoff`` is the size beyond which a weight is not shrunk."""

    @abstractmethod
    def steps(self, problem: LinearProblem, rng: np.random.Generator) -> Steps:
        """The step sizes."""

    def begin(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[Any, Moving]:
        """w = 0."""
        return self.method(problem, self.steps(problem, rng)), nothing(problem)

    def place(self, problem: LinearProblem, state: DescentState, w: np.ndarray, epochs: float) -> None:
        """Move to w at the time t that so many epochs take."""
        state.moving.v[: w.size] = w
        state.moving.now[1] = epochs * problem.n_rows

    def iterate(self, state: DescentState) -> np.ndarray:
        """w, all of it shrunk up to now."""
        return shrunk(state.method, state.moving)

    def advance(self, problem: LinearProblem, state: DescentState) -> None:
        """One epoch, several on tiny data; no shrinking is left over from a round."""
        super().advance(problem, state)
        v, now = state.moving.v, state.moving.now
        shrink_all(v, now[2], state.method.cutoff)
        now[2] = 0.0
        to_scale_one(v, now)

    def first_step(self, problem: LinearProblem, rng: np.random.Generator) -> float:
        """As set, or the constant step with which one pass over a sample lowers P there most."""
        if self.eta0 is not None:
            return self.eta0
        sample = sample_of(problem, rng)
        table, visits = example_table(sample), new_visits(sample.rows, rng)

        def cost(eta: float) -> float:
            moving, method = nothing(sample), self.method(sample, constant(eta))
            again = visits._replace(order=visits.order.copy(), random=visits.random.copy())
            present(method, moving, sample.rows, sample.loss, table, again, np.zeros(0), 1)
            return primal_value(sample, shrunk(method, moving))

        # These steps fall like 1/sqrt t: of the search's last two the larger one is right.
        return 2.0 * best_first_step(sample, cost)


def falling(eta0: float, n: int) -> Steps:
    """eta0 / sqrt(1 + t/n): by the epochs done."""
    return Steps(1.0, 1.0 / n, 2, eta0)


def nothing(problem: LinearProblem) -> Moving:
    """w = 0 as 1 times v, t = 0, Theta = 0."""
    return Moving(np.zeros(2 * problem.n_weights), np.zeros(0), np.array([1.0, 0.0, 0.0]))


def shrunk(method: Any, moving: Moving) -> np.ndarray:
    """w, shrunk up to now."""
    v = moving.v.copy()
    shrink_all(v, moving.now[2], method.cutoff)
    return moving.now[0] * v[: v.size // 2] + 0.0  # no zero with a sign
