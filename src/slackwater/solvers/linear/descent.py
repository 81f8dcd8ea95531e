"""What stochastic descents share: presenting every example once an epoch, and what the slopes met there prove.

w = now[0] v, so that shrinking all of w is one multiplication. An algorithm is a NamedTuple of its constants, its
*method*, for which it registers ``step``: how the numbers ``now`` (the scale, a clock, whatever else) and the weights
change when an example is presented. The compiled epochs below are then made for it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import by_type, compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import Certificate, CountPoint
from slackwater.objective.losses import slope, value
from slackwater.objective.penalties import best_weights
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot_ahead, sqnorms, transpose_times
from slackwater.solvers.contract import Counters, Pass, Solver, State, epochs_per_round
from slackwater.solvers.linear.growing_margin import LOOKS, epochs_ahead
from slackwater.solvers.visits import Visits, new_visits, visited
from slackwater.solvers.windows import Found, Sums, Windows

_SMALLEST_SCALE = 1e-5

# -------------------------------------------------------------------------------------- what an algorithm registers


class Moving(NamedTuple):
    """What an algorithm changes from step to step."""

    v: np.ndarray
    aside: np.ndarray  # a second vector, for algorithms that keep one
    now: np.ndarray

    @property
    def scaled(self) -> np.ndarray:
        """w."""
        return self.now[0] * self.v


class Presented(NamedTuple):
    """An example's score <w, x_i>, its subgradient with the sign turned as ``pull`` x_i, and ||x_i||^2."""

    score: float
    pull: float  # u_i a_i y_i
    q: float


class Change(NamedTuple):
    """v moves by ``amount`` x_i, after which <w, x_i> is ``score``."""

    amount: float
    score: float


@by_type
def score(method, rows, i, v, now, coming):
    """<w, x_i> at the presentation of i, while row ``coming`` is asked for."""


@by_type
def learn(method, rows, loss, i, signed, slope, v, aside, now):
    """What an algorithm does between an example's slope and its step; ``signed`` is u_i y_i."""


@by_type
def step(method, seen, now):
    """The step after a presentation, a ``Change``; without arrays but ``now``, which keeps it as cheap as it looks."""


@by_type
def move(method, rows, i, amount, v, aside, now):
    """v += amount x_i, and what follows from it."""


@by_type
def rescale(method, v, aside, now):
    """The same w with the scale 1, before digits are lost."""


def scaled_step(method: type):
    """Register a step for a method whose weights are no more than scaled."""
    score.register(method)(_scaled_score)
    learn.register(method)(learn_nothing)
    move.register(method)(add_row)
    rescale.register(method)(rescale_weights)
    return step.register(method)


def _scaled_score(method, rows, i, v, now, coming):
    return now[0] * dot_ahead(rows, i, v, coming)


def learn_nothing(method, rows, loss, i, signed, slope, v, aside, now):
    pass


def add_row(method, rows, i, amount, v, aside, now):
    add(rows, i, amount, v)


def rescale_weights(method, v, aside, now):
    to_scale_one(v, now)


@compiled(borrows=True)
def to_scale_one(v, now):
    """w = v from here on."""
    for j in range(np.uint64(v.size)):
        v[j] *= now[0]
    now[0] = 1.0


# ------------------------------------------------------------------------------------------------- the epochs


@compiled(borrows=True)
def present(method, moving, rows, loss, table, visits, total, epochs):
    """Some epochs; returns the mass they add, the losses met in the last one, how many examples pulled.

    ``total`` takes the sum S of the pulls, where the weights do not tell it: otherwise it is empty.
    """
    v, aside, now = moving  # once: taken from a tuple at every visit, arrays are counted at every visit
    order, ahead = visits.order, np.uint64(visits.ahead)
    n = np.uint64(order.size)
    mass, met, changes = 0.0, 0.0, 0
    for _ in range(epochs):
        shuffle(order, order.size, visits.random)
        met = 0.0
        for s in range(n):
            i, coming = visited(rows, table, order, s, n, ahead)
            signed = table[i, 0]
            y, u = math.copysign(1.0, signed), abs(signed)
            m = y * score(method, rows, i, v, now, coming)
            a = slope(loss, m)
            learn(method, rows, loss, i, signed, a, v, aside, now)
            change = step(method, Presented(y * m, a * signed, table[i, 2]), now)
            # Between two visits a margin sinks from after to before its step: met is the mean of both losses.
            met += 0.5 * u * (value(loss, m) + value(loss, y * change.score))
            if a != 0.0:
                move(method, rows, i, change.amount, v, aside, now)
                table[i, 1] += a
                mass += u * a * (loss.target - 0.5 * loss.width * a)
                changes += 1
                if total.size:
                    add(rows, i, a * signed, total)
            if now[0] < _SMALLEST_SCALE:
                rescale(method, v, aside, now)
    return mass, met, changes


def example_table(problem: LinearProblem) -> np.ndarray:
    """Of each example: u_i y_i, the slopes summed, ||x_i||^2, one column to spare."""
    table = np.zeros((problem.n_rows, 4))
    table[:, 0] = problem.labels * problem.shares
    norms = np.empty(problem.n_rows)
    sqnorms(problem.rows, norms)
    table[:, 2] = norms
    return table


# ------------------------------------------------------------------------------------------------- the solver


@dataclass
class DescentState(State):
    """The method with its weights, and the sums behind the certificate."""

    table: np.ndarray
    method: Any
    moving: Moving
    total: np.ndarray  # S, empty where the method tells it
    path: np.ndarray  # sum over the epochs of w at their end
    visits: Visits
    epochs: int  # those of a warm start included
    mass: float
    loss: float  # as met, summed over the epochs
    windows: Windows
    next_look: int = 0  # no estimate before this epoch


@dataclass(frozen=True)
class StochasticDescent(Solver):
    """Subgradient steps over permuted epochs, certified by the slopes of the best window (rule C2).

    ``average=False`` returns the last iterate, ``suffix=False`` certifies over all epochs.
    """

    rule: ClassVar[str] = "C2"

    beta: float = 1.05
    suffix: bool = True
    average: bool = True

    # ----------------------------------------------------------------------------------- what a subclass says

    @abstractmethod
    def begin(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[Any, Moving]:
        """The method, and w = 0."""

    @abstractmethod
    def place(self, problem: LinearProblem, state: DescentState, w: np.ndarray, epochs: float) -> None:
        """Move to w, as if ``epochs`` epochs had led there."""

    @abstractmethod
    def iterate(self, state: DescentState) -> np.ndarray:
        """w, as a new array."""

    def epochs_in_a_round(self, problem: LinearProblem) -> int:
        """As many as make a round worth its overhead."""
        return epochs_per_round(problem)

    def follow(self, state: DescentState, epochs: int) -> None:
        """After some epochs: the sum that the window's mean is taken from."""
        state.path += epochs * self.iterate(state)

    def seen_rows(self, problem: LinearProblem) -> Any:
        """The rows as the method sees them."""
        return problem.rows

    def pulls(self, state: DescentState) -> np.ndarray:
        """The sum S of all pulls; a subclass may know it from w, up to a constant, with ``keeps_total`` false."""
        return state.total

    def keeps_total(self) -> bool:
        """Whether S is to be summed beside w."""
        return True

    # --------------------------------------------------------------------------------------------- the contract

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> DescentState:
        """w = 0; or w(alpha), as if epochs had been run whose mean slopes are alpha."""
        (method, moving), size = self.begin(problem, rng), problem.n_weights
        precision = np.float64 if problem.loss.width else np.float32
        total = np.zeros(size if self.keeps_total() else 0)
        state = DescentState(
            Counters(), example_table(problem), method, moving, total, np.zeros(size), new_visits(problem.rows, rng),
            0, 0.0, 0.0, Windows([], precision, self.suffix, problem.penalty),
        )  # fmt: skip
        state.windows.keep(self._now(problem, state))
        if alpha is not None and problem.penalty.square:  # otherwise no w follows from alpha
            self._warm(problem, state, np.clip(alpha, 0.0, problem.loss.cap * problem.costs))
        return state

    def advance(self, problem: LinearProblem, state: DescentState) -> None:
        """One epoch, several on tiny data."""
        done, windows = state.counters, state.windows
        left = self.epochs_in_a_round(problem)
        while left:
            epochs = min(left, windows.until_next(done.epochs))
            mass, loss, changes = present(
                state.method, state.moving, self.seen_rows(problem), problem.loss, state.table, state.visits,
                state.total, epochs,
            )  # fmt: skip
            state.mass += mass
            state.loss += epochs * loss
            state.epochs += epochs
            done.epochs += epochs
            done.updates += changes
            done.inner_products += epochs * problem.n_rows
            left -= epochs
            if self.average:
                self.follow(state, epochs)
            if windows.until_next(done.epochs) <= 0:
                windows.after(self._now(problem, state), done.epochs, problem.regularisation)

    def present_once(self, problem: LinearProblem, rng: np.random.Generator, w: np.ndarray, clock: int) -> Pass:
        """An epoch from w, placed as if epochs of ``clock`` presentations had led there."""
        state = self.start(problem, rng)
        self.place(problem, state, w, clock / problem.n_rows)
        present(
            state.method, state.moving, self.seen_rows(problem), problem.loss, state.table, state.visits, state.total, 1
        )
        return Pass(self.iterate(state), state.table[:, 1])

    def model(self, problem: LinearProblem, state: DescentState) -> LinearModel:
        """w, averaged over the window that proves most."""
        average = self.average and state.epochs
        weights = self._found(problem, state).weights if average else self.iterate(state)
        return LinearModel.from_weights(weights, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: DescentState) -> CountPoint:
        """The mean slopes in the best window."""
        return self._found(problem, state).point

    def estimate(self, problem: LinearProblem, state: DescentState) -> float:
        """The losses as met in the best window against its bound."""
        if state.counters.epochs < state.next_look:
            return math.inf
        lam = problem.regularisation
        dual, loss = state.windows.promise(self._now(problem, state), lam)
        primal = lam * problem.regulariser(self.iterate(state)) + loss
        return max(primal - dual, 0.0) / dual if dual > 0 else math.inf

    def review(self, problem: LinearProblem, state: DescentState, certificate: Certificate) -> None:
        """Not there yet: the gap falls like 1/T, so a look at every epoch would be a waste."""
        state.next_look = state.counters.epochs + state.counters.epochs // LOOKS

    # ------------------------------------------------------------------------------------------------- inside

    def _found(self, problem: LinearProblem, state: DescentState) -> Found:
        return state.windows.find(self._now(problem, state), problem.regularisation)

    def _now(self, problem: LinearProblem, state: DescentState) -> Sums:
        total = self.pulls(state)
        if problem.bias == "free":  # it has no part in ||w||
            total = np.append(total[:-1], 0.0)
        return Sums(float(state.epochs), state.mass, total, state.table[:, 1], state.path, state.loss)

    def _warm(self, problem: LinearProblem, state: DescentState, alpha: np.ndarray) -> None:
        table, loss = state.table, problem.loss
        epochs = epochs_ahead(problem, table[:, 2])
        slopes = alpha / problem.costs
        table[:, 1] = (epochs * slopes).astype(state.windows.precision)
        w = np.zeros(problem.n_weights)
        transpose_times(problem.rows, alpha * problem.labels, w)
        if state.total.size:
            state.total += (epochs * problem.n_rows * problem.regularisation) * w
        w = best_weights(problem.penalty, w)
        self.place(problem, state, w, epochs)
        state.epochs = epochs
        state.mass = epochs * float(np.abs(table[:, 0]) @ (loss.target * slopes - 0.5 * loss.width * slopes**2))
        state.path += epochs * w
        state.windows.keep(self._now(problem, state))
