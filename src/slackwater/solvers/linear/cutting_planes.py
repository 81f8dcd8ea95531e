"""What the cutting plane methods share: a round adds one cut, solves the small program and goes over the rows.

Given      the cuts of ``solvers/cuts.py``: g_j, b_j with  mean loss(w) >= <g_j, w> + b_j;  lambda = 1/sum C.
State      the cuts, their Gram matrix and mixture beta; the best point with its margins; the slopes of the next cut.
Cost       a round takes one inner product per example and one addition per example whose slope is not 0, or differs
           from that of the last cut where that is less, for a new cut t products in d dimensions, and the program in t
           variables. Memory: t dense vectors of d + 1 numbers, t being the cuts that had a part in the mixture within
           the last 50 rounds; where d is a million that is 8 MB a cut.
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
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.cuts import Aggregate, Bundle, CutMaker, margins_at, mean_loss, slopes_at
from slackwater.solvers.line_search import line_search

_MOST_CUTS = 25  # in a round, on tiny data
_SETTLED = 1e-15  # a relative gap that float64 has no numbers for


@dataclass
class CutsState(State):
    """The cuts, the next one's slopes, and the best point so far with what is known about it."""

    cuts: Bundle | Aggregate
    maker: CutMaker
    slopes: np.ndarray
    w: np.ndarray
    margins: np.ndarray
    primal: float
    dual: float


class CuttingPlanes(Solver):
    """Base of the cutting plane methods."""

    threads: int = 1
    beta = 1.0  # P and D are known: the estimate is the certificate's gap

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> CutsState:
        """The first cut is the one at w = 0, or the mixture that ``alpha`` stands for."""
        n, loss = problem.n_rows, problem.loss
        maker = CutMaker.of(problem, self.threads)
        margins, slopes = np.zeros(n), np.empty(n)
        if alpha is None:
            slopes_at(loss, margins, slopes)
        else:
            slopes = np.clip(alpha / problem.costs, 0.0, loss.cap)
        primal = float(mean_loss(loss, maker.shares, margins))
        return CutsState(
            Counters(), self.new_cuts(problem), maker, slopes, np.zeros(problem.n_weights), margins, primal, 0.0
        )

    def advance(self, problem: LinearProblem, state: CutsState) -> None:
        """One cut, several on tiny data."""
        done = state.counters
        for _ in range(min(_MOST_CUTS, epochs_per_round(problem))):
            if state.primal - state.dual <= _SETTLED * state.primal:
                return
            state.cuts.add(state.maker.make(problem, state.slopes))
            w, dual = state.cuts.solve()
            state.dual = max(state.dual, dual)
            self.follow(problem, state, w, margins_at(problem, w, self.threads))
            done.epochs += 1
            done.updates += 1
            done.inner_products += problem.n_rows

    @abstractmethod
    def new_cuts(self, problem: LinearProblem) -> Bundle | Aggregate:
        """Where the cuts go."""

    @abstractmethod
    def follow(self, problem: LinearProblem, state: CutsState, w: np.ndarray, margins: np.ndarray) -> None:
        """From the minimum of the model, ``w``: choose the best point and the slopes of the next cut."""

    def model(self, problem: LinearProblem, state: CutsState) -> LinearModel:
        """The best point."""
        return LinearModel.from_weights(state.w, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: CutsState) -> BoxPoint:
        """The mixture of the cuts' slopes."""
        return BoxPoint(problem.costs * state.cuts.mixture(problem.n_rows))

    def estimate(self, problem: LinearProblem, state: CutsState) -> float:
        """The gap itself, up to rounding."""
        return max(state.primal - state.dual, 0.0) / state.dual if state.dual > 0.0 else math.inf


def at_the_minimum(problem: LinearProblem, state: CutsState, w: np.ndarray, margins: np.ndarray) -> None:
    """Cut where the model has its minimum; the best of these points is the answer."""
    primal = _primal(problem, state, w, margins)
    if primal < state.primal:
        state.w, state.margins, state.primal = w, margins, primal
    slopes = np.empty(problem.n_rows)
    slopes_at(problem.loss, margins, slopes)
    state.slopes = slopes


def along_the_line(problem: LinearProblem, state: CutsState, w: np.ndarray, margins: np.ndarray, mu: float) -> None:
    """Go to the best point on the line through the best one and ``w``; cut a part ``mu`` of the way from there to w."""
    lam, best = problem.regularisation, state.w
    direction, change = w - best, margins - state.margins
    k = line_search(
        problem.loss, state.maker.shares, state.margins, change, lam * float(direction @ direction),
        lam * float(best @ direction),
    )  # fmt: skip
    moved, there = best + k * direction, state.margins + k * change
    primal = _primal(problem, state, moved, there)
    if primal < state.primal:
        state.w, state.margins, state.primal = moved, there, primal
    slopes = np.empty(problem.n_rows)
    slopes_at(problem.loss, (1.0 - mu) * state.margins + mu * margins, slopes)
    state.slopes = slopes


def _primal(problem: LinearProblem, state: CutsState, w: np.ndarray, margins: np.ndarray) -> float:
    loss = float(mean_loss(problem.loss, state.maker.shares, margins))
    return 0.5 * problem.regularisation * problem.squared_norm(w) + loss
