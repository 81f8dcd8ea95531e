"""MPU: the margin perceptron with unlearning.

Problem    min over w of  ||w||^2/2 + sum_i C_i l(y_i <w, x_i>),  by its dual
           max  W(alpha) = k sum alpha - alpha'Q alpha/2 - sum_i d_i alpha_i^2/2,  0 <= alpha_i <= U_i,
           w = sum_i alpha_i y_i x_i.
Given      k the loss's target, d_i = width/C_i, U_i = cap C_i, q_i = ||x_i||^2 + d_i.
Update     for i in a random permutation, with e = k - d_i alpha_i - y_i <w, x_i>:
           learn    if e > delta k  and alpha_i < U_i:  alpha_i += min(e/q_i, U_i - alpha_i),
           unlearn  if e < -delta k and alpha_i > 0:    alpha_i -= min(-e/q_i, alpha_i),  else nothing; w follows.
           An unclipped change raises W by (delta k)^2/(2 q_i) at least, and where none is left,
           J(w) - W(alpha) <= delta k sum_i |a_i - alpha_i|,  a_i the best answer to w in i's box; for the hinge
           delta sum_i (C_i - alpha_i)[m_i < 1] + delta sum_i alpha_i [m_i > 1].
Quantised  the perceptron's own steps: alpha_i = delta C_i I_i with whole numbers I_i, the threshold b = 1/(delta C).
           Learn, I_i += 1, if e >= 0; unlearn, I_i -= 1, if e < -q_i delta C_i.  W may fall a little.
Accuracy   delta is multiplied by ``shrink`` when the gap within the tolerance reaches a tenth of the gap worked on;
           shrink=1 keeps it, as the paper does, and ends at the bound above.
Active set rows left alone in ``idle`` passes are visited in every ``every``-th pass only. A pass is followed by up to
           ``inner`` passes over the rows that it left inside their box.
Model      an average of w over the latest rounds.
State      alpha, w, the permutation with the active rows in front, how long each row has been left alone.
Cost       one inner product a visit, one addition a change; a round is one pass with the inner ones after it.
Free bias  the constraint sum alpha_i y_i = 0 by the method of multipliers, as in dcd.
Certificate  C1, from alpha.

Panagiotakopoulos, Tsampouka. The margin perceptron with unlearning. ICML 2010. The paper's thresholds are restated with
steps of any size; the active set and the schedule of delta are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint, Certificate
from slackwater.objective.problem import LinearProblem
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.linear.dual_coordinates import (
    STILL,
    average_in,
    dual_table,
    estimated_gap,
    follow_multiplier,
    gap_term,
    move,
    visit,
    weights_of,
)
from slackwater.solvers.visits import Visits, new_visits, visit_all, visited

_TOLERATED = 0.1  # the gap within the tolerance, as a part of the gap worked on, at which delta shrinks
_LONGEST_IDLE = 254


@dataclass
class MPUState(State):
    """The dual point, its weights and the active set."""

    table: np.ndarray
    w: np.ndarray
    visits: Visits
    free: np.ndarray  # room for the rows inside their box
    idle: np.ndarray  # passes in which a row had nothing to do
    active: int
    delta: float
    gap: float  # sum of the Fenchel-Young terms met in the last pass
    average: np.ndarray  # of the weights after the latest rounds
    centre: float  # weight of the constant feature that belongs to the multiplier of a free bias


@dataclass(frozen=True)
class MPU(Solver):
    """Margin perceptron with unlearning; ``delta`` is the accuracy to begin with, or the step when ``quantised``."""

    name: ClassVar[str] = "mpu"
    paper: ClassVar[str] = "Panagiotakopoulos, Tsampouka, ICML 2010"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    delta: float = 0.1
    shrink: float = 0.5
    quantised: bool = False
    inner: int = 5
    idle: int = 2
    every: int = 5

    def __post_init__(self) -> None:
        if not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must lie between 0 and 1, got {self.delta}")
        if not 0.0 < self.shrink <= 1.0:
            raise ValueError(f"shrink must lie in (0, 1], got {self.shrink}")
        if self.inner < 0:
            raise ValueError(f"inner must be at least 0, got {self.inner}")
        if not 1 <= self.idle <= _LONGEST_IDLE:
            raise ValueError(f"idle must lie between 1 and {_LONGEST_IDLE}, got {self.idle}")
        if self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> MPUState:
        """alpha = 0, or the given point clipped to the box."""
        n, table = problem.n_rows, dual_table(problem, alpha)
        w = weights_of(problem, table)
        return MPUState(
            Counters(), table, w, new_visits(problem.rows, rng), np.empty(n, dtype=np.uint32),
            np.zeros(n, dtype=np.uint8), n, self.delta, math.inf, w.copy(), 0.0,
        )  # fmt: skip

    def advance(self, problem: LinearProblem, state: MPUState) -> None:
        """One pass over the active rows and the inner ones, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        plan = _Plan(
            done.epochs, epochs, self.shrink, self.quantised, self.inner, self.idle, self.every, problem.bias == "free"
        )
        place = _Place(problem.rows, problem.loss.target, problem.costs, state.table, state.w, state.visits, state.idle)
        result = _epochs(place, state.free, plan, state.active, state.delta, state.centre)
        state.active, state.delta, state.gap, changes, products, state.centre = result
        done.epochs += epochs
        done.updates += changes
        done.inner_products += products
        average_in(state.average, state.w, done.epochs / epochs)

    def model(self, problem: LinearProblem, state: MPUState) -> LinearModel:
        """The averaged weights, which swing less than w does from one pass to the next."""
        return LinearModel.from_weights(state.average, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: MPUState) -> BoxPoint:
        """alpha."""
        return BoxPoint(state.table[:, 0])

    def estimate(self, problem: LinearProblem, state: MPUState) -> float:
        """The Fenchel-Young terms met during the last pass, each a share of the gap, against W(alpha)."""
        return estimated_gap(problem, state.table, state.w, state.gap)

    def review(self, problem: LinearProblem, state: MPUState, certificate: Certificate) -> None:
        """Not there yet: every row is looked at again."""
        state.active = visit_all(state.visits)


class _Plan(NamedTuple):
    done: int  # passes before
    epochs: int
    shrink: float
    quantised: bool
    inner: int
    idle: int
    every: int
    multiplier: bool  # of a free bias


class _Place(NamedTuple):
    rows: NamedTuple
    k: float
    costs: np.ndarray
    table: np.ndarray
    w: np.ndarray
    visits: Visits
    idle: np.ndarray


@compiled(borrows=True)
def _epochs(place, free, plan, active, delta, centre):
    """Some passes; returns active rows, delta, gap terms of the last pass, changes, inner products, bias's centre."""
    visits, n = place.visits, place.visits.order.size
    gap, changes, products = 0.0, 0, 0
    for epoch in range(plan.done, plan.done + plan.epochs):
        if epoch % plan.every == 0:
            active = visit_all(visits)
        met = active
        products += met
        active, inside, moved, worked, tolerated = _pass(
            place, visits.order, met, free, plan.idle, delta, plan.quantised
        )
        gap, here = worked + tolerated, moved
        for _ in range(plan.inner):
            if inside == 0:
                break
            products += inside
            _, inside, moved, _, _ = _pass(place, free, inside, free, 0, delta, plan.quantised)
            here += moved
        changes += here
        if plan.multiplier:
            centre = follow_multiplier(place.w, centre)
        elif met == n and here == 0 and (delta <= STILL or plan.shrink == 1.0 or gap == 0.0):
            break
        if tolerated >= _TOLERATED * worked:
            delta = max(plan.shrink * delta, STILL)
    return active, delta, gap, changes, products, centre


@compiled(borrows=True)
def _pass(place, order, count, free, most, delta, quantised):
    """Visit the first ``count`` rows of ``order``, those left alone for less than ``most`` passes come to its front.

    Returns how many these are, how many came to the front of ``free`` because they are inside their box, the changes,
    the gap terms of the rows that changed and of those within the tolerance.
    """
    rows, k, costs, table, w, visits, idle = place
    shuffle(order, count, visits.random)
    ahead, n = np.uint64(visits.ahead), np.uint64(count)
    kept, inside = np.uint64(0), np.uint64(0)
    changes, worked, tolerated = 0, 0.0, 0.0
    tolerance = max(delta * k, STILL)
    for s in range(n):
        i, coming = visited(rows, table, order, s, n, ahead)
        e, G, PG = visit(rows, k, table, i, w, coming)
        if PG == G:  # the box lets it through
            term = gap_term(table, i, e) if PG != 0.0 else 0.0
            if quantised:
                change = _whole_step(table, i, PG, delta * costs[i])
            else:
                change = -G * table[i, 2] if abs(PG) > tolerance else 0.0
            if change != 0.0:
                worked += term
                move(rows, table, i, change, w)
                changes += 1
            else:
                tolerated += term
            free[inside] = i
            inside += np.uint64(0.0 < table[i, 0] < abs(table[i, 1]))
            idle[i] = 0
        else:
            idle[i] = min(idle[i] + 1, _LONGEST_IDLE)
        if most > 0:
            order[kept] = i
            kept += np.uint64(idle[i] < most)
    return np.int64(kept), np.int64(inside), changes, worked, tolerated


@compiled(inline=True)
def _whole_step(table, i, PG, size):
    """To the next whole multiple of ``size`` where the quantised rule moves."""
    alpha = table[i, 0]
    if PG < -STILL:
        return size * (math.floor(alpha / size + 0.5) + 1.0) - alpha
    if PG * table[i, 2] > size:
        return size * (math.floor(alpha / size + 0.5) - 1.0) - alpha
    return 0.0
