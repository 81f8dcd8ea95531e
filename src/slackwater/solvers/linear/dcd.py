"""DCD: dual coordinate descent with shrinking.

Problem    min over w of  ||w||^2/2 + sum_i C_i l(y_i <w, x_i>),  by its dual
           max  k sum alpha - alpha'Q alpha/2 - sum_i d_i alpha_i^2/2,  0 <= alpha_i <= U_i,  w = sum_i alpha_i y_i x_i.
Given      k the loss's target, d_i = width/C_i, U_i = cap C_i, q_i = ||x_i||^2 + d_i.
Update     for i in a random permutation:  G = y_i <w, x_i> - k + d_i alpha_i;
           alpha_i <- clip(alpha_i - G/q_i, 0, U_i), and w follows (Algorithm 1; shrinking as in Algorithm 3).
Inner      an epoch's pass is followed by ``inner`` passes over the rows that it left inside their box. Those move at
           nearly every visit, most others at few: a third to two thirds of the visits to the same gap. inner=0 is the
           paper's order.
Model      an average of w over the latest rounds: as near to the optimum with a tenth to a third fewer epochs.
State      alpha, w, the permutation with the active rows in front, the thresholds of the last pass.
Cost       one inner product a visit, one addition a change; a round is one epoch over the active rows.
Free bias  the constraint sum alpha_i y_i = 0 by the method of multipliers: the bias moves by its own dual residual
           after every epoch.
Certificate  C1, from alpha.

Hsieh, Chang, Lin, Keerthi, Sundararajan. A dual coordinate descent method for large-scale linear SVM. ICML 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, prefetch, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint, Certificate
from slackwater.rows import prefetch_row
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.linear.dual_coordinates import (
    STILL,
    Margins,
    dual_table,
    dual_value,
    follow_multiplier,
    go,
    look,
    term,
    weights_of,
)
from slackwater.solvers.visits import Visits, new_visits, visit_all

AVERAGED = 0.6  # the gap of the averaged weights, as a part of that of w
_FOLLOWED, _LEAST_NEW = 6.0, 0.3  # the average follows w for about as many rounds, then takes in this share of it


@dataclass
class DCDState(State):
    """The dual point, its weights and the shrinking bookkeeping."""

    coordinates: Any  # a named tuple with the table of the dual point
    w: np.ndarray
    visits: Visits
    free: np.ndarray  # room for the rows inside their box
    active: int
    thresholds: np.ndarray  # highest and lowest projected gradient that shrinking tolerates, and the pass tolerance
    gap: float  # sum of the Fenchel-Young terms met in the last epoch
    average: np.ndarray  # of the weights after the latest rounds
    centre: float  # weight of the constant feature that belongs to the multiplier of a free bias

    @property
    def table(self) -> np.ndarray:
        """A line for every example, its dual variable first."""
        return self.coordinates.table


@dataclass(frozen=True)
class DCD(Solver):
    """Dual coordinate descent; the default for linear problems."""

    name: ClassVar[str] = "dcd"
    paper: ClassVar[str] = "Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    shrinking: bool = True
    inner: int = 5

    def __post_init__(self) -> None:
        if self.inner < 0:
            raise ValueError(f"inner must be at least 0, got {self.inner}")

    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> DCDState:
        """alpha = 0, or the given point clipped to the box."""
        table = dual_table(problem, alpha)
        return new_state(problem, rng, Margins(table, STILL, problem.loss.target), weights_of(problem, table))

    def advance(self, problem: Any, state: DCDState) -> None:
        """One epoch over the active rows, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        plan = _Plan(epochs, self.inner, self.shrinking, problem.bias == "free")
        result = _epochs(
            problem.rows, state.coordinates, state.w, state.visits, state.free, state.active, state.thresholds, plan,
            state.centre,
        )  # fmt: skip
        state.active, state.gap, updates, products, state.centre = result
        done.epochs += epochs
        done.updates += updates
        done.inner_products += products
        rounds = done.epochs / epochs
        state.average += max(_LEAST_NEW, _FOLLOWED / (_FOLLOWED + rounds - 1.0)) * (state.w - state.average)

    def model(self, problem: Any, state: DCDState) -> LinearModel:
        """The averaged weights, which swing less than w does from one epoch to the next."""
        return LinearModel.from_weights(state.average, problem.rows.bias)

    def dual_point(self, problem: Any, state: DCDState) -> BoxPoint:
        """alpha."""
        return BoxPoint(state.table[:, 0])

    def estimate(self, problem: Any, state: DCDState) -> float:
        """The Fenchel-Young terms met during the last epoch, each a share of the gap, against W(alpha).

        The gap of the averaged weights is smaller, in a steady proportion.
        """
        dual = dual_value(problem, state.table, state.w)
        return AVERAGED * state.gap / dual if dual > 0 else math.inf

    def review(self, problem: Any, state: DCDState, certificate: Certificate) -> None:
        """Not there yet: what was shrunk has to be looked at again."""
        state.active = visit_all(state.visits)
        state.thresholds[:2] = math.inf, -math.inf


def new_state(problem: Any, rng: np.random.Generator, coordinates: Any, w: np.ndarray) -> DCDState:
    """The state before the first round, at the dual point of these coordinates with the weights ``w``."""
    n, size = problem.n_rows, coordinates.still / STILL
    return DCDState(
        Counters(), coordinates, w, new_visits(problem.rows, rng), np.empty(n, dtype=np.uint32), n,
        np.array([math.inf, -math.inf, size]), math.inf, w.copy(), 0.0,
    )  # fmt: skip


class _Plan(NamedTuple):
    epochs: int
    inner: int
    shrinking: bool
    multiplier: bool  # of a free bias


@compiled
def _epochs(rows, coordinates, w, visits, free, active, thresholds, plan, centre):
    """Some epochs; returns active rows, gap terms of the last epoch, changes, inner products, the bias's centre."""
    epochs, inner, shrinking, multiplier = plan
    gap, changes, products = 0.0, 0, 0
    order, ahead = visits.order, np.uint64(visits.ahead)
    table, still = coordinates.table, coordinates.still
    for _ in range(epochs):
        shuffle(order, active, visits.random)
        before, products = changes, products + active
        highest, lowest = thresholds[0], thresholds[1]
        top, bottom = -math.inf, math.inf
        gap = 0.0
        count, kept, inside = np.uint64(active), np.uint64(0), np.uint64(0)
        for s in range(count):
            if s + ahead < count:
                coming = np.uint64(order[s + ahead])
                prefetch_row(rows, coming)
                prefetch(table[coming], 0)
            i = np.uint64(order[s])
            e, G, PG, side = look(coordinates, rows, i, w)
            if shrinking and PG != G and (G > highest or G < lowest):
                continue
            order[kept] = i
            kept += np.uint64(1)
            top, bottom = max(top, PG), min(bottom, PG)
            if abs(PG) > still:
                gap += term(coordinates, i, e, side)
                free[inside] = i
                inside += np.uint64(go(coordinates, rows, i, G, side, w))
                changes += 1
        for _ in range(inner):
            products += np.int64(inside)
            inside = _free_pass(rows, coordinates, w, visits, free, inside)
        if multiplier:
            centre = follow_multiplier(w, centre)
        active = np.int64(kept)
        if top - bottom > thresholds[2]:
            thresholds[0] = top if top > 0.0 else math.inf
            thresholds[1] = bottom if bottom < 0.0 else -math.inf
            continue
        if active == order.size:
            thresholds[2] *= 0.1
            if changes == before and not multiplier:
                break
        active = visit_all(visits)
        thresholds[0], thresholds[1] = math.inf, -math.inf
    return active, gap, changes, products, centre


@compiled
def _free_pass(rows, coordinates, w, visits, free, count):
    """Visit the first ``count`` rows of ``free``; those still inside their box come to the front: how many."""
    shuffle(free, count, visits.random)
    ahead, inside, table = np.uint64(visits.ahead), np.uint64(0), coordinates.table
    for s in range(np.uint64(count)):
        if s + ahead < count:
            coming = np.uint64(free[s + ahead])
            prefetch_row(rows, coming)
            prefetch(table[coming], 0)
        i = np.uint64(free[s])
        _, G, PG, side = look(coordinates, rows, i, w)
        free[inside] = i
        stays = abs(PG) <= coordinates.still or go(coordinates, rows, i, G, side, w)
        inside += np.uint64(stays)
    return inside
