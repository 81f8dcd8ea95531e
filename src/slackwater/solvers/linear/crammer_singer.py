"""Dual block coordinate descent for the multiclass machine of Crammer and Singer, with shrinking.

Problem    min over W of  sum_y ||w_y||^2/2 + sum_i C_i max_y ( [y != y_i] + <w_y - w_{y_i}, x_i> ),  by its dual
           max  sum_i beta_i^{y_i} - sum_y ||w_y||^2/2,  beta_i^y <= C_i [y = y_i],  sum_y beta_i^y = 0,
           w_y = sum_i beta_i^y x_i.
Given      q_i = ||x_i||^2, the room r_i^y = C_i [y = y_i] - beta_i^y >= 0, which is what is kept.
Update     for i in a random permutation:  g^y = [y = y_i] - <w_y, x_i>;  of all r_i >= 0 with sum_y r_i^y = C_i the
           best is r_i^y <- max(0, t - g^y + q_i r_i^y) / q_i: a volume of water q_i C_i over bumps g^y - q_i r_i^y
           stands at the level t (section 3 of the paper; the level exactly). W follows.
Shrinking  a class without room whose g^y exceeds those of the example's classes with room is left alone, as is an
           example with one class left, until the gap of the others has fallen to a third of what it was.
Inner      an epoch's pass is followed by ``inner`` passes over the examples that it left with room in several classes.
Model      an average of W over the latest rounds: its gap is smaller by a quarter.
State      r, W, the permutation with the active examples in front, the order of each example's classes.
Cost       one inner product per active class a visit, one addition per changed class; a round is one epoch. 12 n k
           bytes of memory besides the weights, 16 n k more while a certificate is drawn.
Certificate  C1, from beta.

Keerthi, Sundararajan, Chang, Hsieh, Lin. A sequential dual method for large scale multi-class linear SVMs. KDD 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint, Certificate
from slackwater.objective.multiclass import MulticlassProblem
from slackwater.rows import add_some
from slackwater.solvers.contract import Counters, Solver, epochs_per_round
from slackwater.solvers.linear.class_blocks import (
    BlockState,
    activate_all,
    beta_of,
    dual_of,
    leave_alone,
    model_of,
    new_blocks,
    see,
    visited_block,
)
from slackwater.solvers.linear.dual_coordinates import STILL, average_in
from slackwater.solvers.visits import new_visits, visit_all

_AVERAGED = 0.75  # the gap of the averaged weights, as a part of that of W
_DRY = 1e-300  # a volume of which float64 cannot tell the parts
_AGAIN = 0.3  # share of the gap found by the last look at everything, at which it is time for the next


@dataclass
class CrammerSingerState(BlockState):
    """With the bookkeeping of what is left alone."""

    free: np.ndarray  # room for the examples with room in several classes
    active: int
    tolerance: np.ndarray  # the gap at which what was left alone takes part again
    average: np.ndarray  # of W after the latest rounds


@dataclass(frozen=True)
class CrammerSinger(Solver):
    """Dual block coordinate descent; the default for ``multi_class="crammer_singer"``."""

    name: ClassVar[str] = "crammer-singer"
    paper: ClassVar[str] = "Keerthi, Sundararajan, Chang, Hsieh, Lin, KDD 2008"
    task: ClassVar[str] = "multiclass"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C1"

    shrinking: bool = True
    inner: int = 2

    def __post_init__(self) -> None:
        if self.inner < 0:
            raise ValueError(f"inner must be at least 0, got {self.inner}")

    def start(
        self, problem: MulticlassProblem, rng: np.random.Generator, alpha: np.ndarray | None = None
    ) -> CrammerSingerState:
        """beta = 0, or the given coefficients made feasible."""
        blocks = new_blocks(problem, alpha)
        return CrammerSingerState(
            Counters(), blocks, new_visits(problem.rows, rng), dual_of(problem, blocks), math.inf,
            np.empty(problem.n_rows, dtype=np.uint32), problem.n_rows, np.zeros(1), blocks.W.copy(),
        )  # fmt: skip

    def advance(self, problem: MulticlassProblem, state: CrammerSingerState) -> None:
        """One epoch over the active examples, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        plan = _Plan(epochs, self.inner, self.shrinking)
        result = _epochs(
            problem.rows, state.blocks, state.visits, state.free, state.active, state.tolerance, plan, state.dual
        )
        state.active, state.gap, updates, products, state.dual = result
        done.epochs += epochs
        done.updates += updates
        done.inner_products += products
        average_in(state.average, state.blocks.W, done.epochs / epochs)

    def model(self, problem: MulticlassProblem, state: CrammerSingerState) -> LinearModel:
        """The averaged weights."""
        return model_of(problem, state.average)

    def dual_point(self, problem: MulticlassProblem, state: CrammerSingerState) -> BoxPoint:
        """beta."""
        return beta_of(problem, state.blocks)

    def estimate(self, problem: MulticlassProblem, state: CrammerSingerState) -> float:
        """The gap terms met during the last epoch against the dual value; less for the averaged weights."""
        return _AVERAGED * state.relative_gap

    def review(self, problem: MulticlassProblem, state: CrammerSingerState, certificate: Certificate) -> None:
        """Not there yet: what was left alone has to be looked at again."""
        state.active = visit_all(state.visits)
        activate_all(state.blocks)


class _Plan(NamedTuple):
    epochs: int
    inner: int
    shrinking: bool


@compiled(borrows=True)
def _epochs(rows, blocks, visits, free, active, tolerance, plan, dual):
    """Some epochs; returns active examples, gap terms of the last epoch, changes, inner products, the dual value."""
    gap, changes, products = 0.0, 0, 0
    order, ahead, classes = visits.order, np.uint64(visits.ahead), blocks.room.shape[1]
    for _ in range(plan.epochs):
        shuffle(order, active, visits.random)
        before, gap, moving = changes, 0.0, 0.0
        count, kept, inside = np.uint64(active), np.uint64(0), np.uint64(0)
        whole = active == order.size
        for s in range(count):
            i = visited_block(rows, blocks, order, s, count, ahead)
            products += np.int64(blocks.counts[i])
            whole = whole and blocks.counts[i] == classes
            lowest, highest, term = see(rows, blocks, i)
            if plan.shrinking and leave_alone(blocks, i, highest) <= 1:
                continue
            order[kept] = i
            kept += np.uint64(1)
            if highest - lowest > STILL:
                gain, wet = step(rows, blocks, i, lowest)
                dual += gain
                changes += 1
                free[inside] = i
                inside += np.uint64(wet > 1)
                gap += term if wet <= 1 else 0.0
                moving += term if wet > 1 else 0.0
        for _ in range(plan.inner):
            inside, seen, gain, left, moving = _free_pass(rows, blocks, visits, free, inside)
            products += seen
            dual += gain
            gap += left
        gap += moving
        active = np.int64(kept)
        if whole:
            tolerance[0] = _AGAIN * gap
            if changes == before:
                break
        elif gap <= tolerance[0]:
            active = visit_all(visits)
            activate_all(blocks)
    return active, gap, changes, products, dual


@compiled(borrows=True)
def _free_pass(rows, blocks, visits, free, count):
    """Visit the first ``count`` examples of ``free``; those with room in several classes come to the front.

    Returns how many these are, the inner products, the gain, the gap terms of those that go and of those that stay.
    """
    shuffle(free, count, visits.random)
    ahead, inside, products, gained = np.uint64(visits.ahead), np.uint64(0), 0, 0.0
    left, moving = 0.0, 0.0
    for s in range(np.uint64(count)):
        i = visited_block(rows, blocks, free, s, count, ahead)
        products += np.int64(blocks.counts[i])
        lowest, highest, term = see(rows, blocks, i)
        wet = np.uint64(2)
        if highest - lowest > STILL:
            gain, wet = step(rows, blocks, i, lowest)
            gained += gain
        free[inside] = i
        inside += np.uint64(wet > 1)
        left += term if wet <= 1 else 0.0
        moving += term if wet > 1 else 0.0
    return inside, products, gained, left, moving


@compiled(inline=True)
def step(rows, blocks, i, lowest):
    """The best room of example i among its active classes, and W follows; returns the gain and how many have room."""
    which, room, g, height = blocks.which, blocks.room, blocks.g, blocks.height
    count, q, cost = np.uint64(blocks.counts[i]), blocks.q[i], blocks.costs[i]
    for m in range(count):
        height[m] = (g[m] - lowest) - q * room[i, which[i, m]]
    poured(height, count, q * cost)
    total = 0.0
    for m in range(count):
        total += height[m]
    gain, wet, moved = 0.0, np.uint64(0), np.uint64(0)
    for m in range(count):
        y = which[i, m]
        new = cost * (height[m] / total)
        change = room[i, y] - new  # of beta
        wet += np.uint64(new > 0.0)
        if change != 0.0:
            gain += change * ((g[m] - lowest) - 0.5 * q * change)
            room[i, y] = new
            blocks.moved[moved], height[moved] = y, change
            moved += np.uint64(1)
    if moved:
        add_some(rows, i, blocks.moved, height, moved, blocks.W)
    return gain, wet


@compiled(inline=True)
def poured(height, count, volume):
    """Turn the heights of bumps into the depths of the water over them; no volume to speak of wets the lowest alone.

    The level over a set of bumps is at least that over all: the bumps above it stay dry, and go; what is left has a
    lower level, until none goes.
    """
    lowest = np.uint64(0)
    for m in range(np.uint64(count)):
        if height[m] < height[lowest]:
            lowest = m
    ground = height[lowest]
    wet, level = np.uint64(count) + np.uint64(1), math.inf
    while True:
        total, under = 0.0, np.uint64(0)
        for m in range(np.uint64(count)):
            below = height[m] < level
            total += height[m] - ground if below else 0.0
            under += np.uint64(below)
        if under >= wet or under == 0:
            break
        wet, level = under, ground + (volume + total) / under
    for m in range(np.uint64(count)):
        height[m] = max(level - height[m], 0.0)
    if volume < _DRY or not level > ground:
        for m in range(np.uint64(count)):
            height[m] = 0.0
        height[lowest] = 1.0
