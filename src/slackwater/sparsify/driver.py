"""The one driver of sparsifiers: it runs a method's settings on shared kernel rows and chooses on held-out rows.

Methods only pass predictors on. The driver looks at some of them, on a geometric ladder of support sizes, owns the
limits, the clock and Ctrl-C, and keeps the best: the fewest errors on the holdout within the limits of size; or, where
an increase of the error is allowed, the smallest whose error is within it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.rows import CSRRows
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.curve import Curve, Point
from slackwater.sparsify.demand import Demand, constant
from slackwater.sparsify.holdout import Across, Holdout, weighted_error
from slackwater.training.stopping import Status, counted, interruptible, is_number, seconds_text

_RUNG = math.sqrt(2.0)  # growth of the support between two looks
_ROUNDING = 1e-12  # of errors

Watcher = Callable[[Point], bool | None]


@dataclass(frozen=True)
class Budget:
    """What the small predictor may be, and what finding it may take; None is no limit."""

    max_support: int | None = None
    max_bytes: int | None = None  # of the model's numbers
    max_error_increase: float | None = None  # on the holdout, over the dense predictor's error
    max_time: float | None = None  # seconds

    def __post_init__(self) -> None:
        for name in ("max_support", "max_bytes"):
            limit = getattr(self, name)
            if limit is not None and not (is_number(limit) and limit >= 0 and limit == int(limit)):
                raise ValueError(f"{name} must be a whole number of at least 0 or None, got {limit!r}")
        increase, seconds = self.max_error_increase, self.max_time
        if increase is not None and not (is_number(increase) and 0.0 <= increase <= 1.0):
            raise ValueError(f"max_error_increase must be a share between 0 and 1 or None, got {increase!r}")
        if seconds is not None and not (is_number(seconds) and seconds > 0.0):
            raise ValueError(f"max_time must be positive or None, got {seconds!r}")

    def allows(self, point: Point, before: Point) -> bool:
        """Whether the error of ``point`` is within the allowed increase."""
        increase = self.max_error_increase
        return increase is None or point.holdout_error <= before.holdout_error + increase + _ROUNDING

    def rank(self, point: Point, before: Point) -> tuple:
        """The smaller, the better: fewer errors; where the error may increase, fewer vectors within that."""
        if self.max_error_increase is not None and self.allows(point, before):
            return 0, point.support, point.holdout_error
        return 1, point.holdout_error, point.support


@dataclass(frozen=True, eq=False)
class Sparsified:
    """The chosen predictor, its point of the curve, its settings, and the dense one's point for comparison."""

    small: Small
    largest: Small  # that was looked at
    point: Point
    method: Sparsifier
    before: Point
    curve: Curve
    status: Status


def sparsify(
    teacher: Teacher,
    method: Sparsifier,
    holdout: Holdout,
    budget: Budget | None = None,
    *,
    settings: Sequence[Sparsifier] | None = None,
    rng: np.random.Generator | int | None = None,
    watchers: Sequence[Watcher] = (),
    stop: threading.Event | None = None,
    across: Across | None = None,
) -> Sparsified:
    """Run ``method`` under ``settings``, by default those of its published grid, and choose.

    ``watchers`` are told every point; True from one of them ends the search, and so does ``stop`` or the first Ctrl-C,
    with the best so far. ``across`` brings the holdout's kernel values where others have use for them, too.
    """
    method.check(teacher)
    stop = stop or threading.Event()
    search = _Search(teacher, holdout, budget or Budget(), watchers, stop, across)
    tried = list(method.grid(teacher) if settings is None else settings)
    with interruptible(stop):
        return search.run(method, tried, np.random.default_rng(rng))


class _Search:
    def __init__(self, teacher, holdout, budget: Budget, watchers, stop, across) -> None:
        self.teacher, self.holdout, self.budget = teacher, holdout, budget
        self.watchers, self.stop = watchers, stop
        self.begin = time.perf_counter()
        self.counted_before = teacher.gram.evaluations
        self.across, self.demand = across or Across(teacher, holdout.rows), Demand.of(teacher)
        self.counted_before += self.across.evaluations
        self.curve = Curve()
        values = teacher.model.decision_values(holdout.rows)
        self.before = self._entry(teacher.model.n_support, teacher.model.n_bytes, teacher.values, values, -1)
        self.chosen: tuple[tuple, Small, Point] | None = None
        self.largest = constant(teacher)
        self.ending: tuple[str, str] | None = None

    def run(self, method: Sparsifier, settings: list[Sparsifier], rng: np.random.Generator) -> Sparsified:
        self._look(self.largest, -1)
        generators = rng.spawn(len(settings))
        for number, (setting, generator) in enumerate(zip(settings, generators, strict=True)):
            if self._over() or self._most() == 0:
                break
            left = (self._deadline() - time.perf_counter()) / (len(settings) - number)
            self._climb(setting, number, generator, time.perf_counter() + left)
        assert self.chosen is not None
        _, small, point = self.chosen
        found = settings[point.setting] if point.setting >= 0 else method
        status = verdict(self.budget, point, self.before, self.ending)
        return Sparsified(small, self.largest, point, found, self.before, self.curve, status)

    def _climb(self, setting: Sparsifier, number: int, rng: np.random.Generator, until: float) -> None:
        """Look at the last predictor of every rung of the ladder, and at the last of all."""
        waiting, rungs = None, _rungs()
        rung = next(rungs)
        for small in setting.sequence(self.teacher, self._most(), rng):
            if small.size > rung:
                if waiting is not None:
                    self._look(waiting, number)
                    if self.ending is not None:
                        return
                while rung < small.size:
                    rung = next(rungs)
            if not self._fits(small):
                break
            waiting = small
            if self._over() or time.perf_counter() > until:
                break
        if waiting is not None:
            self._look(waiting, number)

    def _look(self, small: Small, number: int) -> None:
        """Measure a predictor, and keep it if it is the best so far."""
        if not (np.isfinite(small.coefficients).all() and math.isfinite(small.bias)):
            return
        values = self.across.values(small)
        point = self._entry(small.size, self._n_bytes(small), self._own_values(small), values, number)
        self.curve.append(point)
        key = self.budget.rank(point, self.before)
        if self.chosen is None or key < self.chosen[0]:
            self.chosen = key, small, point
        if small.size > self.largest.size:
            self.largest = small
        asked = [watcher(point) for watcher in self.watchers]
        if any(asked):
            self.ending = "interrupted", "stopped by an observer"

    def _entry(self, size: int, n_bytes: int, own: np.ndarray, held: np.ndarray, number: int) -> Point:
        problem = self.teacher.problem
        return Point(
            size, n_bytes, weighted_error(own, problem.labels, problem.costs), self.holdout.error(held),
            self.demand.shortfall(own),
            self.teacher.gram.evaluations - self.counted_before + self.across.evaluations,
            time.perf_counter() - self.begin, number,
        )  # fmt: skip

    def _own_values(self, small: Small) -> np.ndarray:
        """f of the training rows."""
        if small.ids is None:
            return small.model(self.teacher).decision_values(self.teacher.given)
        beta = np.bincount(small.ids, small.coefficients, minlength=self.teacher.gram.n_rows)
        return self.teacher.gram.times(beta) + small.bias

    def _most(self) -> int:
        """Vectors to ask for: never more than the dense predictor has, or the rows that are offered."""
        offered = 0 if self.teacher.offered is None else self.teacher.offered.size
        most = max(self.teacher.model.n_support, offered)
        return most if self.budget.max_support is None else min(most, int(self.budget.max_support))

    def _fits(self, small: Small) -> bool:
        limit = self.budget.max_bytes
        return small.size <= self._most() and (limit is None or self._n_bytes(small) <= limit)

    def _n_bytes(self, small: Small) -> int:
        if small.ids is None:
            return small.model(self.teacher).n_bytes
        return bytes_of(self.teacher, small.ids, 1)

    def _deadline(self) -> float:
        return math.inf if self.budget.max_time is None else self.begin + self.budget.max_time

    def _over(self) -> bool:
        """Whether to end here, for whatever reason."""
        if self.ending is None and self.stop.is_set():
            self.ending = "interrupted", "interrupted"
        if self.ending is None and time.perf_counter() > self._deadline():
            assert self.budget.max_time is not None
            self.ending = "max_time", f"time limit of {seconds_text(self.budget.max_time)}"
        return self.ending is not None


def verdict(budget: Budget, point: Point, before: Point, ending: tuple[str, str] | None) -> Status:
    """Why the search ended, and with what."""
    code, words = ending or ("chosen", "")
    if ending is None and not budget.allows(point, before):
        code, words = "missed", f"no error is within {budget.max_error_increase:.2%} of the dense predictor's"
    return Status(code, f"{words}: {describe(point, before)}" if words else describe(point, before))


def describe(point: Point, before: Point) -> str:
    """Errors and sizes of the small and the dense predictor."""
    vectors = counted(point.support, "support vector")
    return f"holdout error {point.holdout_error:.2%} with {vectors}, {before.holdout_error:.2%} with {before.support}"


def bytes_of(teacher: Teacher, ids: np.ndarray, lines: int) -> int:
    """What the numbers of a model with these training rows take, with so many coefficients for each."""
    if teacher.precomputed:
        return 8 * lines + ids.size * (8 * lines + 8)
    rows = teacher.gram.points.rows if teacher.table is None else teacher.table
    item, more = rows.dtype.itemsize, 8 * lines + 8
    if isinstance(rows, CSRRows):
        entries = int((rows.indptr[ids + 1] - rows.indptr[ids]).sum())
        return 8 * lines + entries * (item + 4) + 8 + ids.size * (more + 8)
    return 8 * lines + ids.size * (rows.n_columns * item + more)


def _rungs() -> Iterator[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, 23, .."""
    yield 0
    size, exact = 0, 1.0
    while True:
        if math.ceil(exact - _ROUNDING) > size:
            size = math.ceil(exact - _ROUNDING)
            yield size
        exact *= _RUNG
