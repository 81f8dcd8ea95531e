"""Penalties: duality, proximal steps, names; the bounds behind them; the estimator and the command."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC as Liblinear

from problems import LOSSES, cut_of, loss_id, optimum, random_problem, random_table
from slackwater import LinearSVC
from slackwater.objective import (
    BoxPoint,
    CountPoint,
    DirectionPoint,
    Penalty,
    certify,
    elastic_net,
    l1,
    l2,
    lower_bound,
    parse_penalty,
    penalty_family,
    squared_hinge,
)
from slackwater.objective.best_scale import Ray, best_scale
from slackwater.objective.penalties import best_weights, conjugate, penalty_name, prox, soft, total, value

interpreted = pytest.mark.interpreted

EACH = (l2(), l1(), elastic_net(0.5), elastic_net(0.05), elastic_net(0.999))
CORNERED = EACH[1:]
penalties = st.sampled_from(EACH)
numbers = st.floats(-20.0, 20.0)


def rounding(*terms) -> float:
    return 1e-12 * (1.0 + sum(abs(t) for t in terms))


# ----------------------------------------------------------------------------------------------- the penalty itself


@interpreted
@given(penalties, numbers, numbers)
def test_fenchel_young(penalty, w, v):
    terms = value(penalty, w), conjugate(penalty, v), -w * v
    assert sum(terms) >= -rounding(*terms[::2])


@interpreted
@given(penalties, numbers)
def test_fenchel_young_is_an_equality_at_the_gradient(penalty, w):
    v = penalty.square * w + penalty.absolute * np.sign(w)
    terms = value(penalty, w), conjugate(penalty, v), -w * v
    assert abs(sum(terms)) <= rounding(*terms)


@interpreted
@given(penalties, numbers)
def test_the_best_weight_attains_the_conjugate(penalty, v):
    w = best_weights(penalty, np.array([v]))[0]
    if conjugate(penalty, v) < math.inf:
        terms = v * w, value(penalty, w), conjugate(penalty, v)
        assert terms[0] - terms[1] == pytest.approx(terms[2], abs=rounding(*terms) / min(1.0, penalty.square or 1.0))


@interpreted
@given(penalties, numbers, st.floats(1e-3, 10.0))
def test_the_proximal_step_is_the_minimum(penalty, v, eta):
    best = prox(penalty, v, eta)

    def objective(w):
        return 0.5 * (w - v) ** 2 + eta * value(penalty, w)

    for w in (best - 1e-3, best + 1e-3, 0.0, v, best / 2):
        assert objective(best) <= objective(w) + rounding(objective(w))


@interpreted
def test_the_published_forms():
    assert [value(p, -2.0) for p in (l2(), l1(), elastic_net(0.25))] == [2.0, 2.0, 2.0]
    assert value(elastic_net(0.25), 4.0) == 0.75 * 8.0 + 0.25 * 4.0
    assert (soft(3.0, 1.0), soft(-3.0, 1.0), soft(0.5, 1.0)) == (2.0, -2.0, 0.0)
    assert conjugate(l1(), 1.0) == 0.0 and conjugate(l1(), np.nextafter(1.0, 2.0)) == math.inf
    assert conjugate(l2(), 3.0) == 4.5 and conjugate(elastic_net(0.5), 1.5) == 1.0
    assert prox(elastic_net(0.5), 3.0, 2.0) == 1.0
    assert total(l1(), np.array([1.0, -2.0, 0.0])) == 3.0


def test_names():
    assert parse_penalty("l2") == Penalty(1.0, 0.0) and parse_penalty("l1") == Penalty(0.0, 1.0)
    assert parse_penalty("elasticnet", 0.25) == Penalty(0.75, 0.25)
    assert [penalty_family(elastic_net(r)) for r in (0.0, 0.5, 1.0)] == ["l2", "elasticnet", "l1"]
    assert [penalty_name(p) for p in EACH[:3]] == ["l2", "l1", "elasticnet:0.5"]
    with pytest.raises(ValueError, match="penalty='l0' is not known; the penalties are l2, l1, elasticnet"):
        parse_penalty("l0")
    for ratio in (-0.1, 1.1, math.nan, "x", None):
        with pytest.raises(ValueError, match="l1_ratio must lie between 0 and 1, got"):
            elastic_net(ratio)


# -------------------------------------------------------------------------------------------------------- bounds


@given(st.sampled_from(CORNERED), st.integers(0, 10**6), st.sampled_from([0.0, 1.0]), st.sampled_from([0.5, math.inf]))
def test_the_best_scale_is_best(penalty, seed, bend, most):
    rng = np.random.default_rng(seed)
    ray = Ray(float(rng.uniform(0.1, 5.0)), bend, rng.exponential(size=4), most)
    s, bound = best_scale(penalty, ray)

    def value_at(s):
        beyond = [conjugate(penalty, s * v) for v in ray.v]
        return s * ray.gain - 0.5 * s * s * ray.bend - sum(beyond)

    inside = s * (1.0 - 1e-12)
    assert 0.0 <= s <= most
    assert bound == pytest.approx(value_at(inside), rel=1e-9, abs=1e-9)
    for other in (0.0, 0.5 * s, 0.9 * s, 0.999 * s, min(1.001 * s, most), min(1.1 * s, most), min(2.0 * s, most)):
        assert value_at(other) <= bound + 1e-9 * (1.0 + abs(bound))


@pytest.mark.parametrize("penalty", CORNERED, ids=penalty_name)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
def test_bounds_of_any_point_hold_and_the_optimums_are_tight(loss, bias, penalty):
    problem = random_problem(5, loss, bias, weighted=True, sparse=bias == "none", penalty=penalty)
    best, rng = optimum(problem), np.random.default_rng(0)
    assert best.primal - best.dual <= 1e-9 * best.primal
    tight = certify(problem, best.w, BoxPoint(best.alpha))
    assert tight.certificate.gap <= 1e-8
    assert tight.certificate.rule == "C1+l1" + ("+C7" if bias == "free" else "")
    assert lower_bound(problem, DirectionPoint(3.0 * best.alpha)) == pytest.approx(best.primal, rel=1e-6)
    if bias != "free":
        assert lower_bound(problem, cut_of(problem, best.alpha)) == pytest.approx(best.primal, rel=1e-6)
    for _ in range(20):
        alpha = rng.exponential(size=problem.n_rows)
        points = BoxPoint(alpha), CountPoint(alpha, 2.0), DirectionPoint(alpha), cut_of(problem, best.alpha * alpha)
        for point in points:
            assert lower_bound(problem, point) <= best.primal * (1.0 + 1e-9)
        w = rng.normal(size=problem.n_weights) * (np.arange(problem.n_weights) < problem.n_weights - (bias == "none"))
        found = certify(problem, w).certificate
        assert found.dual <= best.primal * (1.0 + 1e-9) and found.primal >= best.primal * (1.0 - 1e-9)


def test_l2_is_the_problem_without_a_penalty():
    plain, named = (random_problem(5, squared_hinge(), "penalised", penalty=p) for p in (None, elastic_net(0.0)))
    w = np.random.default_rng(1).normal(size=plain.n_weights)
    assert certify(plain, w).certificate == certify(named, w).certificate
    assert named.penalty_family == "l2"


# ----------------------------------------------------------------------------------------------- the estimator


def table(n=200, d=30):
    X, labels = random_table(np.random.default_rng(3), n, d)
    return X, labels


@pytest.mark.parametrize("intercept", [True, False])
def test_the_objective_is_that_of_liblinear(intercept):
    X, y = table()
    ours = LinearSVC(C=0.1, penalty="l1", loss="squared_hinge", tol=1e-9, fit_intercept=intercept, random_state=0)
    theirs = Liblinear(
        C=0.1, penalty="l1", loss="squared_hinge", dual=False, tol=1e-10, max_iter=10**5, fit_intercept=intercept,
        random_state=0,
    )  # fmt: skip
    values = []
    for svm in (ours.fit(X, y), theirs.fit(X, y)):
        b = float(np.ravel(svm.intercept_)[0])
        short = np.maximum(0.0, 1.0 - y * (X @ svm.coef_[0] + b))
        values.append(np.abs(svm.coef_).sum() + abs(b) + 0.1 * (short**2).sum())
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert ours.solver_ == "cdn" and "squared_hinge loss with the l1 penalty" in ours.solver_reason_
    assert ((ours.coef_ == 0.0) == (theirs.coef_ == 0.0)).all() and (ours.coef_ == 0.0).any()
    assert ours.model_.meta["penalty"] == "l1"


def test_elastic_nets_lie_between():
    X, y = table()
    zeros = []
    for ratio in (0.0, 0.5, 1.0):
        svm = LinearSVC(C=0.01, penalty="elasticnet", l1_ratio=ratio, loss="squared_hinge", random_state=0).fit(X, y)
        assert svm.status_.converged
        zeros.append(int((svm.coef_ == 0.0).sum()))
    assert zeros[0] == 0 < zeros[1] < zeros[2]


def test_the_hinge_goes_to_folos():
    svm = LinearSVC(C=0.1, penalty="l1", tol=0.02, random_state=0).fit(*table())
    assert svm.solver_ == "folos" and "cdn gets much closer" in svm.solver_reason_
    assert svm.certificate_.rule == "C2+l1" and svm.status_.converged


def test_sparse_coefficients_predict_the_same():
    X, y = table()
    svm = LinearSVC(C=0.05, penalty="l1", loss="squared_hinge", random_state=0).fit(X, y)
    before, coef = svm.decision_function(X), svm.coef_
    assert sp.issparse(svm.sparsify().coef_) and svm.coef_.nnz == np.count_nonzero(coef)
    assert np.array_equal(svm.decision_function(X), before)
    assert np.array_equal(svm.densify().coef_, coef)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"penalty": "l3"}, "penalty='l3' is not known; the penalties are l2, l1, elasticnet"),
        ({"penalty": "elasticnet", "l1_ratio": 2}, "l1_ratio must lie between 0 and 1, got 2"),
        ({"penalty": "l1", "solver": "dcd"}, "solver 'dcd' does not treat penalty 'l1'; solvers that can: cdn, folos"),
        ({"penalty": "l1", "solver": "cdn"}, "solver 'cdn' does not treat loss 'hinge'; solvers that can"),
    ],
)
def test_refusals(settings, sentence):
    with pytest.raises(ValueError) as refusal:
        LinearSVC(**settings).fit(*table())
    assert str(refusal.value).startswith(sentence)


def test_the_command_takes_penalties(tmp_path, capsys):
    from slackwater.cli import main

    X, y = table(60, 6)
    lines = [
        f"{int(label)} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x) if v)
        for x, label in zip(X, y, strict=True)
    ]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    file, out = str(tmp_path / "train.svm"), str(tmp_path / "l1.model")
    options = ["--penalty", "elasticnet", "--l1-ratio", "0.9", "--loss", "squared_hinge", "-o", out]
    assert main(["train", file, *options]) == 0
    assert "elasticnet:0.9" in capsys.readouterr().out
    assert main(["train", file, "--penalty", "l1", "--solver", "dcd"]) == 2
    assert "does not treat penalty 'l1'" in capsys.readouterr().err
