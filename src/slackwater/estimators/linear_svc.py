"""LinearSVC: linear classifiers with scikit-learn's face, one certified binary problem per class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_matrix
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.data.labels import LabelMap
from slackwater.estimators import crammer_singer
from slackwater.estimators.callbacks import FitTask, with_callbacks
from slackwater.estimators.certified import Certified, Part, Trained
from slackwater.estimators.streaming import Streaming
from slackwater.estimators.weights import example_weights
from slackwater.objective import LinearProblem, Problem, linear_problem, loss_name, parse_loss, parse_penalty
from slackwater.objective.penalties import penalty_name
from slackwater.rows import as_rows, packed, take, with_bias
from slackwater.solvers.choice import Facts, choose_linear, choose_penalised, facts_of
from slackwater.solvers.contract import Solver
from slackwater.training import Holdout
from slackwater.training.stopping import is_number


class Examples(NamedTuple):
    """What a fit has been given, checked."""

    X: Any
    rows: Any
    labels: LabelMap
    weights: np.ndarray | None
    holdout: np.ndarray | None  # the rows kept back
    kept: np.ndarray | None  # the others

    @property
    def positives(self) -> list[int]:
        """The class on the positive side of each binary problem."""
        return [1] if self.labels.n_classes == 2 else list(range(self.labels.n_classes))


class LinearSVC(Streaming, ClassifierMixin, Certified):
    """Linear support vector classification with a certificate.

    Minimises ||w||^2 / 2 + C sum_i s_i loss(y_i f(x_i)), s_i the weights of examples and classes, until the certified
    relative gap is at most ``tol``; ``penalty`` puts something else in the place of ||w||^2 / 2. More than two classes
    are treated one against the rest, in ``n_jobs`` threads on one copy of the data, or all in one problem. float32 and
    float64 data, dense in C order or CSR, are used in place; of wide dense data that are mostly zeros a compressed copy
    is used, where a quarter of the free memory has room for it.

    Parameters
    ----------
    C : cost of errors.
    penalty : "l2", "l1" or "elasticnet": ||w||^2 / 2, ||w||_1 or their mixture; the last two leave weights at zero.
    l1_ratio : the share of ||w||_1 in the mixture, from 0 to 1.
    loss : "hinge", "squared_hinge", "smoothed_hinge", "huber"; the last two with a width if wanted: "huber:0.25".
    solver : a name from ``slackwater.solvers()``, or "auto".
    solver_options : settings of the solver by name.
    tol : certified relative gap to reach, ``(primal - dual) / dual``.
    max_time : seconds for the whole fit. max_rounds : rounds for each binary problem. None: no limit.
    fit_intercept : True regularises the intercept as one more weight (as LIBLINEAR does), "free" leaves it out of the
        regulariser (as LIBSVM does), False goes without.
    intercept_scaling : the constant feature's value where the intercept is regularised.
    class_weight : None, "balanced" or a dict from class to weight.
    multi_class : "ovr", one against the rest; "crammer_singer", one problem for all classes, with the hinge and without
        a free intercept: an example pays for the highest of [y != y_i] + f_y(x_i) - f_{y_i}(x_i).
    n_jobs : threads for the binary problems; where they are more than those, within each (large data and ``dcd`` only,
        whose last digits then depend on their timing). None is one, -1 all cores.
    random_state : seed of the visiting order.
    warm_start : begin at the dual solution of the last fit, if that was on as many rows of the same classes. Of the
        plain l1 penalty no weights follow from it: nothing is gained there.
    validation_fraction : share of the rows to keep back; training ends when their error has not fallen in ``patience``
        looks. None: use all rows.
    certify_every : rounds between certificates; None draws them when the gap seems to be reached, and now and then.
    verbose : 1 shows a progress line with the gap.

    Attributes
    ----------
    certificate_ : primal, dual, gap and relative_gap, the worst of ``certificates_``, one per binary problem.
    status_ : code and sentence, of the same problem; ``statuses_`` all.
    solver_, solver_reason_ : the solver's name and why it was taken.
    history_ : one record per certificate on the way; ``histories_`` of every problem.
    n_iter_ : epochs, the most of any problem.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_ : as in scikit-learn. ``model_`` can be saved.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import LinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> svm = LinearSVC(C=0.01, tol=0.01, random_state=0).fit(X, y)
    >>> svm.certificate_.relative_gap <= 0.01
    True
    """

    def __init__(
        self,
        C=1.0,
        *,
        penalty="l2",
        l1_ratio=0.5,
        loss="hinge",
        solver="auto",
        solver_options=None,
        tol=1e-3,
        max_time=None,
        max_rounds=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        multi_class="ovr",
        n_jobs=None,
        random_state=None,
        warm_start=False,
        validation_fraction=None,
        patience=10,
        certify_every=None,
        verbose=0,
    ):
        self.C = C
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.certify_every = certify_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with labels ``y`` of any kind."""
        self._check_parameters()
        limits = self._limits(patience=self.patience if self.validation_fraction is not None else None)
        examples = self._examples(X, y, sample_weight)
        solver = self._solver(examples)
        parts, classes = self._parts(examples), examples.labels.classes
        task = FitTask.of(
            self, examples.X, y, sample_weight, lambda models: self._reported(self._together(models, classes)),
            len(parts),
        )  # fmt: skip
        self._keep(examples, self._train(parts, solver, limits, task))
        if task is not None:
            task.end()
        self._warn()
        return self

    def decision_function(self, X):
        """f(x): (n,) for two classes, (n, classes) for more."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return self.model_.decision_values(X)

    def predict(self, X):
        """The class of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return self.model_.predict(X)

    def sparsify(self):
        """Turn ``coef_`` into a sparse matrix, which pays where most weights are zero; predictions stay the same."""
        check_is_fitted(self)
        self.coef_ = csr_matrix(self.model_.coef)
        return self

    def densify(self):
        """Turn ``coef_`` back into an array."""
        check_is_fitted(self)
        self.coef_ = self.model_.coef
        return self

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _check_parameters(self) -> None:
        """Those that nothing below checks under the same name."""
        crammer_singer.check_multi_class(self.multi_class, self.loss)
        self._check_positive("C", "intercept_scaling")
        parse_penalty(self.penalty, self.l1_ratio)
        share = self.validation_fraction
        if share is not None and not (is_number(share) and 0.0 < share < 1.0):
            raise ValueError(f"validation_fraction must lie between 0 and 1, or be None; got {share!r}")

    def _examples(self, X, y, sample_weight) -> Examples:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", multi_output=False)
        check_classification_targets(y)
        labels = LabelMap.of(y)
        weights = example_weights(X, y, labels, sample_weight, self.class_weight)
        rows = packed(as_rows(X))
        if self.validation_fraction is None:
            return Examples(X, rows, labels, weights, None, None)
        from sklearn.model_selection import train_test_split  # a tenth of a second that few fits need

        kept, holdout = train_test_split(
            np.arange(rows.n_rows), test_size=self.validation_fraction, stratify=labels.codes,
            random_state=check_random_state(self.random_state).randint(2**31),
        )  # fmt: skip
        return Examples(X, rows, labels, weights, np.sort(holdout), np.sort(kept))

    def _solver(self, examples: Examples) -> Solver:
        return self._named_solver(lambda: self._choice(examples))

    def _choice(self, examples: Examples) -> tuple[str, str]:
        if self.multi_class == "crammer_singer":
            return crammer_singer.choose(examples, self._bias())
        penalty = parse_penalty(self.penalty, self.l1_ratio)
        if penalty.absolute:
            return choose_penalised(examples.rows, parse_loss(self.loss), penalty)
        return choose_linear(self._choice_facts(examples))

    def _choice_facts(self, examples: Examples) -> Facts:
        return facts_of(
            examples.rows, C=self.C, loss=parse_loss(self.loss), bias=self._bias(), tol=self.tol,
            max_time=self.max_time, n_outputs=len(examples.positives),
        )  # fmt: skip

    def _problem(self, examples: Examples, positive: int) -> LinearProblem:
        """Class ``positive`` against the others, without the rows kept back."""
        rows, signs, weights = examples.rows, examples.labels.signs(positive), examples.weights
        if examples.kept is not None:
            rows, signs = take(rows, examples.kept), signs[examples.kept]
            weights = None if weights is None else weights[examples.kept]
        problem = linear_problem(
            rows, signs, parse_loss(self.loss), self.C, weights, self._bias(), self._bias_scale(),
            parse_penalty(self.penalty, self.l1_ratio),
        )  # fmt: skip
        return replace(problem, threads=max(1, effective_n_jobs(self.n_jobs) // len(examples.positives)))

    def _parts(self, examples: Examples) -> list[Part]:
        """The problems: one for all classes, or one for each."""
        if self.multi_class == "crammer_singer":
            return [crammer_singer.whole(self, examples, self._starts(examples, 1)[0])]
        classes, positives = examples.labels.classes, examples.positives
        starts = self._starts(examples, len(positives))

        def part(number: int) -> Part:
            positive = positives[number]
            return Part(
                "training" if len(positives) == 1 else f"class {classes[positive]}",
                lambda: self._problem(examples, positive),
                starts[number],
                lambda problem: _holdout(examples, positive, problem),
            )

        return [part(number) for number in range(len(positives))]

    # ------------------------------------------------------------------------------------------- after training

    def _keep(self, examples: Examples, trained: Trained) -> None:
        self.classes_ = examples.labels.classes
        self._keep_certificates(trained.runs)
        self._keep_model(trained.runs, self.classes_, loss_name(parse_loss(self.loss)))
        self.coef_, self.intercept_ = self.model_.coef, self.model_.intercept
        self.__dict__.pop("_duals", None)
        self.__dict__.pop("_stream", None)
        if self.warm_start:
            self._duals = (self.classes_, trained.shares)

    def _facts(self, runs, loss: str) -> dict[str, Any]:
        penalty = parse_penalty(self.penalty, self.l1_ratio)
        return super()._facts(runs, loss) | ({"penalty": penalty_name(penalty)} if penalty.absolute else {})

    def _starts(self, examples: Examples, count: int) -> list[np.ndarray | None]:
        """The dual points of the last fit, as shares of the costs; None to begin at zero."""
        if self.warm_start and hasattr(self, "_duals"):
            classes, shares = self._duals
            if np.array_equal(classes, examples.labels.classes) and len(shares) == count:
                return shares
        return [None] * count


def _holdout(examples: Examples, positive: int, problem: Problem) -> Holdout | None:
    """The rows kept back, with the constant feature of the problem."""
    if examples.holdout is None:
        return None
    rows = with_bias(take(examples.rows, examples.holdout), problem.rows.bias)
    return Holdout(rows, examples.labels.signs(positive)[examples.holdout])
