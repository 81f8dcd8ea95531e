"""SBP: the Stochastic Batch Perceptron, a perceptron on the examples under water.

Problem    max over ||w|| <= 1, xi >= 0, sum u_i xi_i <= n nu  of  f(w) = min_i (c_i + y_i b + xi_i),  c_i = y_i <w, x_i>,
           the slack-constrained form of  min lambda ||w||^2 / 2 + (1/n) sum_i u_i max(0, 1 - m_i).
Update     (1) the level gamma and the examples under water, p* (solvers/basins.py; with a free bias two basins);
           (2) j ~ p*;   (3) eta = 1 / (R sqrt t),  ||w||^2 += 2 eta c_j + eta^2 K_jj,  alpha_j += eta,  c += eta Q_j;
           (4) if ||w|| > 1: alpha and c divided by ||w||.
           ``draws`` draws share a level: their rows are added in one pass. ``draws=1`` is the paper's algorithm.
Which nu   A number is the paper's nu. None solves the problem of the given C: at every level nu is what belongs to the
           best multiple of w, which exchanges lambda for nu; the level is found under that condition just as fast.
State      alpha, c, ||w||^2, t; sums of alpha, c and p* since the last two powers of two of levels: the last half.
Cost       n additions per draw, a few passes over c per level; kernel rows in blocks. Draws are proposals, uniform over
           all examples, of which those under water are taken: which ones come next is then known ahead but for what the
           water does until then, so their rows are computed together, and p* is what it should be.
Output     The better, by P, of the average and the last iterate, each at its best scale w / gamma and bias b / gamma.
Certificate  C5 with the average of p*; U - f of the slack-constrained form (C4) by ``slack_bounds``.

Cotter, Shalev-Shwartz, Srebro. The kernelized stochastic batch perceptron. ICML 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import JIT, compiled
from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import DirectionPoint
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.basins import Goal, Pool, basins_of, bias_of, new_pool, part_of, pour
from slackwater.solvers.contract import Counters, State
from slackwater.solvers.kernel.kernel_solver import KernelSolver, balanced

_ROUND = 2**25  # numbers touched in a round, a new kernel row counting for _ROW of them
_ROW = 24
_MOST_DRAWS = 20_000 if JIT else 64  # in a round
_AHEAD = 256  # rows computed together
_RARE = 1.0 / 128.0  # of all weight is under water: draw from a list
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_A, _C, _P = 0, 1, 2  # sums of alpha, of c, of p*


class Task(NamedTuple):
    """What does not change."""

    labels: np.ndarray
    weights: np.ndarray  # u_i, 1 on average
    basin: np.ndarray
    diagonal: np.ndarray
    basins: int
    volume: float  # n nu
    ridge: float  # lambda n, negative where nu is given
    radius: float  # R
    heaviest: float  # max u_i


class Walk(NamedTuple):
    """What a step changes."""

    alpha: np.ndarray
    c: np.ndarray
    sums: np.ndarray  # (2, 3, n): since the last power of two of levels, and between the last two
    listed: np.ndarray  # (n,), room for the examples under water where they are rare
    facts: np.ndarray  # ||w||^2
    times: np.ndarray  # t, levels, levels in each of the sums; int64
    proposals: np.ndarray  # the seed of all proposals, the number of the next, and of that after the draws; uint64
    pool: Pool


class Chosen(NamedTuple):
    """The draws of a level."""

    ids: np.ndarray
    coefs: np.ndarray


class Candidate(NamedTuple):
    """A direction with its responses, at its best scale and bias: what it promises."""

    alpha: np.ndarray
    primal: float
    gamma: float
    bias: float


class SlackBounds(NamedTuple):
    """The slack-constrained form at the given nu: f(w) <= f* <= U(p)."""

    value: float
    bound: float


@dataclass
class SBPState(State):
    """The walk, and what is known of the state it is in."""

    task: Task
    walk: Walk
    pool: Pool  # for average iterates
    fetched_at: int = 0  # draws before the last rows were fetched
    ahead: int = 0
    known: tuple[int, Candidate] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SBP(KernelSolver):
    """The Stochastic Batch Perceptron."""

    name: ClassVar[str] = "sbp"
    paper: ClassVar[str] = "Cotter, Shalev-Shwartz, Srebro, ICML 2012"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C5"

    nu: float | None = None
    draws: int = 16

    def __post_init__(self) -> None:
        if self.nu is not None and not (isinstance(self.nu, int | float) and 0.0 <= self.nu < math.inf):
            raise ValueError(f"nu must be None or a number of at least 0, got {self.nu!r}")
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise ValueError(f"draws must be a whole number of at least 1, got {self.draws!r}")

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> SBPState:
        """w = 0, or the direction of the given point."""
        n, free = problem.n_rows, problem.bias == "free"
        weights = problem.costs * (n * problem.regularisation)
        task = Task(
            problem.labels, weights, basins_of(problem.labels, free), problem.gram.diagonal, 2 if free else 1,
            0.0 if self.nu is None else n * float(self.nu), n * problem.regularisation if self.nu is None else -1.0,
            _radius(problem), float(weights.max()),
        )  # fmt: skip
        walk = Walk(
            np.zeros(n), np.zeros(n), np.zeros((2, 3, n)), np.empty(n, dtype=np.int64), np.zeros(1),
            np.zeros(4, dtype=np.int64), np.array([rng.integers(2**63), 0, 0], dtype=np.uint64), new_pool(n, rng),
        )  # fmt: skip
        if alpha is not None:
            _begin_at(problem, walk, balanced(problem, np.clip(alpha, 0.0, problem.costs)))
        return SBPState(Counters(), task, walk, new_pool(n, rng))

    def work(self, problem: KernelProblem, state: SBPState) -> None:
        """Levels until a good deal has been computed; none where no two classes can be balanced."""
        task, walk, gram = state.task, state.walk, problem.gram
        if task.basins == 2 and task.basin.min() == task.basin.max():
            return
        n, done, levels = problem.n_rows, state.counters, 0
        before, evaluations, support = gram.requests, gram.evaluations, np.count_nonzero(walk.alpha)
        chosen = Chosen(np.empty(min(self.draws, gram.capacity), dtype=np.int64), np.empty(self.draws))
        left = float(max(1, min(_MOST_DRAWS, _ROUND // n) // chosen.ids.size))
        while left > 0.0:
            wanted = max(1, int(left))
            walked = _levels(task, walk, gram.kept, chosen, wanted, int(gram.kept.used.max()))
            levels += walked
            left -= walked
            if walked < wanted:
                left -= self._fetch(problem, state, chosen) * _ROW / chosen.ids.size
                left = max(left, 0.5 if levels == 0 else 0.0)
        walk.facts[0] = max(0.0, float(walk.alpha @ walk.c))
        drawn = levels * chosen.ids.size
        unused = (gram.evaluations - evaluations) // n - (np.count_nonzero(walk.alpha) - support)
        gram.requests = before + drawn + max(0, int(unused))
        done.updates += drawn
        done.inner_products += drawn * n
        done.epochs = int(walk.times[0] // n)

    def _fetch(self, problem: KernelProblem, state: SBPState, chosen: Chosen) -> int:
        """The rows of the next level, and of as many draws after it as the last rows served: how many were missing."""
        gram, drawn = problem.gram, int(state.walk.times[0])
        state.ahead = min(_AHEAD, 2 * (drawn - state.fetched_at))
        state.fetched_at = drawn
        ids = np.empty(min(gram.capacity, max(chosen.ids.size, state.ahead)), dtype=np.int64)
        count = _ahead(state.task, state.walk, gram.kept.slots, chosen.ids, ids)
        before = gram.evaluations
        gram.keep(ids[:count])
        return (gram.evaluations - before) // gram.n_rows

    def model(self, problem: KernelProblem, state: SBPState) -> Expansion:
        """The better of the average and the last iterate."""
        found = self._best(problem, state)
        if not found.gamma < math.inf:
            return Expansion(np.zeros(problem.n_rows))
        return Expansion(found.alpha * problem.labels / found.gamma, found.bias / found.gamma)

    def dual_point(self, problem: KernelProblem, state: SBPState) -> DirectionPoint:
        """The average of the distributions p*."""
        return DirectionPoint(_average(state.walk)[_P])

    def estimate(self, problem: KernelProblem, state: SBPState) -> float:
        """The gap if the average w pointed where p* points: then the bound needs no kernel row."""
        alpha, c, p = _average(state.walk)
        square = float(alpha @ c)
        if not square > 0.0:
            return math.inf
        total, h = p.sum(), float(p @ c) ** 2 / square
        s = (problem.costs[p > 0.0] / p[p > 0.0]).min()
        s = min(s, total / h) if h > 0.0 else s
        dual = problem.regularisation * (s * total - 0.5 * s * s * h)
        primal = self._best(problem, state).primal
        return max(primal - dual, 0.0) / dual if dual > 0.0 else math.inf

    def slack_bounds(self, problem: KernelProblem, state: SBPState) -> SlackBounds:
        """f of the average, made as long as it may be, and U of the average p*; for a given nu."""
        if self.nu is None:
            raise ValueError("slack_bounds needs a number for nu")
        task = state.task
        alpha, c, p = _average(state.walk)
        p = p / p.sum()
        values = []
        for scale in (1.0, 1.0 / math.sqrt(max(float(alpha @ c), 1e-300))):
            goal = Goal(task.volume, -1.0, task.basins)
            values.append(pour(goal, c * scale, task.basin, task.weights, state.pool).gamma)
        h = problem.squared_norm_of_sum(p * problem.labels)
        return SlackBounds(max(values), math.sqrt(max(h, 0.0)) + task.volume * float((p / task.weights).max()))

    def _best(self, problem: KernelProblem, state: SBPState) -> Candidate:
        """Looked for once in every state."""
        now = int(state.walk.times[0])
        if state.known is None or state.known[0] != now:
            alpha, c, _ = _average(state.walk)
            last = _scaled(problem, state, state.walk.alpha.copy(), state.walk.c)
            mean = _scaled(problem, state, alpha, c)
            state.known = now, mean if mean.primal <= last.primal else last
        return state.known[1]


def _radius(problem: KernelProblem) -> float:
    """R, 1 where all examples are zero."""
    return math.sqrt(float(np.abs(problem.gram.diagonal).max())) or 1.0


def _begin_at(problem: KernelProblem, walk: Walk, alpha: np.ndarray) -> None:
    """The direction of alpha at length 1, with steps as short as after n of them."""
    c = problem.labels * problem.gram.times(problem.labels * alpha)
    square = float(alpha @ c)
    if square > 0.0 and math.isfinite(square):
        walk.alpha[:], walk.c[:] = alpha / math.sqrt(square), c / math.sqrt(square)
        walk.facts[0] = 1.0
        walk.times[0] = alpha.size


def _average(walk: Walk) -> np.ndarray:
    """The means of alpha, c and p* over the last half of the levels, or a little more."""
    return (walk.sums[0] + walk.sums[1]) / max(1, int(walk.times[2] + walk.times[3]))


def _scaled(problem: KernelProblem, state: SBPState, alpha: np.ndarray, c: np.ndarray) -> Candidate:
    """The best multiple of a direction for the given C, with the best bias."""
    task, lam = state.task, problem.regularisation
    square = max(float(alpha @ c), 0.0)
    goal = Goal(0.0, lam * problem.n_rows * square, task.basins)
    level = pour(goal, c, task.basin, task.weights, state.pool)
    if not level.gamma < math.inf:
        return Candidate(alpha, math.inf, math.inf, 0.0)
    bias = bias_of(level)
    hinges = np.maximum(0.0, 1.0 - (c + problem.labels * bias) / level.gamma)
    primal = lam * (0.5 * square / level.gamma**2 + float(problem.costs @ hinges))
    return Candidate(alpha, primal, level.gamma, bias)


# --------------------------------------------------------------------------------------------------- compiled


@compiled
def _levels(task, walk, kept, chosen, most, clock):
    """So many levels with their draws; fewer where a row is missing."""
    for done in range(most):
        level = _level(task, walk)
        _draw(task, walk, level, chosen.ids)
        for k in range(np.uint64(chosen.ids.size)):
            if kept.slots[chosen.ids[k]] < 0:
                return done
        _average_in(task, walk, level)
        _step(task, walk, kept, chosen, clock)
    return most


@compiled
def _level(task, walk):
    """The water over c."""
    goal = Goal(task.volume, task.ridge * walk.facts[0] if task.ridge >= 0.0 else -1.0, task.basins)
    return pour(goal, walk.c, task.basin, task.weights, walk.pool)


@compiled
def _hashed(seed, number):
    """The number-th word of a random sequence (splitmix64; Steele, Lea, Flood)."""
    x = seed + number * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def _accepted(task, walk, level, number, listed):
    """The example that proposal ``number`` names if it is drawn, else -1: p* by rejection."""
    x = _hashed(walk.proposals[0], np.uint64(2) * number)
    size = listed if listed else task.labels.size
    j = np.int64(((x >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
    if listed:
        j = walk.listed[j]
    part = part_of(level, task.basin[j], walk.c[j]) * task.weights[j]
    if part >= task.heaviest:
        return j
    if part == 0.0:
        return np.int64(-1)
    coin = _hashed(walk.proposals[0], np.uint64(2) * number + np.uint64(1)) >> np.uint64(11)
    return j if np.float64(coin) * (task.heaviest / 9007199254740992.0) < part else np.int64(-1)


@compiled
def _list(task, walk, level):
    """Where little is under water, all that is: how many; 0 where proposals may go everywhere."""
    n = task.labels.size
    if task.basins * level.depth > _RARE * n:
        return 0
    count = 0
    for i in range(np.uint64(n)):
        if part_of(level, task.basin[i], walk.c[i]) > 0.0:
            walk.listed[count] = i
            count += 1
    return count


@compiled
def _draw(task, walk, level, ids):
    """As many draws from p* as there is room; they are taken back where a row is missing."""
    listed, number = _list(task, walk, level), walk.proposals[1]
    for k in range(np.uint64(ids.size)):
        j = np.int64(-1)
        while j < 0:
            j = _accepted(task, walk, level, number, listed)
            number += np.uint64(1)
        ids[k] = j
    walk.proposals[2] = number


@compiled
def _ahead(task, walk, slots, first, ids):
    """The rows ``first``, then those of later proposals that are under water now and not in memory; each once."""
    level = _level(task, walk)
    listed, number = _list(task, walk, level), walk.proposals[1]
    seen = np.zeros(task.labels.size, dtype=np.uint8)
    count = np.uint64(0)
    for k in range(np.uint64(first.size)):
        if not seen[first[k]]:
            seen[first[k]] = 1
            ids[count] = first[k]
            count += np.uint64(1)
    for _ in range(8 * ids.size + (0 if listed else 2 * task.labels.size)):
        if count == ids.size:
            break
        j = _accepted(task, walk, level, number, listed)
        number += np.uint64(1)
        if j >= 0 and slots[j] < 0 and not seen[j]:
            seen[j] = 1
            ids[count] = j
            count += np.uint64(1)
    return count


@compiled
def _step(task, walk, kept, chosen, clock):
    """The perceptron's steps on the draws, one after the other as far as ||w|| goes, then added in one pass."""
    ids, coefs, N, shrunk = chosen.ids, chosen.coefs, walk.facts[0], 1.0
    for k in range(np.uint64(ids.size)):
        j = ids[k]
        response = shrunk * walk.c[j]
        for e in range(k):
            response += coefs[e] * task.labels[j] * task.labels[ids[e]] * np.float64(kept.values[kept.slots[ids[e]], j])
        walk.times[0] += 1
        eta = 1.0 / (task.radius * math.sqrt(np.float64(walk.times[0])))
        N += 2.0 * eta * response + eta * eta * task.diagonal[j]
        coefs[k] = eta
        if N > 1.0:
            r = 1.0 / math.sqrt(N)
            N, shrunk = 1.0, shrunk * r
            for e in range(k + np.uint64(1)):
                coefs[e] *= r
    walk.facts[0] = max(N, 0.0)
    walk.proposals[1] = walk.proposals[2]
    if shrunk != 1.0:
        for i in range(np.uint64(walk.alpha.size)):
            walk.alpha[i] *= shrunk
    for k in range(np.uint64(ids.size)):
        walk.alpha[ids[k]] += coefs[k]
        coefs[k] *= task.labels[ids[k]]
        kept.used[kept.slots[ids[k]]] = clock
    _add_rows(task.labels, kept.values, kept.slots, ids, coefs, shrunk, walk.c)


@compiled
def _add_rows(labels, values, slots, ids, coefs, shrunk, c):
    """c <- shrunk c + y sum_k coefs_k K[ids_k], four rows at a time."""
    k, count, n = np.uint64(0), np.uint64(ids.size), np.uint64(c.size)
    while k + np.uint64(4) <= count:
        a, b = values[slots[ids[k]]], values[slots[ids[k + np.uint64(1)]]]
        d, e = values[slots[ids[k + np.uint64(2)]]], values[slots[ids[k + np.uint64(3)]]]
        p, q, r, s = coefs[k], coefs[k + np.uint64(1)], coefs[k + np.uint64(2)], coefs[k + np.uint64(3)]
        for i in range(n):
            c[i] = shrunk * c[i] + labels[i] * ((p * a[i] + q * b[i]) + (r * d[i] + s * e[i]))
        shrunk = 1.0
        k += np.uint64(4)
    while k < count:
        a, p = values[slots[ids[k]]], coefs[k]
        for i in range(n):
            c[i] = shrunk * c[i] + labels[i] * (p * a[i])
        shrunk = 1.0
        k += np.uint64(1)


@compiled
def _average_in(task, walk, level):
    """The sums over the last half: at powers of two of levels the older of them is forgotten."""
    levels = walk.times[1] + 1
    walk.times[1] = levels
    if levels & (levels - 1) == 0:
        walk.sums[1] = walk.sums[0]
        walk.times[3] = walk.times[2]
        walk.sums[0] = 0.0
        walk.times[2] = 0
    walk.times[2] += 1
    mass = 1.0 if task.ridge >= 0.0 else 1.0 / (task.basins * level.depth)
    a, c, p = walk.sums[0, _A], walk.sums[0, _C], walk.sums[0, _P]
    for i in range(np.uint64(a.size)):
        a[i] += walk.alpha[i]
        c[i] += walk.c[i]
    low0, low1, share0, share1 = level.last0, level.last1, mass * level.share0, mass * level.share1
    for i in range(np.uint64(a.size)):
        low, share = (low1, share1) if task.basin[i] else (low0, share0)
        r = walk.c[i]
        p[i] += task.weights[i] * (mass if r < low else (share if r == low else 0.0))
