"""LinearSVCCV: the cost C chosen by cross-validation, every fold one warm-started path, then a fit on all rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from slackwater.estimators.compiling import Compiling
from slackwater.estimators.linear_svc import Examples, LinearSVC
from slackwater.estimators.regularisation_path import (
    RegularisationPath,
    checked_costs,
    checked_examples,
    paths,
    warn_of_limits,
)

_SHARE_OF_FOLDS = 0.8  # of the time limit; the fit on all rows gets the rest

#: What a fitted LinearSVC is copied by name.
_LEARNT = (
    "classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_", "model_", "certificate_", "certificates_",
    "status_", "statuses_", "history_", "histories_", "n_iter_", "solver_", "solver_reason_",
)  # fmt: skip


class LinearSVCCV(Compiling, ClassifierMixin, BaseEstimator):
    """``LinearSVC`` with the C that scores best in cross-validation.

    Every fold runs one regularisation path, from small to large C, each point certified and begun where the one before
    ended; folds and classes are trained in ``n_jobs`` threads on the same data. The machine is then fitted on all rows
    with the best C, the smallest of several that are equally good.

    Parameters
    ----------
    Cs : costs, or how many to spread between 0.001 and 10.
    cv : folds, stratified; or a splitter, or pairs of training and test rows.
    scoring : None for accuracy, the name of a score, or a callable(estimator, X, y). Sample weights weigh the score,
        where it takes them.
    max_time : seconds for the whole fit, four fifths of them for the folds.

    The others are those of ``LinearSVC``. Balanced class weights are those of all rows.

    Attributes
    ----------
    C_ : the chosen cost. Cs_ : all costs, from small to large.
    scores_ : (folds, costs). cv_results_ : the same and more, in the form that GridSearchCV has.
    paths_ : the path of every fold, with the certificates, statuses, epochs and seconds of all points.
    best_estimator_ : the LinearSVC fitted on all rows; its attributes (coef_, certificate_, model_, ...) are here too.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from slackwater import LinearSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = LinearSVCCV([0.01, 0.1, 1.0], cv=3, random_state=0).fit(X / X.max(axis=0), y)
    >>> svm.C_, svm.scores_.shape
    (1.0, (3, 3))
    """

    def __init__(
        self,
        Cs=10,
        *,
        cv=5,
        scoring=None,
        loss="hinge",
        solver="auto",
        solver_options=None,
        tol=1e-3,
        max_time=None,
        max_rounds=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        class_weight=None,
        n_jobs=None,
        random_state=None,
    ):
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_time = max_time
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Choose C and train on rows ``X`` with labels ``y`` of any kind."""
        Cs, svm = checked_costs(self.Cs), self._machine(1.0, _SHARE_OF_FOLDS)
        examples = checked_examples(svm, X, y, sample_weight)
        folds = self._folds(examples)
        answers = paths(svm, examples, Cs, [train for train, _ in folds])
        self.Cs_, self.paths_ = Cs, answers
        score = self._score(svm, examples, sample_weight)
        self.scores_ = np.array([
            [score(answer, k, test) for k in range(len(Cs))] for answer, (_, test) in zip(answers, folds, strict=True)
        ])  # fmt: skip
        mean = self.scores_.mean(axis=0)
        if not np.isfinite(mean).any():
            raise ValueError("no C has a finite score in every fold; check scoring and the weights of the folds")
        self.C_ = float(Cs[np.nanargmax(np.where(np.isfinite(mean), mean, np.nan))])
        self.cv_results_ = _results(Cs, self.scores_, answers)
        warn_of_limits(type(self).__name__, answers)
        self.best_estimator_ = self._machine(self.C_, 1.0 - _SHARE_OF_FOLDS).fit(X, y, sample_weight)
        for name in _LEARNT:
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def decision_function(self, X):
        """f(x): (n,) for two classes, (n, classes) for more."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def predict(self, X):
        """The class of every row."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    # ------------------------------------------------------------------------------------------- the parts of fit

    def _machine(self, C: float, share_of_time: float) -> LinearSVC:
        own = self.get_params(deep=False)
        for name in ("Cs", "cv", "scoring"):
            del own[name]
        if isinstance(self.max_time, int | float):
            own["max_time"] = share_of_time * self.max_time
        return LinearSVC(C=C, **own)

    def _folds(self, examples: Examples) -> list[tuple[np.ndarray, np.ndarray]]:
        from sklearn.model_selection import check_cv  # a tenth of a second that few fits need

        splitter = check_cv(self.cv, examples.labels.codes, classifier=True)
        return [
            (np.sort(train), test)
            for train, test in splitter.split(np.empty((examples.rows.n_rows, 0)), examples.labels.codes)
        ]

    def _score(self, svm: LinearSVC, examples: Examples, weights: Any) -> Callable[..., float]:
        """The score of point k of a path on some of the rows."""
        from sklearn.metrics import check_scoring

        y = examples.labels.classes[examples.labels.codes]
        weights = None if weights is None else _check_sample_weight(weights, examples.X)

        def score(answer: RegularisationPath, k: int, test: np.ndarray) -> float:
            judged = _as_fitted(svm, answer, k)
            scorer = check_scoring(judged, scoring=self.scoring)
            options = {} if weights is None or not _takes_weights(scorer) else {"sample_weight": weights[test]}
            return float(scorer(judged, examples.X[test], y[test], **options))

        return score


def _as_fitted(svm: LinearSVC, answer: RegularisationPath, k: int) -> LinearSVC:
    """A point of a path as an estimator, for scorers."""
    judged = clone(svm).set_params(C=float(answer.Cs[k]))
    judged.model_, judged.classes_, judged.n_features_in_ = answer.model(k), answer.classes, answer.coefs.shape[-1]
    judged.coef_, judged.intercept_ = answer.coefs[k], answer.intercepts[k]
    return judged


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric inside it, knows sample weights."""
    return "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters


def _results(Cs: np.ndarray, scores: np.ndarray, answers: Sequence[RegularisationPath]) -> dict[str, Any]:
    """The arrays that GridSearchCV has, with epochs and gaps."""
    seconds = np.array([answer.seconds for answer in answers])
    gaps = [[answer.worst(k).relative_gap for k in range(len(Cs))] for answer in answers]
    mean = scores.mean(axis=0)
    ordered = -np.sort(-np.where(np.isfinite(mean), mean, -np.inf))
    return {
        "params": [{"C": float(C)} for C in Cs],
        "param_C": Cs.copy(),
        **{f"split{fold}_test_score": line.copy() for fold, line in enumerate(scores)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=0),
        "rank_test_score": 1 + np.searchsorted(-ordered, -np.where(np.isfinite(mean), mean, -np.inf)),
        "mean_fit_time": seconds.mean(axis=0),
        "std_fit_time": seconds.std(axis=0),
        "mean_epochs": np.mean([answer.epochs for answer in answers], axis=0),
        "max_relative_gap": np.max(gaps, axis=0),
    }
