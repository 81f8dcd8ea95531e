"""SVR: kernel regression with scikit-learn's face and a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from slackwater.estimators.callbacks import FitTask, with_callbacks
from slackwater.estimators.kernel_face import OneProblem, Rows, WithKernel, repeats_of
from slackwater.gram import Gram
from slackwater.models import KernelRegressionModel
from slackwater.objective import TubeLoss, tube_loss
from slackwater.objective.kernel_regression import KernelRegressionProblem, kernel_regression_problem
from slackwater.rows import as_rows
from slackwater.solvers.choice import choose_kernel_regression
from slackwater.training.stopping import is_number


class SVR(RegressorMixin, WithKernel):
    """Support vector regression with kernels, and with a certificate.

    Minimises ||w||^2 / 2 + C sum_i s_i loss(y_i - f(x_i)), s_i the weights of examples, until the certified relative
    gap is at most ``tol``. The kernel matrix is computed by rows, when they are needed, and kept while there is room;
    its values are float32, on small float64 data float64.

    Parameters
    ----------
    kernel, degree, gamma, coef0, cache_mb : as those of ``SVC``.
    C : cost of the part of a residual beyond ``epsilon``. epsilon : residuals of at most this size cost nothing.
    loss : "epsilon_insensitive", which is that part, or "squared_epsilon_insensitive", its square.
    solver : a name from ``slackwater.solvers()`` whose task is kernel-regression, or "auto". solver_options : its
        settings by name.
    tol : certified relative gap to reach, ``(primal - dual) / dual``.
    max_time, max_rounds, max_kernel_evaluations : limits; None: no limit.
    fit_intercept : True leaves the intercept out of the regulariser (as LIBSVM does), "penalised" regularises it, False
        goes without.
    random_state, warm_start, certify_every, verbose : as those of ``SVC``.

    Attributes
    ----------
    certificate_, certificates_, status_, statuses_, history_, histories_, solver_, solver_reason_, n_iter_ : as those
        of ``LinearSVR``.
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_ : as in scikit-learn.
    kernel_evaluations_ : kernel values computed. ``model_`` can be saved.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from slackwater import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svm = SVR(C=100.0, epsilon=5.0).fit(X, y)
    >>> svm.certificate_.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        C=1.0,
        epsilon=0.1,
        loss="epsilon_insensitive",
        solver="auto",
        solver_options=None,
        tol=1e-3,
        max_time=None,
        max_rounds=None,
        max_kernel_evaluations=None,
        fit_intercept=True,
        cache_mb="auto",
        random_state=None,
        warm_start=False,
        certify_every=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.max_kernel_evaluations = max_kernel_evaluations
        self.fit_intercept = fit_intercept
        self.cache_mb = cache_mb
        self.random_state = random_state
        self.warm_start = warm_start
        self.certify_every = certify_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with the numbers ``y``."""
        loss, limits = self._checked_loss(), self._limits()
        X, y = validate_data(
            self, X, y, accept_sparse=self._formats(), dtype="numeric", multi_output=False, y_numeric=True
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._check_square(X)
        rows = as_rows(X)
        fit = _Fit(self, Rows(self, rows, weights, repeats_of(sample_weight, rows.n_rows)), y, loss)
        solver = self._named_solver(lambda: choose_kernel_regression(rows, self.loss, self._bias()))
        task = FitTask.of(self, X, y, sample_weight, lambda models: fit.reported(models[0]), 1)
        self._fit_one(
            fit, solver, limits, task, lambda runs: self._facts(runs, self.loss) | {"epsilon": float(self.epsilon)}
        )
        self._warn()
        return self

    def predict(self, X):
        """f(x) of every row."""
        return self._values(X)

    def _checked_loss(self) -> TubeLoss:
        """The loss, after a look at the parameters that nothing below checks under the same name."""
        self._check_positive("C")
        if not is_number(self.epsilon):
            raise ValueError(f"epsilon must be a number of at least 0, got {self.epsilon!r}")
        return tube_loss(self.loss, self.epsilon)


class _Fit(OneProblem):
    """Regression, as the parameters ask for it."""

    model_class = KernelRegressionModel

    def __init__(self, svm: SVR, data: Rows, targets: np.ndarray, loss: TubeLoss) -> None:
        super().__init__(data)
        self.C, self.bias, self.loss, self.targets = svm.C, svm._bias(), loss, targets

    def over(self, gram: Gram, ids: Any, weights: np.ndarray | None) -> KernelRegressionProblem:
        """The problem over the kernel matrix of the rows ``ids``, with their weights."""
        return kernel_regression_problem(gram, self.targets[ids], self.loss, self.C, weights, self.bias)
