"""OneClassSVM: outliers by kernels, with scikit-learn's face and a certificate."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from slackwater.estimators.callbacks import FitTask, with_callbacks
from slackwater.estimators.kernel_face import OneProblem, Rows, WithKernel, repeats_of
from slackwater.gram import Gram
from slackwater.objective import BiasKind
from slackwater.objective.one_class import OneClassProblem, one_class_problem
from slackwater.rows import as_rows
from slackwater.solvers.choice import choose_one_class
from slackwater.training.stopping import is_number

_OUTLIER_AND_INLIER = np.array([-1, 1])


class OneClassSVM(OutlierMixin, WithKernel):
    """The support of a distribution, by a half space in the kernel's space, with a certificate.

    Minimises ||w||^2 / 2 - rho + sum_i s_i max(0, rho - f(x_i)) / (nu sum_i s_i), s_i the weights of examples, until
    the certified relative gap is at most ``tol``. What lies on the far side of rho from the origin is no outlier: about
    a share 1 - nu of the examples. The kernel matrix is computed by rows, when they are needed, and kept while there is
    room; its values are float32, on small float64 data float64.

    Parameters
    ----------
    kernel, degree, gamma, coef0, cache_mb : as those of ``SVC``.
    nu : in (0, 1]; outliers are at most this share of the examples, and support vectors at least.
    solver : a name from ``slackwater.solvers()`` whose task is one-class, or "auto". solver_options : its settings by
        name.
    tol : certified relative gap to reach. The optimum is negative: ``(primal - dual) / -primal``, or with half the mean
        of K(x, x) over the number of examples below the line where that is larger, for then the origin lies among them.
    max_time, max_rounds, max_kernel_evaluations : limits; None: no limit.
    random_state, warm_start, certify_every, verbose : as those of ``SVC``.

    Attributes
    ----------
    certificate_, certificates_, status_, statuses_, history_, histories_, solver_, solver_reason_, n_iter_ : as those
        of ``LinearSVR``.
    offset_, support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_ : as in scikit-learn, on its scale.
    kernel_evaluations_ : kernel values computed. ``model_`` can be saved.

    Examples
    --------
    >>> from slackwater import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> svm = OneClassSVM(gamma="auto").fit(X)
    >>> svm.predict(X)
    array([-1,  1,  1,  1, -1])
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
        tol=1e-3,
        nu=0.5,
        solver="auto",
        solver_options=None,
        max_time=None,
        max_rounds=None,
        max_kernel_evaluations=None,
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
        self.tol = tol
        self.nu = nu
        self.solver = solver
        self.solver_options = solver_options
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.max_kernel_evaluations = max_kernel_evaluations
        self.cache_mb = cache_mb
        self.random_state = random_state
        self.warm_start = warm_start
        self.certify_every = certify_every
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
        """Train on rows ``X``; ``y`` is not looked at."""
        if not (is_number(self.nu) and 0.0 < self.nu <= 1.0):
            raise ValueError(f"nu must be a number in (0, 1], got {self.nu!r}")
        limits = self._limits()
        X = validate_data(self, X, accept_sparse=self._formats(), dtype="numeric")
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._check_square(X)
        rows = as_rows(X)
        fit = _Fit(Rows(self, rows, weights, repeats_of(sample_weight, rows.n_rows)), float(self.nu))
        solver = self._named_solver(lambda: choose_one_class(rows))
        task = FitTask.of(self, X, None, sample_weight, lambda models: fit.reported(models[0]), 1)
        self._fit_one(fit, solver, limits, task, lambda runs: {"nu": fit.nu} | self._outcome(runs))
        self._warn()
        if not self.support_.size:
            warnings.warn(
                "OneClassSVM: the origin lies among the examples, w = 0 is optimal and every decision value 0; "
                "a smaller nu or the rbf kernel would help",
                UserWarning,
                stacklevel=2,
            )
        return self

    def decision_function(self, X):
        """f(x) - rho of every row: not positive for outliers."""
        return self._values(X)

    def score_samples(self, X):
        """f(x) of every row."""
        return self.decision_function(X) + self.offset_

    def predict(self, X):
        """1 for every row on the side of the examples, -1 for an outlier."""
        values = self._values(X)
        return self.model_.labels_of(values)

    def _bias(self) -> BiasKind:
        return "free"


class _Fit(OneProblem):
    """One class, as the parameters ask for it."""

    def __init__(self, data: Rows, nu: float) -> None:
        super().__init__(data, _OUTLIER_AND_INLIER)
        self.nu = nu

    def over(self, gram: Gram, ids: Any, weights: np.ndarray | None) -> OneClassProblem:
        """The problem over the kernel matrix of the rows ``ids``, with their weights."""
        return one_class_problem(gram, self.nu, weights)

    def reported(self, found: Any, meta: dict[str, Any] | None = None) -> dict[str, Any]:
        """The attributes that show what has been learnt."""
        return super().reported(found, meta) | {"offset_": -found.intercept}
