"""``partial_fit``: learning from blocks of rows that come and go, each presented once.

Problem    that of all rows seen so far,  min over w of  lambda ||w||^2 / 2 + the mean of l(y_i <w, x_i>),  with
           lambda = 1 / (C n) after n rows (n their weights summed): C means what it means in ``fit``.
Update     a block is cut into pieces at random; a piece of m rows stands for all n seen so far, so that its costs are
           C n / m. A solver that streams presents each of its rows once, with steps near
           eta = min(C, 1 / (R^2 sqrt(1 + n / 10,000))),  R^2 the mean ||x||^2 so far:
           no step is so long that it throws an example far beyond its margin, and they shrink slowly.
Model      the iterates after the pieces, averaged with weights that grow with n to the third power: early ones fade.
State      per output w and its average; n and the sum of ||x||^2. Nothing of the rows is kept.
Certificate  C5 for the problem of the latest call's rows, with the lambda of all: the slopes met give the direction of
           its dual point. It is true, but the optimum of that problem fits those rows alone, so that the gap does not
           go to zero. The primal value is what the model makes of the latest rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from slackwater.data.labels import LabelMap
from slackwater.models import LinearModel
from slackwater.objective import (
    Certificate,
    DirectionPoint,
    LinearProblem,
    certify,
    linear_problem,
    loss_family,
    loss_name,
    parse_loss,
)
from slackwater.objective.certificate import primal_value
from slackwater.rows import as_rows, packed, sqnorms, take
from slackwater.solvers.contract import Solver, UnsupportedError, require
from slackwater.solvers.registry import make_solver, solver_classes
from slackwater.training import History, Run, Status
from slackwater.training.stopping import counted

_MOST_PIECES, _FEWEST_ROWS = 16, 64  # of a block, in a piece
_STEADY = 10_000.0  # rows after which steps have shrunk by the root of 2
_FADING = 3.0

_FIXED = ("C", "loss", "solver", "solver_options", "fit_intercept", "intercept_scaling")


class _Output(NamedTuple):
    """The iterate and the average of one binary problem."""

    w: np.ndarray
    average: np.ndarray


@dataclass(frozen=True)
class Stream:
    """What goes on from call to call."""

    classes: np.ndarray
    fixed: dict[str, Any]  # the parameters that must not change on the way
    seed: int
    scale: float  # of the constant feature
    outputs: tuple[_Output, ...]
    calls: int = 0
    rows: int = 0
    seen: float = 0.0  # the weights of all rows
    squares: float = 0.0  # weighted ||x||^2 of all rows
    counts: np.ndarray | float = 0.0  # the rows of each class, by their own weights

    @property
    def positives(self) -> list[int]:
        """The class on the positive side of each binary problem."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))


class Streaming:
    """Gives ``LinearSVC`` its ``partial_fit``."""

    def partial_fit(self: Any, X, y, classes=None, sample_weight=None):
        """Go on learning from new rows, each presented once in random order; earlier rows are not needed any more.

        The first call needs ``classes``, all labels that will ever come, unless a ``fit`` has shown them. Balanced
        class weights are those of the rows seen so far. The model approaches the optimum of all rows
        seen so far, C being the cost of each. ``certificate_`` holds for the rows of this call as they stand for all
        seen so far: it is true and loose. ``solver`` must be one that streams; "auto" takes one. ``tol`` and the
        limits have no part in this. A stream begins at w = 0 after a ``fit`` too, and ``fit`` ends it.
        """
        self._check_parameters()
        _check_streamable(self)
        stream = getattr(self, "_stream", None)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", multi_output=False, reset=stream is None
        )  # fmt: skip
        check_classification_targets(y)
        known = _classes(stream.classes if stream is not None else getattr(self, "classes_", None), stream, classes)
        labels = LabelMap(known, _codes(known, y))
        own = _own_weights(X, sample_weight)
        counts = (stream.counts if stream is not None else 0.0) + np.bincount(labels.codes, own, len(known))
        weights = _weights(self.class_weight, known, labels.codes, own, counts)
        solver = _solver(self)
        problem = _problem(self, packed(as_rows(X)), labels.signs(1), weights, None if stream is None else stream.scale)
        stream = stream or _begun(self, known, problem)
        labels = LabelMap(known, labels.codes[weights > 0.0])
        stream, runs = _gone_on(replace(stream, counts=counts), solver, problem, labels)
        self._stream, self.solver_, self.classes_ = stream, solver.name, known
        self.solver_reason_ = "chosen by the caller" if self.solver != "auto" else "learns from streams"
        self._keep_certificates(runs)
        self._keep_model(runs, known, loss_name(parse_loss(self.loss)))
        self.coef_, self.intercept_ = self.model_.coef, self.model_.intercept
        return self


# ----------------------------------------------------------------------------------------------------- the checks


def _check_streamable(svm: Any) -> None:
    if svm.multi_class != "ovr" or getattr(svm, "penalty", "l2") != "l2":
        raise UnsupportedError("partial_fit treats multi_class='ovr' with the penalty 'l2' only")
    stream = getattr(svm, "_stream", None)
    for name, value in (stream.fixed if stream is not None else {}).items():
        if getattr(svm, name) != value:
            raise ValueError(f"{name} has changed since the first call of partial_fit; fit begins anew")


def _classes(known: np.ndarray | None, stream: Stream | None, classes: Any) -> np.ndarray:
    if classes is None:
        if known is None:
            raise ValueError("classes must be given in the first call of partial_fit: all labels that will ever come")
        return known
    given = np.unique(np.asarray(classes))
    if given.size < 2:
        raise ValueError(f"classes must hold at least two labels, got {given.tolist()}")
    if stream is not None and not np.array_equal(given, stream.classes):
        raise ValueError("classes must be those of the first call of partial_fit, or None")
    return given


def _codes(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    return LabelMap(classes, np.empty(0, dtype=np.int64)).encode(y)


def _own_weights(X, sample_weight) -> np.ndarray:
    if sample_weight is None:
        return np.ones(X.shape[0])
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def _weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, own: np.ndarray, counts) -> np.ndarray:
    """With those of the classes; balanced ones give every class seen so far the same total."""
    if class_weight is None:
        return own
    if class_weight == "balanced":
        of_class = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, np.finfo(float).tiny))
    else:
        of_class = compute_class_weight(class_weight, classes=classes, y=classes)
    return own * of_class[codes]


def _solver(svm: Any) -> Solver:
    """The solver, which must stream and treat loss and intercept."""
    bias, family = svm._bias(), loss_family(parse_loss(svm.loss))
    name = svm.solver
    if name == "auto":
        name = "svm-sgd" if bias == "free" else "sgd-s" if family == "hinge" else "pegasos"
    solver = make_solver(name, **(svm.solver_options or {}))
    if not solver.streams:
        able = [other for other, cls in solver_classes("classification").items() if cls.streams]
        raise UnsupportedError(f"solver {name!r} does not learn from streams; solvers that can: {', '.join(able)}")
    require(solver, "losses", family, "loss")
    require(solver, "biases", bias, "bias")
    return solver


def _problem(svm: Any, rows, signs: np.ndarray, weights: np.ndarray, scale: float | None) -> LinearProblem:
    """The rows of a call, with C on each; those of weight zero are left out."""
    scale = svm._bias_scale() if scale is None else scale or None
    return linear_problem(rows, signs, parse_loss(svm.loss), svm.C, weights, svm._bias(), scale)


# ----------------------------------------------------------------------------------------------------- the stream


def _begun(svm: Any, classes: np.ndarray, problem: LinearProblem) -> Stream:
    outputs = 1 if len(classes) == 2 else len(classes)
    zero = _Output(np.zeros(problem.n_weights), np.zeros(problem.n_weights))
    fixed = {name: getattr(svm, name) for name in _FIXED}
    seed = int(check_random_state(svm.random_state).randint(2**31))
    return Stream(classes, fixed, seed, problem.rows.bias, (zero,) * outputs)


def _gone_on(stream: Stream, solver: Solver, block: LinearProblem, labels: LabelMap) -> tuple[Stream, list[Run]]:
    """The stream after a block, and what there is to say of each output."""
    C, norms = stream.fixed["C"], np.empty(block.n_rows)
    sqnorms(block.rows, norms)
    after = replace(
        stream,
        calls=stream.calls + 1,
        rows=stream.rows + block.n_rows,
        seen=stream.seen + float(block.costs.sum()) / C,
        squares=stream.squares + float(block.costs @ norms) / C,
    )
    words = f"{counted(after.rows, 'row')} seen in {counted(after.calls, 'call')} of partial_fit"
    outputs, runs = [], []
    for number, positive in enumerate(stream.positives):
        problem = replace(block, labels=labels.signs(positive))
        rng = np.random.default_rng((stream.seed, number, stream.calls))
        output, slopes = _presented(stream, solver, problem, norms, stream.outputs[number], rng)
        standing = _standing_for(problem, C * after.seen)
        certificate = _certified(standing, output.average, DirectionPoint(standing.costs * slopes))
        model = LinearModel.from_weights(output.average, problem.rows.bias)
        outputs.append(output)
        runs.append(Run(model, certificate, Status("streaming", words), History(), None, after.calls, after.calls))
    return replace(after, outputs=tuple(outputs)), runs


def _presented(
    stream: Stream, solver: Solver, block: LinearProblem, norms: np.ndarray, output: _Output, rng: np.random.Generator
) -> tuple[_Output, np.ndarray]:
    """Every row of the block presented once, a piece at a time; the slopes that they had."""
    C, (w, average) = stream.fixed["C"], output
    seen, squares, slopes, average = stream.seen, stream.squares, np.empty(block.n_rows), average.copy()
    for ids in _pieces(block, rng):
        costs = block.costs[ids]
        piece = replace(block, rows=take(block.rows, ids), labels=block.labels[ids], costs=costs)
        size = float(costs.sum()) / C
        seen, squares = seen + size, squares + float(costs @ norms[ids]) / C
        # lambda eta = 1 / clock
        clock = seen * max(1.0, C * squares / seen * math.sqrt(1.0 + seen / _STEADY))
        w, slopes[ids] = solver.present_once(_standing_for(piece, C * seen), rng, w, max(1, round(clock)))
        average += min(1.0, (_FADING + 1.0) * size / (seen + _FADING * size)) * (w - average)
    return _Output(w, average), slopes


def _pieces(block: LinearProblem, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows in random order, in pieces worth an average of their own: not cheaper than a vector of weights."""
    most = min(block.n_rows // _FEWEST_ROWS, block.rows.n_entries // block.n_weights, _MOST_PIECES)
    return np.array_split(rng.permutation(block.n_rows), max(1, most))


def _standing_for(problem: LinearProblem, total: float) -> LinearProblem:
    """The costs scaled to this sum: lambda = 1 / total."""
    return replace(problem, costs=problem.costs * (total / problem.costs.sum()))


def _certified(problem: LinearProblem, weights: np.ndarray, point: DirectionPoint) -> Certificate:
    """For these very weights: a free bias is where the stream has put it, not where it suits these rows best."""
    found = certify(problem, weights, point).certificate
    if problem.bias != "free":
        return found
    regularised = primal_value(replace(problem, bias="penalised"), weights)
    return replace(found, primal=regularised - 0.5 * problem.regularisation * float(weights[-1]) ** 2)
