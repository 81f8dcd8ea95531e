"""LinearSVR: linear support vector regression with scikit-learn's face and a certificate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from slackwater.estimators.callbacks import FitTask, with_callbacks
from slackwater.estimators.certified import Certified, Part
from slackwater.models import LinearModel, LinearRegressionModel
from slackwater.objective import RegressionProblem, TubeLoss, regression_problem, tube_loss
from slackwater.rows import as_rows, packed
from slackwater.solvers.choice import choose_regression
from slackwater.solvers.contract import Solver
from slackwater.training.stopping import is_number


class _Examples(NamedTuple):
    """What a fit has been given, checked."""

    X: Any
    rows: Any
    targets: np.ndarray
    weights: np.ndarray | None


class LinearSVR(RegressorMixin, Certified):
    """Linear support vector regression with a certificate.

    Minimises ||w||^2 / 2 + C sum_i s_i loss(y_i - f(x_i)), s_i the weights of examples, until the certified relative
    gap is at most ``tol``. float32 and float64 data, dense in C order or CSR, are used in place; of wide dense data
    that are mostly zeros a compressed copy is used, where a quarter of the free memory has room for it.

    Parameters
    ----------
    epsilon : residuals of at most this size cost nothing.
    C : cost of the part of a residual beyond ``epsilon``.
    loss : "epsilon_insensitive", which is that part, or "squared_epsilon_insensitive", its square.
    solver : a name from ``slackwater.solvers()`` whose task is regression, or "auto".
    solver_options : settings of the solver by name.
    tol : certified relative gap to reach, ``(primal - dual) / dual``.
    max_time : seconds. max_rounds : rounds of the solver. None: no limit.
    fit_intercept : True regularises the intercept as one more weight (as LIBLINEAR does), "free" leaves it out of the
        regulariser (as LIBSVM does), False goes without.
    intercept_scaling : the constant feature's value where the intercept is regularised.
    random_state : seed of the visiting order.
    warm_start : begin at the dual solution of the last fit, if that was on as many rows.
    certify_every : rounds between certificates; None draws them when the gap seems to be reached, and now and then.
    verbose : 1 shows a progress line with the gap.

    Attributes
    ----------
    certificate_ : primal, dual, gap and relative_gap. status_ : code and sentence.
    solver_, solver_reason_ : the solver's name and why it was taken.
    history_ : one record per certificate on the way. n_iter_ : epochs.
    certificates_, statuses_, histories_ : the same as lists, as estimators of several problems have them.
    coef_, intercept_, n_features_in_, feature_names_in_ : as in scikit-learn. ``model_`` can be saved.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from slackwater import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svm = LinearSVR(epsilon=5.0, C=100.0, random_state=0).fit(X, y)
    >>> svm.certificate_.relative_gap <= 1e-3
    True
    """

    _model_class = LinearRegressionModel
    n_jobs = None  # there is one problem

    def __init__(
        self,
        *,
        epsilon=0.0,
        C=1.0,
        loss="epsilon_insensitive",
        solver="auto",
        solver_options=None,
        tol=1e-3,
        max_time=None,
        max_rounds=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        random_state=None,
        warm_start=False,
        certify_every=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.C = C
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.warm_start = warm_start
        self.certify_every = certify_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with the numbers ``y``."""
        loss, limits = self._checked_loss(), self._limits()
        examples = self._examples(X, y, sample_weight)
        solver = self._solver(examples)
        callbacks = FitTask.of(
            self, examples.X, y, sample_weight, lambda models: self._reported(self._together(models, None)), 1
        )
        part = Part("training", lambda: self._problem(examples, loss), self._start())
        trained = self._train([part], solver, limits, callbacks)
        self._keep_certificates(trained.runs)
        self._keep_model(trained.runs, None, self.loss)
        self.__dict__.update(self._reported(self.model_))
        self.__dict__.pop("_duals", None)
        if self.warm_start:
            self._duals: np.ndarray | None = trained.shares[0]
        if callbacks is not None:
            callbacks.end()
        self._warn()
        return self

    def predict(self, X):
        """f(x) of every row."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        return self.model_.predict(X)

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _checked_loss(self) -> TubeLoss:
        """The loss, after a look at the parameters that nothing below checks under the same name."""
        self._check_positive("C", "intercept_scaling")
        if not is_number(self.epsilon):
            raise ValueError(f"epsilon must be a number of at least 0, got {self.epsilon!r}")
        return tube_loss(self.loss, self.epsilon)

    def _examples(self, X, y, sample_weight) -> _Examples:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", multi_output=False, y_numeric=True)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return _Examples(X, packed(as_rows(X)), y, weights)

    def _solver(self, examples: _Examples) -> Solver:
        return self._named_solver(lambda: choose_regression(examples.rows, self.loss, self._bias()))

    def _problem(self, examples: _Examples, loss: TubeLoss) -> RegressionProblem:
        rows, targets, weights = examples.rows, examples.targets, examples.weights
        return regression_problem(rows, targets, loss, self.C, weights, self._bias(), self._bias_scale())

    def _start(self) -> np.ndarray | None:
        """The dual point of the last fit, as shares of the costs; None to begin at zero."""
        return self._duals if self.warm_start and hasattr(self, "_duals") else None

    # ------------------------------------------------------------------------------------------- after training

    def _reported(self, model: LinearModel) -> dict[str, Any]:
        """One vector, as scikit-learn's LinearSVR has it."""
        return super()._reported(model) | {"coef_": model.coef[0]}

    def _facts(self, runs, loss: str) -> dict[str, Any]:
        return super()._facts(runs, loss) | {"epsilon": float(self.epsilon)}
