"""What estimators with kernels share: the kernel's parameters, the kernel matrix by rows, the support vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.estimators.callbacks import FitTask
from slackwater.estimators.certified import Certified, Part
from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.objective import BiasKind, Problem
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel, parse_kernel
from slackwater.rows import DenseRows, as_matrix, take
from slackwater.solvers.contract import Solver
from slackwater.training import Limits, Run

_Facts = Callable[[Sequence[Run]], dict[str, Any]]

_SMALL = 2**23  # entries of a kernel matrix that is small enough to be kept in float64


class WithKernel(Certified):
    """Base of the estimators with kernels; subclasses have the parameters that its methods read."""

    n_jobs = None  # threads work on each problem, not on several
    _duals: Any  # of the last fit, as shares of the costs, for a warm start

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def support_vectors_(self):
        """The support vectors, those of a classifier grouped by class."""
        check_is_fitted(self)
        return as_matrix(self.model_.vectors)

    @property
    def coef_(self):
        """The weights of the linear kernel, a line per problem."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists for the linear kernel only")
        check_is_fitted(self)
        return self.model_.primal_weights()

    def _limits(self, **more: int | None) -> Limits:
        return super()._limits(max_kernel_evaluations=self.max_kernel_evaluations, **more)

    def _bias(self) -> BiasKind:
        kinds: dict[Any, BiasKind] = {True: "free", "free": "free", "penalised": "penalised", False: "none"}
        if not isinstance(self.fit_intercept, bool | np.bool_ | str) or self.fit_intercept not in kinds:
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not known; it is True, 'penalised' or False")
        return kinds[self.fit_intercept]

    def _formats(self) -> Any:
        return False if self.kernel == "precomputed" else "csr"

    def _values(self, X) -> np.ndarray:
        """The model's decision values."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=self._formats(), dtype="numeric", reset=False)
        return self.model_.decision_values(X)

    def _fit_one(self, fit: OneProblem, solver: Solver, limits: Limits, task: FitTask | None, facts: _Facts) -> None:
        """Train the one problem of a fit and keep all there is to know of it; ``facts`` go into a saved model."""
        start = self._duals if self.warm_start and hasattr(self, "_duals") else None
        trained = self._train([Part("training", fit.problem, start)], solver, limits, task)
        self._keep_certificates(trained.runs)
        self.__dict__.update(fit.reported(trained.runs[0].model, facts(trained.runs)))
        self.kernel_evaluations_ = fit.gram.evaluations
        self.__dict__.pop("_duals", None)
        if self.warm_start:
            self._duals = trained.shares[0]
        if task is not None:
            task.end()

    def _check_square(self, X) -> None:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs the square kernel matrix of the training rows, got {X.shape}")


class Rows:
    """The rows of a fit with their kernel: those of weight 0 are left out of the kernel matrix."""

    def __init__(self, svm: Any, rows: Any, weights: np.ndarray | None, repeats: np.ndarray | None) -> None:
        if weights is not None and not weights.any():
            raise ValueError("every sample weight is zero: nothing to learn from")
        self.rows, self.weights, self.room = rows, weights, cache_bytes(svm.cache_mb)
        self.shift = 1.0 if svm._bias() == "penalised" else 0.0
        self.kernel: Kernel = parse_kernel(svm.kernel, rows, svm.gamma, svm.degree, svm.coef0, repeats)
        self.kept = None if weights is None or (weights > 0.0).all() else np.flatnonzero(weights > 0.0)

    def gram(self, ids: np.ndarray | None) -> Gram:
        """The kernel matrix of some rows, or of all."""
        return gram_of(self.rows, ids, self.kernel, self.shift, self.room)

    def vectors(self, support: np.ndarray) -> Any:
        """The rows of the support vectors, as a model keeps them."""
        if self.kernel.name == "precomputed":
            return DenseRows(np.zeros((support.size, 0)), 0.0)
        return take(self.rows, support)


class OneProblem(ABC):
    """The data of a fit that is one problem, and the kernel matrix behind them; subclasses make the problem."""

    model_class: type[KernelModel] = KernelModel
    gram: Gram

    def __init__(self, data: Rows, classes: np.ndarray | None = None) -> None:
        self.data, self.classes = data, classes

    def problem(self) -> Problem:
        """The one problem."""
        data = self.data
        self.gram = data.gram(data.kept)
        ids = slice(None) if data.kept is None else data.kept
        return self.over(self.gram, ids, None if data.weights is None else data.weights[ids])

    @abstractmethod
    def over(self, gram: Gram, ids: Any, weights: np.ndarray | None) -> Problem:
        """The problem over the kernel matrix of the rows ``ids``, with their weights."""

    def reported(self, found: Any, meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """The attributes that show what has been learnt."""
        data = self.data
        support = found.support if data.kept is None else data.kept[found.support]
        model = self.model_class(
            data.kernel, data.vectors(support), found.coef, found.intercept, support, self.classes, None, data.shift,
            meta or {},
        )  # fmt: skip
        return {
            "model_": model, "support_": support, "n_support_": np.array([support.size], dtype=np.int32),
            "dual_coef_": model.coef, "intercept_": model.intercept,
        }  # fmt: skip


def gram_of(rows: Any, ids: np.ndarray | None, kernel: Kernel, shift: float, room: int) -> Gram:
    """The kernel matrix of some rows, or of all; in float64 where the data are and it is small."""
    if ids is not None and kernel.name == "precomputed":
        rows = DenseRows(rows.values[np.ix_(ids, ids)], 0.0)
    elif ids is not None:
        rows = take(rows, ids)
    exact = rows.dtype == np.float64 and rows.n_rows**2 <= _SMALL
    return Gram(Points.of(rows, kernel, np.float64 if exact else np.float32, shift), room)


def repeats_of(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """How often rows count for gamma="scale"; None for once each."""
    if sample_weight is None:
        return None
    return np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n_rows)
