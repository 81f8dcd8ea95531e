"""SBP: the Stochastic Batch Perceptron, a perceptron on the examples under water.

Problem    max over ||w|| <= 1, xi >= 0, sum u_i xi_i <= n nu  of  f(w) = min_i (c_i + y_i b + xi_i),
           where c_i = y_i <w, x_i>: the slack-constrained form of  min lambda ||w||^2 / 2 + (1/n) sum_i u_i l(m_i).
Update     (1) the level gamma and the examples under water, p* (solvers/basins.py; with a free bias two basins);
           (2) j ~ p*;   (3) eta = 1 / (R sqrt t),  ||w||^2 += 2 eta c_j + eta^2 K_jj,  alpha_j += eta,  c += eta Q_j;
           (4) if ||w|| > 1: alpha and c divided by ||w||.
           ``steps="paper"`` with ``draws=1`` is the paper's algorithm; more draws share a level, step after step.
           ``steps="adaptive"`` goes along the mean g of a level's draws, eta = 1 / sqrt(the sum of all ||g||^2 so far):
           with one draw and equal K_jj the paper's step, with many a longer one, as g errs less. Levels begin with 8
           draws, while most rows are new, and end with ``draws``. Draws are spread over the classes as p* is.
Which nu   A number is the paper's nu. None solves the problem of the given C: at every level nu is what belongs to the
           best multiple of w, which exchanges lambda for nu; the level is found under that condition just as fast.
State      alpha, c, ||w||^2, t; sums of alpha, c and p* since the last two powers of two of levels: the last half.
Cost       n additions per draw, a few passes over c per level; kernel rows in blocks. Draws are proposals, uniform over
           all examples, of which those under water are taken: which ones come next is then known ahead but for what the
           water does until then, so their rows are computed together, and p* is what it should be.
Output     The better, by P, of the average and the last iterate, each at its best scale w / gamma and bias b / gamma;
           ``output="average"`` the paper's, which errs less between steps where P hardly tells them apart.
Certificate  C5 with the average of p*, or of alpha where p* would ask for too many rows; U - f of the
           slack-constrained form (C4) by ``slack_bounds``.

Cotter, Shalev-Shwartz, Srebro. The kernelized stochastic batch perceptron. ICML 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import JIT
from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import DirectionPoint, balanced
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.basins import Goal, Pool, basins_of, bias_of, new_pool, pour
from slackwater.solvers.contract import Counters, State
from slackwater.solvers.kernel.kernel_solver import KernelSolver
from slackwater.solvers.kernel.under_water import Chosen, Task, Walk, averages, rows_ahead, take_levels

_ROUND = 2**26  # numbers touched in a round, a new kernel row counting for _ROW of them
_ROW = 24
_MOST_DRAWS = 20_000 if JIT else 64  # in a round
_AHEAD = 256  # rows computed together
_FEW_DRAWS, _DRAWS_PER_DRAW = 8, 128  # of a level at first; draws so far for one more


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
    draws: int = 64
    steps: str = "adaptive"
    output: str = "best"

    def __post_init__(self) -> None:
        if self.nu is not None and not (isinstance(self.nu, int | float) and 0.0 <= self.nu < math.inf):
            raise ValueError(f"nu must be None or a number of at least 0, got {self.nu!r}")
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 1:
            raise ValueError(f"draws must be a whole number of at least 1, got {self.draws!r}")
        if self.steps not in ("adaptive", "paper"):
            raise ValueError(f"steps must be 'adaptive' or 'paper', got {self.steps!r}")
        if self.output not in ("best", "average"):
            raise ValueError(f"output must be 'best' or 'average', got {self.output!r}")

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> SBPState:
        """w = 0, or the direction of the given point."""
        n, free = problem.n_rows, problem.bias == "free"
        weights = problem.costs * (n * problem.regularisation)
        task = Task(
            problem.labels, weights, basins_of(problem.labels, free), problem.gram.diagonal, 2 if free else 1,
            0.0 if self.nu is None else n * float(self.nu), n * problem.regularisation if self.nu is None else -1.0,
            _radius(problem), float(weights.max()), self.steps == "adaptive",
        )  # fmt: skip
        walk = Walk(
            np.zeros(n), np.zeros(n), np.zeros((2, 3, n)), np.empty(n, dtype=np.int64), np.zeros(2),
            np.zeros(4, dtype=np.int64), _proposals(rng), new_pool(n),
        )  # fmt: skip
        if alpha is not None:
            signed = problem.labels * np.clip(alpha, 0.0, problem.costs)
            _begin_at(problem, walk, problem.labels * balanced(problem, signed))
        return SBPState(Counters(), task, walk, new_pool(n))

    def work(self, problem: KernelProblem, state: SBPState) -> None:
        """Levels until a good deal has been computed; none where no two classes can be balanced."""
        task, walk, gram = state.task, state.walk, problem.gram
        if task.basins == 2 and task.basin.min() == task.basin.max():
            return
        n, done, levels = problem.n_rows, state.counters, 0
        before, evaluations, support = gram.requests, gram.evaluations, np.count_nonzero(walk.alpha)
        draws = self._draws(state, gram.capacity)
        chosen = Chosen(np.empty(draws, dtype=np.int64), np.empty(draws))
        left = float(max(1, min(_MOST_DRAWS, _ROUND // n) // chosen.ids.size))
        while left > 0.0:
            wanted = max(1, int(left))
            walked = take_levels(task, walk, gram.kept, chosen, wanted, int(gram.kept.used.max()))
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

    def _draws(self, state: SBPState, capacity: int) -> int:
        """Of each level in this round: few while most of their rows are new."""
        few = max(_FEW_DRAWS, int(state.walk.times[0]) // _DRAWS_PER_DRAW)
        return min(self.draws, capacity, few) if self.steps == "adaptive" else min(self.draws, capacity)

    def _fetch(self, problem: KernelProblem, state: SBPState, chosen: Chosen) -> int:
        """The rows of the next level, and of as many draws after it as the last rows served: how many were missing."""
        gram, drawn = problem.gram, int(state.walk.times[0])
        state.ahead = min(_AHEAD, 2 * (drawn - state.fetched_at))
        state.fetched_at = drawn
        ids = np.empty(min(gram.capacity, max(chosen.ids.size, state.ahead)), dtype=np.int64)
        count = rows_ahead(state.task, state.walk, gram.kept.slots, chosen.ids, ids)
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
        """The average of the distributions p*; that of alpha where p* lies on far more rows than were ever drawn."""
        alpha, _, p = averages(state.walk)
        rows = max(problem.gram.capacity, 2 * np.count_nonzero(alpha))
        return DirectionPoint(p if np.count_nonzero(p) <= rows else alpha)

    def support(self, state: SBPState) -> np.ndarray:
        """Where alpha is not 0."""
        return state.walk.alpha > 0.0

    def estimate(self, problem: KernelProblem, state: SBPState) -> float:
        """The gap if the average w pointed where p* points: then the bound needs no kernel row."""
        alpha, c, p = averages(state.walk)
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
        alpha, c, p = averages(state.walk)
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
            alpha, c, _ = averages(state.walk)
            last = _scaled(problem, state, state.walk.alpha.copy(), state.walk.c)
            mean = _scaled(problem, state, alpha, c)
            useful = mean.gamma < math.inf and self.output == "average"
            state.known = now, mean if useful or mean.primal <= last.primal else last
        return state.known[1]


def _proposals(rng: np.random.Generator) -> np.ndarray:
    """A seed for each class."""
    numbers = np.zeros((3, 2), dtype=np.uint64)
    numbers[0] = rng.integers(2**63, size=2)
    return numbers


def _radius(problem: KernelProblem) -> float:
    """R, 1 where all examples are zero."""
    return math.sqrt(float(np.abs(problem.gram.diagonal).max())) or 1.0


def _begin_at(problem: KernelProblem, walk: Walk, alpha: np.ndarray) -> None:
    """The direction of alpha at length 1, with steps as short as after n of them."""
    c = problem.labels * problem.gram.times(problem.labels * alpha)
    square = float(alpha @ c)
    if square > 0.0 and math.isfinite(square):
        walk.alpha[:], walk.c[:] = alpha / math.sqrt(square), c / math.sqrt(square)
        walk.facts[:] = 1.0, alpha.size * _radius(problem) ** 2
        walk.times[0] = alpha.size


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
