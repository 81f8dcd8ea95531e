"""LinearSVC: what a fit leaves, agreement with LIBLINEAR and LIBSVM, many classes, weights, warm starts, limits."""

from __future__ import annotations

import doctest
import importlib
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slackwater import LinearModel, LinearSVC, load, save
from slackwater.objective import certify, linear_problem, parse_loss
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes
from slackwater.training import ADVICE


def clouds(classes=2, n=400, d=8, seed=3, overlap=1.0):
    """Overlapping clouds with labels 10, 11, ..."""
    draws = np.random.default_rng(seed)
    centres = draws.normal(size=(classes, d)) / overlap
    y = draws.permutation(np.arange(n) % classes)
    return centres[y] + draws.normal(size=(n, d)), y + 10


def objective(coef, intercept, X, y, C, loss, *, penalised=True, scaling=1.0, weights=None) -> float:
    """||w||^2 / 2 + sum_i C_i loss, the intercept among the weights where it is penalised."""
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    short = np.maximum(0.0, 1.0 - signs * (X @ np.ravel(coef) + intercept))
    losses = short if loss == "hinge" else short**2
    costs = C * (np.ones(len(y)) if weights is None else weights)
    norm = np.sum(np.square(coef)) + (penalised and np.sum(np.square(intercept / scaling)))
    return float(0.5 * norm + costs @ losses)


# ------------------------------------------------------------------------------------------- what a fit leaves behind


@pytest.mark.parametrize("classes", [2, 3])
def test_the_fitted_attributes(classes):
    X, y = clouds(classes)
    svm = LinearSVC(random_state=0).fit(X, y)
    problems = 1 if classes == 2 else classes
    assert svm.coef_.shape == (problems, 8) and svm.coef_.dtype == np.float64
    assert svm.intercept_.shape == (problems,) and svm.intercept_.any()
    np.testing.assert_array_equal(svm.classes_, np.unique(y))
    assert len(svm.certificates_) == len(svm.statuses_) == len(svm.histories_) == problems
    assert svm.status_.converged and svm.status_ in svm.statuses_ and svm.history_ in svm.histories_
    assert svm.n_iter_ >= 1 and svm.n_iter_ == max(history[-1].epochs for history in svm.histories_)
    assert svm.n_features_in_ == 8 and not hasattr(svm, "feature_names_in_")
    assert svm.solver_ == "dcd" and "400 rows" in svm.solver_reason_ and "hinge" in svm.solver_reason_
    assert isinstance(svm.model_, LinearModel) and svm.coef_ is svm.model_.coef
    assert svm.coef_.flags.c_contiguous


def test_the_certificate_is_the_worst_of_all():
    svm = LinearSVC(random_state=0).fit(*clouds(5))
    gaps = [certificate.relative_gap for certificate in svm.certificates_]
    assert svm.certificate_.relative_gap == max(gaps) <= svm.tol
    place = gaps.index(max(gaps))
    assert svm.status_ is svm.statuses_[place] and svm.history_ is svm.histories_[place]


@pytest.mark.parametrize("fit_intercept", [True, False, "free"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge:0.5", "huber"])
def test_the_certificate_is_that_of_the_returned_weights(loss, fit_intercept):
    X, y = clouds()
    svm = LinearSVC(C=0.3, loss=loss, fit_intercept=fit_intercept, random_state=0).fit(X, y)
    bias = {True: "penalised", False: "none", "free": "free"}[fit_intercept]
    problem = linear_problem(as_rows(X), np.where(y == 11, 1.0, -1.0), parse_loss(loss), 0.3, bias=bias)
    found = certify(problem, svm.model_.weights(problem.rows.bias)).certificate
    assert found.primal == pytest.approx(svm.certificate_.primal, rel=1e-12)
    assert 0.0 < svm.certificate_.dual <= svm.certificate_.primal <= 1.001 * svm.certificate_.dual


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_decisions_are_products_with_the_weights(classes, form):
    X, y = clouds(classes)
    svm = LinearSVC(random_state=0).fit(form(X), y)
    values = X @ svm.coef_.T + svm.intercept_
    np.testing.assert_allclose(
        svm.decision_function(form(X)), values[:, 0] if classes == 2 else values, rtol=1e-9, atol=1e-12
    )
    expected = svm.classes_[(values[:, 0] > 0).astype(int) if classes == 2 else values.argmax(axis=1)]
    np.testing.assert_array_equal(svm.predict(form(X)), expected)
    assert svm.score(X, y) == np.mean(expected == y)


def test_the_doctests():
    module = importlib.import_module("slackwater.estimators.linear_svc")
    outcome = doctest.testmod(module)
    assert outcome.attempted >= 4 and outcome.failed == 0


# ----------------------------------------------------------------------------------------------- independent solvers


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_it_agrees_with_liblinear(loss, fit_intercept, C):
    X, y = clouds(overlap=3.0)
    ours = LinearSVC(C=C, loss=loss, fit_intercept=fit_intercept, tol=1e-5, random_state=0).fit(X, y)
    theirs = sklearn.svm.LinearSVC(
        C=C, loss=loss, fit_intercept=fit_intercept, tol=1e-8, max_iter=10**6, random_state=0
    )
    theirs.fit(X, y)
    values = [objective(svm.coef_, svm.intercept_, X, y, C, loss) for svm in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)
    assert ours.certificate_.primal * C * len(y) == pytest.approx(values[0], rel=1e-12)


def test_it_agrees_with_liblinear_on_the_scale_of_the_intercept():
    X, y = clouds(overlap=3.0)
    X += 3.0
    ours = LinearSVC(loss="squared_hinge", intercept_scaling=5.0, tol=1e-6, random_state=0).fit(X, y)
    theirs = sklearn.svm.LinearSVC(intercept_scaling=5.0, tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)
    values = [objective(s.coef_, s.intercept_, X, y, 1.0, "squared", scaling=5.0) for s in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_a_free_intercept_agrees_with_libsvm(C):
    X, y = clouds(overlap=3.0)
    X += 3.0
    ours = LinearSVC(C=C, fit_intercept="free", tol=1e-5, random_state=0).fit(X, y)
    theirs = sklearn.svm.SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
    values = [objective(s.coef_, s.intercept_, X, y, C, "hinge", penalised=False) for s in (ours, theirs)]
    assert values[0] == pytest.approx(values[1], rel=1e-4)


# --------------------------------------------------------------------------------------------------- many classes


def test_one_against_the_rest_is_separate_fits():
    X, y = clouds(4)
    svm = LinearSVC(tol=1e-4, random_state=0).fit(X, y)
    seeds = np.random.SeedSequence(np.random.RandomState(0).randint(2**31)).spawn(4)
    training = importlib.import_module("slackwater.training")
    for k, seed in enumerate(seeds):
        signs = np.where(y == svm.classes_[k], 1.0, -1.0)
        problem = linear_problem(as_rows(X), signs, parse_loss("hinge"), bias="penalised")
        solver = solver_classes()["dcd"]()
        alone = training.run(problem, solver, training.Limits(tol=1e-4), rng=np.random.default_rng(seed))
        np.testing.assert_array_equal(svm.coef_[k], alone.model.coef[0])
        assert svm.intercept_[k] == alone.model.intercept[0] and svm.certificates_[k] == alone.certificate


@pytest.mark.parametrize("n_jobs", [1, 2, 7, -1])
def test_threads_change_nothing(n_jobs):
    X, y = clouds(5)
    one, many = (LinearSVC(random_state=0, n_jobs=jobs).fit(X, y) for jobs in (None, n_jobs))
    np.testing.assert_array_equal(one.coef_, many.coef_)
    assert one.certificates_ == many.certificates_ and one.statuses_ == many.statuses_


def test_the_seed_decides():
    X, y = clouds(3)
    same = [LinearSVC(random_state=5, tol=0.01).fit(X, y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], LinearSVC(random_state=6, tol=0.01).fit(X, y).coef_)
    state = np.random.RandomState(5)
    first, second = (LinearSVC(random_state=state, tol=0.01).fit(X, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, same[0])
    assert not np.array_equal(first, second)


# --------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("class_weight", ["balanced", {10: 3.0, 11: 0.5, 12: 1.0}])
def test_weights_of_classes_are_weights_of_their_examples(class_weight):
    X, y = clouds(3)
    X, y = X[: len(y) - 100], np.where(y[: len(y) - 100] == 12, 11, y[: len(y) - 100])
    y[::7] = 12
    balanced = {k: len(y) / (3 * np.sum(y == k)) for k in (10, 11, 12)}
    weights = balanced if class_weight == "balanced" else class_weight
    by_class = LinearSVC(class_weight=class_weight, random_state=0).fit(X, y)
    by_example = LinearSVC(random_state=0).fit(X, y, sample_weight=np.vectorize(weights.get)(y))
    np.testing.assert_allclose(by_class.coef_, by_example.coef_, rtol=1e-9)


def test_both_kinds_of_weights_multiply():
    X, y = clouds()
    weights = np.linspace(0.5, 2.0, len(y))
    both = LinearSVC(class_weight={11: 4.0}, random_state=0).fit(X, y, sample_weight=weights)
    one = LinearSVC(random_state=0).fit(X, y, sample_weight=weights * np.where(y == 11, 4.0, 1.0))
    np.testing.assert_array_equal(both.coef_, one.coef_)
    value = objective(both.coef_, both.intercept_, X, y, 1.0, "hinge", weights=weights * np.where(y == 11, 4.0, 1.0))
    total = np.sum(weights * np.where(y == 11, 4.0, 1.0))
    assert both.certificate_.primal == pytest.approx(value / total, rel=1e-12)


# ------------------------------------------------------------------------------------------------------ warm starts


def epochs(svm) -> int:
    return sum(history[-1].updates for history in svm.histories_)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_warm_start_begins_at_the_last_dual_point(classes):
    X, y = clouds(classes, n=4000, d=40)
    svm = LinearSVC(C=0.1, tol=1e-4, warm_start=True, random_state=0).fit(X, y)
    cold = epochs(svm)
    assert epochs(svm.fit(X, y)) < 0.3 * cold and svm.status_.converged
    assert epochs(svm.set_params(C=0.12).fit(X, y)) < epochs(clone(svm).fit(X, y)) and svm.status_.converged


def test_a_warm_start_on_other_data_is_a_cold_one():
    X, y = clouds(3)
    svm = LinearSVC(warm_start=True, random_state=0).fit(X, y)
    for new_X, new_y in [(X[:200], y[:200]), (X[:, :5], y), (X, y + 1), (X, np.minimum(y, 11))]:
        svm.fit(new_X, new_y)
        cold = LinearSVC(random_state=0).fit(new_X, new_y)
        assert svm.status_.converged and svm.coef_.shape == cold.coef_.shape
        assert svm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-3)


def test_without_warm_start_nothing_is_kept():
    X, y = clouds()
    svm = LinearSVC(random_state=0, warm_start=True).fit(X, y)
    svm.set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(svm.coef_, LinearSVC(random_state=0).fit(X, y).coef_)
    assert not hasattr(svm, "_duals")


# ---------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(("setting", "code"), [({"max_rounds": 1}, "max_rounds"), ({"max_time": 1e-4}, "max_time")])
@pytest.mark.parametrize("classes", [2, 4])
def test_one_warning_names_the_gap_and_what_would_help(setting, code, classes):
    X, y = clouds(classes, n=3000, d=40, overlap=5.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        svm = LinearSVC(C=1e4, tol=1e-9, random_state=0, **setting).fit(X, y)
    assert [warning.category for warning in caught] == [ConvergenceWarning]
    text = str(caught[0].message)
    assert text == f"LinearSVC: {svm.status_}; {ADVICE[code]}" and "gap" in text and f"a larger {code}" in text
    assert caught[0].filename == __file__ or "sklearn" in caught[0].filename  # scikit-learn 1.9 wraps fit
    assert svm.status_.code == code and svm.certificate_.relative_gap > 1e-9
    assert len(svm.predict(X)) == len(X)


def test_all_classes_share_the_time(monkeypatch):
    module = importlib.import_module("slackwater.estimators.certified")
    shares, true_run = [], module.run

    def noted(problem, solver, limits, **options):
        shares.append(limits.max_time)
        return true_run(problem, solver, limits, **options)

    monkeypatch.setattr(module, "run", noted)
    LinearSVC(max_time=100.0, random_state=0).fit(*clouds(4))
    assert shares[0] == pytest.approx(25.0, rel=0.01) and 99.0 < shares[3] <= 100.0 and sorted(shares) == shares


def test_a_holdout_ends_the_fit():
    X, y = clouds(n=600, overlap=4.0)
    y[np.random.default_rng(1).random(len(y)) < 0.2] = 10
    settings = {"C": 100.0, "tol": 0.0, "certify_every": 1, "random_state": 0}
    svm = LinearSVC(validation_fraction=0.25, patience=5, **settings).fit(X, y)
    errors = [record.holdout_error for record in svm.history_]
    assert svm.status_.code == "holdout" and len(errors) == int(np.argmin(errors)) + 6
    assert set(np.round(np.array(errors) * 150, 6) % 1) == {0.0}  # 150 rows are kept back
    again = LinearSVC(validation_fraction=0.25, patience=5, **settings).fit(X, y)
    np.testing.assert_array_equal(svm.coef_, again.coef_)


def test_without_a_holdout_there_is_no_holdout_error():
    svm = LinearSVC(random_state=0).fit(*clouds())
    assert all(math.isnan(record.holdout_error) for record in svm.history_)


def test_certify_every():
    svm = LinearSVC(certify_every=1, random_state=0).fit(*clouds(n=3000, d=40))
    assert [record.round for record in svm.history_] == list(range(1, len(svm.history_) + 1))


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_small_data_reach_small_gaps(C):
    for classes in (2, 4):
        svm = LinearSVC(C=C, tol=1e-9, random_state=0).fit(*clouds(classes, n=300, d=6))
        assert svm.status_.converged and svm.certificate_.relative_gap <= 1e-9


# --------------------------------------------------------------------------------------------------------- solvers


@pytest.mark.parametrize("name", sorted(solver_classes("classification")))
def test_every_solver_can_be_named(name):
    able = solver_classes()[name]
    loss = "hinge" if "hinge" in able.losses else able.losses[0]
    svm = LinearSVC(
        C=0.1, loss=loss, penalty=able.penalties[0], solver=name, fit_intercept="none" not in able.biases, tol=0.05,
        random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ConvergenceWarning)
        svm.fit(*clouds())
    assert svm.solver_ == name and svm.solver_reason_ == "chosen by the caller"
    gap = svm.certificate_.relative_gap
    if able.optimises or svm.status_.converged:
        assert svm.status_.converged and gap <= 0.05 and not warned
    else:
        assert svm.status_.code == "stalled" and gap > 0.05
        assert len(warned) == 1 and f"{gap:.2g}" in str(warned[0].message)


def test_solvers_take_options():
    X, y = clouds()
    svm = LinearSVC(solver="dcd", solver_options={"shrinking": False, "inner": 0}, random_state=0).fit(X, y)
    products = svm.history_[-1].inner_products
    assert products == len(y) * svm.n_iter_  # every row in every epoch


# ------------------------------------------------------------------------------------------ in scikit-learn's company


def test_it_is_copied_pickled_saved_and_loaded(tmp_path):
    X, y = clouds(3)
    svm = LinearSVC(C=0.5, solver_options={"shrinking": True}, random_state=0).fit(X, y)
    assert clone(svm).get_params() == svm.get_params() and not hasattr(clone(svm), "coef_")
    other = pickle.loads(pickle.dumps(svm))
    np.testing.assert_array_equal(other.decision_function(X), svm.decision_function(X))
    assert other.certificates_ == svm.certificates_ and other.statuses_ == svm.statuses_
    np.testing.assert_equal(other.history_.columns(), svm.history_.columns())
    save(svm, tmp_path / "model")
    model = load(tmp_path / "model")
    np.testing.assert_array_equal(model.decision_values(X), svm.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), svm.predict(X))
    assert model.meta["C"] == 0.5 and model.meta["solver"] == "dcd" and len(model.meta["certificates"]) == 3
    assert model.meta["certificates"][1]["primal"] == svm.certificates_[1].primal


def test_parameters_are_set_and_read():
    svm = LinearSVC().set_params(C=2.5, loss="huber:0.25")
    assert svm.get_params()["C"] == 2.5 and repr(svm) == "LinearSVC(C=2.5, loss='huber:0.25')"


def test_model_selection_and_calibration():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    assert cross_val_score(LinearSVC(random_state=0, tol=0.01), X, y, cv=3).mean() > 0.85
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0, tol=0.01))
    search = GridSearchCV(pipeline, {"linearsvc__C": [1e-3, 1e-2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8 and search.best_estimator_[-1].status_.converged
    calibrated = CalibratedClassifierCV(LinearSVC(random_state=0, tol=0.01), cv=2).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


def test_verbose_shows_how_it_ended(capfd):
    svm = LinearSVC(verbose=1, random_state=0).fit(*clouds())
    assert capfd.readouterr().err == f"training: {svm.status_}\n"
    svm = LinearSVC(verbose=1, random_state=0).fit(*clouds(3))
    shown = capfd.readouterr().err.splitlines()
    assert shown == [f"class {k}: {status}" for k, status in zip(svm.classes_, svm.statuses_, strict=True)]
    LinearSVC(random_state=0).fit(*clouds())
    assert capfd.readouterr() == ("", "")
