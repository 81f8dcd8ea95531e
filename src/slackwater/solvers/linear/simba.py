"""SIMBA: a game between rows and columns, each step of which looks at one row and one column.

Problem    the slack-constrained form of the hinge's, for rows of length at most 1 (all are divided by the longest):
           max over ||w|| <= 1, xi in Xi  of  min_i (y_i <w, x_i> + xi_i),   Xi = {0 <= xi <= 2, sum u_i xi_i <= n nu},
           u_i = n C_i / sum C: an example of twice the cost pays twice for its slack.
Update     for t = 1, .., T with eta = sqrt(log n / T):  draw i with probability p_i;  v <- v + y_i x_i / sqrt(2T),
           w = v / max(1, ||v||);  xi = the point of Xi with the largest p'xi;  draw the column j with probability
           w_j^2 / ||w||^2;  g_i = clip(y_i x_ij ||w||^2 / w_j + xi_i, -1/eta, 1/eta) for every i;
           p_i <- p_i (1 - eta g_i + eta^2 g_i^2), which is then scaled to sum 1.
Rounds     of T = ``steps`` (1 + r div 4) steps, r = 0, 1, .. (the paper has one of order log n / epsilon^2), each from
           the means of the one before. What is to be solved has a lambda, SIMBA a nu: the mean of w, times the best
           number s for lambda, gives nu = mean loss / ||s w||, which at the optimum of lambda is the nu that belongs to
           it.
State      v, p, sums of w and p over the round, a copy of the rows by columns.
Cost       O(rows + columns) a step.
Certificate  C5 of C4: of the mean of p, or of that of an earlier round which proved more. The gap falls like the root
           of the steps with a large constant, so this solver is no match for others and does not reach small gaps.

Hazan, Koren, Srebro. Beating SGD: learning SVMs in sublinear time. NIPS 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from slackwater.compiled import compiled, next_below, random_state
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import DirectionPoint, lower_bound
from slackwater.objective.problem import LinearProblem
from slackwater.rows import CSRRows, DenseRows, add, as_matrix, as_rows, sqnorms, squared_norm, times, transpose_times
from slackwater.solvers.contract import Counters, Solver, State

_GRAIN = 2**30  # random numbers are multiples of its reciprocal
_CAP = 2.0  # on a slack
_SAME_LENGTH = 4  # rounds
_FLOOR = 0.01  # what a new round gives every row of the largest p_i / u_i


class Columns(NamedTuple):
    """The rows by columns, the longest column first."""

    entries: Any  # rows that are the columns
    place: np.ndarray  # column of the data


@dataclass
class SIMBAState(State):
    """Both players, and what the last round came to."""

    columns: Columns
    random: np.ndarray
    v: np.ndarray
    ratios: np.ndarray  # p_i / u_i, up to a factor
    nu: float
    longest: float  # row
    weights: np.ndarray  # the best multiple of the mean w
    p: np.ndarray  # what proved most
    bound: float


@dataclass(frozen=True)
class SIMBA(Solver):
    """Sublinear importance sampling; ``steps`` is the T of the first rounds."""

    name: ClassVar[str] = "simba"
    paper: ClassVar[str] = "Hazan, Koren, Srebro, NIPS 2011"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C5"
    optimises: ClassVar[bool] = False

    steps: int = 300

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> SIMBAState:
        """w = 0 and p as the costs; or w and p of the given point."""
        n, norms = problem.n_rows, np.empty(problem.n_rows)
        sqnorms(problem.rows, norms)
        longest = math.sqrt(norms.max()) or 1.0
        ratios, w = np.ones(n), np.zeros(problem.n_weights)
        if alpha is not None:
            alpha = np.clip(alpha, 0.0, problem.costs)
            transpose_times(problem.rows, alpha * problem.labels, w)
            if alpha.any():
                ratios = np.maximum(alpha / problem.costs, 0.5 / n)
        state = SIMBAState(
            Counters(), by_columns(problem), random_state(rng), np.zeros(problem.n_weights), ratios, 1.0, longest, w,
            problem.shares * ratios, -math.inf,
        )  # fmt: skip
        self._settle(problem, state, w, problem.costs * ratios if alpha is None else alpha)
        length = math.sqrt(squared_norm(state.weights))
        if length > 0.0:
            state.v = state.weights / length
        return state

    def advance(self, problem: LinearProblem, state: SIMBAState) -> None:
        """T steps; then the means, and nu, for the next ones."""
        n, done = problem.n_rows, state.counters
        steps = self.steps * (1 + done.epochs // _SAME_LENGTH)
        game = _Game(steps, math.sqrt(math.log(max(n, 2)) / steps), n * state.nu, state.longest)
        mean_w, mean_p = np.zeros(problem.n_weights), np.zeros(n)
        _play(
            problem.rows, state.columns, problem.labels, problem.shares, game, state.v, state.ratios, mean_w, mean_p,
            state.random,
        )  # fmt: skip
        self._settle(problem, state, mean_w, mean_p)
        state.v = mean_w
        state.ratios = mean_p / problem.shares
        state.ratios /= state.ratios.max()
        state.ratios += _FLOOR
        done.epochs += 1
        done.updates += steps
        done.inner_products += 2 * n

    def model(self, problem: LinearProblem, state: SIMBAState) -> LinearModel:
        """The best multiple of the mean w of the last round."""
        return LinearModel.from_weights(state.weights, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: SIMBAState) -> DirectionPoint:
        """The mean p that proved most."""
        return DirectionPoint(state.p)

    def _settle(self, problem: LinearProblem, state: SIMBAState, w: np.ndarray, p: np.ndarray) -> None:
        """What is known of the optimum from w and p, and the nu that belongs to it."""
        bound = lower_bound(problem, DirectionPoint(p))
        if bound > state.bound:
            state.p, state.bound = p, bound
        margins = np.empty(problem.n_rows)
        times(problem.rows, w, margins)
        margins *= problem.labels
        s = best_multiple(margins, problem.costs, problem.squared_norm(w))
        state.weights = s * w
        length = math.sqrt(problem.squared_norm(state.weights)) * state.longest
        loss = problem.regularisation * float(problem.costs @ np.maximum(0.0, 1.0 - s * margins))
        if length > 0.0:
            state.nu = loss / length


def by_columns(problem: LinearProblem) -> Columns:
    """A copy of the rows by columns, the constant feature among them."""
    rows = problem.rows
    matrix = as_matrix(rows)
    constant = np.full((rows.n_rows, 1), rows.bias, dtype=rows.dtype)
    entries: DenseRows | CSRRows
    if isinstance(rows, DenseRows):
        entries = as_rows(np.ascontiguousarray(np.hstack((matrix, constant)).T))
    else:
        entries = as_rows(sp.csr_array(sp.hstack((matrix, constant)).T))
    squares = np.empty(entries.n_rows)
    sqnorms(entries, squares)
    place = np.argsort(-squares, kind="stable")
    sorted_ = as_matrix(entries)[place]
    return Columns(as_rows(sorted_), place.astype(np.int64))


def best_multiple(margins: np.ndarray, costs: np.ndarray, square: float) -> float:
    """The s >= 0 that minimises s^2 square / 2 + sum_i C_i max(0, 1 - s m_i)."""
    if square <= 0.0:
        return 0.0
    pulls = costs * margins
    positive = margins > 0.0
    breaks = np.full(margins.size, np.inf)
    np.divide(1.0, margins, out=breaks, where=positive)
    order = np.argsort(breaks, kind="stable")
    # Beyond the k-th break the first k examples pull no more.
    left = pulls.sum() - np.append(0.0, np.cumsum(np.where(positive, pulls, 0.0)[order]))
    stop = np.append(breaks[order], np.inf)
    k = int(np.argmax(left / square <= stop))  # the slope of the k-th piece vanishes before its end
    before = stop[k - 1] if k else 0.0
    return float(max(left[k] / square, before, 0.0))


class _Game(NamedTuple):
    steps: int
    eta: float
    volume: float
    longest: float


@compiled
def _play(rows, columns, labels, shares, game, v, ratios, mean_w, mean_p, random):
    """A round; the means of w and p over it."""
    steps, eta, volume, longest = game
    n, d = np.uint64(labels.size), np.uint64(v.size)
    room, other, pulled = np.empty(labels.size), np.empty(labels.size), np.zeros(labels.size + 1)
    size = 1.0 / (math.sqrt(2.0 * steps) * longest)
    limit = 1.0 / eta
    for _ in range(steps):
        total, highest = 0.0, 0.0
        for i in range(n):
            total += shares[i] * ratios[i]
            highest = max(highest, ratios[i])
        for i in range(n):
            mean_p[i] += shares[i] * ratios[i] / (total * steps)
        drawn = _draw_row(shares, ratios, total * next_below(random, _GRAIN) / _GRAIN)
        level, part = knapsack(ratios, shares, volume / _CAP, room, other)
        add(rows, drawn, labels[drawn] * size, v)
        square = squared_norm(v)
        scale = 1.0 / max(1.0, math.sqrt(square))
        for j in range(d):
            mean_w[j] += scale * v[j] / steps
        if square > 0.0:
            j = _draw_column(columns.place, v, square * next_below(random, _GRAIN) / _GRAIN)
            w_j = v[np.uint64(columns.place[j])]
            add(columns.entries, j, scale * square / (w_j * longest), pulled)
        for i in range(n):
            xi = _CAP if ratios[i] > level else (_CAP * part if ratios[i] == level else 0.0)
            g = min(max(labels[i] * pulled[i] + xi, -limit), limit)
            pulled[i] = 0.0
            ratios[i] *= (1.0 - eta * g + eta * eta * g * g) / highest


@compiled(borrows=True)
def _draw_row(shares, ratios, mark):
    """The row in which the running sum of p passes the mark."""
    n = np.uint64(ratios.size)
    for i in range(n):
        mark -= shares[i] * ratios[i]
        if mark < 0.0:
            return i
    return n - np.uint64(1)


@compiled(borrows=True)
def _draw_column(place, v, mark):
    """The column, of those by length, in which the running sum of squares passes the mark."""
    last = np.uint64(0)
    for j in range(np.uint64(place.size)):
        w_j = v[np.uint64(place[j])]
        if w_j != 0.0:
            last = j
            mark -= w_j * w_j
            if mark < 0.0:
                return j
    return last


@compiled(borrows=True)
def knapsack(ratios, shares, volume, room, other):
    """What is above ``level`` gets its share of the volume wholly, what lies on it the returned part.

    A pivot either leaves volume for what is below it, or does not: O(n) for rows in no particular order.
    """
    first, end = np.uint64(0), np.uint64(ratios.size)
    for i in range(end):
        room[i], other[i] = ratios[i], shares[i]
    while first < end:
        pivot = room[(first + end) // np.uint64(2)]
        middle, above = first, 0.0
        for i in range(first, end):
            if room[i] > pivot:
                room[i], room[middle] = room[middle], room[i]
                other[i], other[middle] = other[middle], other[i]
                above += other[middle]
                middle += np.uint64(1)
        if above > volume:
            end = middle
            continue
        on, last = 0.0, middle
        for i in range(middle, end):
            if room[i] == pivot:
                room[i], room[last] = room[last], room[i]
                other[i], other[last] = other[last], other[i]
                on += other[last]
                last += np.uint64(1)
        if above + on > volume:
            return pivot, (volume - above) / on
        volume -= above + on
        first = last
    return -1.0, 0.0
