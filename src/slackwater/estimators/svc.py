"""SVC: kernel classifiers with scikit-learn's face, a certified problem per pair of classes, per class or for all."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.data.labels import LabelMap
from slackwater.estimators import crammer_singer
from slackwater.estimators.callbacks import FitTask, with_callbacks
from slackwater.estimators.certified import Part, Trained
from slackwater.estimators.kernel_face import Rows, WithKernel, repeats_of
from slackwater.estimators.price import Price, Target, objective
from slackwater.estimators.sparsifying import sparsify
from slackwater.estimators.weights import example_weights
from slackwater.gram import Gram
from slackwater.models import KernelModel
from slackwater.models.kernel import pairs_of, votes
from slackwater.models.several import Frame, Output, outputs_of
from slackwater.models.single_row import RowPredictor
from slackwater.objective import BiasKind, loss_name, parse_loss
from slackwater.objective.kernel_multiclass import KernelMulticlassProblem, kernel_multiclass_problem
from slackwater.objective.kernel_problem import KernelProblem, kernel_problem
from slackwater.rows import as_rows
from slackwater.solvers.choice import choose_kernel, choose_kernel_multiclass
from slackwater.solvers.contract import Solver
from slackwater.sparsify.driver import Budget
from slackwater.training import Limits

_LEAST_SHARE = 0.1  # of the time limit, for finding a small model


class _Binary(NamedTuple):
    """One of the problems of a fit: some rows, and the class on the positive side."""

    label: str
    ids: np.ndarray | None  # None for all rows
    positive: int


class SVC(ClassifierMixin, WithKernel):
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
    max_time : seconds for the whole fit. max_rounds, max_kernel_evaluations : rounds and computed kernel values of each
        binary problem. None: no limit.
    max_support : replace the model by one with at most that many support vectors, as ``sparsify`` finds it on a fifth
        of the rows kept back; ``price_`` tells what that costs. None: as many as it takes.
    fit_intercept : True leaves the intercept out of the regulariser (as LIBSVM does), "penalised" regularises it, False
        goes without. All classes in one problem have no free intercept: True is "penalised" there.
    class_weight : None, "balanced" or a dict from class to weight.
    multi_class : "ovo" trains a problem for every pair of classes, "ovr" one for each class against the rest,
        "crammer_singer" one for all classes, with the hinge.
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
    kernel_evaluations_ : kernel values computed in training. ``model_`` can be saved.
    price_, curve_ : with ``max_support`` the objective and the errors before and after, and the sizes that were looked
        at; certificates are those of the dense model.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = SVC(gamma=0.001, tol=0.01).fit(X, y)
    >>> svm.certificate_.relative_gap <= 0.01
    True
    """

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
        max_kernel_evaluations=None,
        max_support=None,
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
        self.max_kernel_evaluations = max_kernel_evaluations
        self.max_support = max_support
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.cache_mb = cache_mb
        self.random_state = random_state
        self.warm_start = warm_start
        self.certify_every = certify_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with labels ``y`` of any kind."""
        begin = time.perf_counter()
        self._check_parameters()
        limits = self._limits()
        X, y = validate_data(self, X, y, accept_sparse=self._formats(), dtype="numeric", multi_output=False)
        check_classification_targets(y)
        labels = LabelMap.of(y)
        weights = example_weights(X, y, labels, sample_weight, self.class_weight)
        self._check_square(X)
        rows = as_rows(X)
        fit = _Fit(self, Rows(self, rows, weights, repeats_of(sample_weight, rows.n_rows)), labels)
        solver = self._named_solver(fit.choice)
        task = FitTask.of(self, X, y, sample_weight, fit.reported, len(fit.binaries))
        self._keep(fit, self._runs(fit, solver, limits, task))
        self.__dict__.pop("price_", None)
        if self.max_support is not None:
            self._shrink(fit, X, y, sample_weight, time.perf_counter() - begin)
        if task is not None:
            task.end()
        self._warn()
        return self

    def decision_function(self, X):
        """f(x): (n,) for two classes; for more (n, classes), or (n, pairs) where pairs' values are asked for."""
        values = self._values(X)
        if self.model_.blocks is None or self.decision_function_shape == "ovo":
            return values
        return votes(values, len(self.classes_))

    def predict(self, X):
        """The class of every row."""
        values = self._values(X)
        return self.model_.labels_of(values)

    def compile(self) -> RowPredictor:
        """A predictor of one row at a time, as that of ``LinearSVC``."""
        check_is_fitted(self)
        return self.model_.compile(as_votes=self.decision_function_shape == "ovr")

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _bias(self) -> BiasKind:
        kind = super()._bias()
        usual = kind == "free" and not isinstance(self.fit_intercept, str)
        return "penalised" if usual and self.multi_class == "crammer_singer" else kind

    def _check_parameters(self) -> None:
        Budget(max_support=self.max_support)
        self._check_positive("C")
        crammer_singer.check_multi_class(self.multi_class, self.loss, ("ovo", "ovr", "crammer_singer"))
        if self.max_support is not None and self.multi_class == "crammer_singer":
            raise ValueError("max_support needs multi_class='ovo' or 'ovr': sparsifiers treat classes two by two")
        if self.decision_function_shape not in ("ovo", "ovr"):
            raise ValueError(
                f"decision_function_shape={self.decision_function_shape!r} is not known; it is 'ovo' or 'ovr'"
            )

    def _shrink(self, fit: _Fit, X, y, sample_weight, spent: float) -> None:
        """A small model in the place of the dense one, and its price."""
        left = None if self.max_time is None else max(self.max_time - spent, _LEAST_SHARE * self.max_time)
        small = sparsify(
            self, X, y, max_support=self.max_support, max_time=left, sample_weight=sample_weight,
            cache_mb=self.cache_mb, random_state=self.random_state, verbose=self.verbose,
        )  # fmt: skip
        before, point = small.before, small.point
        values = small.model.decision_values(X).reshape(fit.data.rows.n_rows, -1)
        objectives = [
            objective(output, values[:, number], fit.target(number), fit.loss)
            for number, output in enumerate(outputs_of(small.model))
        ]
        self.price_ = Price(
            before.support, point.support,
            float(np.mean([certificate.primal for certificate in self.certificates_])), float(np.mean(objectives)),
            before.train_error, point.train_error, before.holdout_error, point.holdout_error,
        )  # fmt: skip
        self.curve_ = small.curve
        self.__dict__.update(fit.shown(small.model))

    def _runs(self, fit: _Fit, solver: Solver, limits: Limits, callbacks: FitTask | None) -> Trained:
        starts = self._starts(fit)

        def part(number: int) -> Part:
            return Part(fit.binaries[number].label, lambda: fit.problem(number), starts[number])

        return self._train([part(number) for number in range(len(fit.binaries))], solver, limits, callbacks)

    def _starts(self, fit: _Fit) -> list[np.ndarray | None]:
        """The dual points of the last fit, as shares of the costs; None to begin at zero."""
        if self.warm_start and hasattr(self, "_duals"):
            classes, shares = self._duals
            if np.array_equal(classes, fit.labels.classes) and len(shares) == len(fit.binaries):
                return shares
        return [None] * len(fit.binaries)

    def _keep(self, fit: _Fit, trained: Trained) -> None:
        self._keep_certificates(trained.runs)
        meta = self._facts(trained.runs, loss_name(fit.loss))
        self.__dict__.update(fit.reported([found.model for found in trained.runs], meta))
        self.kernel_evaluations_ = fit.evaluations
        self.__dict__.pop("_duals", None)
        if self.warm_start:
            self._duals = (self.classes_, trained.shares)


class _Fit:
    """The data of a fit, its binary problems and the kernel matrices behind them."""

    def __init__(self, svm: SVC, data: Rows, labels: LabelMap) -> None:
        self.C, self.bias, self.loss = svm.C, svm._bias(), parse_loss(svm.loss)
        self.data, self.labels = data, labels
        self.paired = svm.multi_class == "ovo" and labels.n_classes > 2
        self.whole = svm.multi_class == "crammer_singer"
        self._before = 0  # kernel values of the matrices that have been left
        self._latest: Gram | None = None

    @property
    def evaluations(self) -> int:
        """Kernel values computed so far."""
        return self._before + (self._latest.evaluations if self._latest is not None else 0)

    @cached_property
    def binaries(self) -> list[_Binary]:
        """The problems in the order of the model's outputs."""
        names, codes, k = self.labels.classes, self.labels.codes, self.labels.n_classes
        kept = self.data.kept
        if k == 2 or self.whole:
            return [_Binary("training", kept, 1)]
        if not self.paired:
            return [_Binary(f"class {names[c]}", kept, c) for c in range(k)]
        rows_of = [np.flatnonzero(codes == c) for c in range(k)]
        if kept is not None:
            rows_of = [np.intersect1d(ids, kept, assume_unique=True) for ids in rows_of]
        for name, ids in zip(names, rows_of, strict=True):
            if ids.size == 0:
                raise ValueError(f"all rows of class {name} have the weight 0: there is no pair to train with it")
        return [
            _Binary(f"{names[a]} or {names[b]}", np.sort(np.concatenate((rows_of[a], rows_of[b]))), a)
            for a, b in pairs_of(k)
        ]

    def choice(self) -> tuple[str, str]:
        """The name of the solver that ``solver="auto"`` takes, and why."""
        if self.whole:
            return choose_kernel_multiclass(self.data.rows, self.labels.n_classes, self.bias)
        return choose_kernel(self.data.rows, self.loss, self.bias)

    def problem(self, number: int) -> KernelProblem | KernelMulticlassProblem:
        """One of the problems; that of a pair brings a kernel matrix of its own, the others share one."""
        binary = self.binaries[number]
        if self.paired:
            self._before, self._latest = self.evaluations, None  # its memory is free for the next
        if self._latest is None:
            self._latest = self.data.gram(binary.ids)
        if self.whole:
            ids, k = slice(None) if binary.ids is None else binary.ids, self.labels.n_classes
            weights = None if self.data.weights is None else self.data.weights[ids]
            return kernel_multiclass_problem(self._latest, self.labels.codes[ids], k, self.C, weights, self.bias)
        _, signs, costs = self.target(number)
        return kernel_problem(self._latest, signs, self.loss, 1.0, costs, self.bias)

    def target(self, number: int) -> Target:
        """Rows, signs and costs of one of the problems."""
        binary = self.binaries[number]
        ids = slice(None) if binary.ids is None else binary.ids
        signs = self.labels.signs(binary.positive)[ids]
        weights = np.ones(signs.size) if self.data.weights is None else self.data.weights[ids]
        return Target(ids, signs, self.C * weights)

    def reported(self, models: list[Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """The attributes that show what has been learnt."""
        return self.shown(self.model(models, meta))

    def shown(self, model: KernelModel) -> dict[str, Any]:
        """The attributes that show a model."""
        counts = np.bincount(self.labels.codes[model.support], minlength=self.labels.n_classes).astype(np.int32)
        return {
            "model_": model, "classes_": model.classes, "support_": model.support, "n_support_": counts,
            "dual_coef_": model.coef, "intercept_": model.intercept,
        }  # fmt: skip

    def model(self, models: list[Any], meta: dict[str, Any] | None = None) -> KernelModel:
        """The model of all problems together, its support vectors grouped by class; None contributes zeros."""
        data, labels = self.data, self.labels
        frame = Frame(data.kernel, data.shift, labels.classes, labels.codes, self.paired, data.vectors)
        if self.whole:
            return frame.together(self._lines(models[0]), meta)
        return frame.together([self._output(*pair) for pair in zip(models, self.binaries, strict=True)], meta)

    def _output(self, model: Any, binary: _Binary) -> Output | None:
        if model is None:
            return None
        return Output(self._among_all(model, binary), model.coef[0], model.intercept[0])

    def _lines(self, model: Any) -> list[Output | None]:
        """The outputs of the one problem of all classes; two of them decide by their difference."""
        k = self.labels.n_classes
        if model is None:
            return [None] * (k if k > 2 else 1)
        support = self._among_all(model, self.binaries[0])
        lines = model.coef if k > 2 else model.coef[1:] - model.coef[:1]
        return [Output(support, line, 0.0) for line in lines]

    def _among_all(self, model: Any, binary: _Binary) -> np.ndarray:
        """The support vectors' numbers among all rows."""
        return model.support if binary.ids is None else binary.ids[model.support]
