"""Pegasos: projected stochastic subgradient steps on mini-batches.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i l(y_i <w, x_i>),  u_i = n C_i / sum C.
Update     for the t-th batch A_t of k examples with slopes a_i = -l'(m_i) at w:  eta_t = 1/(lambda t),
           w <- (1 - eta_t lambda) w + (eta_t / k) sum_{A_t} u_i a_i y_i x_i,
           w <- min(1, r / ||w||) w,  with r^2 = max_m (-l'(m) m) / lambda, which no optimum exceeds (Figure 1 of the
           2007 paper, where r = 1/sqrt(lambda) for the hinge; optional in the 2011 paper).
           Batches are consecutive pieces of a random permutation, or independent draws with ``replacement``. The clock
           counts examples, kt: the last batch of an epoch, where shorter, is a step in proportion.
State      w = scale v, ||v||^2, the slopes of every example summed. Shrinking and projection change the scale only.
Cost       one inner product a visit (a second one for what moves w, where k > 1), one addition per nonzero slope; a
           round is one epoch.
Certificate  C2 over the best window of epochs: alpha_i = C_i times the mean slope of i. While nothing is projected,
           lambda k t w grows by u_i a_i y_i x_i alone, so that the sum behind the bound is known without being kept.

Without projection, with k = 1 and the hinge this is SGD-s.

Shalev-Shwartz, Singer, Srebro. Pegasos: primal estimated sub-gradient solver for SVM. ICML 2007; with Cotter,
Mathematical Programming 127(1), 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import Certificate, CountPoint
from slackwater.objective.losses import Loss, slope, value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot_ahead, sqnorms, squared_norm, transpose_times
from slackwater.solvers.contract import Counters, Pass, Solver, State, epochs_per_round
from slackwater.solvers.linear.growing_margin import LOOKS, epochs_ahead
from slackwater.solvers.visits import Visits, draw, new_visits, visited
from slackwater.solvers.windows import Found, Sums, Windows

_SMALLEST_SCALE = 1e-9


@dataclass
class PegasosState(State):
    """w = scale v, the clock, and what the slopes prove."""

    table: np.ndarray  # of each example: u_i y_i, slopes summed, ||x_i||^2, draws
    v: np.ndarray
    path: np.ndarray  # sum over the epochs of w at their end
    scale: float
    visits: Visits
    t: int  # examples presented
    mass: float
    loss: float  # as met, summed over the epochs
    jumps: int  # projections
    windows: Windows
    next_look: int = 0  # no estimate before this epoch


@dataclass(frozen=True)
class Pegasos(Solver):
    """Primal estimated subgradient solver; ``batch`` is the papers' k.

    ``average=False`` returns the last iterate, ``suffix=False`` certifies over all epochs.
    """

    name: ClassVar[str] = "pegasos"
    paper: ClassVar[str] = "Shalev-Shwartz, Singer, Srebro, ICML 2007; with Cotter, Math. Programming 2011"
    rule: ClassVar[str] = "C2"
    streams: ClassVar[bool] = True

    batch: int = 1
    projection: bool = True
    replacement: bool = False
    beta: float = 1.05
    suffix: bool = True
    average: bool = True

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, got {self.batch}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> PegasosState:
        """w = 0; or w(alpha), as if epochs had been run whose mean slopes are alpha."""
        n = problem.n_rows
        table = np.zeros((n, 4))
        table[:, 0] = problem.labels * problem.shares
        norms = np.empty(n)
        sqnorms(problem.rows, norms)
        table[:, 2] = norms
        precision = np.float64 if problem.loss.width else np.float32
        state = PegasosState(
            Counters(), table, np.zeros(problem.n_weights), np.zeros(problem.n_weights), 1.0,
            new_visits(problem.rows, rng), 0, 0.0, 0.0, 0, Windows([], precision, self.suffix),
        )  # fmt: skip
        state.windows.keep(self._now(problem, state))
        if alpha is not None:
            self._warm(problem, state, np.clip(alpha, 0.0, problem.loss.cap * problem.costs))
        return state

    def advance(self, problem: LinearProblem, state: PegasosState) -> None:
        """One epoch, several on tiny data."""
        lam, done, windows = problem.regularisation, state.counters, state.windows
        left = epochs_per_round(problem)
        while left:
            epochs = min(left, windows.until_next(done.epochs))
            progress = _Progress(state.scale, state.t, state.mass, 0.0, state.jumps, 0, 0)
            progress = _epochs(
                problem.rows, problem.loss, self._steps(problem), state.table, state.v, state.visits, progress, epochs
            )  # fmt: skip
            state.scale, state.t, state.mass, loss, state.jumps, updates, products = progress
            done.epochs += epochs
            done.updates += updates
            done.inner_products += products
            left -= epochs
            state.loss += epochs * loss
            if self.average:
                state.path += (epochs * state.scale) * state.v
            if windows.until_next(done.epochs) <= 0:
                windows.after(self._now(problem, state), done.epochs, lam)

    def present_once(self, problem: LinearProblem, rng: np.random.Generator, w: np.ndarray, clock: int) -> Pass:
        """An epoch from w at t = ``clock``."""
        state, progress = self.start(problem, rng), _Progress(1.0, clock, 0.0, 0.0, 0, 0, 0)
        state.v[:] = w
        progress = _epochs(
            problem.rows, problem.loss, self._steps(problem), state.table, state.v, state.visits, progress, 1
        )
        presented = np.maximum(state.table[:, 3], 1.0) if self.replacement else 1.0
        return Pass(progress.scale * state.v, state.table[:, 1] / presented)

    def model(self, problem: LinearProblem, state: PegasosState) -> LinearModel:
        """w, averaged over the window that proves most."""
        average = self.average and state.t
        weights = self._found(problem, state).weights if average else state.scale * state.v
        return LinearModel.from_weights(weights, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: PegasosState) -> CountPoint:
        """The mean slopes in the best window."""
        return self._found(problem, state).point

    def estimate(self, problem: LinearProblem, state: PegasosState) -> float:
        """The losses as met in the best window against its bound."""
        if state.counters.epochs < state.next_look:
            return math.inf
        lam = problem.regularisation
        dual, loss = state.windows.promise(self._now(problem, state), lam)
        primal = 0.5 * lam * state.scale**2 * problem.squared_norm(state.v) + loss
        return max(primal - dual, 0.0) / dual if dual > 0 else math.inf

    def review(self, problem: LinearProblem, state: PegasosState, certificate: Certificate) -> None:
        """Not there yet: the gap falls like 1/T, so a look at every epoch would be a waste."""
        state.next_look = state.counters.epochs + state.counters.epochs // LOOKS

    def _steps(self, problem: LinearProblem) -> _Steps:
        lam = problem.regularisation
        radius = math.sqrt(steepest(problem.loss) / lam) if self.projection else math.inf
        return _Steps(lam, radius, self.batch, self.replacement)

    def _found(self, problem: LinearProblem, state: PegasosState) -> Found:
        return state.windows.find(self._now(problem, state), problem.regularisation)

    def _now(self, problem: LinearProblem, state: PegasosState) -> Sums:
        total = (problem.regularisation * state.t * state.scale) * state.v
        draws = state.table[:, 3] if self.replacement else None
        return Sums(
            state.t / problem.n_rows, state.mass, total, state.table[:, 1], state.path, state.loss, draws, state.jumps
        )

    def _warm(self, problem: LinearProblem, state: PegasosState, alpha: np.ndarray) -> None:
        table, loss = state.table, problem.loss
        epochs = epochs_ahead(problem, table[:, 2])
        slopes = alpha / problem.costs
        table[:, 1] = (epochs * slopes).astype(state.windows.precision)
        table[:, 3] = epochs
        transpose_times(problem.rows, alpha * problem.labels, state.v)
        state.t = epochs * problem.n_rows
        state.mass = epochs * float(np.abs(table[:, 0]) @ (loss.target * slopes - 0.5 * loss.width * slopes**2))
        state.path += epochs * state.v
        state.windows.keep(self._now(problem, state))


def steepest(loss: Loss) -> float:
    """max over m of -l'(m) m: at the optimum lambda ||w||^2 is a mean of such terms."""
    peak = max(loss.target / 2.0, loss.target - loss.cap * loss.width) if loss.width else loss.target
    return float(slope(loss, peak)) * peak


class _Steps(NamedTuple):
    lam: float
    radius: float
    batch: int
    replacement: bool


class _Progress(NamedTuple):
    scale: float
    t: int
    mass: float
    loss: float
    jumps: int
    changes: int
    products: int


@compiled
def _epochs(rows, loss, steps, table, v, visits, progress, epochs):
    """Some epochs from ``progress``; returns where they led."""
    scale, t, mass, met, jumps, changes, products = progress
    lam, radius, batch, replacement = steps
    order, ahead = visits.order, np.uint64(visits.ahead)
    n, k = np.uint64(order.size), np.uint64(batch)
    slopes, inner = np.empty(batch), np.empty(batch)
    for _ in range(epochs):
        met, square = 0.0, squared_norm(v)
        if replacement:
            draw(order, visits.random)
        else:
            shuffle(order, order.size, visits.random)
        first = np.uint64(0)
        while first < n:
            size = min(k, n - first)
            t += np.int64(size)
            keep, eta = 1.0 - size / t, 1.0 / (lam * t)
            for b in range(size):
                s = first + b
                i, coming = visited(rows, table, order, s, n, ahead)
                signed = table[i, 0]
                inner[b] = math.copysign(1.0, signed) * dot_ahead(rows, i, v, coming)
                m = scale * inner[b]
                slopes[b] = slope(loss, m)
                # A quarter of the way from the loss before the step to the loss after it, as SGD-s estimates.
                after = keep * m + eta * abs(signed) * slopes[b] * table[i, 2]
                met += abs(signed) * (0.75 * value(loss, m) + 0.25 * value(loss, after))
                if replacement:
                    table[i, 3] += 1.0
            if keep > 0.0:  # otherwise v = 0
                scale *= keep
            for b in range(size):
                a = slopes[b]
                if a == 0.0:
                    continue
                i = np.uint64(order[first + b])
                signed = table[i, 0]
                if size > 1:  # the batch has moved v
                    inner[b] = math.copysign(1.0, signed) * dot_ahead(rows, i, v, coming)
                    products += 1
                step = eta * a * abs(signed) / scale
                square += step * (2.0 * inner[b] + step * table[i, 2])
                add(rows, i, math.copysign(step, signed), v)
                table[i, 1] += a
                mass += abs(signed) * a * (loss.target - 0.5 * loss.width * a)
                changes += 1
            length = scale * math.sqrt(max(square, 0.0))
            if length > radius:
                scale *= radius / length
                jumps += 1
            if scale < _SMALLEST_SCALE:
                for j in range(np.uint64(v.size)):
                    v[j] *= scale
                square *= scale * scale
                scale = 1.0
            first += size
        products += order.size
    return _Progress(scale, t, mass, met, jumps, changes, products)
