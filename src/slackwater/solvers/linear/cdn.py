"""CDN: coordinate descent on the primal with Newton directions, for penalties that make weights zero.

Problem    min over w of  J(w) = sum_j omega(w_j) + sum_i C_i l(y_i <w, x_i>),  omega(w) = square w^2/2 + absolute |w|,
           l rounded off: its slope bends at margins target and target - cap width alone.
Update     for j in a random permutation of the weights:  g = L'_j, H = L''_j of the loss as a function of w_j alone;
           d = the change of w_j that minimises  g d + H d^2/2 + omega(w_j + d)  (eq. 14: a soft threshold);
           w_j <- w_j + s d with the first s of 1, 1/2, 1/4, .. for which J falls by sigma |Delta| at least (eq. 17),
           Delta = g d + omega(w_j + d) - omega(w_j), linear in the square (Algorithm 3).
Cheap test the loss bends by no more than q_j = sum_i C_i x_ij^2 / width: where that already proves enough of a fall, no
           entry is looked at for the test.
Shrinking  a weight at zero whose |g| lies below ``absolute`` by more than the largest violation of the last pass / n
           rests until a pass finds little left to do (section 4.3).
State      w, the shortfalls target - y_i <w, x_i>, a copy of the data by columns, the permutation with the active
           columns in front.
Cost       one visit reads a column once, once more where it moves, once more for each test. A round is one epoch over
           the active columns. Work is counted in rows' worth of entries.
Free bias  one more weight, without a penalty.
Certificate  C6: alpha_i = C_i slope(m_i) of the weights, the best of its multiples.

Yuan, Chang, Hsieh, Lin. A comparison of optimization methods and software for large-scale L1-regularized linear
classification. JMLR 11, 2010; without |w|: Chang, Hsieh, Lin, JMLR 9, 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from slackwater.compiled import compiled, prefetch, random_state, shuffle
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import Certificate
from slackwater.objective.losses import value
from slackwater.objective.penalties import PENALTIES, Penalty, best_weights, conjugate, soft
from slackwater.objective.penalties import value as penalty_value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import Columns, as_columns, prefetch_row, times, transpose_times
from slackwater.solvers.contract import Counters, Solver, State, epochs_per_round

_STILL = 1e-28  # a promised fall below this part of J(0) is no reason to move
_FLATTEST = 1.0 / 64.0  # least curvature of a capped loss that a step reckons with, as a part of q_j
_FLAT = 1e-12  # and of one without a cap, where no example is short of its margin
_MOST_HALVINGS = 30
_AHEAD = 3  # columns
_PASS_TOLERANCE = 0.1  # part of the violations of the first epoch


@dataclass
class CDNState(State):
    """The weights, what the examples fall short of, and the shrinking bookkeeping."""

    columns: Columns
    w: np.ndarray
    table: np.ndarray  # of each example: target - y_i <w, x_i>, C_i / width
    bends: np.ndarray  # q_j
    order: np.ndarray  # the active columns in front; empty columns are not in it
    random: np.ndarray
    active: int
    thresholds: np.ndarray  # violation that shrinking tolerates, sum of violations that ends a set, the first sum
    found: np.ndarray  # in the last epoch: Fenchel-Young terms of the penalty, largest excess, that of a free bias
    entries: int = 0  # read so far


@dataclass(frozen=True)
class CDN(Solver):
    """Coordinate descent with Newton directions; ``sigma`` is the share of the promised fall that a step must keep."""

    name: ClassVar[str] = "cdn"
    paper: ClassVar[str] = "Yuan, Chang, Hsieh, Lin, JMLR 2010"
    losses: ClassVar[tuple[str, ...]] = ("squared_hinge", "smoothed_hinge", "huber")
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    penalties: ClassVar[tuple[str, ...]] = PENALTIES
    visits: ClassVar[Literal["rows", "columns"]] = "columns"
    rule: ClassVar[str] = "C6"

    shrinking: bool = True
    sigma: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < self.sigma < 0.5:
            raise ValueError(f"sigma must lie between 0 and 0.5, got {self.sigma}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> CDNState:
        """w = 0, or the weights that a dual point belongs to."""
        columns = as_columns(problem.rows, problem.labels)
        table = np.empty((problem.n_rows, 2))
        table[:, 1] = problem.costs / problem.loss.width
        bends = np.zeros(problem.n_weights)
        _bends(columns, table, bends)
        order = np.flatnonzero(np.diff(columns.indptr)).astype(np.uint32)
        w = np.zeros(problem.n_weights) if alpha is None else _weights_at(problem, alpha)
        state = CDNState(
            Counters(), columns, w, table, bends, order, random_state(rng), order.size,
            np.array([math.inf, -1.0, -1.0]), np.array([math.inf, 0.0, 0.0]),
        )  # fmt: skip
        _measure(problem, state)
        return state

    def advance(self, problem: LinearProblem, state: CDNState) -> None:
        """One epoch over the active columns, several on tiny data."""
        done = state.counters
        epochs = epochs_per_round(problem)
        knee, n = problem.loss.cap * problem.loss.width, problem.n_rows
        still = _STILL * problem.at_zero * float(problem.costs.sum())
        bias = problem.n_weights - 1 if problem.bias == "free" else -1
        plan = _Plan(epochs, self.shrinking, self.sigma, still, knee, bias, 1.0 / n, problem.penalty)
        state.active, updates, entries = _epochs(
            state.columns, state.table, state.w, state.bends, state.order, state.active, state.random,
            state.thresholds, state.found, plan,
        )  # fmt: skip
        state.entries += entries
        done.epochs += epochs
        done.updates += updates
        done.inner_products = math.ceil(state.entries * n / max(1, state.columns.n_entries)) or n

    def model(self, problem: LinearProblem, state: CDNState) -> LinearModel:
        """w."""
        return LinearModel.from_weights(state.w, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: CDNState) -> None:
        """The gradient at w."""
        return

    def estimate(self, problem: LinearProblem, state: CDNState) -> float:
        """The gap as the last epoch met it: Fenchel-Young terms, and what scaling alpha into the dual set costs."""
        terms, excess, unbalanced = state.found
        primal = problem.regulariser(state.w) + _losses(problem.loss, state.table)
        gap = terms + excess * primal + problem.loss.target * unbalanced
        return gap / (primal - gap) if primal > gap else math.inf

    def review(self, problem: LinearProblem, state: CDNState, certificate: Certificate) -> None:
        """Not there yet: every column takes part again; the shortfalls are summed from the rows, rid of drift."""
        state.active = state.order.size
        state.thresholds[0] = math.inf
        _measure(problem, state)


def _weights_at(problem: LinearProblem, alpha: np.ndarray) -> np.ndarray:
    """The w that attains Omega* at w(alpha), a free bias put at zero."""
    v = np.zeros(problem.n_weights)
    transpose_times(problem.rows, np.clip(alpha, 0.0, problem.loss.cap * problem.costs) * problem.labels, v)
    if problem.bias == "free":
        v[-1] = 0.0
    return best_weights(problem.penalty, v)


def _measure(problem: LinearProblem, state: CDNState) -> None:
    """The shortfalls from the rows."""
    scores = np.empty(problem.n_rows)
    times(problem.rows, state.w, scores)
    state.table[:, 0] = problem.loss.target - problem.labels * scores


class _Plan(NamedTuple):
    epochs: int
    shrinking: bool
    sigma: float
    still: float
    knee: float
    bias: int  # the column without a penalty, -1 where there is none
    tolerated: float  # part of the largest violation: 1/n
    penalty: Penalty


@compiled(borrows=True)
def _epochs(columns, table, w, bends, order, active, random, thresholds, found, plan):
    """Some epochs; returns active columns, changes, entries read."""
    changes, entries = 0, 0
    for _ in range(plan.epochs):
        before, full = changes, active == order.size
        shuffle(order, active, random)
        count, kept = np.uint64(active), np.uint64(0)
        highest, violations = 0.0, 0.0
        terms, excess, unbalanced = 0.0, 0.0, 0.0
        margin = thresholds[0] * plan.tolerated
        for s in range(count):
            if s + np.uint64(_AHEAD) < count:
                coming = np.uint64(order[s + np.uint64(_AHEAD)])
                prefetch_row(columns, coming)
                prefetch(w, coming)
            j = np.uint64(order[s])
            free = np.int64(j) == plan.bias
            square = 0.0 if free else plan.penalty.square
            corner = 0.0 if free else plan.penalty.absolute
            old = w[j]
            g, H = _derivatives(columns, j, table, plan.knee)
            entries += np.int64(columns.indptr[j + np.uint64(1)] - columns.indptr[j])
            slope = g + square * old
            if old == 0.0:
                violation = max(0.0, abs(slope) - corner)
                if plan.shrinking and corner - abs(slope) > margin:
                    continue
            else:
                violation = abs(slope + math.copysign(corner, old))
            order[s] = order[kept]  # those that rest gather behind
            order[kept] = j
            kept += np.uint64(1)
            highest = max(highest, violation)
            violations += violation
            if free:
                unbalanced = abs(g)
            elif square > 0.0:
                terms += penalty_value(plan.penalty, old) + conjugate(plan.penalty, -g) + old * g
            else:
                terms += max(0.0, corner * abs(old) + old * g)
                excess = max(excess, abs(g) / corner - 1.0)
            if violation == 0.0:
                continue
            H = max(H, (_FLATTEST if math.isfinite(plan.knee) else _FLAT) * bends[j]) + square
            d = soft(H * old - slope, corner) / H - old
            fall = _linear(slope, corner, old, d)
            if not fall < -plan.still:
                continue
            d, read = _searched(columns, j, table, d, old, g, square, corner, bends[j], plan)
            if d != 0.0:
                w[j] = old + d
                _move(columns, j, w[j] - old, table)
                changes += 1
            entries += read
        active = np.int64(kept)
        found[0], found[1], found[2] = terms, excess, unbalanced
        if thresholds[2] < 0.0:  # the first epoch says what is much
            thresholds[2] = violations
            thresholds[1] = _PASS_TOLERANCE * violations
        thresholds[0] = highest
        if violations > thresholds[1]:
            continue
        if full:
            thresholds[1] *= 0.1
            if changes == before:
                break
        active = order.size
        thresholds[0] = math.inf
    return active, changes, entries


@compiled(inline=True)
def _linear(slope, corner, old, d):
    """slope d + corner (|old + d| - |old|), exact to rounding of d where the sign stays."""
    new = old + d
    if old * new > 0.0:
        return (slope + math.copysign(corner, old)) * d
    return slope * d + corner * (abs(new) - abs(old))


@compiled(borrows=True)
def _searched(columns, j, table, d, old, g, square, corner, bend, plan):
    """The first of d, d/2, d/4, .. that falls enough, and the entries read to find it."""
    promised = plan.sigma * _linear(g + square * old, corner, old, d)
    read = 0
    for _ in range(_MOST_HALVINGS):
        first = _linear(g + square * old, corner, old, d) + 0.5 * square * d * d
        if first + 0.5 * bend * d * d <= promised:
            return d, read
        read += np.int64(columns.indptr[j + np.uint64(1)] - columns.indptr[j])
        if first + _curved(columns, j, table, d, plan.knee) <= promised:
            return d, read
        d, promised = 0.5 * d, 0.5 * promised
    return 0.0, read


@compiled(borrows=True)
def _derivatives(columns, j, table, knee):
    """First and second derivative of the loss in w_j."""
    g, H = 0.0, 0.0
    for p in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + np.uint64(1)])):
        i, z = columns.indices[p], np.float64(columns.values[p])
        short = table[i, 0]
        pull = z * table[i, 1]
        g -= pull * min(max(short, 0.0), knee)
        H += z * pull if 0.0 < short <= knee else 0.0
    return g, H


@compiled(borrows=True)
def _curved(columns, j, table, d, knee):
    """By how much the loss exceeds its tangent after the step d: sums of what is not negative, free of cancellation."""
    total = 0.0
    for p in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + np.uint64(1)])):
        i = columns.indices[p]
        short = table[i, 0]
        after = short - d * columns.values[p]
        here, there = min(max(short, 0.0), knee), min(max(after, 0.0), knee)
        total += table[i, 1] * (there - here) * (after - 0.5 * (here + there))
    return total


@compiled(borrows=True)
def _move(columns, j, change, table):
    """w_j moves by ``change``: the shortfalls follow."""
    for p in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + np.uint64(1)])):
        table[columns.indices[p], 0] -= change * columns.values[p]


@compiled(borrows=True)
def _bends(columns, table, bends):
    """q_j = sum_i C_i x_ij^2 / width."""
    for j in range(np.uint64(bends.size)):
        for p in range(np.uint64(columns.indptr[j]), np.uint64(columns.indptr[j + np.uint64(1)])):
            z = np.float64(columns.values[p])
            bends[j] += z * z * table[columns.indices[p], 1]


@compiled(borrows=True)
def _losses(loss, table):
    """sum_i C_i l(m_i)."""
    total = 0.0
    for i in range(np.uint64(table.shape[0])):
        total += table[i, 1] * value(loss, loss.target - table[i, 0])
    return loss.width * total
