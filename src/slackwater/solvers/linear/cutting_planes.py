"""What the cutting plane methods share: a round adds one cut, solves the small program and goes over the rows.

Given      the cuts of ``solvers/cuts.py``: g_j, b_j with  mean loss(w) >= <g_j, w> + b_j;  lambda = 1/sum C.
State      the cuts, their Gram matrix and mixture beta; the best point with its margins; the slopes of the next cut.
Cost       a round takes one inner product per example and one addition per example whose slope is not 0, or differs
           from that of the last cut where that is less, for a new cut t products in d dimensions, and the program in t
           variables. Memory: t dense vectors of d + 1 numbers, t being the cuts that had a part in the mixture within
           the last 50 rounds; where d is a million that is 8 MB a cut. When there are too many cuts, the longest idle
           goes; where none is idle, the two with the least part in the mixture are merged, and D stays where it is.
Certificate  C1 from the mixture of the cuts' slopes, alpha_i = C_i sum_j beta_j c^j_i, which proves what rule C3 proves
           of the cuts, or more, and is summed again from the rows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint
from slackwater.objective.problem import LinearProblem
from slackwater.rows import squared_norm
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.cuts import (
    Aggregate,
    Bundle,
    CutMaker,
    loss_along,
    move,
    products_along,
    slopes_along,
)
from slackwater.solvers.line_search import line_search, room_for_kinks
from slackwater.solvers.sweeps import margins_at

_MOST_CUTS = 25  # in a round, on tiny data
_LEAST = {"threads": 1, "cuts": 2, "buffer": 2}  # of the settings by these names
_SETTLED = 1e-15  # a relative gap that float64 has no numbers for


@dataclass
class CutsState(State):
    """The cuts, the next one's slopes, the best point with what is known about it, the model's minimum, and room."""

    cuts: Bundle | Aggregate
    maker: CutMaker
    slopes: np.ndarray
    w: np.ndarray
    margins: np.ndarray
    primal: float
    dual: float
    w_t: np.ndarray
    margins_t: np.ndarray
    room: np.ndarray  # for margins
    kinks: np.ndarray


class CuttingPlanes(Solver):
    """Base of the cutting plane methods."""

    threads: int = 1
    beta = 1.0  # P and D are known: the estimate is the certificate's gap

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name, least) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> CutsState:
        """The first cut is the one at w = 0, or the mixture that ``alpha`` stands for."""
        n, d, loss = problem.n_rows, problem.n_weights, problem.loss
        maker = CutMaker.of(problem, self.threads)
        margins, slopes = np.zeros(n), np.empty(n)
        if alpha is None:
            slopes_along(loss, margins, margins, 0.0, slopes)
        else:
            slopes = np.clip(alpha / problem.costs, 0.0, loss.cap)
        return CutsState(
            Counters(), self.new_cuts(problem), maker, slopes, np.zeros(d), margins, problem.at_zero, 0.0,
            np.zeros(d), np.zeros(n), np.empty(n), room_for_kinks(loss, n),
        )  # fmt: skip

    def advance(self, problem: LinearProblem, state: CutsState) -> None:
        """One cut, several on tiny data."""
        done = state.counters
        for _ in range(min(_MOST_CUTS, epochs_per_round(problem))):
            if state.primal - state.dual <= _SETTLED * state.primal:
                return
            state.cuts.add(state.maker.make(problem, state.slopes))
            state.dual = max(state.dual, state.cuts.solve(state.w_t))
            margins_at(problem, state.w_t, state.margins_t, self.threads)
            self.follow(problem, state)
            done.epochs += 1
            done.updates += 1
            done.inner_products += problem.n_rows

    @abstractmethod
    def new_cuts(self, problem: LinearProblem) -> Bundle | Aggregate:
        """Where the cuts go."""

    @abstractmethod
    def follow(self, problem: LinearProblem, state: CutsState) -> None:
        """From the minimum of the model, w_t: choose the best point and the slopes of the next cut."""

    def model(self, problem: LinearProblem, state: CutsState) -> LinearModel:
        """The best point."""
        return LinearModel.from_weights(state.w, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: CutsState) -> BoxPoint:
        """The mixture of the cuts' slopes."""
        return BoxPoint(problem.costs * state.cuts.mixture())

    def estimate(self, problem: LinearProblem, state: CutsState) -> float:
        """The gap itself, up to rounding."""
        return max(state.primal - state.dual, 0.0) / state.dual if state.dual > 0.0 else math.inf


def at_the_minimum(problem: LinearProblem, state: CutsState) -> None:
    """Cut where the model has its minimum; the best of these points is the answer."""
    loss, there = problem.loss, state.margins_t
    slopes_along(loss, there, there, 0.0, state.slopes)
    mean_loss = loss_along(loss, state.maker.shares, there, there, 0.0, state.room)
    primal = 0.5 * state.cuts.lam * squared_norm(state.w_t) + mean_loss
    if primal < state.primal:
        state.primal = primal
        state.w, state.w_t = state.w_t, state.w
        state.margins, state.margins_t = there, state.margins


def along_the_line(problem: LinearProblem, state: CutsState, mu: float) -> None:
    """Go to the best point on the line from the best one to w_t; cut a part ``mu`` of the way from there to w_t."""
    loss, shares, lam = problem.loss, state.maker.shares, state.cuts.lam
    change = np.subtract(state.margins_t, state.margins, out=state.margins_t)
    square, product = products_along(state.w, state.w_t)
    k = line_search(loss, shares, state.margins, change, lam * square, lam * product, state.kinks)
    mean_loss = loss_along(loss, shares, state.margins, change, k, state.room)
    move(state.w_t, 1.0 - k, state.w)
    primal = 0.5 * lam * squared_norm(state.w_t) + mean_loss
    better = primal < state.primal
    slopes_along(loss, state.margins, change, (1.0 - mu) * k + mu if better else mu, state.slopes)
    if better:
        state.primal = primal
        state.w, state.w_t = state.w_t, state.w
        state.margins, state.room = state.room, state.margins
