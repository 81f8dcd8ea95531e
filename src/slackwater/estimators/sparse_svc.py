"""SparseSVC: a kernel classifier trained and made small in one fit, for pipelines and searches."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from slackwater.estimators.sparsifying import sparsify
from slackwater.estimators.svc import SVC
from slackwater.models.kernel import votes
from slackwater.rows import as_matrix


class SparseSVC(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Trains ``estimator``, then replaces it by a small model that predicts like it.

    Parameters
    ----------
    estimator : an ``SVC``, scikit-learn's too; None for ``SVC()``. Its parameters are reached as ``estimator__C``.
    method, method_options, max_support, max_bytes, max_error_increase, max_time, validation, random_state, verbose : as
        those of ``sparsify``. ``validation`` is a share of the training rows.

    Attributes
    ----------
    estimator_ : the dense classifier. model_ : the small one, which can be saved.
    curve_ : a point for every model that was looked at. point_, before_ : those of the small and of the dense one.
    status_ : why the search ended. settings_ : the method's, those that were best.
    support_, support_vectors_, dual_coef_, intercept_, classes_ : as those of ``SVC``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import SVC, SparseSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> small = SparseSVC(SVC(gamma=0.001), max_support=100, random_state=0).fit(X, y)
    >>> small.support_.size <= 100
    True
    """

    def __init__(
        self,
        estimator=None,
        *,
        method="slant-aggressive",
        method_options=None,
        max_support=100,
        max_bytes=None,
        max_error_increase=None,
        max_time=None,
        validation=0.2,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.method = method
        self.method_options = method_options
        self.max_support = max_support
        self.max_bytes = max_bytes
        self.max_error_increase = max_error_increase
        self.max_time = max_time
        self.validation = validation
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._dense()).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        return tags

    def fit(self, X, y, sample_weight=None):
        """Train on rows ``X`` with labels ``y`` of any kind, then make the result small."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self._dense()).fit(X, y, **weights)
        small = sparsify(
            self.estimator_, X, y, method=self.method, method_options=self.method_options,
            max_support=self.max_support, max_bytes=self.max_bytes, max_error_increase=self.max_error_increase,
            max_time=self.max_time, validation=self.validation, sample_weight=sample_weight,
            random_state=self.random_state, verbose=self.verbose,
        )  # fmt: skip
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        self.model_, self.curve_, self.point_, self.before_ = small.model, small.curve, small.point, small.before
        self.status_, self.settings_, self.classes_ = small.status, small.settings, self.estimator_.classes_
        self.support_, self.dual_coef_, self.intercept_ = small.model.support, small.model.coef, small.model.intercept
        return self

    @property
    def support_vectors_(self):
        """The vectors of the small model."""
        check_is_fitted(self)
        return as_matrix(self.model_.vectors)

    def decision_function(self, X):
        """f(x): (n,) for two classes, (n, classes) for more; pairs are counted as votes."""
        values = self._values(X)
        return values if self.model_.blocks is None else votes(values, len(self.classes_))

    def predict(self, X):
        """The class of every row."""
        values = self._values(X)
        return self.model_.labels_of(values)

    def _dense(self):
        return SVC() if self.estimator is None else self.estimator

    def _values(self, X):
        check_is_fitted(self)
        formats = "csr" if get_tags(self).input_tags.sparse else False
        X = validate_data(self, X, accept_sparse=formats, dtype="numeric", reset=False)
        return self.model_.decision_values(X)
