"""What online learners share: examples come one by one, are scored against the stored ones, and may be stored.

The kernel values of a block of arriving rows with the stored rows, and among themselves, are computed at once. Their
columns are numbered: first the stored rows, then the block's. A compiled loop goes through the block by example, over
coefficients of columns; afterwards the rows without a coefficient are forgotten, the others are the stored rows of the
next block. Several outputs, one class against the rest each, share stored rows and kernel values and nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from slackwater.compiled import compiled, random_state
from slackwater.models.kernel import KernelModel
from slackwater.objective.certificate import DirectionPoint
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.objective.problem import BiasKind
from slackwater.rows import CSRRows, DenseRows, narrowed, stacked, take
from slackwater.solvers.contract import Counters, Solver, State, UnsupportedError

_BLOCK = 256  # rows, and fewer of them where they are so wide that
_ENTRIES = 2**25  # entries of a dense block are exceeded
_FEWEST = 16
#: Places in ``Active.counts`` and ``Active.sums``.
FIRST, END, STEPS, MISTAKES = 0, 1, 2, 3
FACTOR, BIAS, USED, SQUARE = 0, 1, 2, 3


@dataclass(frozen=True)
class Arrivals:
    """Some examples, in the order in which they come; ``numbers`` tells them apart from all others."""

    task: ClassVar[str] = "online"
    loss_family: ClassVar[str] = "hinge"
    penalty_family: ClassVar[str] = "l2"

    kernel: Kernel
    rows: DenseRows | CSRRows
    signs: np.ndarray  # (k, n): -1 or +1, a line per output
    numbers: np.ndarray  # (n,), int64
    bias: BiasKind = "none"
    classes: np.ndarray | None = None  # and the facts that the model is to tell
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shift(self) -> float:
        """What a penalised bias adds to kernel values."""
        return 1.0 if self.bias == "penalised" else 0.0

    def part(self, ids: np.ndarray) -> Arrivals:
        """Some of them, in this order."""
        return replace(self, rows=take(self.rows, ids), signs=self.signs[:, ids], numbers=self.numbers[ids])


class Active(NamedTuple):
    """What one output has learnt: f(x) = FACTOR sum_c beta_c K(x_c, x) + BIAS over columns c."""

    beta: np.ndarray  # (columns,)
    order: np.ndarray  # columns with a coefficient, order[FIRST..END], the oldest first
    born: np.ndarray  # the step at which each of them came
    counts: np.ndarray  # int64: FIRST, END, STEPS, MISTAKES
    sums: np.ndarray  # FACTOR, BIAS, and of the Forgetron Q and ||f||^2
    random: np.ndarray  # the state of a random generator

    @classmethod
    def nothing(cls, random: np.ndarray) -> Self:
        """Before the first example."""
        none = np.empty(0, dtype=np.int64)
        return cls(np.empty(0), none, none, np.zeros(4, dtype=np.int64), np.array([1.0, 0.0, 0.0, 0.0]), random)

    @property
    def listed(self) -> slice:
        """Where ``order`` and ``born`` are in use."""
        return slice(self.counts[FIRST], self.counts[END])

    @property
    def coefficients(self) -> np.ndarray:
        """Of all columns."""
        return self.beta * self.sums[FACTOR]

    def with_room(self, columns: int, entries: int) -> Active:
        """The same with more columns, and with room for more entries."""
        listed = self.listed
        beta = np.zeros(columns)
        beta[: self.beta.size] = self.beta
        order, born = np.empty((2, listed.stop - listed.start + entries), dtype=np.int64)
        self.counts[FIRST], self.counts[END] = 0, listed.stop - listed.start
        order[: self.counts[END]], born[: self.counts[END]] = self.order[listed], self.born[listed]
        return self._replace(beta=beta, order=order, born=born)

    def only(self, kept: np.ndarray, places: np.ndarray) -> Active:
        """The same with the columns ``kept``, column c of before at places[c] now."""
        order = self.order.copy()
        order[self.listed] = places[order[self.listed]]
        return self._replace(beta=self.beta[kept], order=order)


class Block(NamedTuple):
    """Arriving rows as compiled loops see them."""

    values: np.ndarray  # (b, stored + b): kernel values with all columns
    homes: np.ndarray  # (b,): the column that a row takes when it is stored
    stored: int
    free_bias: bool


@dataclass
class OnlineState(State):
    """The stored rows, the number of each, and what the outputs have learnt."""

    rows: DenseRows | CSRRows
    numbers: np.ndarray
    outputs: list[Active]
    mistakes: int = 0
    seen: int = 0


class OnlineLearner(Solver):
    """Base of the online learners: ``learn`` takes one block of examples for one output."""

    task: ClassVar[str] = "online"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised")
    rule: ClassVar[str] = "C5"
    optimises: ClassVar[bool] = False
    repeats: ClassVar[bool] = False  # whether a row that is stored already is stored no second time

    @abstractmethod
    def learn(self, block: Block, known: Known, signs: np.ndarray, active: Active, scores: np.ndarray) -> None:
        """Score the block's examples one by one, and change ``active`` after each."""

    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> OnlineState:
        """Nothing is stored."""
        outputs = [Active.nothing(random_state(rng)) for _ in problem.signs]
        return OnlineState(Counters(), take(problem.rows, np.empty(0, np.int64)), np.empty(0, np.int64), outputs)

    def advance(self, problem: Any, state: OnlineState) -> None:
        """All arrivals, once."""
        size = int(min(_BLOCK, max(_FEWEST, _ENTRIES // max(1, problem.rows.n_columns))))
        for start in range(0, problem.rows.n_rows, size):
            self._advance(problem.part(np.arange(start, min(start + size, problem.rows.n_rows))), state)

    def model(self, problem: Any, state: OnlineState) -> Any:
        """The stored rows that have a coefficient, with the coefficients of all outputs."""
        return expansion(problem, state, np.stack([self.coefficients(active) for active in state.outputs]))

    def coefficients(self, active: Active) -> np.ndarray:
        """Of all stored rows, as the predictor takes them."""
        return active.coefficients

    def dual_point(self, problem: Any, state: OnlineState) -> list[DirectionPoint]:
        """The coefficients over the stored rows, one point per output."""
        return [DirectionPoint(np.abs(self.coefficients(active))) for active in state.outputs]

    def cost(self, n: int) -> float | None:
        """The C of the problem that the learner minimises on n examples; None where it minimises none."""
        return None

    def check(self, problem: Any) -> None:
        """As of any solver; examples that are to come have no place in a precomputed matrix."""
        super().check(problem)
        if problem.kernel.name == "precomputed":
            raise UnsupportedError(
                "online learners compute kernel values as examples come: kernel='precomputed' is SVC's"
            )

    def _advance(self, arrivals: Arrivals, state: OnlineState) -> None:
        """One block."""
        stored, b = state.rows.n_rows, arrivals.rows.n_rows
        rows = stacked(state.rows, arrivals.rows)
        numbers = np.concatenate((state.numbers, arrivals.numbers))
        points = Points.of(rows, arrivals.kernel, rows.dtype, arrivals.shift)
        known = Known(points, state.counters)
        values = known.rows(np.arange(stored, stored + b))
        block = Block(values, self._homes(numbers, stored), stored, arrivals.bias == "free")
        scores = np.empty(arrivals.signs.shape)
        for number, signs in enumerate(arrivals.signs):
            active = state.outputs[number].with_room(stored + b, b)
            self.learn(block, known, signs, active, scores[number])
            state.outputs[number] = active
        state.mistakes += _mistakes(scores, arrivals.signs)
        state.seen += b
        _forget(state, rows, numbers)
        done = state.counters
        done.inner_products += b * len(arrivals.signs)
        done.updates = int(sum(active.counts[MISTAKES] for active in state.outputs))

    def _homes(self, numbers: np.ndarray, stored: int) -> np.ndarray:
        homes = np.arange(stored, numbers.size)
        if self.repeats and stored:
            sorter = np.argsort(numbers[:stored], kind="stable")
            places = np.searchsorted(numbers[:stored], numbers[stored:], sorter=sorter)
            there = sorter[np.minimum(places, stored - 1)]
            homes = np.where(numbers[there] == numbers[stored:], there, homes)
        return homes


class Known:
    """Rows of kernel values with all columns of a block."""

    def __init__(self, points: Points, counters: Counters) -> None:
        self.points, self.counters = points, counters

    def rows(self, columns: np.ndarray) -> np.ndarray:
        """Those of some columns."""
        points, counters = self.points, self.counters
        if points.kernel.of_products:
            points = replace(points, rows=narrowed(points.rows, columns))
        out = points.values(points.own_lines(columns), np.empty((columns.size, points.n_rows), dtype=points.dtype))
        out[np.arange(columns.size), columns] = points.diagonal[columns]
        counters.row_requests += columns.size
        counters.kernel_evaluations += out.size
        return out


def expansion(problem: Any, state: OnlineState, coefficients: np.ndarray) -> KernelModel:
    """The model with these coefficients of the stored rows, a line per output."""
    support = np.flatnonzero(coefficients.any(axis=0))
    intercept = np.array([active.sums[BIAS] for active in state.outputs])
    return KernelModel(
        problem.kernel, take(state.rows, support), np.ascontiguousarray(coefficients[:, support]), intercept,
        state.numbers[support], problem.classes, shift=problem.shift, meta=problem.meta,
    )  # fmt: skip


def _mistakes(scores: np.ndarray, signs: np.ndarray) -> int:
    """Examples whose class did not score highest before they were learnt; ties are mistakes."""
    if len(scores) == 1:
        return int(np.count_nonzero(scores * signs <= 0.0))
    right = np.where(signs > 0.0, scores, -np.inf).max(axis=0)
    return int(np.count_nonzero(right <= np.where(signs > 0.0, -np.inf, scores).max(axis=0)))


def _forget(state: OnlineState, rows: DenseRows | CSRRows, numbers: np.ndarray) -> None:
    """Keep the rows in which some output has a coefficient."""
    used = np.zeros(numbers.size, dtype=bool)
    for active in state.outputs:
        used[active.order[active.listed]] = True
    kept = np.flatnonzero(used)
    places = np.cumsum(used) - 1
    state.rows, state.numbers = take(rows, kept), numbers[kept]
    state.outputs = [active.only(kept, places) for active in state.outputs]


# ------------------------------------------------------------------------------------------------ compiled parts


@compiled
def score(line, beta, columns):
    """sum_c beta_c K_c over the first columns."""
    total = 0.0
    for c in range(np.uint64(columns)):
        total += beta[c] * line[c]
    return total


@compiled
def append(active, column, coefficient):
    """A new youngest entry."""
    end = np.uint64(active.counts[END])
    active.beta[column] += coefficient
    active.order[end], active.born[end] = column, active.counts[STEPS]
    active.counts[END] += 1


@compiled
def drop_oldest(active):
    """The oldest entry goes."""
    first = np.uint64(active.counts[FIRST])
    active.beta[active.order[first]] = 0.0
    active.counts[FIRST] += 1


@compiled
def shrink(active, factor):
    """Multiply all coefficients, by one factor that stands before them all until it is too small for that."""
    sums, counts = active.sums, active.counts
    sums[FACTOR] *= factor
    if sums[FACTOR] > 1e-9:
        return
    for k in range(np.uint64(counts[FIRST]), np.uint64(counts[END])):
        active.beta[active.order[k]] *= sums[FACTOR]
    if sums[FACTOR] == 0.0:
        counts[FIRST] = counts[END]
    sums[FACTOR] = 1.0


def bound(limit: int | None) -> int:
    """A bound as compiled loops take it."""
    return 2**62 if limit is None else int(limit)


def require_budget(budget: Any) -> None:
    """Raise unless it is a number of vectors."""
    if budget is None or (isinstance(budget, int | np.integer) and not isinstance(budget, bool) and budget >= 1):
        return
    raise ValueError(f"budget must be a whole number of vectors, at least 1, or None for no bound; got {budget!r}")
