"""SVC: kernel classifiers with scikit-learn's face, a certified problem for every pair of classes or every class."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.data.labels import LabelMap
from slackwater.estimators.certified import Certified, Part, Trained
from slackwater.estimators.weights import example_weights
from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.models.kernel import pairs_of, votes
from slackwater.objective import BiasKind, loss_name, parse_loss
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem, kernel_problem
from slackwater.objective.kernels import Kernel, parse_kernel
from slackwater.rows import DenseRows, as_matrix, as_rows, take
from slackwater.solvers.choice import choose_kernel
from slackwater.solvers.contract import Solver
from slackwater.solvers.registry import make_solver
from slackwater.training import Limits

_SMALL = 2**23  # entries of a kernel matrix that is small enough to be kept in float64


class _Binary(NamedTuple):
    """One of the problems of a fit: some rows, and the class on the positive side."""

    label: str
    ids: np.ndarray | None  # None for all rows
    positive: int


class SVC(ClassifierMixin, Certified):
    """Support vector classification with kernels, and with a certificate.

    Minimises ||w||^2 / 2 + C sum_i s_i loss(y_i f(x_i)), s_i the weights of examples and classes, until the certified
    relative gap is at most ``tol``. The kernel matrix is computed by rows, when they are needed, and kept while there
    is room; its values are float32, on small float64 data float64.

    Parameters
    ----------
    C : cost of errors.
    kernel : "rbf", "linear", "poly", "sigmoid", "laplacian", "chi2", "precomputed", or a function of two blocks.
    gamma : "scale", "auto" or a number. degree, coef0 : of the polynomial and the sigmoid kernel.
    loss : "hinge", "squared_hinge", "smoothed_hinge" or "huber".
    solver : a name from ``slackwater.solvers()``, or "auto". solver_options : its settings by name.
    tol : certified relative gap to reach, ``(primal - dual) / dual``.
    max_time : seconds for the whole fit. max_rounds : rounds for each binary problem. None: no limit.
    fit_intercept : True leaves the intercept out of the regulariser (as LIBSVM does), "penalised" regularises it, False
        goes without.
    class_weight : None, "balanced" or a dict from class to weight.
    multi_class : "ovo" trains a problem for every pair of classes, "ovr" one for each class against the rest.
    decision_function_shape : of more than two classes trained in pairs: "ovr" gives votes, "ovo" the pairs' values.
    cache_mb : megabytes for rows of the kernel matrix; "auto" takes half of the free memory.
    random_state : seed of what solvers draw.
    warm_start : begin at the dual solution of the last fit, if that was on as many rows of the same classes.
    certify_every : rounds between certificates; None draws them when the gap seems to be reached, and now and then.
    verbose : 1 shows a progress line with the gap.

    Attributes
    ----------
    certificate_, certificates_, status_, statuses_, history_, histories_, solver_, solver_reason_, n_iter_ : as those
        of ``LinearSVC``.
    support_, support_vectors_, dual_coef_, intercept_, n_support_, classes_, coef_ : as in scikit-learn.
    kernel_evaluations_ : kernel values computed. ``model_`` can be saved.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = SVC(gamma=0.001, tol=0.01).fit(X, y)
    >>> svm.certificate_.relative_gap <= 0.01
    True
    """

    n_jobs = None  # threads work on each problem, not on several

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        loss="hinge",
        solver="auto",
        solver_options=None,
        tol=1e-3,
        max_time=None,
        max_rounds=None,
        fit_intercept=True,
        class_weight=None,
        multi_class="ovo",
        decision_function_shape="ovr",
        cache_mb="auto",
        random_state=None,
        warm_start=False,
        certify_every=None,
        verbose=0,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.cache_mb = cache_mb
        self.random_state = random_state
        self.warm_start = warm_start
        self.certify_every = certify_every
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with labels ``y`` of any kind."""
        self._check_parameters()
        limits = self._limits()
        X, y = validate_data(self, X, y, accept_sparse=self._formats(), dtype="numeric", multi_output=False)
        check_classification_targets(y)
        labels = LabelMap.of(y)
        weights = example_weights(X, y, labels, sample_weight, self.class_weight)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs the square kernel matrix of the training rows, got {X.shape}")
        rows = as_rows(X)
        fit = _Fit(self, rows, labels, weights, sample_weight)
        self._keep(fit, self._runs(fit, self._solver(rows), limits))
        self._warn()
        return self

    def decision_function(self, X):
        """f(x): (n,) for two classes; for more (n, classes), or (n, pairs) where pairs' values are asked for."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=self._formats(), dtype="numeric", reset=False)
        values = self.model_.decision_values(X)
        if self.model_.blocks is None or self.decision_function_shape == "ovo":
            return values
        return votes(values, len(self.classes_))

    def predict(self, X):
        """The class of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=self._formats(), dtype="numeric", reset=False)
        return self.model_.predict(X)

    @property
    def support_vectors_(self):
        """The support vectors, grouped by class."""
        check_is_fitted(self)
        return as_matrix(self.model_.vectors)

    @property
    def coef_(self):
        """The weights of the linear kernel, a line per problem."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists for the linear kernel only")
        check_is_fitted(self)
        vectors, model = as_matrix(self.model_.vectors), self.model_
        if model.blocks is None:
            return np.asarray(model.coef @ vectors)
        ends = np.cumsum(model.blocks)
        of_class = [
            model.coef[:, end - size : end] @ vectors[end - size : end]
            for size, end in zip(model.blocks, ends, strict=True)
        ]
        return np.vstack([of_class[a][b - 1] + of_class[b][a] for a, b in pairs_of(len(self.classes_))])

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _formats(self) -> Any:
        return False if self.kernel == "precomputed" else "csr"

    def _bias(self) -> BiasKind:
        kinds: dict[Any, BiasKind] = {True: "free", "free": "free", "penalised": "penalised", False: "none"}
        if self.fit_intercept not in kinds:
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not known; it is True, 'penalised' or False")
        return kinds[self.fit_intercept]

    def _check_parameters(self) -> None:
        self._check_positive("C")
        if self.multi_class not in ("ovo", "ovr"):
            raise ValueError(f"multi_class={self.multi_class!r} is not known; the kinds are 'ovo' and 'ovr'")
        if self.decision_function_shape not in ("ovo", "ovr"):
            raise ValueError(
                f"decision_function_shape={self.decision_function_shape!r} is not known; it is 'ovo' or 'ovr'"
            )
        cache_bytes(self.cache_mb)

    def _solver(self, rows: Any) -> Solver:
        name, self.solver_reason_ = self.solver, "chosen by the caller"
        if name == "auto":
            name, self.solver_reason_ = choose_kernel(rows, parse_loss(self.loss), self._bias())
        self.solver_ = name
        return make_solver(name, **(self.solver_options or {}))

    def _runs(self, fit: _Fit, solver: Solver, limits: Limits) -> Trained:
        starts = self._starts(fit)

        def part(number: int) -> Part:
            return Part(fit.binaries[number].label, lambda: fit.problem(number), starts[number])

        return self._train([part(number) for number in range(len(fit.binaries))], solver, limits, None)

    def _starts(self, fit: _Fit) -> list[np.ndarray | None]:
        if self.warm_start and hasattr(self, "_duals"):
            classes, shares = self._duals
            if np.array_equal(classes, fit.labels.classes) and len(shares) == len(fit.binaries):
                return shares
        return [None] * len(fit.binaries)

    def _keep(self, fit: _Fit, trained: Trained) -> None:
        self.classes_ = fit.labels.classes
        self._keep_certificates(trained.runs)
        meta = self._facts(trained.runs, loss_name(parse_loss(self.loss)))
        self.model_ = model = fit.model(trained.runs, meta)
        self.kernel_evaluations_ = fit.evaluations
        self.support_, self.dual_coef_, self.intercept_ = model.support, model.coef, model.intercept
        self.n_support_ = np.bincount(fit.labels.codes[model.support], minlength=len(self.classes_)).astype(np.int32)
        self.__dict__.pop("_duals", None)
        if self.warm_start:
            self._duals = (self.classes_, trained.shares)


class _Fit:
    """The data of a fit, its binary problems and the kernel matrices behind them."""

    def __init__(self, svm: SVC, rows: Any, labels: LabelMap, weights: np.ndarray | None, repeats: Any) -> None:
        self.svm, self.rows, self.labels, self.weights = svm, rows, labels, weights
        self.bias = svm._bias()
        self.shift = 1.0 if self.bias == "penalised" else 0.0
        self.loss = parse_loss(svm.loss)
        repeats = None if repeats is None else np.broadcast_to(np.asarray(repeats, dtype=np.float64), rows.n_rows)
        self.kernel: Kernel = parse_kernel(svm.kernel, rows, svm.gamma, svm.degree, svm.coef0, repeats)
        self.kept = None if weights is None or (weights > 0.0).all() else np.flatnonzero(weights > 0.0)
        self.paired = svm.multi_class == "ovo" and labels.n_classes > 2
        self.evaluations = 0
        self._latest: Gram | None = None

    @cached_property
    def binaries(self) -> list[_Binary]:
        """The problems in the order of the model's outputs."""
        names, codes, k = self.labels.classes, self.labels.codes, self.labels.n_classes
        if k == 2:
            return [_Binary("training", self.kept, 1)]
        if not self.paired:
            return [_Binary(f"class {names[c]}", self.kept, c) for c in range(k)]
        rows_of = [np.flatnonzero(codes == c) for c in range(k)]
        if self.kept is not None:
            rows_of = [np.intersect1d(ids, self.kept, assume_unique=True) for ids in rows_of]
        return [
            _Binary(f"{names[a]} or {names[b]}", np.sort(np.concatenate((rows_of[a], rows_of[b]))), a)
            for a, b in pairs_of(k)
        ]

    @cached_property
    def _shared(self) -> Gram:
        """The kernel matrix that all problems on the same rows share."""
        return self._gram(self.kept)

    def _gram(self, ids: np.ndarray | None) -> Gram:
        rows = self.rows
        if ids is not None and self.kernel.name == "precomputed":
            rows = DenseRows(rows.values[np.ix_(ids, ids)], 0.0)
        elif ids is not None:
            rows = take(rows, ids)
        exact = rows.dtype == np.float64 and rows.n_rows**2 <= _SMALL
        points = Points.of(rows, self.kernel, np.float64 if exact else np.float32, self.shift)
        return Gram(points, cache_bytes(self.svm.cache_mb))

    def problem(self, number: int) -> KernelProblem:
        """One of the problems; that of a pair brings a kernel matrix of its own."""
        self._count()
        binary = self.binaries[number]
        self._latest = gram = self._gram(binary.ids) if self.paired else self._shared
        ids = slice(None) if binary.ids is None else binary.ids
        weights = None if self.weights is None else self.weights[ids]
        signs = self.labels.signs(binary.positive)[ids]
        return kernel_problem(gram, signs, self.loss, self.svm.C, weights, self.bias)

    def _count(self) -> None:
        if self._latest is not None:
            self.evaluations += self._latest.evaluations
            self._latest.evaluations = 0

    def model(self, runs: list[Any], meta: dict[str, Any]) -> KernelModel:
        """The model of all problems together, its support vectors grouped by class."""
        self._count()
        n, k, codes = self.rows.n_rows, self.labels.n_classes, self.labels.codes
        coef = np.zeros((k - 1 if self.paired else len(runs), n))
        for number, (run, binary) in enumerate(zip(runs, self.binaries, strict=True)):
            support = run.model.support if binary.ids is None else binary.ids[run.model.support]
            if not self.paired:
                coef[number, support] = run.model.coef[0]
                continue
            a, b = pairs_of(k)[number]
            coef[np.where(codes[support] == a, b - 1, a), support] = run.model.coef[0]
        support = np.flatnonzero(coef.any(axis=0))
        support = support[np.argsort(codes[support], kind="stable")]
        blocks = np.bincount(codes[support], minlength=k) if self.paired else None
        vectors = DenseRows(np.zeros((support.size, 0)), 0.0)
        if self.kernel.name != "precomputed":
            vectors = take(self.rows, support)
        return KernelModel(
            self.kernel, vectors, np.ascontiguousarray(coef[:, support]),
            np.concatenate([run.model.intercept for run in runs]), support, self.labels.classes, blocks, self.shift,
            meta,
        )  # fmt: skip
