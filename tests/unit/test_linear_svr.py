"""LinearSVR: the drop-in for scikit-learn's, with its certificate, its model in a file, and bad parameters."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVR as Liblinear

from slackwater import LinearSVC, LinearSVR, load, save, write
from slackwater.cli import main
from slackwater.solvers.contract import UnsupportedError

X, Y = make_regression(60, 5, noise=5.0, random_state=0)
Y = Y / 50.0 + 1.0


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_answer_is_scikit_learns(loss, intercept):
    options = {"loss": loss, "epsilon": 0.1, "C": 0.5, "fit_intercept": intercept, "random_state": 0}
    weights = np.arange(60) % 3 + 0.5
    ours = LinearSVR(tol=1e-9, **options).fit(X, Y, weights)
    theirs = Liblinear(tol=1e-8, max_iter=1_000_000, dual=True, **options).fit(X, Y, weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-3)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=3e-3)
    assert ours.certificate_.relative_gap <= 1e-9 and ours.status_.converged


@pytest.mark.parametrize("intercept", [True, False, "free"])
def test_a_saved_model_predicts_values(tmp_path, intercept):
    svm = LinearSVR(epsilon=0.05, fit_intercept=intercept, random_state=0).fit(X, Y)
    save(svm, tmp_path / "svr.model")
    model = load(tmp_path / "svr.model")
    assert np.array_equal(model.predict(X), svm.predict(X))
    assert np.unique(model.predict(sp.csr_array(X))).size > 50
    assert (model.meta["loss"], model.meta["epsilon"]) == ("epsilon_insensitive", 0.05)
    assert model.meta["certificates"][0]["primal"] == svm.certificate_.primal


def test_a_warm_start_goes_on():
    wide, y = make_regression(2000, 60, noise=30.0, random_state=1)
    svm = LinearSVR(C=0.1, tol=1e-4, warm_start=True, random_state=0).fit(wide, y)
    cold = svm.n_iter_
    assert svm.fit(wide, y).n_iter_ < cold
    assert svm.fit(wide[:50], y[:50]).status_.converged


def test_a_limit_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match="LinearSVR: limit of 1 round"):
        LinearSVR(tol=0.0, max_rounds=1, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"epsilon": -0.5}, "epsilon must be a number of at least 0, got -0.5"),
        ({"epsilon": "wide"}, "epsilon must be a number of at least 0, got 'wide'"),
        ({"C": 0}, "C must be positive and finite, got 0"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"fit_intercept": "maybe"}, "fit_intercept='maybe' is not known"),
        ({"solver": "nobody"}, "solver='nobody' is not known"),
    ],
)
def test_bad_parameters_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        LinearSVR(**options).fit(X, Y)


def test_solvers_of_another_task_are_refused():
    with pytest.raises(UnsupportedError, match=r"solver 'dcd' does not treat task 'regression'.* svr-dcd"):
        LinearSVR(solver="dcd").fit(X, Y)
    with pytest.raises(UnsupportedError, match=r"solver 'svr-dcd' does not treat task 'classification'.* dcd"):
        LinearSVC(solver="svr-dcd").fit(X, Y > 1.0)


def test_the_command_predicts_and_evaluates_a_saved_model(tmp_path, capsys):
    svm = LinearSVR(epsilon=0.05, random_state=0).fit(X, Y)
    save(svm, tmp_path / "svr.model")
    write(tmp_path / "data.svm", X, Y)
    arguments = [str(tmp_path / "svr.model"), str(tmp_path / "data.svm")]
    assert main(["predict", *arguments]) == 0
    assert np.loadtxt(capsys.readouterr().out.splitlines()) == pytest.approx(svm.predict(X), abs=1e-5)
    assert main(["evaluate", *arguments, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["r2"] == pytest.approx(svm.score(X, Y), rel=1e-5)
    assert measured["rmse"] == pytest.approx(np.sqrt(np.mean((Y - svm.predict(X)) ** 2)), rel=1e-4)
    assert main(["evaluate", *arguments]) == 0
    assert "rmse" in capsys.readouterr().out
    assert main(["train", arguments[1], "--solver", "svr-dcd"]) == 2
    assert "does not treat task 'classification'" in capsys.readouterr().err
