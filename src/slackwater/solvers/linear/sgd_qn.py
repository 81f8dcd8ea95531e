"""SGD-QN: stochastic gradient steps with a size for every coordinate, from curvatures met on the way.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i l(y_i <w, x_i>),  u_i = n C_i / sum C.
Update     presented with example i, whose pull at w is g(w) = u_i a_i(w) y_i, a_i = -l'(m_i), t = 1, 2, ..:
           if a secant is due, with w' the weights before the last shrinking and g(w) != g(w'):
             r_j = lambda + (g(w) - g(w')) x_ij / (w'_j - w_j), clipped to [cmin lambda, cmax lambda],
             h_j <- h_j + (t - t') r_j,  t' <- t, the time of the last secant used;
           every ``skip`` examples:  w' <- w,  w_j <- w_j - skip lambda w_j / h_j, and a secant is due;
           w_j <- w_j + g x_ij / h_j.
           So h_j adds up curvatures, and the step is about 1 / (t H_jj). It starts at lambda t0.
Given      skip: 16 columns / entries per row, so that what is done to all columns costs no more than the rest; t0: the
           best of eleven powers of ten about mean ||x||^2 / lambda, each tried on a tenth of the examples (1000 at
           least, if there are so many).
State      w, w', 1/h, the slopes of every example summed, and S, the sum of all g x_i.
Cost       one inner product a visit, two additions per nonzero slope, O(columns) every skip; a round is one epoch.
Certificate  C2 over the best window of epochs; C6 at its mean proved less on all data tried, for smooth losses too.

This is the corrected algorithm: that of 2009 updates h from a secant along the shrinking alone. The secant of a single
example is noisy: without cmax it is useless, and against a well chosen first step of svm-sgd it rarely gains.

Bordes, Bottou, Gallinari. SGD-QN: careful quasi-Newton stochastic gradient descent. JMLR 10, 2009; Erratum, with Chang
and Smith, JMLR 11, 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import primal_value
from slackwater.objective.losses import slope as slope_at
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, add_scaled, as_matrix, dot, dot_ahead
from slackwater.solvers.linear.descent import (
    Change,
    DescentState,
    Moving,
    StochasticDescent,
    example_table,
    learn,
    move,
    present,
    rescale,
    rescale_weights,
    score,
    step,
)
from slackwater.solvers.steps import sample_of
from slackwater.solvers.visits import new_visits

_SHARE, _FEWEST = 10, 1000  # the sample for t0: a tenth, but not less
_POWERS = range(-5, 6)
_MOST_EPOCHS = 200  # in a round
_SPARED = 16.0  # visits that pay for one pass over all columns
_T, _LAST, _LEFT, _DUE, _MEAN = range(1, 6)  # places in ``now``: t, t', examples until the shrinking, .., mean 1/h
_SIZES, _BEFORE, _ROOM = range(3)  # lines of ``aside``: 1/h, w', zeros


class QuasiNewton(NamedTuple):
    """Steps with a size for every coordinate."""

    lam: float
    cmin: float
    cmax: float
    skip: float


@score.register(QuasiNewton)
def _score(method, rows, i, v, now, coming):
    return dot_ahead(rows, i, v, coming)


@learn.register(QuasiNewton)
def _learn(method, rows, loss, i, signed, slope, v, aside, now):
    now[_T] += 1.0
    if now[_DUE] != 0.0:
        now[_DUE] = 0.0
        before = slope_at(loss, math.copysign(1.0, signed) * dot(rows, i, aside[_BEFORE]))
        if slope != before:
            add(rows, i, signed * (slope - before), aside[_ROOM])
            follow_secant(method, v, aside, now)
    now[_LEFT] -= 1.0
    if now[_LEFT] <= 0.0:
        shrink_all(method, v, aside, now)


@step.register(QuasiNewton)
def _step(method, seen, now):
    return Change(seen.pull, seen.score + now[_MEAN] * seen.q * seen.pull)


@move.register(QuasiNewton)
def _move(method, rows, i, amount, v, aside, now):
    add_scaled(rows, i, amount, aside[_SIZES], v)


rescale.register(QuasiNewton)(rescale_weights)


@compiled(borrows=True)
def follow_secant(method, w, aside, now):
    """h, from the difference of two pulls of one example, which lies in the room and is taken from it."""
    sizes, before, room = aside[_SIZES], aside[_BEFORE], aside[_ROOM]
    passed = now[_T] - now[_LAST]
    total = 0.0
    for j in range(np.uint64(w.size)):
        r = curvature(method, room[j], before[j] - w[j])
        room[j] = 0.0
        sizes[j] /= 1.0 + sizes[j] * passed * r
        total += sizes[j]
    now[_MEAN] = total / w.size
    now[_LAST] = now[_T]


@compiled(borrows=True)
def curvature(method, pull, back):
    """r_j: lambda where nothing pulls, the cap where w_j stood still."""
    r = method.lam
    if pull != 0.0:
        r = method.lam + pull / back if back != 0.0 else math.inf
    return min(max(r, method.cmin * method.lam), method.cmax * method.lam)


@compiled(borrows=True)
def shrink_all(method, w, aside, now):
    """The shrinking of ``skip`` examples at once; a step that would turn w round ends at 0."""
    sizes, before = aside[_SIZES], aside[_BEFORE]
    for j in range(np.uint64(w.size)):
        before[j] = w[j]
        w[j] *= max(0.0, 1.0 - method.skip * method.lam * sizes[j])
    now[_LEFT], now[_DUE] = method.skip, 1.0


@dataclass(frozen=True)
class SGDQN(StochasticDescent):
    """Quasi-Newton stochastic gradient descent; ``skip=None`` fits the data, ``t0=None`` is searched."""

    name: ClassVar[str] = "sgd-qn"
    paper: ClassVar[str] = "Bordes, Bottou, Gallinari, JMLR 2009; with Chang, Smith, JMLR 2010"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised")
    optimises: ClassVar[bool] = False  # curvatures at the cap make steps so short that no number of epochs may do

    cmin: float = 1.0
    cmax: float = 100.0
    skip: int | None = None
    t0: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.cmin <= self.cmax < np.inf:
            raise ValueError(f"cmin and cmax must be positive, finite and in order, got {self.cmin} and {self.cmax}")
        if self.skip is not None and self.skip < 1:
            raise ValueError(f"skip must be at least 1 or None, got {self.skip}")
        if self.t0 is not None and not 0.0 < self.t0 < np.inf:
            raise ValueError(f"t0 must be positive and finite or None, got {self.t0}")

    def begin(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[QuasiNewton, Moving]:
        """w = 0 with the t0 that does best on a sample."""
        sample = sample_of(problem, rng, max(_FEWEST, problem.n_rows // _SHARE))
        skip = self.skip if self.skip is not None else affordable_skip(sample)
        method = QuasiNewton(problem.regularisation, self.cmin, self.cmax, float(skip))
        t0 = self.t0 if self.t0 is not None else searched_t0(sample, method, rng)
        return method, start(problem, method, t0)

    def epochs_in_a_round(self, problem: LinearProblem) -> int:
        """Not thousands on tiny data: the steps are too short by then to gain anything."""
        return min(super().epochs_in_a_round(problem), _MOST_EPOCHS)

    def place(self, problem: LinearProblem, state: DescentState, w: np.ndarray, epochs: float) -> None:
        """w, as if its examples had met no curvature but lambda."""
        moving, passed = state.moving, epochs * problem.n_rows
        moving.v[:] = w
        moving.aside[_SIZES] /= 1.0 + moving.aside[_SIZES] * problem.regularisation * passed
        moving.now[_T] = moving.now[_LAST] = passed

    def iterate(self, state: DescentState) -> np.ndarray:
        """w."""
        return state.moving.v.copy()


def start(problem: LinearProblem, method: QuasiNewton, t0: float) -> Moving:
    """w = 0, h = lambda t0."""
    aside, size = np.zeros((3, problem.n_weights)), 1.0 / (method.lam * t0)
    aside[_SIZES] = size
    return Moving(np.zeros(problem.n_weights), aside, np.array([1.0, 0.0, 0.0, method.skip, 0.0, size]))


def affordable_skip(sample: LinearProblem) -> int:
    """As many examples as have the entries of 16 rows that are full where any row has an entry."""
    rows, columns = as_matrix(sample.rows).nonzero()
    used = np.unique(columns).size
    return max(1, round(_SPARED * used * sample.n_rows / rows.size)) if used else int(_SPARED)


def searched_t0(sample: LinearProblem, method: QuasiNewton, rng: np.random.Generator) -> float:
    """The power of ten times mean ||x||^2 / lambda with which one pass over the sample lowers P there most."""
    table, visits = example_table(sample), new_visits(sample.rows, rng)

    def cost(t0: float) -> float:
        moving = start(sample, method, t0)
        again = visits._replace(order=visits.order.copy(), random=visits.random.copy())
        present(method, moving, sample.rows, sample.loss, table, again, np.zeros(0), 1)
        return primal_value(sample, moving.v)

    natural = max(1.0, table[:, 2].mean() / method.lam)
    return min((natural * 10.0**power for power in reversed(_POWERS)), key=cost)
