"""OneClassSVM and its solver: against LIBSVM and a twin, bounds at every round, the share nu, limits, files."""

from __future__ import annotations

import doctest
import importlib
import signal

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from reference.one_class_twin import one_class_twin, one_class_values
from slackwater import OneClassSVM, load, save
from slackwater.cli import main
from slackwater.gram import Gram, gram
from slackwater.models import KernelModel
from slackwater.objective import BoxPoint, Certificate, GradientPoint, certify, hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.objective.one_class import one_class_problem, put_into_box, subgradient
from slackwater.rows import as_rows
from slackwater.solvers.kernel.blocked_one_class import BlockedOneClass
from slackwater.solvers.registry import solver_classes
from slackwater.training import Limits, Observer, run

interpreted = pytest.mark.interpreted
RBF, LINEAR = Kernel("rbf", gamma=0.4), Kernel("linear")
NUS = (0.02, 0.3, 0.5, 1.0)


def cloud(n=40, away=0.0, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) + away


def problem_of(nu=0.3, kernel=RBF, n=40, weighted=True, room=2**30, X=None):
    X = cloud(n, 1.5 if kernel == LINEAR else 0.0) if X is None else X
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    return one_class_problem(Gram(Points.of(as_rows(X), kernel, np.float64), room), nu, weights)


def whole(problem) -> np.ndarray:
    points, n = problem.gram.points, problem.n_rows
    return points.values(points.own_lines(np.arange(n)), np.empty((n, n)))


def best_value(problem) -> float:
    K = whole(problem)
    return one_class_values(K, one_class_twin(K, problem.costs, problem.nu), 0.0, problem.costs, problem.nu)[1]


# -------------------------------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [RBF, LINEAR], ids=["rbf", "linear"])
@pytest.mark.parametrize("nu", NUS)
def test_the_optimum_is_the_twins(nu, kernel, weighted):
    problem = problem_of(nu, kernel, weighted=weighted)
    found, best = run(problem, BlockedOneClass(), Limits(tol=1e-8)), best_value(problem)
    assert found.certificate.relative_gap <= 1e-8 and found.status.converged
    assert found.certificate.primal == pytest.approx(best, rel=1e-7, abs=1e-12)
    assert found.certificate.dual == pytest.approx(best, rel=1e-7, abs=1e-12)


@interpreted
@pytest.mark.parametrize("nu", [0.1, 0.6])
def test_bounds_hold_at_every_round(nu, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 7)
    problem = problem_of(nu, n=14, room=1)
    best, K, s = best_value(problem), whole(problem), problem.costs
    found = run(problem, BlockedOneClass(size=4), Limits(tol=0.0, max_rounds=8, certify_every=1))
    for record in found.history:
        assert record.dual <= best + 1e-12 and record.primal >= best - 1e-12
    alpha = np.zeros(14)
    alpha[found.model.support] = found.model.coef[0]
    primal, _ = one_class_values(K, alpha, -found.model.intercept[0], s, nu)
    _, dual = one_class_values(K, found.alpha, 0.0, s, nu)
    assert found.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert found.certificate.dual == pytest.approx(dual, rel=1e-9)
    assert (found.alpha >= 0.0).all() and (found.alpha <= s).all()
    assert found.alpha.sum() == pytest.approx(nu * s.sum(), rel=1e-12)


def test_any_dual_point_gives_a_true_bound(rng):
    problem = problem_of()
    best = best_value(problem)
    for scale in (0.01, 0.3, 10.0):
        weights = rng.normal(size=41) * scale
        for point in (BoxPoint(rng.normal(size=40) * scale), None):
            found = certify(problem, weights, point).certificate
            assert found.dual <= best + 1e-12 and found.primal >= best - 1e-12
            assert found.rule == ("C1" if point else "C6")
    nothing = certify(problem, np.full(41, np.nan), BoxPoint(np.full(40, np.nan))).certificate
    assert (nothing.primal, nothing.dual) == (np.inf, -np.inf)
    assert certify(problem, np.zeros(41), BoxPoint(np.zeros(40))).certificate.dual == -np.inf
    with pytest.raises(TypeError, match="one class knows no bound of a GradientPoint"):
        certify(problem, np.zeros(41), GradientPoint(np.zeros(41)))


def test_the_bias_is_the_best_there_is(rng):
    problem = problem_of()
    K = whole(problem)
    for _ in range(5):
        alpha = rng.uniform(size=40)
        found = certify(problem, np.append(alpha, 0.0), BoxPoint(alpha))
        f = K @ alpha
        values = [one_class_values(K, alpha, rho, problem.costs, problem.nu)[0] for rho in f]
        assert found.certificate.primal == pytest.approx(min(values), rel=1e-11)
        outside = problem.costs[f < -found.weights[-1]].sum() / problem.costs.sum()
        inside = problem.costs[f <= -found.weights[-1] * (1.0 + 1e-9)].sum() / problem.costs.sum()
        assert outside <= problem.nu <= inside


@pytest.mark.parametrize("nu", NUS)
def test_points_are_put_into_the_box(nu, rng):
    problem = problem_of(nu)
    s, mass = problem.costs, problem.mass
    assert subgradient(problem, rng.normal(size=40)).sum() == pytest.approx(mass, rel=1e-14)
    for few in (40, 39):
        alpha = rng.exponential(size=40) * (np.arange(40) < few)
        put = put_into_box(problem, alpha)
        if nu == 1.0 and few < 40:
            assert put is None
            continue
        assert put.sum() == pytest.approx(mass, rel=1e-12) and (put >= 0.0).all() and (put <= s).all()
        assert (put > 0.0).sum() == few
        inside = (put > 0.0) & (put < s)
        multiples = put[inside] / np.minimum(alpha, s)[inside]
        assert multiples.size == 0 or np.ptp(multiples) <= 1e-9 * multiples.max()
        np.testing.assert_allclose(put_into_box(problem, put), put, rtol=1e-12)


def test_the_estimate_is_the_gap():
    problem, solver = problem_of(n=300, X=cloud(300)), BlockedOneClass(size=8)
    state = solver.start(problem, np.random.default_rng(0), np.linspace(-1.0, 1.5, 300))
    for _ in range(12):
        solver.advance(problem, state)
        found = certify(problem, solver.model(problem, state).weights(), solver.dual_point(problem, state)).certificate
        assert solver.estimate(problem, state) == pytest.approx(found.relative_gap, rel=1e-6)
        before = state.v.copy()
        solver.review(problem, state, found)
        assert state.v == pytest.approx(before, abs=1e-9)


def test_relative_gaps_of_negative_optima():
    assert Certificate(-2.0, -2.5, "C1").relative_gap == 0.25  # of -2, which the optimum's size is at least
    assert Certificate(1.0, -1.0, "C1").relative_gap == np.inf
    assert Certificate(1.0, -1.0, "C1", 4.0).relative_gap == 0.5
    assert Certificate(0.0, 1e-16, "C1", 0.1).gap == 0.0


@pytest.mark.parametrize("nu", [0.1, 0.5])
def test_it_is_the_hinge_with_one_label_at_the_margin_rho(nu):
    """w / rho minimises ||u||^2 / 2 + (1 / rho) sum_i s_i max(0, 1 - f_i): every solver of classification solves it."""
    problem = problem_of(nu)
    found = run(problem, BlockedOneClass(), Limits(tol=1e-9))
    m, rho = problem.mass, -found.model.intercept[0]
    for name, cls in solver_classes("kernel").items():
        if cls.rule != "C1":
            continue
        machine = kernel_problem(problem.gram, problem.labels, hinge(), 1.0 / rho, problem.costs, "none")
        other = run(machine, cls(), Limits(tol=1e-7, max_rounds=300), rng=0).certificate
        value = (found.certificate.primal * m * m + m * rho) / rho**2 * machine.regularisation
        assert value == pytest.approx(other.primal, rel=1e-6), name


def test_kernel_evaluations_are_the_calls_of_the_kernel():
    calls = []

    def counting(A, B):
        calls.append(len(A) * len(B))
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    problem = problem_of(kernel=Kernel("callable", function=counting))
    calls.clear()
    found = run(problem, BlockedOneClass(size=6), Limits(tol=1e-6, certify_every=1))
    assert problem.gram.evaluations == sum(calls)
    assert 0 < found.history[-1].kernel_evaluations <= sum(calls)


def test_problems_that_cannot_be_are_refused():
    matrix = problem_of().gram
    for changes, sentence in (
        ({"nu": 0.0}, r"nu must be in \(0, 1\], got 0.0"),
        ({"nu": 1.5}, r"nu must be in \(0, 1\], got 1.5"),
        ({"weights": np.zeros(40)}, "a kernel problem needs positive costs"),
    ):
        with pytest.raises(ValueError, match=sentence):
            one_class_problem(matrix, **changes)


# ----------------------------------------------------------------------------------------------- the estimator


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"nu": 0.05}, {"nu": 0.9}, {"kernel": "poly", "coef0": 1.0}, {"kernel": "linear"}], ids=str
)
def test_the_attributes_are_libsvms(settings, weighted):
    X = cloud(121, 1.5)  # nu n is no whole number: with one, any rho between two scores will do
    settings = {"gamma": 0.3} | settings
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 121) if weighted else None
    ours = OneClassSVM(tol=1e-9, **settings).fit(X, sample_weight=weights)
    theirs = sklearn.svm.OneClassSVM(tol=1e-9, **settings).fit(X, sample_weight=weights)
    s = np.ones(121) if weights is None else weights
    problem = one_class_problem(Gram(Points.of(as_rows(X), ours.model_.kernel, np.float64), 2**30), ours.nu, s)
    alpha = np.zeros(121)
    alpha[theirs.support_] = theirs.dual_coef_[0]
    reference = certify(problem, np.append(alpha, theirs.intercept_), BoxPoint(alpha)).certificate
    assert ours.certificate_.primal == pytest.approx(reference.primal, rel=1e-6)
    assert ours.certificate_.dual == pytest.approx(reference.dual, rel=1e-6)
    scale = float(np.abs(theirs.offset_)[0])
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5 * scale)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5 * scale)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-5)
    if settings.get("kernel") == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)
        np.testing.assert_allclose(ours.support_vectors_, theirs.support_vectors_)
    assert ours.predict(X).dtype.kind == "i"


@pytest.mark.parametrize("n", [1, 2, 7, 300])
@pytest.mark.parametrize("nu", NUS)
def test_nu_is_the_share_of_outliers_at_most_and_of_support_vectors_at_least(nu, n):
    X = np.vstack((cloud(n, seed=2), cloud(n, seed=2)[: n // 3]))  # some of them twice
    svm = OneClassSVM(nu=nu, gamma=0.5, tol=1e-6).fit(X)
    answers, decided = svm.predict(X), svm.decision_function(X)
    assert np.mean(answers == -1) <= nu <= np.mean(np.isin(np.arange(len(X)), svm.support_)) + 1e-12
    assert svm.dual_coef_.sum() == pytest.approx(nu * len(X), rel=1e-9)
    np.testing.assert_array_equal(answers, np.where(decided > 0.0, 1, -1))
    np.testing.assert_array_equal(OneClassSVM(nu=nu, gamma=0.5, tol=1e-6).fit_predict(X, y=answers), answers)


def test_weights_are_repetitions_and_none_of_them_is_no_row():
    X, times = cloud(60), np.arange(60) % 4
    weighted = OneClassSVM(gamma=0.4, tol=1e-9).fit(X, sample_weight=times)
    repeated = OneClassSVM(gamma=0.4, tol=1e-9).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-8)
    assert (weighted.support_ % 4 != 0).all()
    with pytest.raises(ValueError, match=r"non-zero|every sample weight is zero"):
        OneClassSVM().fit(X, sample_weight=np.zeros(60))


def test_layouts_frames_precomputed_values_and_functions_agree():
    X = cloud(120)
    pd = pytest.importorskip("pandas")
    expected = OneClassSVM(gamma=0.3, tol=1e-9).fit(X).decision_function(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for svm, table in (
        (OneClassSVM(gamma=0.3, tol=1e-9), sp.csr_array(X)),
        (OneClassSVM(gamma=0.3, tol=1e-9), frame),
        (OneClassSVM(kernel="precomputed", tol=1e-9), rbf_kernel(X, gamma=0.3)),
        (OneClassSVM(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), tol=1e-9), X),
        (OneClassSVM(gamma=0.3, tol=1e-6), X.astype(np.float32)),
    ):
        np.testing.assert_allclose(svm.fit(table).decision_function(table), expected, atol=1e-3)
    assert list(OneClassSVM().fit(frame).feature_names_in_) == ["a", "b", "c"]


def test_files_and_the_command(tmp_path, capsys):
    X = cloud(80).round(3)
    svm = OneClassSVM(nu=0.2).fit(X)
    save(svm, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is KernelModel and again.meta["nu"] == 0.2
    np.testing.assert_array_equal(again.decision_values(X), svm.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), svm.predict(X))
    lines = ["1 " + " ".join(f"{j + 1}:{v:.3f}" for j, v in enumerate(x)) for x in X]
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    assert main(["predict", str(tmp_path / "model"), str(tmp_path / "data.svm")]) == 0
    told, decided = np.array(capsys.readouterr().out.split(), int), svm.decision_function(X)
    clear = np.abs(decided) > 1e-5 * svm.offset_
    np.testing.assert_array_equal(told[clear], svm.predict(X)[clear])
    assert main(["info", str(tmp_path / "model")]) == 0
    told = capsys.readouterr().out
    assert "classes      -1 1" in told and "nu 0.2" in told and str(svm.certificate_)[:20] in told


def test_warm_starts_and_limits():
    X = cloud(600)
    svm = OneClassSVM(nu=0.2, tol=1e-6, warm_start=True, solver_options={"size": 64}).fit(X)
    cold = svm.n_iter_
    assert svm.fit(X).n_iter_ < 0.5 * cold and svm.status_.converged
    svm.fit(X[:300])
    assert svm.status_.converged and svm.kernel_evaluations_ <= 300 * 300
    for limit in ({"max_rounds": 1}, {"max_time": 1e-4}, {"max_kernel_evaluations": 1}):
        with pytest.warns(ConvergenceWarning):
            svm = OneClassSVM(tol=1e-9, solver_options={"size": 8}, **limit).fit(X)
        assert svm.status_.code == next(iter(limit)) and -np.inf < svm.certificate_.dual <= svm.certificate_.primal


def test_ctrl_c_brings_the_best_so_far():
    class Press(Observer):
        def after_round(self, progress):
            if progress.round == 1:
                signal.raise_signal(signal.SIGINT)

    problem = problem_of(X=cloud(600))
    found = run(problem, BlockedOneClass(size=8), Limits(tol=1e-9), observers=[Press()])
    assert found.status.code == "interrupted" and found.rounds == 2
    assert -np.inf < found.certificate.dual <= found.certificate.primal < 0.0


@pytest.mark.parametrize(
    ("X", "settings"),
    [
        (np.ones((9, 2)), {}),
        (np.ones((1, 2)), {"nu": 0.1}),
        (np.repeat(cloud(5), 6, axis=0), {"nu": 0.25}),
        (cloud(20), {"kernel": lambda A, B: np.ones((len(A), len(B)))}),
        (cloud(20), {"kernel": "sigmoid", "gamma": 0.2, "coef0": 0.5}),
    ],
    ids=["equal", "one", "repeated", "constant", "indefinite"],
)
def test_strange_data_end_somewhere(X, settings):
    svm = OneClassSVM(tol=1e-6, **settings).fit(X)
    assert svm.status_.converged and np.isfinite(svm.decision_function(X)).all()
    if settings.get("kernel") != "sigmoid":
        assert np.mean(svm.predict(X) == -1) <= svm.nu


def test_an_origin_among_the_examples_is_told():
    X = np.vstack((cloud(30), -cloud(30)))
    with pytest.warns(UserWarning, match="the origin lies among the examples"):
        svm = OneClassSVM(kernel="linear").fit(X)
    assert svm.status_.converged and svm.certificate_.primal == 0.0
    assert not svm.decision_function(X).any()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"nu": 0.0}, r"nu must be a number in \(0, 1\]"),
        ({"nu": "half"}, r"nu must be a number in \(0, 1\]"),
        ({"solver": "blocked-smo"}, "does not treat task 'one-class'; solvers that can: blocked-one-class"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known"),
        ({"kernel": "precomputed"}, "needs the square kernel matrix"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
        ({"cache_mb": -3}, "cache_mb must be"),
    ],
    ids=str,
)
def test_each_wrong_parameter_gets_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        OneClassSVM(**wrong).fit(cloud())


def test_the_doctests():
    outcome = doctest.testmod(importlib.import_module("slackwater.estimators.one_class_svm"))
    assert outcome.attempted >= 4 and outcome.failed == 0
