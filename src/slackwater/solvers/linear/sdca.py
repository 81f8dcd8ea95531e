"""SDCA: stochastic dual coordinate ascent.

Problem    min over w of  ||w||^2/2 + sum_i C_i l(y_i <w, x_i>),  by its dual
           max  k sum alpha - alpha'Q alpha/2 - sum_i d_i alpha_i^2/2,  0 <= alpha_i <= U_i,  w = sum_i alpha_i y_i x_i.
Given      k the loss's target, d_i = width/C_i, U_i = cap C_i, q_i = ||x_i||^2 + d_i.
Update     for i drawn uniformly, with replacement or in permuted epochs (SDCA-Perm): the exact maximum over alpha_i,
           alpha_i <- clip(alpha_i + (k - y_i <w, x_i> - d_i alpha_i)/q_i, 0, U_i), and w follows.
SGD start  a first epoch by the paper's modified SGD: the t-th example is put into the problem of the first t,
           w_t = s_t sum_{j <= t} alpha_j y_j x_j,  s_t = sum C / (C_1 + .. + C_t)  (n/t without weights),
           alpha_t <- clip((k - y_t <w_{t-1}, x_t>)/(s_t ||x_t||^2 + d_t), 0, U_t).  At t = n, w_t is w(alpha).
Output     the last iterate; the average of the iterates after every visit in the last half of them or somewhat more; or
           one of those at random. These are the ones that the paper's theorems are about.
State      alpha, w; for the average the sums of alpha over the last two doublings of the epochs, from which w(alpha)
           is summed when asked for; for the random iterate a copy of w.
Cost       one inner product a visit, one addition a change; a round is one epoch. Nothing is shrunk.
Free bias  the constraint sum alpha_i y_i = 0 by the method of multipliers, as in dcd.
Certificate  C1, from the last alpha, whose bound is the best so far.

Shalev-Shwartz, Zhang. Stochastic dual coordinate ascent methods for regularized loss minimization. JMLR 14, 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot_ahead, sqnorm, transpose_times
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.linear.dual_coordinates import (
    STILL,
    dual_table,
    dual_value,
    follow_multiplier,
    gap_term,
    move,
    visit,
    weights_of,
)
from slackwater.solvers.visits import Visits, draw, new_visits, visited

_OUTPUTS = ("last", "average", "random")


class Past(NamedTuple):
    """What is kept of earlier iterates, in pieces that end at 1, 2, 4, 8, .. epochs; empty where nobody asks for it."""

    late: np.ndarray  # of each example: its changes in this piece, times the visits of the piece before them
    piece: np.ndarray  # alpha summed over the visits of the last piece
    picked: np.ndarray  # random iterates: since the start of the last piece, since that of this one


@dataclass
class SDCAState(State):
    """The dual point, its weights and its past."""

    table: np.ndarray
    w: np.ndarray
    visits: Visits
    past: Past
    gap: float  # sum of the Fenchel-Young terms met in the last epoch
    centre: float  # weight of the constant feature that belongs to the multiplier of a free bias
    warm: bool


@dataclass(frozen=True)
class SDCA(Solver):
    """Stochastic dual coordinate ascent; ``output`` is last, average or random, ``sgd_start`` asks for modified SGD."""

    name: ClassVar[str] = "sdca"
    paper: ClassVar[str] = "Shalev-Shwartz, Zhang, JMLR 2013"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    replacement: bool = False
    output: str = "last"
    sgd_start: bool = False

    def __post_init__(self) -> None:
        if self.output not in _OUTPUTS:
            raise ValueError(f"output={self.output!r} is not known; the outputs are {', '.join(_OUTPUTS)}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> SDCAState:
        """alpha = 0, or the given point clipped to the box, which needs no SGD start."""
        table = dual_table(problem, alpha)
        w = weights_of(problem, table)
        n = problem.n_rows if self.output == "average" else 0
        picked = np.stack([w, w]) if self.output == "random" else np.empty((0, w.size))
        past = Past(np.zeros(n), np.zeros(n), picked)
        return SDCAState(
            Counters(), table, w, new_visits(problem.rows, rng), past, math.inf, 0.0, alpha is not None
        )  # fmt: skip

    def advance(self, problem: LinearProblem, state: SDCAState) -> None:
        """One epoch, several on tiny data."""
        done, k = state.counters, problem.loss.target
        left = epochs_per_round(problem)
        while left:
            past, (before, since, until) = state.past, _pieces(done.epochs)
            epochs = min(left, until)
            if self.sgd_start and done.epochs == 0 and not state.warm:
                changes = _sgd_epoch(problem.rows, k, problem.costs, state.table, state.w, state.visits)
                past.picked[:] = state.w
            else:
                plan = _Plan(epochs, self.replacement, problem.bias == "free", before, since)
                state.gap, changes, state.centre = _epochs(
                    problem.rows, k, state.table, state.w, state.visits, past, plan, state.centre
                )
            if epochs == until:
                _turn(state, since + epochs)
            done.epochs += epochs
            done.updates += changes
            done.inner_products += epochs * problem.n_rows
            left -= epochs

    def model(self, problem: LinearProblem, state: SDCAState) -> LinearModel:
        """The output that was asked for."""
        return LinearModel.from_weights(self._weights(problem, state), problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: SDCAState) -> BoxPoint:
        """alpha."""
        return BoxPoint(state.table[:, 0])

    def estimate(self, problem: LinearProblem, state: SDCAState) -> float:
        """The Fenchel-Young terms met during the last epoch, each a share of the gap, against W(alpha)."""
        dual = dual_value(problem, state.table, state.w)
        return state.gap / dual if dual > 0 else math.inf

    def _weights(self, problem: LinearProblem, state: SDCAState) -> np.ndarray:
        if self.output == "random":
            return state.past.picked[0]
        if self.output == "last" or state.counters.epochs == 0:
            return state.w
        before, since, _ = _pieces(state.counters.epochs)
        average = state.past.piece + _summed(state, since)
        average /= (before + since) * problem.n_rows
        w = np.zeros_like(state.w)
        transpose_times(problem.rows, average * problem.labels, w)
        return w


def _pieces(epochs: int) -> tuple[int, int, int]:
    """Epochs in the last piece, since its end and until the end of the next: pieces end at 1, 2, 4, 8, .. epochs."""
    if epochs == 0:
        return 0, 0, 1
    start = 1 << (epochs.bit_length() - 1)
    return max(1, start // 2), epochs - start, 2 * start - epochs


def _summed(state: SDCAState, since: int) -> np.ndarray:
    """alpha after every visit of this piece, summed."""
    return (since * len(state.table)) * state.table[:, 0] - state.past.late


def _turn(state: SDCAState, since: int) -> None:
    """A piece is over."""
    past = state.past
    if past.late.size:
        past.piece[:] = _summed(state, since)
        past.late[:] = 0.0
    if past.picked.size:
        past.picked[0] = past.picked[1]


class _Plan(NamedTuple):
    epochs: int
    replacement: bool
    multiplier: bool  # of a free bias
    before: int  # epochs in the last piece
    since: int  # and since then


@compiled(borrows=True)
def _epochs(rows, k, table, w, visits, past, plan, centre):
    """Some epochs; returns the gap terms of the last one, the changes, the bias's centre."""
    epochs, replacement, multiplier, before, since = plan
    order, ahead, late = visits.order, np.uint64(visits.ahead), past.late
    n = np.uint64(order.size)
    gap, changes = 0.0, 0
    for epoch in range(epochs):
        if replacement:
            draw(order, visits.random)
        else:
            shuffle(order, n, visits.random)
        seen, gap, unchanged = since + epoch, 0.0, changes
        moment = next_below(visits.random, n) if past.picked.size else n
        for s in range(n):
            i, coming = visited(rows, table, order, s, n, ahead)
            e, G, PG = visit(rows, k, table, i, w, coming)
            if abs(PG) > STILL:
                gap += gap_term(table, i, e)
                alpha = table[i, 0]
                move(rows, table, i, -G * table[i, 2], w)
                if late.size:
                    late[i] += (table[i, 0] - alpha) * (seen * np.float64(n) + s)
                changes += 1
            if s == moment:
                _pick(past.picked, w, visits.random, before, seen)
        if multiplier:
            centre = follow_multiplier(w, centre)
        elif changes == unchanged and not replacement:
            break
    return gap, changes, centre


@compiled
def _pick(picked, w, random, before, seen):
    """Keep w with the probability that makes every epoch so far as likely."""
    if next_below(random, before + seen + 1) == 0:
        picked[0] = w
    if next_below(random, seen + 1) == 0:
        picked[1] = w


@compiled
def _sgd_epoch(rows, k, costs, table, w, visits):
    """The modified SGD over one permutation; how many alpha are not zero."""
    order, ahead = visits.order, np.uint64(visits.ahead)
    n = np.uint64(order.size)
    shuffle(order, n, visits.random)
    total, presented, changes = costs.sum(), 0.0, 0
    for s in range(n):
        i, coming = visited(rows, table, order, s, n, ahead)
        y = math.copysign(1.0, table[i, 1])
        e = k - y * dot_ahead(rows, i, w, coming) * (total / presented) if s > 0 else k
        presented += costs[i]
        curvature = sqnorm(rows, i) * (total / presented) + table[i, 3]
        if e > 0.0:
            table[i, 0] = min(e / curvature, abs(table[i, 1]))
            add(rows, i, y * table[i, 0], w)
            changes += 1
    return changes
