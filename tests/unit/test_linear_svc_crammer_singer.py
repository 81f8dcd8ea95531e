"""LinearSVC and the command with all classes in one problem: scikit-learn's answers, one certificate, files."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC as Liblinear

from slackwater import LinearSVC, load, save
from slackwater.cli import main
from slackwater.objective import certify, multiclass_problem
from slackwater.rows import as_rows
from slackwater.solvers import contract

X, Y = load_iris(return_X_y=True)
X = X / 8.0
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TOGETHER = {"multi_class": "crammer_singer", "random_state": 0}


def weights_of(svm):
    return np.column_stack((svm.coef_, np.broadcast_to(svm.intercept_, len(svm.coef_))))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0, 2: 0.5}])
def test_the_optimum_is_liblinears(intercept, C, class_weight):
    sample_weight = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    settings = {"C": C, "fit_intercept": intercept, "class_weight": class_weight} | TOGETHER
    ours = LinearSVC(tol=1e-9, **settings).fit(X, Y, sample_weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Liblinear(tol=1e-10, **settings).fit(X, Y, sample_weight)
    costs = sample_weight * (1.0 if class_weight is None else np.vectorize(class_weight.get)(Y))
    problem = multiclass_problem(as_rows(X), Y, 3, C, costs, "penalised" if intercept else "none", 1.0)
    best = certify(problem, weights_of(theirs)).certificate.primal
    assert ours.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert ours.certificate_.dual <= best * (1.0 + 1e-9)
    assert ours.coef_.shape == theirs.coef_.shape == (3, 4) and ours.intercept_.shape == (3,)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


@pytest.mark.parametrize("intercept", [True, False])
def test_two_classes_have_one_line_as_in_scikit_learn(intercept):
    rows, names = X[50:], NAMES[50:]
    ours = LinearSVC(C=0.5, tol=1e-9, fit_intercept=intercept, **TOGETHER).fit(rows, names)
    theirs = Liblinear(C=0.5, tol=1e-10, fit_intercept=intercept, max_iter=10**6, **TOGETHER).fit(rows, names)
    assert ours.coef_.shape == theirs.coef_.shape == (1, 4) and ours.intercept_.shape == (1,)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-4)
    assert ours.decision_function(rows).shape == (100,)
    assert np.array_equal(ours.predict(rows), theirs.predict(rows))
    double = LinearSVC(C=1.0, tol=1e-9, fit_intercept=intercept, random_state=0).fit(rows, names)
    assert ours.certificate_.primal == pytest.approx(double.certificate_.primal, rel=1e-8)


def test_one_certificate_and_the_reason():
    svm = LinearSVC(C=10.0, tol=1e-3, **TOGETHER).fit(sp.csr_array(X), NAMES)
    assert svm.solver_ == "crammer-singer" and "3 classes in one problem" in svm.solver_reason_
    assert len(svm.certificates_) == len(svm.statuses_) == len(svm.histories_) == 1
    assert svm.certificate_.relative_gap <= 1e-3 and svm.status_.converged
    assert svm.decision_function(X).shape == (150, 3)
    assert svm.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert svm.score(X, NAMES) > 0.8


def test_warm_starts_begin_where_the_last_fit_ended(monkeypatch):
    monkeypatch.setattr(contract, "_EPOCHS_ON_TINY", 1)
    svm = LinearSVC(tol=1e-6, warm_start=True, C=1.0, **TOGETHER).fit(X, Y)
    first = svm.n_iter_
    svm.fit(X, Y)
    assert svm.n_iter_ < 0.5 * first
    svm.set_params(multi_class="ovr").fit(X, Y)
    assert len(svm.certificates_) == 3
    svm.set_params(multi_class="crammer_singer").fit(X, Y)
    assert len(svm.certificates_) == 1 and svm.status_.converged
    svm.fit(X[50:], Y[50:])
    assert svm.coef_.shape == (1, 4)


def test_a_part_kept_back_is_watched():
    svm = LinearSVC(tol=1e-9, validation_fraction=0.2, patience=3, C=10.0, **TOGETHER).fit(X, Y)
    errors = svm.history_.columns()["holdout_error"]
    assert np.isfinite(errors).all() and errors.min() < 0.2


def test_models_are_saved_and_read_again(tmp_path):
    for rows, names in ((X, NAMES), (X[50:], NAMES[50:])):
        svm = LinearSVC(**TOGETHER).fit(rows, names)
        save(svm, tmp_path / "iris.model")
        again = load(tmp_path / "iris.model")
        assert np.array_equal(again.predict(rows), svm.predict(rows))
        assert len(again.meta["certificates"]) == 1


@pytest.fixture
def iris_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{y} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, y in zip(X, Y, strict=True)]
    (tmp_path / "iris.svm").write_text("\n".join(lines) + "\n")
    return "iris.svm"


def test_the_command_trains_all_classes_together(iris_file, capsys):
    together = ["train", iris_file, "--multi-class", "crammer_singer"]
    assert main([*together, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["solver"] == "crammer-singer"
    assert [problem["class"] for problem in told["problems"]] == [None]
    assert main(["info", "iris.model"]) == 0
    assert capsys.readouterr().out.count("proven lower bound") == 1
    assert main([*together, "--solver", "crammer-singer", "--set", "inner=3"]) == 0
    assert "certificate" in capsys.readouterr().out
    assert main([*together, "--solver", "dcd"]) == 2
    assert "does not treat task 'multiclass'" in capsys.readouterr().err
    assert main([*together, "--loss", "huber"]) != 0
    assert "needs loss='hinge'" in capsys.readouterr().err
