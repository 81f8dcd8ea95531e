"""Several binary problems, one set of vectors: what one of them keeps costs the others nothing.

The problems take turns. Each may add its even share of the vectors that are still allowed, after what the others keep
has been offered to it. Then all coefficients are fitted again, each problem's on all vectors that it may use, and the
holdout decides between these and those of the method. The number of vectors doubles from round to round.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slackwater.models.kernel import KernelModel
from slackwater.models.several import Output
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.curve import Curve, Point
from slackwater.sparsify.demand import constant
from slackwater.sparsify.driver import Budget, Sparsified, Watcher, sparsify, verdict
from slackwater.sparsify.holdout import Across, Holdout
from slackwater.sparsify.refit import refit
from slackwater.training.stopping import Status, interruptible, seconds_text

_FIRST = 16  # vectors in the first round
_LEAST = 1e-3  # seconds
_SHARE = 0.25  # of the time, for choosing the settings


class Built(NamedTuple):
    """A problem with its kernel matrix."""

    teacher: Teacher
    holdout: Holdout
    across: Across

    @property
    def spent(self) -> dict[int, int]:
        """Kernel values computed, by whom."""
        return {id(where): where.evaluations for where in (self.teacher.gram, self.across)}


class Part:
    """One of the problems: the numbers of its rows among all training rows, and how it is built.

    It stays built if ``kept``. Otherwise memory is short, and it is built anew for every turn; what the teacher says of
    the rows is remembered.
    """

    def __init__(self, rows: np.ndarray, build: Callable[[], Built], kept: bool = True) -> None:
        self.rows, self.spent_before = rows, 0
        self._build, self._kept = build, kept
        self._built: Built | None = None
        self._known: dict[str, Any] = {}

    @property
    def built(self) -> Built | None:
        """As it is in memory."""
        return self._built

    def __enter__(self) -> Built:
        if self._built is None:
            self._built = self._build()
            self._built.teacher.__dict__.update(self._known)
        return self._built

    def __exit__(self, *error: object) -> None:
        assert self._built is not None
        teacher = self._built.teacher
        self._known = {"values": teacher.values, "squared_norm": teacher.squared_norm}
        if not self._kept:
            self.spent_before += sum(self._built.spent.values())
            self._built = None


class Measure(NamedTuple):
    """How a model of all outputs is put together and measured."""

    model: Callable[[Sequence[Output]], KernelModel]
    errors: Callable[[KernelModel], tuple[float, float]]  # on the training rows and on the holdout
    before: KernelModel


@dataclass(frozen=True, eq=False)
class SparsifiedTogether:
    """The chosen model of all outputs, as ``Sparsified`` tells of one."""

    model: KernelModel
    point: Point
    method: Sparsifier
    before: Point
    curve: Curve
    status: Status


def sparsify_together(
    parts: Sequence[Part],
    measure: Measure,
    method: Sparsifier,
    budget: Budget,
    *,
    settings: Sequence[Sparsifier] | None = None,
    seed: int = 0,
    watchers: Sequence[Watcher] = (),
    stop: threading.Event | None = None,
) -> SparsifiedTogether:
    """Choose among the rounds like ``driver.sparsify`` among predictors; the first problem chooses the settings."""
    if method.virtual:
        raise ValueError(
            f"method {method.name!r} makes vectors of its own, which problems of several classes cannot share; "
            "choose one whose vectors are training rows"
        )
    stop = stop or threading.Event()
    with interruptible(stop):
        return _Rounds(parts, measure, budget, watchers, stop).run(method, settings, seed)


class _Rounds:
    def __init__(self, parts, measure: Measure, budget: Budget, watchers, stop) -> None:
        self.parts, self.measure, self.budget = list(parts), measure, budget
        self.watchers, self.stop = watchers, stop
        self.begin = time.perf_counter()
        self.before = self._entry(measure.before, -1)
        self.curve = Curve()
        self.chosen: tuple[tuple, KernelModel, Point] | None = None
        self.ending: tuple[str, str] | None = None

    def run(self, method: Sparsifier, settings: Sequence[Sparsifier] | None, seed: int) -> SparsifiedTogether:
        most = self._most()
        self._look([self._constant(part) for part in self.parts])
        tried = self._settings(method, settings, most // len(self.parts), seed)
        limit, pool_before = min(most, _FIRST), -1
        while not self._over():
            smalls, pool = self._turns(tried, limit, seed)
            self._look(smalls)
            if pool.size and not self._over():
                self._look([self._refitted(part, pool) for part in self.parts])
            assert self.chosen is not None
            found = self.budget.max_error_increase is not None and self.chosen[0][0] == 0
            if found or limit >= most or pool.size <= pool_before:
                break
            limit, pool_before = min(most, 2 * limit), pool.size
        assert self.chosen is not None
        _, model, point = self.chosen
        status = verdict(self.budget, point, self.before, self.ending)
        return SparsifiedTogether(model, point, tried, self.before, self.curve, status)

    def _settings(self, method: Sparsifier, settings, share: int, seed: int) -> Sparsifier:
        """Those that are best for the first problem."""
        with self.parts[0] as (teacher, holdout, across):
            tried = list(method.grid(teacher) if settings is None else settings)
            if len(tried) == 1:
                return tried[0]
            seconds = None if self.budget.max_time is None else max(_LEAST, _SHARE * self._left())
            budget = Budget(max_support=share, max_time=seconds)
            return sparsify(
                teacher, method, holdout, budget, settings=tried, rng=seed, stop=self.stop, across=across
            ).method

    def _turns(self, method: Sparsifier, limit: int, seed: int) -> tuple[list[Small], np.ndarray]:
        """Every problem's best predictor, and the vectors of the largest ones: ``limit`` in all."""
        pool, smalls = np.empty(0, dtype=np.int64), []
        for number, part in enumerate(self.parts):
            left = len(self.parts) - number
            found = self._turn(part, method, pool, max(0, (limit - pool.size) // left), left, seed + number)
            smalls.append(found.small)
            assert found.small.ids is not None and found.largest.ids is not None
            ids = found.small.ids if np.setdiff1d(found.small.ids, found.largest.ids).size else found.largest.ids
            pool = np.union1d(pool, part.rows[ids])
        return smalls, pool

    def _turn(self, part: Part, method: Sparsifier, pool: np.ndarray, share: int, left: int, seed: int) -> Sparsified:
        """One problem's predictor, with ``share`` vectors that no other has."""
        offered = np.flatnonzero(np.isin(part.rows, pool)) if method.takes_offers else np.empty(0, dtype=np.int64)
        seconds = None if self.budget.max_time is None else max(_LEAST, self._left() / (left + 1))
        budget = Budget(max_support=offered.size + share, max_time=seconds)
        with part as (teacher, holdout, across):
            offering = replace(teacher, offered=offered)
            offering.__dict__.update(values=teacher.values, squared_norm=teacher.squared_norm)
            return sparsify(
                offering, method, holdout, budget, settings=[method], rng=seed, stop=self.stop, across=across
            )

    def _constant(self, part: Part) -> Small:
        with part as (teacher, _, _):
            return constant(teacher)

    def _refitted(self, part: Part, pool: np.ndarray) -> Small:
        ids = np.flatnonzero(np.isin(part.rows, pool))
        with part as (teacher, _, _):
            return refit(teacher, ids) if ids.size else Small(np.empty(0), teacher.bias, ids)

    def _look(self, smalls: Sequence[Small]) -> None:
        outputs = [
            Output(part.rows[small.ids], small.coefficients, small.bias)
            for part, small in zip(self.parts, smalls, strict=True)
        ]
        model = self.measure.model(outputs)
        bytes_allowed = math.inf if self.budget.max_bytes is None else self.budget.max_bytes
        if self.curve and (model.n_support > self._most() or model.n_bytes > bytes_allowed):
            return
        point = self._entry(model, len(self.curve))
        self.curve.append(point)
        key = self.budget.rank(point, self.before)
        if self.chosen is None or key < self.chosen[0]:
            self.chosen = key, model, point
        asked = [watcher(point) for watcher in self.watchers]
        if any(asked):
            self.ending = "interrupted", "stopped by an observer"

    def _entry(self, model: KernelModel, number: int) -> Point:
        counts: dict[int, int] = {}  # of matrices that several problems share once
        for part in self.parts:
            counts |= {} if part.built is None else part.built.spent
        spent = sum(counts.values()) + sum(part.spent_before for part in self.parts)
        train, held = self.measure.errors(model)
        seconds = time.perf_counter() - self.begin
        return Point(model.n_support, model.n_bytes, train, held, math.nan, spent, seconds, number)

    def _most(self) -> int:
        """Vectors allowed: what the dense model has, the limit, or what the limit of bytes has room for."""
        before, budget = self.measure.before, self.budget
        most = before.n_support
        if budget.max_bytes is not None and before.n_support:
            most = min(most, int(budget.max_bytes * before.n_support / before.n_bytes))
        return max(1, most if budget.max_support is None else min(most, int(budget.max_support)))

    def _left(self) -> float:
        assert self.budget.max_time is not None
        return self.begin + self.budget.max_time - time.perf_counter()

    def _over(self) -> bool:
        if self.ending is None and self.stop.is_set():
            self.ending = "interrupted", "interrupted"
        if self.ending is None and self.budget.max_time is not None and self._left() <= 0.0:
            self.ending = "max_time", f"time limit of {seconds_text(self.budget.max_time)}"
        return self.ending is not None
