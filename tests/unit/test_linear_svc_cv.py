"""LinearSVCCV: scores of certified points, the best C, and a fit on all rows with it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold

from slackwater import LinearSVC, LinearSVCCV

COSTS = [1e-4, 1e-2, 1.0]


def clouds(n=240, d=6, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(classes, d))[y], y


@pytest.fixture(scope="module")
def fitted():
    X, y = clouds()
    return LinearSVCCV(COSTS, cv=4, tol=1e-6, random_state=0).fit(X, y)


def test_scores_are_those_of_a_grid_search(fitted):
    X, y = clouds()
    search = GridSearchCV(LinearSVC(tol=1e-6, random_state=0), {"C": COSTS}, cv=4).fit(X, y)
    np.testing.assert_allclose(fitted.scores_.mean(axis=0), search.cv_results_["mean_test_score"], atol=1.01 / len(y))
    assert fitted.C_ == search.best_params_["C"]
    for name in ("mean_test_score", "std_test_score", "rank_test_score", "params", "split3_test_score"):
        assert len(fitted.cv_results_[name]) == 3 and name in search.cv_results_
    np.testing.assert_array_equal(fitted.cv_results_["rank_test_score"], search.cv_results_["rank_test_score"])


def test_every_point_is_certified(fitted):
    assert fitted.scores_.shape == (4, 3) and len(fitted.paths_) == 4
    for points in fitted.paths_:
        assert all(points.worst(k).relative_gap <= 1e-6 for k in range(3))
    assert fitted.cv_results_["max_relative_gap"].max() <= 1e-6


def test_the_machine_is_a_fit_on_all_rows_with_the_best_cost(fitted):
    X, y = clouds()
    alone = LinearSVC(C=fitted.C_, tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, alone.coef_)
    np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))
    np.testing.assert_array_equal(fitted.decision_function(X), alone.decision_function(X))
    assert fitted.certificate_ == alone.certificate_ and fitted.n_features_in_ == 6
    assert clone(fitted).get_params() == fitted.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), alone.predict(X))


def test_of_equal_scores_the_smallest_cost_wins():
    X = np.repeat([[-1.0], [1.0]], 30, axis=0)
    svm = LinearSVCCV([10.0, 1.0, 0.1], cv=3).fit(X, X[:, 0] > 0)
    assert (svm.scores_ == 1.0).all() and svm.C_ == 0.1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing_and_classes_may_be_many(n_jobs):
    X, y = clouds(classes=3)
    svm = LinearSVCCV(COSTS, cv=3, n_jobs=n_jobs, random_state=1).fit(X, np.array(["x", "y", "z"])[y])
    alone = LinearSVCCV(COSTS, cv=3, random_state=1).fit(sp.csr_array(X), np.array(["x", "y", "z"])[y])
    np.testing.assert_array_equal(svm.scores_, alone.scores_)
    assert svm.coef_.shape == (3, 6) and svm.scores_.max() > 0.5


def test_scoring_and_splits_of_ones_own():
    X, y = clouds()
    seen = []

    def score(estimator, X, y):
        seen.append(estimator.C)
        return -abs(np.log10(estimator.C) + 2.0)  # likes 0.01

    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    svm = LinearSVCCV(COSTS, cv=splits, scoring=score).fit(X, y)
    assert svm.C_ == 0.01 and seen == COSTS * 3
    by_name = LinearSVCCV(COSTS, cv=splits, scoring="roc_auc").fit(X, y)
    assert 0.5 < by_name.scores_.max() <= 1.0


def test_weights_weigh_training_and_scores():
    X, y = clouds()
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    splits = list(KFold(2, shuffle=True, random_state=0).split(X))
    svm = LinearSVCCV([0.1], cv=splits, tol=1e-6, random_state=0).fit(X, y, sample_weight=weights)
    for fold, (train, test) in enumerate(splits):
        alone = LinearSVC(C=0.1, tol=1e-6, random_state=0).fit(X[train], y[train], sample_weight=weights[train])
        score = accuracy_score(y[test], alone.predict(X[test]), sample_weight=weights[test])
        assert svm.scores_[fold, 0] == pytest.approx(score, abs=0.02)


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [1.0, -1.0]}, "every C of Cs must be positive"),
        ({"cv": 1}, "n_splits=2 or more"),
        ({"scoring": "beauty"}, "scoring"),
        ({"max_time": -1.0}, "max_time must be positive"),
        ({"tol": "small"}, "tol must be"),
        ({"scoring": lambda estimator, X, y: float("nan")}, "no C has a finite score in every fold"),
    ],
)
def test_wrong_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        LinearSVCCV(**{"Cs": [1.0]} | parameters).fit(*clouds(n=30))
