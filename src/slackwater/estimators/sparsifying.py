"""sparsify: from a fitted kernel classifier to one with few support vectors, chosen on rows that are kept back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state, column_or_1d

from slackwater.data.labels import LabelMap
from slackwater.estimators.dense_models import Dense, dense_of
from slackwater.estimators.kernel_face import gram_of
from slackwater.estimators.weights import example_weights
from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.models.kernel import pairs_of
from slackwater.models.several import Frame, Output, outputs_of
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.rows import CSRRows, DenseRows, as_rows, take
from slackwater.sparsify.contract import Sparsifier, Teacher
from slackwater.sparsify.curve import Curve, Point
from slackwater.sparsify.driver import Budget, Watcher
from slackwater.sparsify.driver import sparsify as search
from slackwater.sparsify.holdout import Across, Holdout
from slackwater.sparsify.registry import make_sparsifier
from slackwater.sparsify.several import Built, Measure, Part, sparsify_together
from slackwater.training import Screen
from slackwater.training.stopping import Status, counted, is_number

_SHARE_FOR_ROWS = 0.25  # of the memory for kernel rows, that copies of the rows for all pairs may take


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A small model and what it was chosen from.

    ``curve`` holds a point for every predictor that was looked at, ``curve.front()`` those that are worth having;
    ``point`` is the model's own, ``before`` the dense one's. ``settings`` are those of the method that were best.
    """

    model: KernelModel
    point: Point
    before: Point
    curve: Curve
    method: str
    settings: Mapping[str, Any]
    status: Status

    @property
    def n_support(self) -> int:
        return self.model.n_support

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x), one value for each output of the model."""
        return self.model.decision_values(_table(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row."""
        return self.model.predict(_table(X))


def sparsify(
    model: Any,
    X: Any,
    y: Any,
    *,
    method: str | Sparsifier = "slant-aggressive",
    method_options: Mapping[str, Any] | None = None,
    max_support: int | None = None,
    max_bytes: int | None = None,
    max_error_increase: float | None = None,
    max_time: float | None = None,
    validation: Any = 0.2,
    sample_weight: Any = None,
    cache_mb: Any = "auto",
    random_state: Any = None,
    watchers: Sequence[Watcher] = (),
    verbose: int = 0,
) -> SparseModel:
    """A small model that predicts like ``model``, learnt from its training rows ``X``, ``y``.

    Parameters
    ----------
    model : a fitted ``SVC``, scikit-learn's too, or a ``KernelModel``; of two classes or several.
    method : a name from ``slackwater.sparsify.registry.sparsifiers()``. Its published settings are tried, unless
        ``method_options`` say which to take.
    max_support, max_bytes : support vectors, or bytes of the model's numbers. Of several classes, which share their
        vectors, these count once. A model that is small enough already is kept.
    max_error_increase : take the smallest model whose error on the rows kept back is at most that much higher, 0.01 for
        one in a hundred. Without it the fewest errors within the limits decide.
    max_time : seconds; then, and after Ctrl-C, the best so far is returned.
    validation : the share of the rows to keep back, or a pair (X, y) of others. A dense model that was trained on all
        rows has seen those kept back, so its own error there is too small; give others where that matters.
    sample_weight : what each row's error counts. Class weights are those of ``model``.
    watchers : functions that are told every ``Point``; True from one of them ends the search.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from slackwater import SVC, sparsify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> svm = SVC(gamma=0.01, C=10.0).fit(X, y)
    >>> small = sparsify(svm, X, y, max_support=10, random_state=0)
    >>> small.n_support <= 10 < svm.model_.n_support
    True
    """
    budget = Budget(max_support, max_bytes, max_error_increase, max_time)
    sparsifier = method if isinstance(method, Sparsifier) else make_sparsifier(method, **(method_options or {}))
    settings = [sparsifier] if method_options or isinstance(method, Sparsifier) else None
    dense = dense_of(model)
    examples = Examples.of(dense, X, y, sample_weight, validation, check_random_state(random_state))
    task = _Task(dense, examples, cache_bytes(cache_mb))
    with ExitStack() as stack:
        if verbose:
            watchers = [*watchers, _Line(sparsifier.name, stack.enter_context(Screen()))]
        seed = int(check_random_state(random_state).randint(2**31))
        return task.run(sparsifier, settings, budget, seed, watchers)


class Examples(NamedTuple):
    """All rows, the number of each one's class and what it counts; which to learn from and which to choose on."""

    rows: DenseRows | CSRRows
    codes: np.ndarray
    weights: np.ndarray
    fit: np.ndarray
    held_rows: DenseRows | CSRRows
    held_codes: np.ndarray
    held_weights: np.ndarray

    @classmethod
    def of(cls, dense: Dense, X, y, sample_weight, validation, random) -> Examples:
        """Checked, and split."""
        rows, codes, weights = _labelled(dense, X, y, sample_weight)
        if dense.model.kernel.name == "precomputed" and rows.n_rows != rows.n_columns:
            raise ValueError(f"kernel='precomputed' needs the square kernel matrix of the training rows, got "
                             f"{rows.n_rows} rows of {rows.n_columns} columns")  # fmt: skip
        counting = np.flatnonzero(weights > 0.0)
        if counting.size == 0:
            raise ValueError("every sample weight is zero: nothing to learn from")
        if isinstance(validation, tuple | list):
            if len(validation) != 2:
                raise ValueError(f"validation must be a share or a pair (X, y), got {len(validation)} things")
            return cls(rows, codes, weights, counting, *_labelled(dense, validation[0], validation[1], None))
        if not (is_number(validation) and 0.0 <= validation < 1.0):
            raise ValueError(f"validation must be a share of at least 0 and below 1, or (X, y), got {validation!r}")
        fit, held = _split(counting, codes, float(validation), random)
        return cls(rows, codes, weights, fit, take(rows, held), codes[held], weights[held])


class _Task:
    """The binary problems behind a model, and its small version put together from theirs."""

    def __init__(self, dense: Dense, examples: Examples, room: int) -> None:
        self.dense, self.examples, self.room = dense, examples, room
        self.model = dense.model
        self.paired = self.model.blocks is not None
        self.frame = Frame(
            self.model.kernel, self.model.shift, dense.classes, examples.codes, self.paired, self._vectors
        )
        self.outputs = outputs_of(self.model)
        missing = np.setdiff1d(np.arange(len(dense.classes)), examples.codes[examples.fit])
        if missing.size and len(self.outputs) > 1:
            raise ValueError(f"y holds no row of class {dense.classes[missing[0]]}, which the model knows")

    def run(self, method: Sparsifier, settings, budget: Budget, seed: int, watchers) -> SparseModel:
        """Search, unless there is nothing to be done."""
        if small_enough(self.model, budget):
            return self._kept(method)
        if len(self.outputs) == 1:
            rows = self.examples.fit
            teacher, holdout, _ = self._built(1, rows, *self._base(rows, self.room))
            found = search(teacher, method, holdout, budget, settings=settings, rng=seed, watchers=watchers)
            small = found.small
            model = small.model(teacher)
            if small.ids is not None:
                model = self.frame.together([Output(rows[small.ids], small.coefficients, small.bias)])
            return self._told(replace(model, classes=self.model.classes), found)
        together = sparsify_together(
            self._parts(), Measure(self.frame.together, self._errors, self.model), method, budget, settings=settings,
            seed=seed, watchers=watchers, stop=threading.Event(),
        )  # fmt: skip
        return self._told(together.model, together)

    def _parts(self) -> list[Part]:
        """A problem for every output; those against the rest share a kernel matrix and the holdout's values."""
        fit, codes = self.examples.fit, self.examples.codes
        if not self.paired:
            base = self._base(fit, self.room)
            across = self._built(0, fit, *base).across
            return [Part(fit, partial(self._built, number, fit, *base, across)) for number in range(len(self.outputs))]
        pairs = pairs_of(len(self.dense.classes))
        copies = (len(self.dense.classes) - 1) * self.examples.rows.n_entries * self.examples.rows.dtype.itemsize
        kept = copies <= _SHARE_FOR_ROWS * self.room
        room = self.room // len(pairs) if kept else self.room

        def part(number: int) -> Part:
            rows = fit[np.isin(codes[fit], pairs[number])]
            return Part(rows, lambda: self._built(number, rows, *self._base(rows, room)), kept)

        return [part(number) for number in range(len(pairs))]

    def _base(self, rows: np.ndarray, room: int) -> tuple[Gram, DenseRows | CSRRows]:
        """The kernel matrix of some rows, and these rows."""
        everything, model = self.examples.rows, self.model
        table = everything if rows.size == everything.n_rows else take(everything, rows)
        precomputed = model.kernel.name == "precomputed"
        source, ids = (everything, rows) if precomputed else (table, None)
        return gram_of(source, ids, model.kernel, model.shift, room), table

    def _built(
        self, number: int, rows: np.ndarray, gram: Gram, table: DenseRows | CSRRows, across: Across | None = None
    ) -> Built:
        """The problem of one output on some of the rows; of two classes the second is positive."""
        examples, dense, output = self.examples, self.dense, self.outputs[0 if len(self.outputs) == 1 else number]
        pair = pairs_of(len(dense.classes))[number] if self.paired else None
        positive = pair[0] if pair else number
        signs = np.where(examples.codes[rows] == positive, 1.0, -1.0)
        problem = kernel_problem(gram, signs, dense.loss, dense.C, examples.weights[rows], dense.bias)
        norm, columns = (self._norm(output), rows) if output.kernel.name == "precomputed" else (None, None)
        teacher = Teacher(output, problem, table, norm, columns)
        held, codes, weights = self._held(pair)
        if not codes.size or not weights.any():
            held, codes, weights = table, examples.codes[rows], examples.weights[rows]
        holdout = Holdout(held, np.where(codes == positive, 1.0, -1.0), weights)
        return Built(teacher, holdout, across or Across(teacher, held))

    def _held(self, pair: tuple[int, int] | None) -> tuple[DenseRows | CSRRows, np.ndarray, np.ndarray]:
        """The rows kept back, or those of two classes."""
        rows, codes, weights = self.examples[-3:]
        if pair is None:
            return rows, codes, weights
        ids = np.flatnonzero(np.isin(codes, pair))
        return take(rows, ids), codes[ids], weights[ids]

    def _norm(self, output: KernelModel) -> float:
        """||w||^2 of a precomputed kernel."""
        own = output.decision_values(take(self.examples.rows, output.support)) - output.intercept[0]
        return float(output.coef[0] @ own)

    def _vectors(self, support: np.ndarray) -> Any:
        rows = self.examples.rows
        if self.model.kernel.name == "precomputed":
            return DenseRows(np.zeros((support.size, 0), dtype=rows.dtype), 0.0)
        return take(rows, support)

    def _errors(self, model: KernelModel) -> tuple[float, float]:
        """The weighted shares of wrong classes among the training rows and among those kept back."""
        examples = self.examples
        fit = examples.fit
        train = _error(model, take(examples.rows, fit), self.dense.classes[examples.codes[fit]], examples.weights[fit])
        if not examples.held_codes.size:
            return train, train
        held = self.dense.classes[examples.held_codes]
        return train, _error(model, examples.held_rows, held, examples.held_weights)

    def _told(self, model: KernelModel, found: Any) -> SparseModel:
        """With the facts of the search."""
        settings = found.method.settings()
        facts = {k: v for k, v in self.model.meta.items() if k not in ("certificates", "statuses")}
        facts["sparsified"] = {
            "method": found.method.name, "settings": settings, "status": found.status.sentence,
            "support_before": found.before.support, "holdout_error_before": found.before.holdout_error,
            "holdout_error": found.point.holdout_error,
        }  # fmt: skip
        named = replace(model, meta=facts)
        return SparseModel(
            named, found.point, found.before, found.curve, found.method.name, settings, found.status
        )  # fmt: skip

    def _kept(self, method: Sparsifier) -> SparseModel:
        """The dense model as it is."""
        train, held = self._errors(self.model)
        point = Point(self.model.n_support, self.model.n_bytes, train, held, np.nan, 0, 0.0, -1)
        vectors = counted(self.model.n_support, "support vector")
        status = Status("kept", f"small enough already: {vectors}, holdout error {held:.2%}")
        return SparseModel(self.model, point, point, Curve([point]), method.name, method.settings(), status)


def small_enough(model: KernelModel, budget: Budget) -> bool:
    """Whether limits of size are all that was asked for, and the model keeps them."""
    if budget.max_error_increase is not None or (budget.max_support is None and budget.max_bytes is None):
        return False
    fits = budget.max_support is None or model.n_support <= budget.max_support
    return fits and (budget.max_bytes is None or model.n_bytes <= budget.max_bytes)


class _Line:
    """The progress line."""

    def __init__(self, label: str, screen: Screen) -> None:
        self.label, self.screen = label, screen

    def __call__(self, point: Point) -> None:
        text = f"{counted(point.support, 'vector')}, holdout error {point.holdout_error:.2%}, {point.seconds:.1f} s"
        self.screen.show(self.label, text)


def _error(model: KernelModel, rows: Any, labels: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(model.predict(rows) != labels, weights=weights))


def _table(X: Any) -> Any:
    if isinstance(X, DenseRows | CSRRows):
        return X
    return as_rows(check_array(X, accept_sparse="csr", dtype="numeric"))


def _labelled(dense: Dense, X, y, sample_weight) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows, the numbers of their classes, and their weights times those of their classes."""
    rows, labels = _table(X), column_or_1d(np.asarray(y), warn=True)
    if labels.size != rows.n_rows:
        raise ValueError(f"X has {counted(rows.n_rows, 'row')}, y {counted(labels.size, 'label')}")
    model = dense.model
    if model.kernel.name != "precomputed" and rows.n_columns != model.n_columns:
        raise ValueError(f"X has {rows.n_columns} columns, but the model was fitted on {model.n_columns}")
    map_of = LabelMap(dense.classes, np.empty(0, dtype=np.int64))
    known = replace(map_of, codes=map_of.encode(labels))
    weights = example_weights(np.empty((labels.size, 1)), labels, known, sample_weight, dense.class_weight)
    return rows, known.codes, np.ones(labels.size) if weights is None else weights


def _split(counting: np.ndarray, codes: np.ndarray, share: float, random) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows kept back: so many of every class, but never its last one."""
    held = []
    for code in np.unique(codes[counting]):
        of_class = counting[codes[counting] == code]
        count = min(round(share * of_class.size), of_class.size - 1)
        held.append(random.permutation(of_class)[:count])
    kept_back = np.sort(np.concatenate(held))
    return np.setdiff1d(counting, kept_back), kept_back


__all__ = ["SparseModel", "small_enough", "sparsify"]
