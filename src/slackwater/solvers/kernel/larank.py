"""LaRank: steps on pairs of classes, one pattern at a time, over all classes in one dual; or over two.

Problem    max  sum_i beta_i^{y_i} - sum_y ||w_y||^2/2,   beta_i^y <= C_i [y = y_i],   sum_y beta_i^y = 0,
           w_y = sum_i beta_i^y Phi(x_i), g_i^y = [y = y_i] - f_y(x_i) its gradient (objective/kernel_multiclass.py).
           For labels -1 and +1 it has half the costs C_i, and alpha_i = 2 beta_i^{y_i}.
Update     on pattern i and classes a, b:  s = min((g_i^a - g_i^b)/(2 K_ii), C_i [a = y_i] - beta_i^a),
           beta_i^a += s, beta_i^b -= s; none where g_i^a - g_i^b <= tau.
           ProcessNew  a pattern in its turn, ProcessOld a random support pattern: a = argmax g_i of the classes below
                       their cap, b = argmin g_i. (A fresh pattern has only its own class below the cap.)
           Optimize    ten random support patterns, a and b among the classes with beta_i != 0.
Schedule   after each ProcessNew one of {the next, ProcessOld, Optimize} is drawn again and again, in proportion to
           running averages of the dual gain per kernel value that they read (decay 0.05; each has at least a twentieth
           of the sum), in place of the gain per second: runs repeat. Or in turn, 1 : 1 : 10 (``adaptive=False``).
State      the room C_i [y = y_i] - beta_i^y, the scores f_y of all rows, the support patterns, order and place of the
           epoch, the averages. 16 n k bytes.
Cost       one kernel row and 2 n additions a step, k operations a visit without one. Rows of coming patterns that would
           move are computed in one block. A round is an epoch, several on tiny data, or some hundred steps.
Certificate  C1, over all rows.

Bordes, Bottou, Gallinari, Weston. Solving multiclass support vector machines with LaRank. ICML 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, random_state, shuffle
from slackwater.gram import Kept
from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import BoxPoint, Certificate
from slackwater.objective.kernel_multiclass import KernelMulticlassProblem, total_loss_of
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import inner
from slackwater.solvers.class_room import coefficients_of, room_of
from slackwater.solvers.contract import Counters, State, epochs_per_round
from slackwater.solvers.kernel.active_set import EASED, WORK
from slackwater.solvers.kernel.kernel_solver import KernelSolver
from slackwater.solvers.kernel.working_set import FLAT

_NEW, _OLD, _OPTIMIZE = 0, 1, 2
_BATCH = 10  # patterns of one Optimize
_DECAY, _LEAST = 0.05, 0.05
_STILL = 1e-13  # of the largest gradient: differences below are rounding
_LEFT, _OPERATION, _PATTERN, _PLACE, _SUPPORT = 0, 1, 2, 3, 4  # what ``at`` counts
_GAIN, _READ = 3, 4  # behind the averages


class Patterns(NamedTuple):
    """The dual point and the schedule as compiled loops see them."""

    room: np.ndarray  # (n, k)
    scores: np.ndarray  # (k, n)
    codes: np.ndarray
    costs: np.ndarray  # those of the problem of all classes
    bend: np.ndarray  # K_ii
    order: np.ndarray  # (n,) uint32
    support: np.ndarray  # (n,) uint32, the patterns with beta != 0 in front
    where: np.ndarray  # (n,) int64, their place there, -1 for others
    random: np.ndarray
    rates: np.ndarray  # (5,): gain per kernel value of each operation; gain and kernel values of the current one
    at: (
        np.ndarray
    )  # (5,) int64: patterns left in the operation, which it is, the pattern (-1: none yet), place, support


@dataclass
class LaRankState(State):
    """The patterns and how far steps go."""

    patterns: Patterns
    tolerance: float


@dataclass(frozen=True)
class LaRank(KernelSolver):
    """Online steps, repeated; ``ahead`` rows are computed at a time, ``tau`` is the least violation at the start."""

    name: ClassVar[str] = "larank"
    paper: ClassVar[str] = "Bordes, Bottou, Gallinari, Weston, ICML 2007"
    task: ClassVar[str | tuple[str, ...]] = ("kernel", "kernel-multiclass")
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C1"

    adaptive: bool = True
    ahead: int = 256
    tau: float = 1e-4

    def __post_init__(self) -> None:
        if self.ahead < 1:
            raise ValueError(f"ahead must be at least 1, got {self.ahead}")
        if not 0.0 < self.tau < math.inf:
            raise ValueError(f"tau must be positive and finite, got {self.tau}")

    def start(
        self,
        problem: KernelProblem | KernelMulticlassProblem,
        rng: np.random.Generator,
        alpha: np.ndarray | None = None,
    ) -> LaRankState:
        """beta = 0, or the given point made feasible."""
        codes, k, costs, beta = _as_classes(problem, alpha)
        n, room = problem.n_rows, room_of(beta, codes, costs, k)
        patterns = Patterns(
            room, np.zeros((k, n)), codes, costs, problem.gram.diagonal, np.arange(n, dtype=np.uint32),
            np.zeros(n, dtype=np.uint32), np.full(n, -1, dtype=np.int64), random_state(rng), np.zeros(5),
            np.array([0, _OPTIMIZE, -1, n, 0], dtype=np.int64),
        )  # fmt: skip
        if alpha is not None:
            _sum_scores(problem, patterns)
            _find_support(patterns)
        return LaRankState(Counters(), patterns, self.tau)

    def work(self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState) -> None:
        """Epochs, or a part of one."""
        gram, n, done, patterns = problem.gram, problem.n_rows, state.counters, state.patterns
        epochs, rows, left = epochs_per_round(problem), max(1, WORK // n), max(1, WORK // n) * epochs_per_round(problem)
        fresh, before = patterns.at[_PLACE] == n, 0
        while epochs > 0 and rows > 0 and left > 0:
            if patterns.at[_PLACE] == n and patterns.at[_LEFT] == 0:
                shuffle(patterns.order, n, patterns.random)
                patterns.at[_PLACE] = 0
                state.tolerance = _eased(patterns, self.tau)
                fresh, before = True, done.updates
            steps, missing = _operate(gram.kept, gram.clock, patterns, self.adaptive, state.tolerance, left)
            gram.take(steps)
            done.updates += steps
            done.inner_products += steps * n
            left -= steps
            if missing < n:
                rows -= self._fetch(problem, state, missing)
            elif patterns.at[_PLACE] == n and patterns.at[_LEFT] == 0:
                epochs -= 1
                done.epochs += 1
                if fresh and done.updates == before:
                    return

    def model(self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState) -> Expansion:
        """w(beta)."""
        lines = np.ascontiguousarray(_beta(state.patterns).T)
        return Expansion(lines[1] - lines[0] if isinstance(problem, KernelProblem) else lines)

    def dual_point(self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState) -> BoxPoint:
        """beta, or the alpha of two classes."""
        patterns, beta = state.patterns, _beta(state.patterns)
        if isinstance(problem, KernelProblem):
            return BoxPoint(2.0 * beta[np.arange(problem.n_rows), patterns.codes])
        return BoxPoint(beta)

    def estimate(self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState) -> float:
        """The gap itself, up to rounding."""
        primal, dual = values(state.patterns)
        return max(primal - dual, 0.0) / dual if dual > 0.0 else math.inf

    def review(
        self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState, certificate: Certificate
    ) -> None:
        """Not there yet: scores, updated so far by what each step added, are summed from the rows again."""
        _sum_scores(problem, state.patterns)

    def _fetch(self, problem: KernelProblem | KernelMulticlassProblem, state: LaRankState, missing: int) -> int:
        """Keep the row that is missing, and those of coming patterns that would move by what is known now."""
        gram, patterns = problem.gram, state.patterns
        room = max(1, min(self.ahead, gram.capacity // 2))
        coming = patterns.order[patterns.at[_PLACE] :].astype(np.int64)
        coming = coming[(gram.kept.slots[coming] < 0) & (coming != missing)]
        moving = _moving(patterns, coming, state.tolerance, room - 1)
        gram.keep(np.append(coming[moving], missing))
        return 1 + moving.size


def values(patterns: Patterns) -> tuple[float, float]:
    """J(W) and the dual value of the problem of all classes."""
    beta = _beta(patterns)
    square = inner(np.ascontiguousarray(beta.T).ravel(), patterns.scores.ravel())
    total = float(beta[np.arange(patterns.codes.size), patterns.codes].sum())
    return 0.5 * square + total_loss_of(patterns.scores, patterns.codes, patterns.costs), total - 0.5 * square


def _as_classes(problem: KernelProblem | KernelMulticlassProblem, alpha: np.ndarray | None):
    """Codes, classes, costs and beta, for -1 and +1 those of two classes."""
    if not isinstance(problem, KernelProblem):
        return problem.codes, problem.n_classes, problem.costs, alpha
    codes = (problem.labels > 0.0).astype(np.int64)
    if alpha is None:
        return codes, 2, 0.5 * problem.costs, None
    beta = np.zeros((problem.n_rows, 2))
    beta[np.arange(problem.n_rows), 1 - codes] = -0.5 * np.asarray(alpha, dtype=np.float64)
    return codes, 2, 0.5 * problem.costs, beta


def _beta(patterns: Patterns) -> np.ndarray:
    return coefficients_of(patterns.room, patterns.codes, patterns.costs)


def _sum_scores(problem: KernelProblem | KernelMulticlassProblem, patterns: Patterns) -> None:
    """f_y = K beta^y from the rows; of two classes one is minus the other."""
    beta = _beta(patterns)
    if isinstance(problem, KernelProblem):
        patterns.scores[1] = problem.scores(beta[:, 1])
        patterns.scores[0] = -patterns.scores[1]
        return
    patterns.scores[:] = problem.scores_of_classes(np.ascontiguousarray(beta.T))


@compiled
def _find_support(patterns):
    for i in range(np.uint64(patterns.codes.size)):
        _note_support(patterns, i)


@compiled(inline=True)
def _note_support(patterns, i):
    """Pattern i among the support patterns, or not, as its coefficients say; its own room exactly where they are 0."""
    room, support, where, at = patterns.room[i], patterns.support, patterns.where, patterns.at
    own, used = np.uint64(patterns.codes[i]), False
    for y in range(np.uint64(room.size)):
        used = used or (y != own and room[y] > 0.0)
    if used and where[i] < 0:
        where[i] = at[_SUPPORT]
        support[at[_SUPPORT]] = i
        at[_SUPPORT] += 1
    elif not used:
        room[own] = patterns.costs[i]
        if where[i] >= 0:
            at[_SUPPORT] -= 1
            last = support[at[_SUPPORT]]
            support[where[i]] = last
            where[last] = where[i]
            where[i] = -1


@compiled(inline=True)
def _pair(patterns, i, inside):
    """The class to raise, the class to lower, how much their gradients differ; among those with beta != 0 if asked."""
    room, own = patterns.room[i], np.uint64(patterns.codes[i])
    up, down, highest, lowest = own, own, -np.inf, np.inf
    for y in range(np.uint64(room.size)):
        g = (1.0 if y == own else 0.0) - patterns.scores[y, i]
        if room[y] > 0.0 and g > highest:
            up, highest = y, g
        if g < lowest and (not inside or y == own or room[y] > 0.0):
            down, lowest = y, g
    return up, down, highest - lowest


@compiled
def _eased(patterns, tau):
    """The least violation worth a step in the coming epoch: a part of the largest one, tau at most."""
    largest, steepest = 0.0, 1.0
    for i in range(np.uint64(patterns.codes.size)):
        _, _, rise = _pair(patterns, i, False)
        largest = max(largest, rise)
        for y in range(np.uint64(patterns.scores.shape[0])):
            steepest = max(steepest, abs(patterns.scores[y, i]))
    return max(min(tau, EASED * largest), _STILL * steepest)


@compiled
def _moving(patterns, coming, tolerance, most):
    """The first places in ``coming`` whose patterns violate by more than the tolerance."""
    places, count = np.empty(max(0, min(most, coming.size)), dtype=np.int64), 0
    for s in range(np.uint64(coming.size)):
        if count == places.size:
            break
        _, _, rise = _pair(patterns, np.uint64(coming[s]), False)
        if rise > tolerance:
            places[count] = s
            count += 1
    return places[:count]


@compiled(inline=True)
def _drawn(patterns, adaptive):
    """Which operation is next; the averages learn of the last one."""
    rates, last = patterns.rates, patterns.at[_OPERATION]
    if not adaptive:
        return (last + 1) % 3
    if rates[_READ] > 0.0:
        rates[last] += _DECAY * (rates[_GAIN] / rates[_READ] - rates[last])
    rates[_GAIN], rates[_READ] = 0.0, 0.0
    least = _LEAST * (rates[_NEW] + rates[_OLD] + rates[_OPTIMIZE])
    new, old = max(rates[_NEW], least), max(rates[_OLD], least)
    share = next_below(patterns.random, 2**31) * 2.0**-31 * (new + old + max(rates[_OPTIMIZE], least))
    if share <= new:
        return _NEW
    return _OLD if share <= new + old else _OPTIMIZE


@compiled
def _operate(kept: Kept, now, patterns, adaptive, tolerance, most):
    """Operations until the epoch ends, ``most`` steps are done or a row is missing: the steps, and which (n: none)."""
    order, at, rates = patterns.order, patterns.at, patterns.rates
    n, steps = order.size, 0
    while steps < most:
        if at[_LEFT] == 0:
            if at[_PLACE] == n:
                break
            at[_OPERATION] = _drawn(patterns, adaptive)
            at[_LEFT] = _BATCH if at[_OPERATION] == _OPTIMIZE else 1
        if at[_SUPPORT] == 0 and at[_OPERATION] != _NEW and at[_PATTERN] < 0:
            at[_OPERATION], at[_LEFT] = _NEW, 1
        if at[_PATTERN] < 0:
            if at[_OPERATION] == _NEW:
                at[_PATTERN] = order[at[_PLACE]]
                at[_PLACE] += 1
            else:
                at[_PATTERN] = patterns.support[next_below(patterns.random, at[_SUPPORT])]
        i = np.uint64(at[_PATTERN])
        up, down, rise = _pair(patterns, i, at[_OPERATION] == _OPTIMIZE)
        if rise > tolerance:
            slot = kept.slots[i]
            if slot < 0:
                return steps, np.int64(i)
            kept.used[slot] = now
            rates[_GAIN] += _step(patterns, kept.values[slot], i, up, down, rise)
            rates[_READ] += n
            steps += 1
        rates[_READ] += 1.0
        at[_LEFT] -= 1
        at[_PATTERN] = -1
    return steps, n


@compiled(inline=True)
def _step(patterns, row, i, up, down, rise):
    """beta_i^up rises and beta_i^down falls by the length that gains most, scores follow: the gain."""
    room, raised, lowered = patterns.room[i], patterns.scores[up], patterns.scores[down]
    bend = patterns.bend[i] if patterns.bend[i] > 0.0 else FLAT
    length = 0.5 * rise / bend
    if length >= room[up]:
        length = room[up]
        room[up] = 0.0
    else:
        room[up] -= length
    room[down] += length
    for t in range(np.uint64(row.size)):
        move = length * row[t]
        raised[t] += move
        lowered[t] -= move
    _note_support(patterns, i)
    return length * (rise - length * patterns.bend[i])
