"""Steps on a part of the variables over kernel rows that are kept: what SMO, SVM-light and chunking share.

A ``Part`` holds the active variables side by side. A compiled loop steps from pair to pair (or from single to single)
until it needs a row that is not in memory; that row then comes in one block with those of the worst violators, which
the coming steps will want. The others keep their beta, and their v stands still until ``rebuild``:

    K beta = K beta_held + K beta_free,

with beta_held the values at the far end of the box, whose sum is kept and followed by its changes only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from slackwater.compiled import FAST, compiled
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.kernel.kernel_solver import DualKernelSolver, DualState
from slackwater.solvers.kernel.working_set import FLAT

FINITE = FAST | {"nnan"}  # maxima vectorise only where no number is NaN; infinite ends of boxes keep their meaning
WORK = 2**23  # entries of kernel rows that a round touches, or computes
EASED, EXACT, TINY = 0.1, 1e-11, 256  # of its violation a round leaves so much; so few rows go to rounding error
_ROUNDING = 1e-14  # of the largest v: violations below are no reason to step
_STEPS = 100  # of a round, per variable
_STRIP = 256


class Part(NamedTuple):
    """The active variables: which rows they are, in rising order, and all that a step needs to know."""

    ids: np.ndarray
    beta: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    bend: np.ndarray  # K_ii + d_i
    v: np.ndarray


@dataclass
class ActiveState(DualState):
    """The point, the active rows, and what reconstruction needs."""

    active: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    held: np.ndarray = field(default_factory=lambda: np.empty(0))  # beta at the far end of its box, else 0
    held_scores: np.ndarray = field(default_factory=lambda: np.empty(0))  # K held
    worst: float = np.inf  # violation when all rows were looked at last

    @classmethod
    def around(cls, point: DualState, **more: Any) -> Any:
        """All rows active."""
        n = point.beta.size
        return cls(
            point.counters, point.beta, point.lower, point.upper, point.ridge, point.v, np.arange(n), np.zeros(n),
            np.zeros(n), **more,
        )  # fmt: skip


class ActiveSetSolver(DualKernelSolver):
    """Base of the solvers that leave rows out for a while."""

    def review(self, problem: KernelProblem, state: Any, certificate: Any) -> None:
        """Not there yet: every v from the rows, and every row active."""
        unshrink(problem, state)


def part_of(problem: KernelProblem, state: ActiveState) -> Part:
    """A copy of what belongs to the active rows."""
    ids = state.active
    ridge = state.ridge[ids]
    return Part(
        ids, state.beta[ids], state.lower[ids], state.upper[ids], ridge, problem.gram.diagonal[ids] + ridge,
        state.v[ids],
    )  # fmt: skip


def put_back(state: ActiveState, part: Part) -> None:
    """The point takes over what happened to its part."""
    state.beta[part.ids] = part.beta
    state.v[part.ids] = part.v


def extremes(part: Part | DualState) -> tuple[float, float]:
    """The largest v of those that may go up, the smallest of those that may go down."""
    highest = part.v[part.beta < part.upper].max(initial=-np.inf)
    lowest = part.v[part.beta > part.lower].min(initial=np.inf)
    return float(highest), float(lowest)


def violation(part: Part | DualState, pairs: bool) -> float:
    """How far the part is from its optimum: by pairs that a free bias ties, or by singles."""
    highest, lowest = extremes(part)
    return max(highest - lowest, 0.0) if pairs else max(highest, -lowest, 0.0)


def negligible(part: Part | DualState) -> float:
    """A violation that rounding alone may leave."""
    return _ROUNDING * float(np.abs(part.v).max(initial=0.0))


def eased(part: Part, pairs: bool) -> float:
    """The violation to stop a round at."""
    share = EXACT if part.ids.size <= TINY else EASED
    return max(share * violation(part, pairs), negligible(part))


# ------------------------------------------------------------------------------------------ shrinking, rebuilding


def settled(part: Part, pairs: bool) -> np.ndarray:
    """Which sit at an end of their box and would go on to do so: their multipliers have the right sign, strictly.

    Whatever bias lies between the extremes, they are on their side of the margin (Joachims; Chang and Lin).
    """
    highest, lowest = extremes(part)
    if not pairs:
        highest = max(highest, -lowest)
        lowest = -highest
    return ((part.beta == part.lower) & (part.v < lowest)) | ((part.beta == part.upper) & (part.v > highest))


def rebuild(problem: KernelProblem, state: ActiveState) -> None:
    """Every v from kernel rows: those of free variables, and of those that came to the far end of their box or left."""
    beta, gram = state.beta, problem.gram
    far = np.where(problem.labels > 0.0, state.upper, state.lower)
    held = np.where(beta == far, beta, 0.0)
    changes = held - state.held
    if changes.any():
        state.held_scores += gram.times(changes)
        state.held = held
    scores = state.held_scores + gram.times(beta - held)
    state.v[:] = problem.labels * problem.loss.target - state.ridge * beta - scores


def unshrink(problem: KernelProblem, state: ActiveState) -> None:
    """Rebuild, and every row is active again."""
    rebuild(problem, state)
    state.active = np.arange(problem.n_rows)
    state.worst = violation(state, problem.bias == "free")


def leave(problem: KernelProblem, state: ActiveState, part: Part, going: np.ndarray) -> bool:
    """Rows go; or all come back, when a tenth is left of the violation they had: whether they did."""
    left = violation(part, problem.bias == "free")
    if part.ids.size == problem.n_rows:
        state.worst = left
    elif left <= max(EASED * state.worst, negligible(part)):
        unshrink(problem, state)
        return True
    if left > negligible(part):
        state.active = part.ids[~going]
    return False


# ----------------------------------------------------------------------------------------------- rows in blocks


def most_violating(part: Part, pairs: bool, among: np.ndarray, count: int) -> np.ndarray:
    """Up to ``count`` positions with the largest violations: for pairs, half of them wanting up, half down."""
    up, down = part.beta < part.upper, part.beta > part.lower
    if not pairs:
        wish = np.maximum(np.where(up, part.v, 0.0), np.where(down, -part.v, 0.0))
        return _largest(np.where(among, wish, 0.0), count)
    highest, lowest = extremes(part)
    above = _largest(np.where(among & up, part.v - lowest, 0.0), count - count // 2)
    below = _largest(np.where(among & down, highest - part.v, 0.0), count // 2)
    return np.unique(np.concatenate((above, below)))


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Positions of the largest values above 0."""
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    if values.size > count:
        first = np.argpartition(values, values.size - count)[values.size - count :]
        return first[values[first] > 0.0]
    return np.flatnonzero(values > 0.0)


def fetch(problem: KernelProblem, part: Part, needed: np.ndarray, ahead: int) -> int:
    """Keep the rows at the positions ``needed``, and with them those of the worst violators that are missing."""
    gram = problem.gram
    room = min(max(ahead, needed.size), max(needed.size, gram.capacity // 4))
    wanted = part.ids[needed]
    if room > needed.size:
        missing = gram.kept.slots[part.ids] < 0
        missing[needed] = False
        coming = most_violating(part, problem.bias == "free", missing, room - needed.size)
        wanted = np.concatenate((wanted, part.ids[coming]))
    gram.keep(wanted)
    return wanted.size


def climb(problem: KernelProblem, part: Part, tolerance: float, second_order: bool, ahead: int) -> int:
    """Steps until the violation is ``tolerance`` or the round's work is done: how many."""
    gram, size = problem.gram, part.ids.size
    walk = climb_pairs if problem.bias == "free" else climb_singles
    left, rows = max(1, min(WORK // max(1, size), _STEPS * size)), max(1, WORK // problem.n_rows)
    steps = 0
    while left > 0 and rows > 0:
        taken, i, j = walk(gram.kept, gram.clock, part, second_order, tolerance, left)
        gram.take(taken * (2 if problem.bias == "free" else 1))
        steps += taken
        left -= taken
        if i == size:
            break
        rows -= fetch(problem, part, np.array([i] if j == size else [i, j], dtype=np.int64), ahead)
    return int(steps)


# ------------------------------------------------------------------------------------------------------- steps


@compiled(fastmath=FINITE)
def climb_pairs(kept, now, part, second_order, tolerance, most):
    """Steps on pairs, beta_i up and beta_j down: how many, and the positions whose rows are missing (size: none)."""
    n = np.uint64(part.beta.size)
    room = np.empty(_STRIP)
    for step in range(most):
        i, j, highest, lowest = _extreme_positions(part.v, part.beta, part.lower, part.upper)
        if i == n or j == n or highest - lowest <= tolerance:
            return step, n, n
        slot = kept.slots[part.ids[i]]
        if slot < 0:
            return step, i, n
        kept.used[slot] = now
        row = kept.values[slot]
        if second_order:
            j = _best_partner(part, row, i, highest, room)
        slot = kept.slots[part.ids[j]]
        if slot < 0:
            return step, i, j
        kept.used[slot] = now
        _move_pair(part, row, kept.values[slot], i, j)
    return most, n, n


@compiled(fastmath=FINITE)
def _extreme_positions(v, beta, lower, upper):
    """Where the largest v is that may go up, and the smallest that may go down; the size where there is none."""
    n, i, j = np.uint64(v.size), np.uint64(v.size), np.uint64(v.size)
    highest, lowest = -np.inf, np.inf
    at_highest, at_lowest = n, n
    for start in range(np.uint64(0), n, np.uint64(_STRIP)):
        top, bottom = -np.inf, np.inf
        for t in range(start, min(start + np.uint64(_STRIP), n)):
            up = v[t] if beta[t] < upper[t] else -np.inf
            top = up if up > top else top
            down = v[t] if beta[t] > lower[t] else np.inf
            bottom = down if down < bottom else bottom
        if top > highest:
            highest, at_highest = top, start
        if bottom < lowest:
            lowest, at_lowest = bottom, start
    for t in range(at_highest, min(at_highest + np.uint64(_STRIP), n)):
        if beta[t] < upper[t] and v[t] == highest:
            i = t
            break
    for t in range(at_lowest, min(at_lowest + np.uint64(_STRIP), n)):
        if beta[t] > lower[t] and v[t] == lowest:
            j = t
            break
    return i, j, highest, lowest


@compiled(fastmath=FINITE)
def _best_partner(part, row, i, highest, room):
    """The j whose unclipped step with i would gain most (WSS2)."""
    ids, v, bend = part.ids, part.v, part.bend
    n, j, best, own = np.uint64(v.size), np.uint64(v.size), 0.0, bend[i]
    for start in range(np.uint64(0), n, np.uint64(_STRIP)):
        end, top = min(start + np.uint64(_STRIP), n), 0.0
        for t in range(start, end):
            rise = highest - v[t]
            curvature = own + bend[t] - 2.0 * row[ids[t]]
            curvature = curvature if curvature > 0.0 else FLAT
            gain = rise * rise / curvature if rise > 0.0 and part.beta[t] > part.lower[t] else 0.0
            room[t - start] = gain
            top = gain if gain > top else top
        if top > best:
            best = top
            for t in range(start, end):
                if room[t - start] == top:
                    j = t
                    break
    return j


@compiled(fastmath=FINITE)
def _move_pair(part, row, other, i, j):
    """beta_i up and beta_j down by the length that gains most, their boxes' ends exactly, and v follows."""
    ids, beta, v = part.ids, part.beta, part.v
    curvature = part.bend[i] + part.bend[j] - 2.0 * row[ids[j]]
    length = (v[i] - v[j]) / (curvature if curvature > 0.0 else FLAT)
    up, down = part.upper[i] - beta[i], beta[j] - part.lower[j]
    if length >= min(up, down):
        length = min(up, down)
    beta[i] = part.upper[i] if length == up else beta[i] + length
    beta[j] = part.lower[j] if length == down else beta[j] - length
    if ids.size == row.size:  # all rows, in their order
        for t in range(np.uint64(v.size)):
            v[t] -= length * (row[t] - other[t])
    else:
        for t in range(np.uint64(v.size)):
            v[t] -= length * (row[ids[t]] - other[ids[t]])
    v[i] -= length * part.ridge[i]
    v[j] += length * part.ridge[j]


@compiled(fastmath=FINITE)
def climb_singles(kept, now, part, second_order, tolerance, most):
    """Steps on single coordinates: how many, and the position whose row is missing (size: none), twice."""
    n = np.uint64(part.beta.size)
    room = np.empty(_STRIP)
    for step in range(most):
        j, worst = _best_single(part, second_order, room)
        if j == n or worst <= tolerance:
            return step, n, n
        slot = kept.slots[part.ids[j]]
        if slot < 0:
            return step, j, n
        kept.used[slot] = now
        _move_single(part, kept.values[slot], j)
    return most, n, n


@compiled(fastmath=FINITE)
def _best_single(part, second_order, room):
    """The coordinate whose step gains most, or the one with the steepest way to go; and the worst violation."""
    beta, lower, upper, bend, v = part.beta, part.lower, part.upper, part.bend, part.v
    n, j, best, worst = np.uint64(v.size), np.uint64(v.size), 0.0, 0.0
    for start in range(np.uint64(0), n, np.uint64(_STRIP)):
        end, top, steepest = min(start + np.uint64(_STRIP), n), 0.0, 0.0
        for t in range(start, end):
            slope, curvature = v[t], bend[t]
            move = slope / (curvature if curvature > 0.0 else FLAT)
            least, most = lower[t] - beta[t], upper[t] - beta[t]
            move = move if move < most else most
            move = move if move > least else least
            steep = abs(slope) if move * slope > 0.0 else 0.0
            steepest = steep if steep > steepest else steepest
            gain = move * (slope - 0.5 * move * curvature) if second_order else steep
            room[t - start] = gain
            top = gain if gain > top else top
        worst = max(worst, steepest)
        if top > best:
            best = top
            for t in range(start, end):
                if room[t - start] == top:
                    j = t
                    break
    return j, worst


@compiled(fastmath=FINITE)
def _move_single(part, row, j):
    """beta_j to the best place in its box, its ends exactly, and v follows."""
    ids, beta, v = part.ids, part.beta, part.v
    curvature = part.bend[j]
    move = v[j] / (curvature if curvature > 0.0 else FLAT)
    least, most = part.lower[j] - beta[j], part.upper[j] - beta[j]
    if move >= most:
        move = most
        beta[j] = part.upper[j]
    elif move <= least:
        move = least
        beta[j] = part.lower[j]
    else:
        beta[j] += move
    if ids.size == row.size:  # all rows, in their order
        for t in range(np.uint64(v.size)):
            v[t] -= move * row[t]
    else:
        for t in range(np.uint64(v.size)):
            v[t] -= move * row[ids[t]]
    v[j] -= move * part.ridge[j]
