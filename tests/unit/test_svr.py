"""SVR and its solver: against LIBSVM and the reference optimum, bounds at every round, weights, limits, files."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from reference.svr_reference import solve_regression, tube_loss_value
from slackwater import SVR, load, save
from slackwater.cli import main
from slackwater.gram import Gram, gram
from slackwater.models import KernelRegressionModel
from slackwater.objective import BoxPoint, GradientPoint, certify, tube_loss
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_regression import kernel_regression_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.kernel.blocked_svr import BlockedSVR
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
BIASES = ("none", "penalised", "free")


def waves(n=120, seed=0):
    draws = np.random.default_rng(seed)
    X = draws.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * draws.normal(size=n) + 2.0


def problem_of(loss="epsilon_insensitive", bias="free", epsilon=0.1, n=30, weighted=True, room=2**30):
    X, y = waves(n)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, n) if weighted else None
    points = Points.of(as_rows(X), Kernel("rbf", gamma=0.3), np.float64, 1.0 if bias == "penalised" else 0.0)
    return kernel_regression_problem(Gram(points, room), y, tube_loss(loss, epsilon), 0.7, weights, bias)


def whole(problem) -> np.ndarray:
    points, n = problem.gram.points, problem.n_rows
    return points.values(points.own_lines(np.arange(n)), np.empty((n, n)))


def reference(problem):
    sizes, vectors = np.linalg.eigh(whole(problem))
    Z = vectors * np.sqrt(np.maximum(sizes, 0.0))
    bias = "none" if problem.bias == "penalised" else problem.bias  # the kernel holds the constant feature
    return solve_regression(Z, problem.targets, problem.costs, problem.loss, bias)


# -------------------------------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.25])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_the_reference_solvers(loss, epsilon, bias):
    problem = problem_of(loss, bias, epsilon)
    best = reference(problem)
    found = run(problem, BlockedSVR(), Limits(tol=1e-8, max_rounds=300)).certificate
    assert found.relative_gap <= 1e-8
    assert found.primal == pytest.approx(best.primal, rel=1e-7) and found.dual == pytest.approx(best.primal, rel=1e-7)


@interpreted
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_at_every_round(loss, bias, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 7)
    problem = problem_of(loss, bias, n=12, room=1)
    best, K = reference(problem), whole(problem)
    found = run(problem, BlockedSVR(size=4), Limits(tol=0.0, max_rounds=8, certify_every=1))
    for record in found.history:
        assert record.dual <= best.primal * (1.0 + 1e-9) and record.primal >= best.dual * (1.0 - 1e-9)
    beta = np.zeros(12)
    beta[found.model.support] = found.model.coef[0]
    losses = problem.costs @ tube_loss_value(problem.loss, problem.targets - K @ beta - found.model.intercept[0])
    by_definition = problem.regularisation * (0.5 * beta @ K @ beta + losses)
    assert found.certificate.primal == pytest.approx(by_definition, rel=1e-9)
    alpha, loss = found.alpha, problem.loss
    quadratic = alpha @ K @ alpha + loss.width * (alpha @ (alpha / problem.costs))
    dual = problem.targets @ alpha - loss.epsilon * np.abs(alpha).sum() - 0.5 * quadratic
    assert found.certificate.dual == pytest.approx(problem.regularisation * dual, rel=1e-9)
    assert (np.abs(alpha) <= loss.cap * problem.costs * (1.0 + 1e-12)).all()
    if bias == "free":
        assert abs(alpha.sum()) <= 1e-10 * np.abs(alpha).sum()


@pytest.mark.parametrize("bias", BIASES)
def test_any_dual_point_gives_a_true_bound(bias, rng):
    problem = problem_of("epsilon_insensitive", bias)
    best = reference(problem)
    for scale in (0.01, 0.3, 10.0):
        weights = rng.normal(size=31) * scale
        for point in (BoxPoint(rng.normal(size=30) * scale), GradientPoint(weights), None):
            found = certify(problem, weights, point).certificate
            assert found.dual <= best.primal + 1e-9 and found.primal >= best.dual - 1e-9
            assert found.rule == ("C1" if isinstance(point, BoxPoint) else "C6") + ("+C7" if bias == "free" else "")
    assert certify(problem, np.full(31, np.nan), BoxPoint(np.full(30, np.nan))).certificate.dual == -np.inf
    with pytest.raises(TypeError, match="regression knows no bound of a str"):
        certify(problem, np.zeros(31), "alpha")


@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_is_the_gap(loss):
    problem, solver = problem_of(loss, n=60), BlockedSVR(size=8)
    state = solver.start(problem, np.random.default_rng(0), np.linspace(-1.0, 1.5, 60))
    for _ in range(12):
        solver.advance(problem, state)
        weights = solver.model(problem, state).weights()
        found = certify(problem, weights, solver.dual_point(problem, state)).certificate
        assert solver.estimate(problem, state) == pytest.approx(found.relative_gap, rel=1e-6)
        before = state.v.copy()
        solver.review(problem, state, found)
        assert state.v == pytest.approx(before, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"targets": np.zeros(3)}, "targets must be 30 finite numbers"),
        ({"targets": np.full(30, np.inf)}, "targets must be 30 finite numbers"),
        ({"weights": np.zeros(30)}, "a kernel problem needs positive costs"),
        ({"bias": "fixed"}, "bias='fixed' is not known"),
        ({"C": 0.0}, "C must be positive and finite"),
    ],
    ids=str,
)
def test_problems_that_cannot_be_are_refused(changes, sentence):
    problem = problem_of()
    parts = {"gram": problem.gram, "targets": problem.targets, "loss": problem.loss}
    with pytest.raises(ValueError, match=sentence):
        kernel_regression_problem(**parts | changes)


# ----------------------------------------------------------------------------------------------- the estimator


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"C": 30.0, "epsilon": 0.0},
        {"epsilon": 0.5},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"epsilon": 100.0},
    ],
    ids=str,
)
def test_the_attributes_are_libsvms(settings):
    X, y = waves()
    settings = {"gamma": 0.3} | settings
    ours, theirs = (
        SVR(tol=1e-8, max_rounds=300, **settings).fit(X, y),
        sklearn.svm.SVR(tol=1e-6, max_iter=10**6, **settings).fit(X, y),
    )
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3 * max(1.0, ours.C))
    if settings.get("epsilon") != 100.0:
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)
    if settings.get("kernel") == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_weights_are_libsvms():
    X, y = waves()
    weights = np.random.default_rng(3).uniform(0.0, 3.0, 120)
    weights[::5] = 0.0
    ours = SVR(gamma=0.3, tol=1e-10).fit(X, y, sample_weight=weights)
    theirs = sklearn.svm.SVR(gamma=0.3, tol=1e-6).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.support_vectors_, X[ours.support_])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        SVR().fit(X, y, sample_weight=np.zeros(120))


@pytest.mark.parametrize("fit_intercept", [True, "penalised", False])
def test_layouts_precomputed_values_and_functions_agree(fit_intercept):
    X, y = waves()
    settings = {"tol": 1e-9, "fit_intercept": fit_intercept}
    expected = SVR(gamma=0.3, **settings).fit(X, y).predict(X)
    K = rbf_kernel(X, gamma=0.3)
    for svm, table in (
        (SVR(gamma=0.3, **settings), sp.csr_array(X)),
        (SVR(kernel="precomputed", **settings), K),
        (SVR(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), **settings), X),
    ):
        np.testing.assert_allclose(svm.fit(table, y).predict(table), expected, atol=1e-5)


def test_files_and_the_command(tmp_path, capsys):
    X, y = waves()
    svm = SVR().fit(X.round(3), y)
    save(svm, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is KernelRegressionModel and again.meta["epsilon"] == 0.1
    np.testing.assert_array_equal(again.predict(X), svm.predict(X))
    lines = [f"{t:.6f} " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(x)) for x, t in zip(X, y, strict=True)]
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    assert main(["evaluate", str(tmp_path / "model"), str(tmp_path / "data.svm")]) == 0
    assert "r2" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "data.svm")]) == 0
    assert np.allclose(np.array(capsys.readouterr().out.split(), float), svm.predict(X.round(3)), atol=1e-4)
    assert main(["info", str(tmp_path / "model")]) == 0
    assert "support vectors" in capsys.readouterr().out


def test_warm_starts_and_limits():
    X, y = waves(600)
    svm = SVR(C=30.0, tol=1e-6, warm_start=True, solver_options={"size": 64}).fit(X, y)
    cold = svm.n_iter_
    assert svm.fit(X, y).n_iter_ < 0.5 * cold and svm.status_.converged
    svm.fit(X[:300], y[:300])
    assert svm.status_.converged and svm.kernel_evaluations_ <= 300 * 300
    for limit in ({"max_rounds": 1}, {"max_time": 1e-4}, {"max_kernel_evaluations": 1}):
        with pytest.warns(ConvergenceWarning):
            svm = SVR(C=30.0, tol=1e-9, solver_options={"size": 8}, **limit).fit(X, y)
        assert svm.status_.code == next(iter(limit)) and svm.certificate_.dual <= svm.certificate_.primal


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"C": -1.0}, "C must be positive and finite"),
        ({"epsilon": -0.1}, "epsilon must be a number of at least 0"),
        ({"epsilon": "wide"}, "epsilon must be a number of at least 0"),
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"solver": "blocked-smo"}, "does not treat task 'kernel-regression'; solvers that can: blocked-svr"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known"),
        ({"kernel": "precomputed"}, "needs the square kernel matrix"),
        ({"fit_intercept": 3}, "fit_intercept=3 is not known"),
        ({"cache_mb": -3}, "cache_mb must be"),
    ],
    ids=str,
)
def test_each_wrong_parameter_gets_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        SVR(**wrong).fit(*waves())


def test_the_doctests():
    outcome = doctest.testmod(importlib.import_module("slackwater.estimators.svr"))
    assert outcome.attempted >= 4 and outcome.failed == 0
