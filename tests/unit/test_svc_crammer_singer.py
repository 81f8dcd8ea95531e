"""SVC and the command with all classes in one problem over a kernel."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from slackwater import SVC, LinearSVC, load, save
from slackwater.cli import main
from slackwater.models import KernelModel

from .test_cli import folder, ran, two_blobs  # noqa: F401

X, Y = load_iris(return_X_y=True)
X = X / 8.0
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TOGETHER = {"multi_class": "crammer_singer", "random_state": 0}


@pytest.mark.parametrize("intercept", [True, False])
def test_the_linear_kernel_is_the_linear_machine(intercept):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
    settings = {"C": 5.0, "fit_intercept": intercept, "class_weight": {0: 1.0, 1: 3.0, 2: 0.5}, "tol": 1e-7} | TOGETHER
    ours = SVC(kernel="linear", **settings).fit(X, Y, weights)
    theirs = LinearSVC(**settings).fit(X, Y, weights)
    assert ours.certificate_.primal == pytest.approx(theirs.certificate_.primal, rel=1e-6)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=5e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.98
    assert ours.decision_function(X).shape == (150, 3)


def test_two_classes_have_one_output():
    ours = SVC(C=2.0, gamma=1.0, tol=1e-7, **TOGETHER).fit(X[50:], NAMES[50:])
    double = SVC(C=4.0, gamma=1.0, tol=1e-7, fit_intercept="penalised").fit(X[50:], NAMES[50:])
    assert ours.dual_coef_.shape[0] == 1 and ours.decision_function(X).shape == (150,)
    assert ours.certificate_.primal == pytest.approx(double.certificate_.primal, rel=1e-6)
    assert ours.decision_function(X) == pytest.approx(double.decision_function(X), abs=1e-2)
    assert set(ours.predict(X)) <= {"versicolor", "virginica"}


def test_one_certificate_rows_of_weight_zero_and_files(tmp_path):
    weights = np.ones(150)
    weights[::5] = 0.0
    svm = SVC(C=3.0, gamma=2.0, tol=1e-4, **TOGETHER).fit(X, NAMES, weights)
    assert svm.solver_ == "larank" and "3 classes in one problem" in svm.solver_reason_
    assert len(svm.certificates_) == 1 and svm.status_.converged and svm.certificate_.rule == "C1"
    assert not np.isin(svm.support_, np.arange(0, 150, 5)).any()
    assert svm.score(X, NAMES) > 0.9 and svm.n_support_.sum() == svm.support_.size
    rest = SVC(C=3.0, gamma=2.0, tol=1e-4, **TOGETHER).fit(X[weights > 0], NAMES[weights > 0])
    assert rest.certificate_.primal == pytest.approx(svm.certificate_.primal, rel=2e-4)
    save(svm.model_, tmp_path / "three.model")
    again = load(tmp_path / "three.model")
    assert isinstance(again, KernelModel) and np.array_equal(again.predict(X), svm.predict(X))


def test_warm_starts_begin_where_the_last_fit_ended():
    svm = SVC(C=3.0, gamma=2.0, tol=1e-5, warm_start=True, **TOGETHER).fit(X, Y)
    first = svm.history_[-1].updates
    svm.fit(X, Y)
    assert svm.history_[-1].updates < 0.5 * first and svm.status_.converged


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss": "squared_hinge"}, "multi_class='crammer_singer' needs loss='hinge'"),
        ({"fit_intercept": "free"}, "bias='free' is not treated for crammer_singer"),
        ({"solver": "smo"}, "solver 'smo' does not treat task 'kernel-multiclass'; solvers that can: larank"),
    ],
)
def test_what_cannot_be_is_said(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        SVC(**TOGETHER | settings).fit(X, Y)


def test_the_command(folder, capsys):  # noqa: F811
    words = ("train", "three.svm", "--kernel", "rbf", "--gamma", "0.3", "--multi-class", "crammer_singer")
    out = ran(capsys, *words)
    assert "larank: " in out and "3 classes in one problem" in out
    answer = json.loads(ran(capsys, *words, "--solver", "larank", "--json"))
    assert [problem["class"] for problem in answer["problems"]] == [None]
    model = load("three.model")
    assert isinstance(model, KernelModel) and model.n_outputs == 3 and model.meta["intercept"] == "penalised"
    predicted = ran(capsys, "predict", "three.model", "three.svm").split()
    assert predicted == model.predict(two_blobs()[0].astype(np.float32)).tolist()
    assert "kernel, 3 outputs" in ran(capsys, "info", "three.model")
    assert main([*words, "--bias", "free"]) != 0
    assert "bias='free' is not treated for crammer_singer" in capsys.readouterr().err


@pytest.mark.parametrize(("solver", "bias"), [("ramp", "free"), ("larank", "penalised")])
def test_the_command_with_two_classes(folder, capsys, solver, bias):  # noqa: F811
    words = ("train", "two.svm", "--kernel", "rbf", "--gamma", "0.5", "--solver", solver, "--bias", bias)
    out = ran(capsys, *words)
    assert f"{solver}: " in out and ("local lower bound" if solver == "ramp" else "proven lower bound") in out
    assert load("two.model").meta["solver"] == solver
    assert "kernel" in ran(capsys, "info", "two.model")
    assert f"--kernel rbf --solver {solver} --set" in " ".join(ran(capsys, "solvers", solver).split())
