"""Certificates: every rule bounds the optimum from below, is tight where it should be, and survives nonsense."""

import math
from itertools import pairwise

import numpy as np
import pytest

import golden
from problems import LOSSES, cut_of, dense, loss_id, optimum, random_problem
from reference.pegasos_twin import pegasos_twin
from reference.qp_reference import loss_value
from reference.sgd_s_twin import sgd_s_twin
from slackwater.objective import (
    BoxPoint,
    CountPoint,
    CutPoint,
    DirectionPoint,
    GradientPoint,
    certify,
    epoch_bound,
    hinge,
    linear_problem,
    lower_bound,
    primal_value,
)
from slackwater.objective.losses import slope
from slackwater.rows import as_rows

pytestmark = pytest.mark.interpreted


def margins(problem, w) -> np.ndarray:
    return problem.labels * (dense(problem) @ w)


def slopes(problem, w) -> np.ndarray:
    return np.array([slope(problem.loss, m) for m in margins(problem, w)])


def cut_at(problem, w) -> tuple[np.ndarray, float]:
    """The tangent of the mean loss at w: gradient and offset, from the definition."""
    a, m = slopes(problem, w), margins(problem, w)
    lam, Z = problem.regularisation, dense(problem) * problem.labels[:, None]
    gradient = -lam * (problem.costs * a) @ Z
    return gradient, float(lam * problem.costs @ loss_value(problem.loss, m) - gradient @ w)


# --------------------------------------------------------------------------------------------- at the optimum


def points_of(problem, alpha):
    return {
        "C1": BoxPoint(alpha),
        "C2": CountPoint(10.0 * alpha / problem.costs, 10.0),
        "C3": cut_of(problem, alpha),
        "C5": DirectionPoint(3.7 * alpha),
    }


@pytest.mark.parametrize("rule", ["C1", "C2", "C3", "C5"])
def test_every_rule_is_tight_at_the_optimum(problem, rule):
    best = optimum(problem)
    assert best.primal - best.dual <= 1e-11 * best.primal
    found = certify(problem, best.w, points_of(problem, best.alpha)[rule])
    certificate = found.certificate
    assert certificate.primal == pytest.approx(best.primal, rel=1e-9)
    assert certificate.dual == pytest.approx(best.primal, rel=1e-9)
    assert certificate.dual <= certificate.primal * (1.0 + 1e-15)
    assert certificate.rule == rule + ("+C7" if problem.bias == "free" and rule != "C3" else "")
    if rule != "C3":
        assert found.alpha == pytest.approx(best.alpha, rel=1e-6, abs=1e-9)


def test_the_gradient_certificate_closes_at_the_optimum_of_smooth_losses(problem):
    best = optimum(problem)
    certificate = certify(problem, best.w).certificate
    assert certificate.rule.startswith("C6")
    if problem.loss.width:
        assert certificate.relative_gap <= 1e-9
    else:
        assert certificate.dual <= best.primal


# ------------------------------------------------------------------------------------------ away from the optimum


def feasible(problem, alpha) -> bool:
    upper = problem.loss.cap * problem.costs
    inside = (alpha >= 0.0).all() and (alpha <= upper * (1.0 + 1e-15)).all()
    return inside and (problem.bias != "free" or abs(alpha @ problem.labels) <= 1e-13 * alpha.sum())


def direct_dual(problem, alpha) -> float:
    """D(alpha), from the definition."""
    w = (alpha * problem.labels) @ dense(problem)
    if problem.bias == "free":
        w[-1] = 0.0
    quadratic = w @ w + problem.loss.width * alpha @ (alpha / problem.costs)
    return problem.regularisation * (problem.loss.target * alpha.sum() - 0.5 * quadratic)


def check_bound(problem, point) -> float:
    found = certify(problem, np.zeros(problem.n_weights), point)
    best = optimum(problem)
    assert found.certificate.dual <= best.primal * (1.0 + 1e-12)
    assert found.certificate.dual == lower_bound(problem, point)
    assert found.certificate.primal >= best.dual * (1.0 - 1e-12)
    if found.alpha is not None:
        assert feasible(problem, found.alpha)
        assert found.certificate.dual == pytest.approx(direct_dual(problem, found.alpha), rel=1e-12, abs=1e-12)
    return found.certificate.dual


@pytest.mark.parametrize("spread", [0.0, 0.3, 10.0])
def test_points_around_the_optimum_never_exceed_it(problem, spread, rng):
    best = optimum(problem)
    size = best.alpha.max()
    for _ in range(10):
        near = best.alpha + spread * size * rng.normal(size=problem.n_rows)
        check_bound(problem, BoxPoint(near))
        check_bound(problem, DirectionPoint(near))
        check_bound(problem, CountPoint(near / problem.costs * 7.0, 7.0))
        check_bound(problem, GradientPoint(best.w + spread * rng.normal(size=problem.n_weights)))


def test_mixtures_of_tangents_never_exceed_the_optimum(problem, rng):
    best = optimum(problem)
    places = [best.w + 0.3 * rng.normal(size=problem.n_weights) for _ in range(6)]
    cuts = [cut_at(problem, w) for w in places]
    gradients, offsets = np.array([g for g, _ in cuts]), np.array([b for _, b in cuts])
    bounds = []
    for _ in range(30):
        beta = rng.dirichlet(np.ones(6)) * rng.choice([0.5, 1.0, 3.0])  # a sum above 1 is scaled down
        bounds.append(lower_bound(problem, CutPoint(gradients, offsets, beta)))
    assert max(bounds) <= best.primal * (1.0 + 1e-12)
    if problem.bias == "free":
        assert max(bounds) == -math.inf  # nothing balances the bias's own gradient
    else:
        beta = np.eye(6)[2]
        direct = offsets[2] - gradients[2] @ gradients[2] / (2.0 * problem.regularisation)
        assert lower_bound(problem, CutPoint(gradients, offsets, beta)) == pytest.approx(direct, rel=1e-12)


def test_cuts_balanced_by_hand_bound_a_free_bias():
    problem = random_problem(7, hinge(), "free")
    best = optimum(problem)
    bound = lower_bound(problem, cut_of(problem, 0.9 * best.alpha))
    assert 0.5 * best.primal < bound <= best.primal


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_the_gap_of_the_gradient_certificate_is_the_gradients_length(loss, bias, rng):
    problem = random_problem(11, loss, bias, weighted=True)
    lam, Z = problem.regularisation, dense(problem) * problem.labels[:, None]
    for _ in range(20):
        w = rng.normal(size=problem.n_weights)
        if bias == "none":
            w[-1] = 0.0
        gradient = lam * w - lam * (problem.costs * slopes(problem, w)) @ Z
        certificate = certify(problem, w).certificate
        assert certificate.gap == pytest.approx(gradient @ gradient / (2.0 * lam), rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_the_gap_is_the_sum_of_its_terms(loss, bias, rng):
    """Rule C1: P - D = lambda sum_i C_i [ l(m_i) + l*(a_i) + a_i m_i ], at w(alpha), every term >= 0."""
    problem = random_problem(11, loss, bias, weighted=True)
    costs = problem.costs
    for _ in range(5):
        a = rng.uniform(0.0, min(loss.cap, 2.0), problem.n_rows)
        w = (costs * a * problem.labels) @ dense(problem)
        m = margins(problem, w)
        terms = costs * (loss_value(loss, m) + 0.5 * loss.width * a**2 - loss.target * a + a * m)
        assert terms.min() >= -1e-12 * terms.sum()
        certificate = certify(problem, w, BoxPoint(costs * a)).certificate
        assert certificate.gap == pytest.approx(problem.regularisation * terms.sum(), rel=1e-11)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_free_bias_rebalances_the_heavier_class(loss, rng):
    problem = random_problem(5, loss, "free")
    alpha = problem.costs * rng.uniform(0.2, 0.9, problem.n_rows)
    positive = problem.labels > 0.0
    plus, minus = alpha[positive].sum(), alpha[~positive].sum()
    assert plus < minus
    found = certify(problem, np.zeros(problem.n_weights), BoxPoint(alpha))
    assert found.certificate.rule == "C1+C7"
    assert found.alpha[positive] == pytest.approx(alpha[positive], rel=1e-15)
    assert found.alpha[~positive] == pytest.approx(alpha[~positive] * plus / minus, rel=1e-14)
    # The rule's 2 x 2 form gives the same value without a second sum over the rows.
    S = np.array([(alpha * side) @ dense(problem)[:, :-1] for side in (positive, ~positive)])
    share = np.array([1.0, -plus / minus])
    quadratic = share @ (S @ S.T) @ share + loss.width * found.alpha @ (found.alpha / problem.costs)
    direct = problem.regularisation * (loss.target * 2.0 * plus - 0.5 * quadratic)
    assert found.certificate.dual == pytest.approx(direct, rel=1e-12)


def test_a_free_bias_is_put_at_its_optimum(rng):
    problem = random_problem(5, hinge(), "free", scale=4.0)
    w = 0.3 * rng.normal(size=problem.n_weights)
    found = certify(problem, w)
    assert found.weights[:-1] == pytest.approx(w[:-1], rel=0)
    assert found.certificate.primal == primal_value(problem, w) == primal_value(problem, found.weights)
    for shift in (-0.5, -0.01, 0.0, 0.01, 0.5):
        moved = found.weights + np.append(np.zeros(problem.n_weights - 1), shift)
        losses = problem.costs @ loss_value(problem.loss, margins(problem, moved))
        other = problem.regularisation * (0.5 * w[:-1] @ w[:-1] + losses)
        assert found.certificate.primal <= other * (1.0 + 1e-14)
        assert shift or found.certificate.primal == pytest.approx(other, rel=1e-14)


@pytest.mark.parametrize("label", [1.0, -1.0])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_one_class_with_a_free_bias_costs_nothing(loss, label, rng):
    problem = linear_problem(as_rows(rng.normal(size=(6, 3))), np.full(6, label), loss, bias="free")
    certificate = certify(problem, np.zeros(4), BoxPoint(problem.costs)).certificate
    assert (certificate.primal, certificate.dual, certificate.relative_gap) == (0.0, 0.0, 0.0)


# -------------------------------------------------------------------------------------------- epochs, rule C2


def sgd_run(seed=3, epochs=40, weighted=False):
    problem = random_problem(seed, hinge(), "penalised", weighted=weighted)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(problem.n_rows) for _ in range(epochs)]
    shares = problem.shares if weighted else None
    return problem, sgd_s_twin(dense(problem), problem.labels, problem.regularisation, orders, shares)


@pytest.mark.parametrize("weighted", [False, True])
def test_epoch_counts_bound_the_optimum_uniformly(weighted):
    problem, history = sgd_run(weighted=weighted)
    best = optimum(problem)
    for epoch in history:
        point = CountPoint(epoch.counts, epoch.epochs)
        bound = lower_bound(problem, point)
        assert bound <= best.primal * (1.0 + 1e-12)
        assert bound == pytest.approx(epoch.dual, rel=1e-11, abs=1e-12)
        running = epoch_bound(epoch.mass, epoch.a @ epoch.a, epoch.epochs, problem.n_rows, problem.regularisation)
        assert running == pytest.approx(epoch.dual, rel=1e-12, abs=1e-14)
    assert history[-1].dual > 0.8 * best.primal


def test_suffixes_of_epochs_bound_it_better():
    problem, history = sgd_run()
    best, lam, n = optimum(problem), problem.regularisation, problem.n_rows
    last = history[-1]
    bounds = []
    for early in history[:-1]:
        suffix = CountPoint.between(CountPoint(early.counts, early.epochs), CountPoint(last.counts, last.epochs))
        bounds.append(lower_bound(problem, suffix))
        epochs, v = last.epochs - early.epochs, last.a - early.a
        direct = (last.mass - early.mass) / (n * epochs) - v @ v / (2.0 * lam * (n * epochs) ** 2)
        assert bounds[-1] == pytest.approx(direct, rel=1e-11, abs=1e-12)
        assert bounds[-1] <= best.primal * (1.0 + 1e-12)
    uniform = lower_bound(problem, CountPoint(last.counts, last.epochs))
    assert best.primal - max(bounds) < 0.5 * (best.primal - uniform)


def test_counts_of_draws_with_replacement_are_clipped():
    problem = random_problem(3, hinge(), "penalised")
    n, lam, rng = problem.n_rows, problem.regularisation, np.random.default_rng(0)
    batches = rng.integers(0, n, size=(6 * n, 1))
    _, counts = pegasos_twin(dense(problem), problem.labels, lam, batches, project=False)
    assert (counts > 6).any()  # more often than once per epoch: outside the box
    bound = lower_bound(problem, CountPoint(counts, 6.0))
    assert bound == pytest.approx(direct_dual(problem, np.minimum(problem.costs, counts / (lam * 6 * n))), rel=1e-12)
    assert bound <= optimum(problem).primal


# ------------------------------------------------------------------------------------------------ golden vectors


def golden_problem():
    return linear_problem(as_rows(np.array(golden.SVM.z)), np.ones(4), hinge(), C=golden.SVM.C)


@pytest.mark.parametrize("rule", ["C1", "C2", "C3", "C5"])
def test_golden_machine(rule):
    problem, svm = golden_problem(), golden.SVM
    w, alpha = np.append(svm.w, 0.0), np.array(svm.alpha)
    certificate = certify(problem, w, points_of(problem, alpha)[rule]).certificate
    assert problem.regularisation == pytest.approx(svm.lam, rel=1e-15)
    assert margins(problem, w) == pytest.approx(svm.margins, rel=1e-14)
    assert certificate.primal == pytest.approx(svm.optimum, rel=1e-14)
    assert certificate.dual == pytest.approx(svm.optimum, rel=1e-14)


def test_golden_machine_of_the_reference_solver():
    best = optimum(golden_problem())
    assert best.primal == pytest.approx(golden.SVM.optimum, rel=1e-12)
    assert best.w[:-1] == pytest.approx(golden.SVM.w, rel=1e-7)
    assert best.alpha == pytest.approx(golden.SVM.alpha, rel=1e-6, abs=1e-9)


def test_golden_epochs():
    case = golden.SGD_S
    problem = linear_problem(as_rows(np.ones((1, 1))), np.ones(1), hinge(), C=float(1 / case.lam))
    assert primal_value(problem, np.array([case.w_star, 0.0])) == case.optimum
    for T, (a, w, dual) in enumerate(zip(case.a, case.w, case.dual, strict=True), start=1):
        assert lower_bound(problem, CountPoint(np.array([a]), T)) == pytest.approx(float(dual), abs=1e-15)
        assert epoch_bound(a, a * a, T, 1, float(case.lam)) == pytest.approx(float(dual), abs=1e-15)
        assert primal_value(problem, np.array([float(w), 0.0])) >= case.optimum
    assert all(later >= 0 for later in case.dual)
    assert any(earlier > later for earlier, later in pairwise(case.dual))  # not monotone, hence the best one counts
