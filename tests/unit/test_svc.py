"""SVC: its attributes against LIBSVM's, many classes both ways, weights, kernels of every kind, warm starts, limits."""

from __future__ import annotations

import doctest
import importlib
import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from slackwater import SVC, KernelModel, load, save
from slackwater.models.kernel import pairs_of
from slackwater.training import ADVICE

interpreted = pytest.mark.interpreted
EXACT = {"tol": 1e-9, "gamma": 0.2}


def clouds(classes=2, n=150, d=5, seed=3):
    """Overlapping clouds with labels 10, 11, ..."""
    draws = np.random.default_rng(seed)
    centres = draws.normal(size=(classes, d))
    y = draws.permutation(np.arange(n) % classes)
    return centres[y] + draws.normal(size=(n, d)), y + 10


def same_fit(ours, theirs, near=1e-4) -> None:
    """Attributes and decisions to the precision of LIBSVM's own tolerance."""
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, _dense(theirs.dual_coef_), atol=near)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=near)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.n_support_.dtype == theirs.n_support_.dtype


def _dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def pair_of(classes=2, n=150, **settings):
    """Ours and LIBSVM's fit of the same clouds."""
    X, y = clouds(classes, n)
    ours = SVC(**EXACT | settings).fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-7, **{"gamma": 0.2} | settings).fit(X, y)
    return X, y, ours, theirs


# ------------------------------------------------------------------------------------------------ against LIBSVM


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_the_attributes_are_libsvms(classes, C):
    X, _, ours, theirs = pair_of(classes, C=C)
    same_fit(ours, theirs, 1e-4 * max(1.0, C))
    np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"kernel": "rbf", "gamma": "auto"},
        {"kernel": "rbf", "gamma": "scale"},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_kernel_agrees(classes, settings):
    X, _, ours, theirs = pair_of(classes, **settings)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.set_params(break_ties=True).predict(X))
    if settings["kernel"] == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_the_shapes_of_decision_functions(classes, shape):
    X, _, ours, theirs = pair_of(classes, decision_function_shape=shape)
    found = ours.decision_function(X)
    assert found.shape == theirs.decision_function(X).shape
    np.testing.assert_allclose(found, theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32)])
def test_layouts_and_float32(layout):
    X, y = clouds(3)
    one, other = (SVC(**EXACT).fit(table, y) for table in (X, layout(X)))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(layout(X)), atol=1e-3)
    assert other.status_.converged or other.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("class_weight", [None, "balanced", {10: 3.0, 11: 0.5, 12: 1.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_classes_and_examples(weighted, class_weight):
    X, y = clouds(3)
    y[:40] = 10
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y)) if weighted else None
    ours = SVC(class_weight=class_weight, **EXACT).fit(X, y, sample_weight=weights)
    theirs = sklearn.svm.SVC(class_weight=class_weight, gamma=0.2, tol=1e-8).fit(X, y, sample_weight=weights)
    if not (weighted and class_weight == "balanced"):  # they count rows without their weights there
        same_fit(ours, theirs, 1e-3)
    assert ours.status_.converged


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(kernel, multi_class, classes):
    X, y = clouds(classes, n=90)
    weights = np.where(np.arange(90) % 4 == 1, 0.0, 1.0)
    kept = np.flatnonzero(weights)
    settings = EXACT | {"kernel": kernel, "multi_class": multi_class}
    tables = (rbf_kernel(X, gamma=0.2), rbf_kernel(X[kept], gamma=0.2)) if kernel == "precomputed" else (X, X[kept])
    whole = SVC(**settings).fit(tables[0], y, sample_weight=weights)
    part = SVC(**settings).fit(tables[1], y[kept])
    np.testing.assert_array_equal(whole.support_, kept[part.support_])
    np.testing.assert_allclose(whole.dual_coef_, part.dual_coef_, atol=1e-6)


# -------------------------------------------------------------------------------------------------- many classes


def test_one_against_the_rest_is_separate_fits():
    X, y = clouds(3)
    svm = SVC(multi_class="ovr", **EXACT).fit(X, y)
    assert svm.dual_coef_.shape[0] == 3 and svm.decision_function(X).shape == (150, 3)
    for k in range(3):
        alone = SVC(**EXACT).fit(X, y == svm.classes_[k])
        np.testing.assert_allclose(svm.decision_function(X)[:, k], alone.decision_function(X), atol=1e-5)
    assert (svm.predict(X) == svm.classes_[svm.decision_function(X).argmax(axis=1)]).all()
    assert svm.n_support_.sum() == svm.support_.size and svm.model_.blocks is None


def test_pairs_are_separate_fits():
    X, y = clouds(4)
    svm = SVC(decision_function_shape="ovo", **EXACT).fit(X, y)
    values = svm.decision_function(X)
    for pair, (a, b) in enumerate(pairs_of(4)):
        rows = np.isin(y, svm.classes_[[a, b]])
        alone = SVC(**EXACT).fit(X[rows], y[rows])
        np.testing.assert_allclose(values[:, pair], -alone.decision_function(X), atol=1e-5)
    assert len(svm.certificates_) == len(svm.histories_) == 6


@interpreted
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("names", [["no", "yes"], ["ash", "beech", "cedar"]])
def test_labels_may_be_words(names, multi_class):
    X, y = clouds(len(names), n=24)
    words = np.array(names)[y - 10]
    svm = SVC(multi_class=multi_class, gamma=0.2, tol=0.01).fit(X, words)
    assert set(svm.predict(X)) <= set(names) and np.mean(svm.predict(X) == words) > 0.6
    assert svm.classes_.tolist() == names


def test_kernel_evaluations_are_counted():
    X, y = clouds(3)
    shared, pairs = (SVC(multi_class=kind, gamma=0.2).fit(X, y) for kind in ("ovr", "ovo"))
    assert 0 < shared.kernel_evaluations_ <= 150 * 150
    assert 0 < pairs.kernel_evaluations_ <= 3 * 100 * 100
    assert shared.kernel_evaluations_ % 150 == 0 and pairs.kernel_evaluations_ % 100 == 0


# -------------------------------------------------------------------------------------------------- other kernels


@pytest.mark.parametrize("fit_intercept", [True, "penalised", False])
@pytest.mark.parametrize("classes", [2, 3])
def test_precomputed_values_and_functions_are_the_kernel(classes, fit_intercept):
    X, y = clouds(classes)
    new = clouds(classes, seed=4)[0]
    settings = {"tol": 1e-8, "fit_intercept": fit_intercept}
    rbf = SVC(gamma=0.2, **settings).fit(X, y)
    K = rbf_kernel(X, gamma=0.2)
    given = SVC(kernel="precomputed", **settings).fit(K, y)
    function = SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2), **settings).fit(X, y)
    expected = rbf.decision_function(new)
    columns = np.full((150, 150), np.nan)
    columns[:, given.support_] = rbf_kernel(new, X[given.support_], gamma=0.2)
    np.testing.assert_allclose(given.model_.decision_values(columns), expected if classes == 2 else
                               rbf.model_.decision_values(new), atol=1e-5)  # fmt: skip
    np.testing.assert_allclose(given.decision_function(rbf_kernel(new, X, gamma=0.2)), expected, atol=1e-5)
    np.testing.assert_allclose(function.decision_function(new), expected, atol=1e-5)
    assert given.support_vectors_.shape == (given.support_.size, 0)


def test_the_bias_is_what_it_is_said_to_be():
    X, y = clouds()
    none, penalised = (SVC(fit_intercept=kind, **EXACT).fit(X, y) for kind in (False, "penalised"))
    assert none.intercept_.tolist() == [0.0]
    K = rbf_kernel(X, gamma=0.2)
    peer = sklearn.svm.SVC(kernel="precomputed", tol=1e-8).fit(K + 1.0, y)
    # with the bias among the weights the dual has no equation: compare with it through the objective
    shifted = SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2) + 1.0, fit_intercept=False, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(penalised.decision_function(X), shifted.decision_function(X), atol=1e-5)
    assert peer.score(K + 1.0, y) == pytest.approx(penalised.score(X, y), abs=0.05)


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge:0.5", "huber"])
def test_other_losses_reach_their_gap(loss):
    svm = SVC(loss=loss, **EXACT | {"tol": 1e-6}).fit(*clouds(3))
    assert svm.status_.converged and svm.model_.meta["loss"].startswith(loss.partition(":")[0])


# ----------------------------------------------------------------------------------------- what a fit leaves behind


def test_the_fitted_attributes(tmp_path):
    X, y = clouds(3)
    svm = SVC(tol=1e-4).fit(X, y)
    worst = max(certificate.relative_gap for certificate in svm.certificates_)
    assert svm.certificate_.relative_gap == worst <= 1e-4 and svm.status_.converged
    assert svm.solver_ == "blocked-smo" and "150 examples" in svm.solver_reason_
    assert isinstance(svm.model_, KernelModel) and svm.n_iter_ >= 1 and svm.n_features_in_ == 5
    save(svm, tmp_path / "svm")
    np.testing.assert_array_equal(load(tmp_path / "svm").predict(X), svm.predict(X))
    again = pickle.loads(pickle.dumps(svm))
    np.testing.assert_array_equal(again.decision_function(X), svm.decision_function(X))
    with pytest.raises(AttributeError, match="coef_ exists for the linear kernel only"):
        _ = svm.coef_
    assert not hasattr(SVC(kernel="linear"), "coef_")


def test_the_doctests():
    outcome = doctest.testmod(importlib.import_module("slackwater.estimators.svc"))
    assert outcome.attempted >= 4 and outcome.failed == 0


def test_in_a_grid_search():
    X, y = clouds(3)
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.status_.converged
    K = rbf_kernel(X, gamma=0.2)
    assert GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=2).fit(K, y).best_score_ > 0.5


# --------------------------------------------------------------------------------------------- warm starts, limits


def updates(svm) -> int:
    return sum(history[-1].updates for history in svm.histories_)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_warm_start_begins_at_the_last_dual_point(classes, multi_class):
    X, y = clouds(classes, n=600)
    svm = SVC(C=10.0, tol=1e-5, multi_class=multi_class, warm_start=True).fit(X, y)
    cold = updates(svm)
    assert updates(svm.fit(X, y)) < 0.5 * cold and svm.status_.converged
    assert updates(svm.set_params(C=1.1).fit(X, y)) < cold and svm.status_.converged
    svm.fit(X[:300], y[:300])
    assert svm.status_.converged
    svm.set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(svm.dual_coef_, clone(svm).fit(X, y).dual_coef_)


@pytest.mark.parametrize(
    ("setting", "code"),
    [({"max_rounds": 1}, "max_rounds"), ({"max_time": 1e-4}, "max_time"),
     ({"max_kernel_evaluations": 1}, "max_kernel_evaluations")],
)  # fmt: skip
@pytest.mark.parametrize("classes", [2, 3])
def test_limits_leave_the_best_model_and_one_warning(setting, code, classes):
    X, y = clouds(classes, n=900)
    with pytest.warns(ConvergenceWarning) as caught:
        svm = SVC(C=100.0, tol=1e-9, solver_options={"size": 8}, **setting).fit(X, y)
    assert len(caught) == 1 and svm.status_.code == code and ADVICE[code] in str(caught[0].message)
    assert svm.certificate_.dual <= svm.certificate_.primal and svm.predict(X).shape == y.shape


@pytest.mark.parametrize("classes", [2, 3])
def test_ctrl_c_gives_the_best_model_so_far(classes, monkeypatch):
    from slackwater.solvers.kernel.blocked_smo import BlockedSMO

    true_work, presses = BlockedSMO.work, [signal.SIGINT]  # a second one would interrupt at once

    def pressing(self, problem, state):
        true_work(self, problem, state)
        while presses:
            signal.raise_signal(presses.pop())

    monkeypatch.setattr(BlockedSMO, "work", pressing)
    X, y = clouds(classes, n=900)
    svm = SVC(C=100.0, tol=1e-9, solver_options={"size": 8}).fit(X, y)
    assert svm.status_.code == "interrupted" and svm.certificate_.dual > 0.0
    assert {history[-1].round for history in svm.histories_} == {1}
    assert svm.predict(X).shape == y.shape


# ---------------------------------------------------------------------------------------------- wrong parameters


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"C": 0.0}, "C must be positive and finite, got 0.0"),
        ({"C": "1"}, "C must be positive and finite, got '1'"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known; the kernels are"),
        ({"gamma": "wide"}, "gamma='wide' is not known"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"degree": 1.5, "kernel": "poly"}, "degree must be a whole number"),
        ({"coef0": np.nan, "kernel": "poly"}, "coef0 must be a finite number"),
        ({"loss": "logistic"}, "loss='logistic' is not known"),
        ({"solver": "dcd"}, "solver 'dcd' does not treat task 'kernel'; solvers that can: .*blocked-smo"),
        ({"solver": "smo2"}, "solver='smo2' is not known"),
        ({"solver": "blocked-smo", "solver_options": {"width": 3}}, "has no setting 'width'; its settings are size"),
        ({"solver": "blocked-smo", "solver_options": {"size": 1}}, "size must be at least 2, got 1"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
        ({"max_time": 0}, "max_time must be positive or None"),
        ({"max_rounds": 0}, "max_rounds must be at least 1 or None"),
        ({"max_kernel_evaluations": 0}, "max_kernel_evaluations must be at least 1 or None"),
        ({"fit_intercept": "fixed"}, "fit_intercept='fixed' is not known; it is True, 'penalised' or False"),
        ({"fit_intercept": None}, "fit_intercept=None is not known"),
        ({"fit_intercept": [True]}, r"fit_intercept=\[True\] is not known"),
        ({"class_weight": {77: 1.0}}, "class_weight"),
        ({"multi_class": "all"}, "multi_class='all' is not known; the kinds are ovo, ovr, crammer_singer"),
        ({"decision_function_shape": None}, "decision_function_shape=None is not known; it is 'ovo' or 'ovr'"),
        ({"cache_mb": 0}, "cache_mb must be 'auto' or a positive number, got 0"),
        ({"kernel": "precomputed"}, r"needs the square kernel matrix of the training rows, got \(150, 5\)"),
        ({"kernel": "chi2"}, "kernel='chi2' needs values of at least 0"),
        ({"kernel": lambda A, B: np.ones(3)}, "the kernel function gave an array of shape"),
    ],
    ids=lambda part: part if isinstance(part, str) else "-".join(part),
)
def test_each_wrong_parameter_gets_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        SVC(**wrong).fit(*clouds())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_weights_that_leave_nothing_to_learn_from(multi_class):
    X, y = clouds(3)
    svm = SVC(multi_class=multi_class)
    with pytest.raises(ValueError, match=r"every sample weight is zero|at least one non-zero"):
        svm.fit(X, y, sample_weight=np.zeros(150))
    if multi_class == "ovo":
        with pytest.raises(ValueError, match="all rows of class 11 have the weight 0: there is no pair to train"):
            svm.fit(X, y, sample_weight=(y != 11).astype(float))
    else:
        svm.fit(X, y, sample_weight=(y != 11).astype(float))
        assert 11 not in svm.predict(X)


def test_one_class_is_refused():
    with pytest.raises(
        ValueError, match="y holds one class only, 10: a classifier needs examples of at least two classes"
    ):
        SVC().fit(np.eye(3), [10, 10, 10])


def test_new_data_must_fit():
    svm = SVC().fit(*clouds())
    with pytest.raises(ValueError, match="4 features"):
        svm.predict(np.zeros((2, 4)))
