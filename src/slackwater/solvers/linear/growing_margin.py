"""What SGD-r, SGD-s and SGD-m share: stochastic subgradient descent as a perceptron whose margin grows.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i max(0, 1 - <w, z_i>),   z_i = y_i x_i,
           lambda = 1 / sum C_i, u_i = n C_i / sum C.
Update     steps 1/(lambda t) in the variable a = lambda t w:  presented with z_i,
           a <- a + u_i z_i if <a, z_i> <= lambda t  (a margin error), and t <- t + 1 in either case.
Repeats    l presentations in a row need one inner product. With X = <a, z_i> - lambda t and q = u_i ||z_i||^2,
           k+ = 0 if X > (l-1) lambda, else min(l, floor(((l-1) lambda - X) / max(q, lambda)) + 1)
           of them are margin errors: one changes X by q - lambda, any other presentation by -lambda.
State      a, t, the margin errors I_i of every example, their mass M = sum u_i I_i.
Cost       one inner product a visit, one addition per margin error; a round is one epoch.
Certificate  C2 over the best window of epochs: alpha_i = C_i times the share of margin errors among the presentations
           of i, so that w(alpha) of all epochs is w itself.

Panagiotakopoulos, Tsampouka. The stochastic gradient descent for the primal L1-SVM optimization revisited.
ECML/PKDD 2013, arXiv 1304.6383.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import Certificate, CountPoint
from slackwater.objective.problem import LinearProblem, Problem
from slackwater.rows import add, dot_ahead, sqnorms, transpose_times
from slackwater.solvers.contract import Counters, Pass, Solver, State, epochs_per_round
from slackwater.solvers.visits import Visits, draw, new_visits, visited
from slackwater.solvers.windows import Found, Sums, Windows

_FEWEST_EPOCHS_AHEAD, _MOST_EPOCHS_AHEAD = 10, 1000
LOOKS = 32  # T grows by this fraction between two certificates at least


@dataclass
class GrowingMarginState(State):
    """The perceptron's vector, its clock, and what its margin errors prove."""

    table: np.ndarray  # of each example: u_i y_i, margin errors, u_i ||x_i||^2, draws
    a: np.ndarray
    path: np.ndarray  # sum over the epochs of w at their end
    visits: Visits
    t: int  # presentations
    mass: float
    loss: float  # as met, summed over the epochs
    times: int  # presentations per visit in the last epoch
    windows: Windows
    next_look: int = 0  # no estimate before this epoch


@dataclass(frozen=True)
class GrowingMargin(Solver):
    """The solver without its schedule.

    ``suffix=False`` certifies over all epochs, ``average=False`` returns the last iterate: both as in the paper.
    """

    paper: ClassVar[str] = "Panagiotakopoulos, Tsampouka, ECML/PKDD 2013"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C2"
    streams: ClassVar[bool] = True
    replacement: ClassVar[bool] = False

    beta: float = 1.05
    suffix: bool = True
    average: bool = True

    def stretch(self, epoch: int) -> tuple[int, int]:
        """Presentations per visit after ``epoch`` epochs, and for how many epochs it stays so."""
        return 1, 2**62

    def start(
        self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None
    ) -> GrowingMarginState:
        """a = 0; or as if epochs had been run whose margin errors are alpha."""
        n, shares = problem.n_rows, problem.shares
        table = np.zeros((n, 4))
        table[:, 0] = problem.labels * shares
        norms = np.empty(n)
        sqnorms(problem.rows, norms)
        table[:, 2] = shares * norms
        state = GrowingMarginState(
            Counters(), table, np.zeros(problem.n_weights), np.zeros(problem.n_weights), new_visits(problem.rows, rng),
            0, 0.0, 0.0, 1, Windows([], np.float32, self.suffix),
        )  # fmt: skip
        state.windows.keep(self._now(state))
        if alpha is not None:
            epochs = epochs_ahead(problem, norms)
            table[:, 1] = (epochs * np.clip(alpha / problem.costs, 0.0, 1.0)).astype(np.float32)
            table[:, 3] = epochs
            transpose_times(problem.rows, table[:, 0] * table[:, 1], state.a)
            state.t, state.mass = n * epochs, float(np.abs(table[:, 0]) @ table[:, 1])
            state.path += epochs * _weights(problem, state)
            state.windows.keep(self._now(state))
        return state

    def advance(self, problem: LinearProblem, state: GrowingMarginState) -> None:
        """One epoch, several on tiny data."""
        lam, done, windows = problem.regularisation, state.counters, state.windows
        left = epochs_per_round(problem)
        while left:
            times, stretch = self.stretch(done.epochs)
            self._change_pace(state, times, lam)
            epochs = min(left, stretch, windows.until_next(done.epochs))
            state.t, state.mass, loss, updates = _epochs(
                problem.rows, lam, times, self.replacement, state.table, state.a, state.visits, state.t, state.mass,
                 epochs,
            )  # fmt: skip
            done.epochs += epochs
            done.updates += updates
            done.inner_products += epochs * problem.n_rows
            left -= epochs
            state.loss += (epochs * times) * loss
            if self.average:
                state.path += (epochs * times) * _weights(problem, state)
            windows.after(self._now(state), done.epochs, lam)

    def present_once(self, problem: LinearProblem, rng: np.random.Generator, w: np.ndarray, clock: int) -> Pass:
        """An epoch at the pace of the first, from a = lambda t w at t = ``clock``."""
        state, lam, (times, _) = self.start(problem, rng), problem.regularisation, self.stretch(0)
        state.a[:] = (lam * clock) * w
        state.t, *_ = _epochs(
            problem.rows, lam, times, self.replacement, state.table, state.a, state.visits, clock, 0.0, 1
        )
        presented = np.maximum(state.table[:, 3], 1.0) if self.replacement else times
        return Pass(_weights(problem, state), state.table[:, 1] / presented)

    def model(self, problem: LinearProblem, state: GrowingMarginState) -> LinearModel:
        """w = a / (lambda t), averaged over the window that proves most."""
        average = self.average and state.t
        weights = self._found(problem, state).weights if average else _weights(problem, state)
        return LinearModel.from_weights(weights, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: GrowingMarginState) -> CountPoint:
        """The margin errors of the best window."""
        return self._found(problem, state).point

    def estimate(self, problem: LinearProblem, state: GrowingMarginState) -> float:
        """The losses as met in the best window against its bound."""
        if state.counters.epochs < state.next_look:
            return math.inf
        lam = problem.regularisation
        dual, loss = state.windows.promise(self._now(state), lam)
        primal = 0.5 * lam * problem.squared_norm(_weights(problem, state)) + loss
        return max(primal - dual, 0.0) / dual if dual > 0 else math.inf

    def review(self, problem: LinearProblem, state: GrowingMarginState, certificate: Certificate) -> None:
        """Not there yet: the gap falls like 1/T, so a look at every epoch would be a waste."""
        state.next_look = state.counters.epochs + state.counters.epochs // LOOKS

    def _found(self, problem: LinearProblem, state: GrowingMarginState) -> Found:
        return state.windows.find(self._now(state), problem.regularisation)

    def _now(self, state: GrowingMarginState) -> Sums:
        table, draws = state.table, state.table[:, 3] if self.replacement else None
        return Sums(state.t / len(table), state.mass, state.a, table[:, 1], state.path, state.loss, draws)

    def _change_pace(self, state: GrowingMarginState, times: int, lam: float) -> None:
        """Epochs of repeats disturb the shares of margin errors: windows lie between them."""
        if times > 1 and state.times == 1:
            state.windows.pause(self._now(state), lam)
        elif times == 1 and state.times > 1:
            state.windows.resume(self._now(state), state.counters.epochs)
        state.times = times


def epochs_ahead(problem: Problem, squared_norms: np.ndarray) -> int:
    """As if after how many epochs a warm start begins.

    After T epochs a margin error of i moves its margin by C_i ||x_i||^2 / T: about one, so that the first steps do not
    throw away what alpha knows.
    """
    steps = float(np.mean(problem.costs * squared_norms))
    return math.ceil(min(max(steps, _FEWEST_EPOCHS_AHEAD), _MOST_EPOCHS_AHEAD))


def _weights(problem: LinearProblem, state: GrowingMarginState) -> np.ndarray:
    return state.a / (problem.regularisation * state.t) if state.t else np.zeros_like(state.a)


@compiled(borrows=True)
def margin_errors(X, q, lam, times):
    """k+: how many of ``times`` presentations in a row are margin errors."""
    room = (times - 1) * lam - X
    if room < 0.0:
        return 0.0
    return min(np.float64(times), math.floor(room / max(q, lam)) + 1.0)


@compiled(borrows=True)
def _epochs(rows, lam, times, replacement, table, a, visits, t, mass, epochs):
    """Some epochs of ``times`` presentations a visit; returns t, M, the losses met in the last epoch, changes of a."""
    order, ahead = visits.order, np.uint64(visits.ahead)
    n = np.uint64(order.size)
    tolerated = (times - 1) * lam
    loss, changes = 0.0, 0
    for _ in range(epochs):
        loss = 0.0
        if replacement:
            draw(order, visits.random)
        else:
            shuffle(order, order.size, visits.random)
        for s in range(n):
            i, coming = visited(rows, table, order, s, n, ahead)
            signed = table[i, 0]
            p = math.copysign(1.0, signed) * dot_ahead(rows, i, a, coming)
            threshold = lam * t
            X = p - threshold
            t += times
            if replacement:
                table[i, 3] += times
            if X > tolerated:
                continue
            share, q = abs(signed), table[i, 2]
            errors = margin_errors(X, q, lam, times) if times > 1 else 1.0
            # Its own error helps an example at once and is half forgotten on average: a quarter of the way from the
            # loss before to the loss after lies close to the primal value on every data set measured.
            before, after = max(-X, 0.0), max(times * lam - X - errors * q, 0.0)
            loss += share * (0.75 * before + 0.25 * after) / threshold if threshold > 0.0 else share
            table[i, 1] += errors
            mass += errors * share
            add(rows, i, errors * signed, a)
            changes += 1
    return t, mass, loss, changes
