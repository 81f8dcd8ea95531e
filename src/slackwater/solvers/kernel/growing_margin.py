"""What kernel-sgd-s and kernel-pegasos share: the perceptron with a growing margin, on counts of margin errors.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i max(0, 1 - <w, z_i>),   z_i = y_i Phi(x_i),
           lambda = 1 / sum C_i, u_i = n C_i / sum C.
Update     presented with z_i after t presentations, I_i <- I_i + 1 if <a, z_i> <= lambda t (a margin error), where
           a = sum_j u_j I_j z_j and w = a / (lambda t); then t <- t + 1.
State      a as two lines, its coefficients and its scores K a; I, t, the mass M = sum u_i I_i; the visits of the epoch.
Cost       a kernel row and n additions per margin error, one comparison a visit. Visits are drawn ahead and decided in
           blocks: the rows of those that look like margin errors are computed together, the scores at the block's own
           visits follow every step, those of all other rows move when the block is done. A block ends where an error
           came unexpected and its row is missing. Epochs in which the lowest <a, z_i> stays above the threshold are
           passed over. A round is an epoch, or a part of one where epochs are long.
Certificate  C2 over the best window of epochs, from coefficients and scores alone; the model is the mean of the
           iterates in that window or the last iterate, whichever has the smaller P.

Shalev-Shwartz, Singer, Srebro, Cotter. Pegasos. Mathematical Programming 127(1), 2011, section 4, keeping K a where the
paper sums it at every step; Panagiotakopoulos, Tsampouka, ECML/PKDD 2013, for epochs and their bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, random_state, shuffle
from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import Certificate, CountPoint, total_loss
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Counters, State
from slackwater.solvers.kernel.kernel_solver import KernelSolver
from slackwater.solvers.linear.growing_margin import LOOKS, epochs_ahead
from slackwater.solvers.visits import draw
from slackwater.solvers.windows import Found, Sums, Windows

_FIRST_BLOCK, _BLOCK = 32, 512  # visits decided together: few while w is young and every step turns it
_WORK, _EPOCHS = 2**27, 100  # additions and epochs in a round, at most
_MOST_QUIET = 10**5  # epochs passed over at once


class Count(NamedTuple):
    """What the margin errors of each example came to."""

    signed: np.ndarray  # u_i y_i
    errors: np.ndarray  # I_i
    draws: np.ndarray | None  # presentations, where they differ


@dataclass
class KernelMarginState(State):
    """The perceptron's vector, its clock, and what its margin errors prove."""

    count: Count
    a: np.ndarray  # (2, n): coefficients u_i y_i I_i, scores
    path: np.ndarray  # sum over the epochs of w at their end, as a
    order: np.ndarray
    random: np.ndarray
    windows: Windows
    t: int = 0  # presentations
    mass: float = 0.0
    position: int = 0  # visits done in the epoch under way
    ended: Any = None  # the Sums at the end of the last epoch
    next_look: int = 0  # no estimate before this epoch


@dataclass(frozen=True)
class KernelGrowingMargin(KernelSolver):
    """The solver without its way of drawing examples.

    ``suffix=False`` certifies over all epochs, ``average=False`` returns the last iterate: both as in the papers.
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C2"
    replacement: ClassVar[bool] = False

    beta: float = 1.05
    suffix: bool = True
    average: bool = True

    def start(
        self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None
    ) -> KernelMarginState:
        """a = 0; or as if epochs had been run whose margin errors are alpha."""
        n = problem.n_rows
        count = Count(problem.shares * problem.labels, np.zeros(n), np.zeros(n) if self.replacement else None)
        state = KernelMarginState(
            Counters(), count, np.zeros((2, n)), np.zeros((2, n)), np.arange(n, dtype=np.uint32), random_state(rng),
            Windows([], sliding=self.suffix),
        )  # fmt: skip
        self._end_epoch(state)
        state.windows.keep(state.ended)
        if alpha is not None:
            self._warm(problem, state, np.clip(alpha / problem.costs, 0.0, 1.0))
        return state

    def work(self, problem: KernelProblem, state: KernelMarginState) -> None:
        """Some epochs, or a part of one."""
        n, lam, done = problem.n_rows, problem.regularisation, state.counters
        visits = max(_BLOCK, _WORK // n)
        left = min(_EPOCHS, visits // n) * n or min(visits, n - state.position)
        while left > 0:
            if state.position == 0:
                draw_epoch = draw if self.replacement else _shuffled
                draw_epoch(state.order, state.random)
            left -= _block(problem, state, min(n - state.position, left))
            if state.position < n:
                continue
            state.position = 0
            epochs = 1 + _quiet_epochs(problem, state)
            ends = state.t + n * np.arange(epochs)
            state.path += state.a * (1.0 / (lam * ends)).sum()
            state.t = int(ends[-1])
            done.epochs += epochs
            if state.count.draws is not None:
                state.count.draws[:] += epochs - 1
            self._end_epoch(state)
            state.windows.after(state.ended, done.epochs, lam)

    def model(self, problem: KernelProblem, state: KernelMarginState) -> Expansion:
        """w, or its mean over the window that proves most if that is better."""
        return Expansion(self._best_iterate(problem, state)[1].copy())

    def dual_point(self, problem: KernelProblem, state: KernelMarginState) -> CountPoint:
        """The margin errors of the best window; before the first epoch has ended those that there are."""
        if state.ended.epochs == 0.0:
            return CountPoint(state.count.errors.copy(), 1.0)
        return self._found(problem, state).point

    def estimate(self, problem: KernelProblem, state: KernelMarginState) -> float:
        """The gap itself, up to rounding and to the clipping that draws with replacement need."""
        if state.position or state.counters.epochs < state.next_look:
            return math.inf
        dual = self._found(problem, state).bound
        return max(self._best_iterate(problem, state)[0] - dual, 0.0) / dual if dual > 0.0 else math.inf

    def review(self, problem: KernelProblem, state: KernelMarginState, certificate: Certificate) -> None:
        """Not there yet: the gap falls like 1/T, so a look at every epoch would be a waste."""
        state.next_look = state.counters.epochs + state.counters.epochs // LOOKS

    def _best_iterate(self, problem: KernelProblem, state: KernelMarginState) -> tuple[float, np.ndarray]:
        """P of the mean iterate in the best window or of the last one, and its coefficients."""
        candidates = [state.a / (problem.regularisation * max(state.t, 1))]
        if self.average and state.ended.epochs > 0.0:
            candidates.append(self._found(problem, state).weights)
        values = [_primal(problem, *candidate) for candidate in candidates]
        best = int(np.argmin(values))
        return values[best], candidates[best][0]

    def _found(self, problem: KernelProblem, state: KernelMarginState) -> Found:
        return state.windows.find(state.ended, problem.regularisation)

    def _end_epoch(self, state: KernelMarginState) -> None:
        _, errors, draws = state.count
        epochs = state.t / errors.size
        state.ended = Sums(epochs, state.mass, state.a, errors, state.path, 0.0, draws).snapshot()

    def _warm(self, problem: KernelProblem, state: KernelMarginState, slopes: np.ndarray) -> None:
        """As if epochs had been run whose shares of margin errors are these slopes."""
        epochs, (signed, errors, draws) = epochs_ahead(problem, problem.gram.diagonal), state.count
        errors[:] = epochs * slopes
        if draws is not None:
            draws[:] = epochs
        state.a[0] = signed * errors
        state.a[1] = problem.gram.times(state.a[0])
        state.t, state.mass = problem.n_rows * epochs, float(np.abs(signed) @ errors)
        state.path += epochs * state.a / (problem.regularisation * state.t)
        self._end_epoch(state)
        state.windows.keep(state.ended)


def _shuffled(order: np.ndarray, random: np.ndarray) -> None:
    shuffle(order, order.size, random)


def _quiet_epochs(problem: KernelProblem, state: KernelMarginState) -> int:
    """How many epochs from here pass without a margin error: there is nothing to be done in them."""
    lowest = float((problem.labels * state.a[1]).min()) / problem.regularisation
    return int(min(max(lowest - state.t, 0.0) // problem.n_rows, _MOST_QUIET))


def _primal(problem: KernelProblem, coefficients: np.ndarray, scores: np.ndarray) -> float:
    losses = total_loss(problem.loss, scores, problem.labels, problem.costs)
    return problem.regularisation * (0.5 * float(coefficients @ scores) + losses)


def _block(problem: KernelProblem, state: KernelMarginState, left: int) -> int:
    """Decide the next visits, ``left`` at most, and take the steps of those that are margin errors: how many."""
    gram, lam, done = problem.gram, problem.regularisation, state.counters
    size = min(left, _BLOCK, max(_FIRST_BLOCK, state.t // 4), gram.capacity)
    visits = state.order[state.position : state.position + size]
    signed, scores = state.count.signed[visits], state.a[1][visits]
    likely = np.sign(signed) * scores <= lam * (state.t + np.arange(size))
    kept = gram.keep(np.unique(visits[likely]))
    wrong = np.zeros(size, dtype=np.bool_)
    decided = _decide(kept, visits, signed, scores, lam, state.t, wrong)
    wrong[decided:] = False
    steps = signed[wrong]
    _take(state, visits[wrong], steps)
    gram.add(visits[wrong], steps, state.a[1])
    if state.count.draws is not None:
        np.add.at(state.count.draws, visits[:decided], 1.0)
    state.t += decided
    state.position += decided
    done.updates += steps.size
    done.inner_products += decided
    return decided


def _take(state: KernelMarginState, ids: np.ndarray, steps: np.ndarray) -> None:
    np.add.at(state.count.errors, ids, 1.0)
    np.add.at(state.a[0], ids, steps)
    state.mass += float(np.abs(steps).sum())


@compiled
def _decide(kept, visits, signed, scores, lam, t, wrong):
    """Which visits are margin errors, each step seen by the visits behind it; how many before a missing row."""
    n = np.uint64(visits.size)
    for k in range(n):
        step = signed[k]
        if math.copysign(1.0, step) * scores[k] > lam * (t + np.int64(k)):
            continue
        slot = kept.slots[visits[k]]
        if slot < 0:
            return np.int64(k)
        wrong[k] = True
        row = kept.values[np.uint64(slot)]
        for later in range(k + np.uint64(1), n):
            scores[later] += step * row[visits[later]]
    return np.int64(n)
