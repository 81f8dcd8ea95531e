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
Threads    n_jobs of them share the rows out, each with a copy of w (exchange.py); None takes the problem's. Small data
           and a free bias get one.
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

from slackwater.compiled import compiled, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint, Certificate
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round
from slackwater.solvers.linear.dual_coordinates import (
    STILL,
    Margins,
    average_in,
    dual_table,
    estimated_gap,
    follow_multiplier,
    go,
    look,
    term,
    weights_of,
)
from slackwater.solvers.linear.exchange import (
    Link,
    begin_round,
    end_round,
    exchange,
    exchange_when_due,
    new_links,
    worth_sharing,
)
from slackwater.solvers.visits import Visits, dealt_visits, new_visits, visit_all, visited
from slackwater.threads import thread_count, together

_LAG = 0.7  # the terms of the gap, as a part of those that threads met on copies of w that lag behind


@dataclass
class Worker:
    """What one thread holds: its rows with the shrinking bookkeeping, and its copy of w."""

    w: np.ndarray
    visits: Visits
    free: np.ndarray  # room for the rows inside their box
    active: int
    thresholds: np.ndarray  # highest and lowest projected gradient that shrinking tolerates, and the pass tolerance
    link: Link | Any = None  # to the other threads, if there are any
    gap: float = math.inf  # sum of the Fenchel-Young terms met in the last epoch
    updates: int = 0  # in the last round
    products: int = 0
    centre: float = 0.0  # weight of the constant feature that belongs to the multiplier of a free bias


@dataclass
class DCDState(State):
    """The dual point, its weights, and who works on them."""

    coordinates: Any  # a named tuple with the table of the dual point
    w: np.ndarray  # the one worker's own where there is one
    average: np.ndarray  # of the weights after the latest rounds
    workers: list[Worker]

    @property
    def table(self) -> np.ndarray:
        """A line for every example, its dual variable first."""
        return self.coordinates.table

    @property
    def gap(self) -> float:
        """Sum of the Fenchel-Young terms met in the last epoch."""
        return math.fsum(worker.gap for worker in self.workers)

    @property
    def visits(self) -> Visits:
        """Those of the first worker."""
        return self.workers[0].visits

    @property
    def active(self) -> int:
        """The rows that shrinking has left."""
        return sum(worker.active for worker in self.workers)


@dataclass(frozen=True)
class DCD(Solver):
    """Dual coordinate descent; the default for linear problems."""

    name: ClassVar[str] = "dcd"
    paper: ClassVar[str] = "Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    shrinking: bool = True
    inner: int = 5
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.inner < 0:
            raise ValueError(f"inner must be at least 0, got {self.inner}")
        thread_count(self.n_jobs)

    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> DCDState:
        """alpha = 0, or the given point clipped to the box."""
        table = dual_table(problem, alpha)
        return self.crew(problem, rng, Margins(table, STILL, problem.loss.target), weights_of(problem, table))

    def advance(self, problem: Any, state: DCDState) -> None:
        """One epoch over the active rows, several on tiny data."""
        done, workers = state.counters, state.workers
        epochs = epochs_per_round(problem)
        plan = _Plan(epochs, self.inner, self.shrinking, problem.bias == "free")
        if len(workers) == 1:
            _work(problem.rows, state.coordinates, workers[0], plan)
        else:
            copies = [(worker.link, worker.w) for worker in workers]
            begin_round(copies, state.w)
            together(lambda t: _work(problem.rows, state.coordinates, workers[t], plan), len(workers))
            end_round(copies, state.w)
        done.epochs += epochs
        done.updates += sum(worker.updates for worker in workers)
        done.inner_products += sum(worker.products for worker in workers)
        average_in(state.average, state.w, done.epochs / epochs)

    def model(self, problem: Any, state: DCDState) -> LinearModel:
        """The averaged weights, which swing less than w does from one epoch to the next."""
        return LinearModel.from_weights(state.average, problem.rows.bias)

    def dual_point(self, problem: Any, state: DCDState) -> BoxPoint:
        """alpha."""
        return BoxPoint(state.table[:, 0])

    def estimate(self, problem: Any, state: DCDState) -> float:
        """The Fenchel-Young terms met during the last epoch, each a share of the gap, against W(alpha)."""
        lag = _LAG if len(state.workers) > 1 else 1.0
        return estimated_gap(problem, state.table, state.w, lag * state.gap)

    def review(self, problem: Any, state: DCDState, certificate: Certificate) -> None:
        """Not there yet: what was shrunk has to be looked at again."""
        for worker in state.workers:
            worker.active = visit_all(worker.visits)
            worker.thresholds[:2] = math.inf, -math.inf

    def crew(self, problem: Any, rng: np.random.Generator, coordinates: Any, w: np.ndarray) -> DCDState:
        """The state before the first round, at the dual point of these coordinates with the weights ``w``."""
        size = coordinates.still / STILL
        tolerances = np.array([math.inf, -math.inf, size])
        threads = self.n_jobs or problem.threads
        if problem.bias == "free" or not worth_sharing(problem.rows, w.size, threads):
            threads = 1
        if threads == 1:
            dealt, links, copies = [new_visits(problem.rows, rng)], [None], [w]
        else:
            dealt, links = dealt_visits(problem.rows, rng, threads), new_links(problem.rows, w.size, threads)
            copies = [np.empty_like(w) for _ in dealt]
        workers = [
            Worker(copy, visits, np.empty(visits.order.size, np.uint32), visits.order.size, tolerances.copy(), link)
            for copy, visits, link in zip(copies, dealt, links, strict=True)
        ]
        return DCDState(Counters(), coordinates, w, w.copy(), workers)


class _Plan(NamedTuple):
    epochs: int
    inner: int
    shrinking: bool
    multiplier: bool  # of a free bias


def _work(rows, coordinates, worker: Worker, plan: _Plan) -> None:
    """A round of one thread."""
    result = _epochs(
        rows, coordinates, worker.w, worker.visits, worker.free, worker.active, worker.thresholds, plan, worker.centre,
        worker.link,
    )  # fmt: skip
    worker.active, worker.gap, worker.updates, worker.products, worker.centre = result


@compiled(borrows=True)
def _epochs(rows, coordinates, w, visits, free, active, thresholds, plan, centre, link):
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
            if link is not None:
                exchange_when_due(link, w)
            i, coming = visited(rows, table, order, s, count, ahead)
            e, G, PG, side = look(coordinates, rows, i, w, coming)
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
            inside = _free_pass(rows, coordinates, w, visits, free, inside, link)
        if link is not None:  # whoever still goes on makes up for the last changes here too
            exchange(link, w)
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


@compiled(borrows=True)
def _free_pass(rows, coordinates, w, visits, free, count, link):
    """Visit the first ``count`` rows of ``free``; those still inside their box come to the front: how many."""
    shuffle(free, count, visits.random)
    ahead, inside, table = np.uint64(visits.ahead), np.uint64(0), coordinates.table
    for s in range(np.uint64(count)):
        if link is not None:
            exchange_when_due(link, w)
        i, coming = visited(rows, table, free, s, count, ahead)
        _, G, PG, side = look(coordinates, rows, i, w, coming)
        free[inside] = i
        stays = abs(PG) <= coordinates.still or go(coordinates, rows, i, G, side, w)
        inside += np.uint64(stays)
    return inside
