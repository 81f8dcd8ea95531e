"""Certificates: every rule bounds the optimum from below, is tight where it should be, and survives nonsense."""

import math
from itertools import pairwise

import numpy as np
import pytest

import golden
from problems import BIASES, LOSSES, dense, loss_id, optimum, random_problem
from reference.pegasos_twin import pegasos_twin
from reference.qp_reference import loss_value
from reference.sgd_s_twin import sgd_s_twin
from slackwater.objective import (
    BoxPoint,
    Certificate,
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

#: Every loss with every bias; weights and the layout take turns.
CASES = [
    pytest.param((loss, bias, k % 2 == 0, k % 3 == 0), id=f"{loss_id(loss)}-{bias}")
    for k, (loss, bias) in enumerate((loss, bias) for loss in LOSSES for bias in BIASES)
]


@pytest.fixture(scope="module", params=CASES)
def problem(request):
    loss, bias, weighted, sparse = request.param
    return random_problem(7, loss, bias, weighted=weighted, sparse=sparse, scale=1.0 if weighted else 2.0)


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


def cut_of(problem, alpha) -> CutPoint:
    """One cut whose slopes are alpha_i / C_i."""
    lam, loss = problem.regularisation, problem.loss
    gradient = -lam * (alpha * problem.labels) @ dense(problem)
    if problem.bias == "free":
        gradient[-1] = 0.0
    offset = lam * (loss.target * alpha.sum() - 0.5 * loss.width * alpha @ (alpha / problem.costs))
    return CutPoint(gradient[None, :], np.array([offset]), np.ones(1))


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
    for shift in (-0.5, -0.01, 0.01, 0.5):
        moved = found.weights + np.append(np.zeros(problem.n_weights - 1), shift)
        losses = problem.costs @ loss_value(problem.loss, margins(problem, moved))
        other = problem.regularisation * (0.5 * w[:-1] @ w[:-1] + losses)
        assert found.certificate.primal <= other * (1.0 + 1e-14)


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


# -------------------------------------------------------------------------------------------------- nonsense

NOT_NUMBERS = [
    pytest.param(lambda a: np.full_like(a, np.nan), id="nan"),
    pytest.param(lambda a: np.where(np.arange(a.size) == 3, np.nan, a), id="one-nan"),
    pytest.param(lambda a: np.full_like(a, np.inf), id="inf"),
    pytest.param(lambda a: np.where(np.arange(a.size) == 3, -np.inf, a), id="one-minus-inf"),
    pytest.param(lambda a: np.full_like(a, 1e200), id="1e200"),
]
OUTSIDE = [
    pytest.param(lambda a: -a - 1.0, id="negative"),
    pytest.param(lambda a: 1e6 * (a + 1.0), id="above"),
    pytest.param(lambda a: np.zeros_like(a), id="zero"),
    pytest.param(lambda a: np.full_like(a, 5e-324), id="denormal"),
]


@pytest.mark.parametrize("spoil", NOT_NUMBERS + OUTSIDE)
def test_nonsense_never_proves_too_much(problem, spoil):
    best = optimum(problem)
    alpha = spoil(best.alpha)
    points = [BoxPoint(alpha), CountPoint(10.0 * alpha / problem.costs, 10.0), DirectionPoint(alpha)]
    cut = cut_of(problem, best.alpha)  # cuts are taken as they are, their mixture is not
    beta = spoil(np.full(4, 0.5))
    points.append(CutPoint(np.repeat(cut.gradients, 4, axis=0), np.repeat(cut.offsets, 4), beta))
    points.append(GradientPoint(spoil(best.w)))
    for point in points:
        certificate = certify(problem, best.w, point).certificate
        assert not math.isnan(certificate.dual)
        assert certificate.dual <= best.primal * (1.0 + 1e-12)
        assert certificate.relative_gap >= 0.0


@pytest.mark.parametrize("epochs", [0.0, -3.0, math.nan, math.inf, 1e-300])
def test_nonsense_epochs_never_prove_too_much(problem, epochs):
    best = optimum(problem)
    bound = lower_bound(problem, CountPoint(best.alpha / problem.costs, epochs))
    assert bound <= best.primal * (1.0 + 1e-12)
    assert not math.isnan(bound)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e200, 1e308, -1e308])
def test_weights_that_overflow_have_no_finite_value(problem, number):
    weights = np.full(problem.n_weights, number)
    assert primal_value(problem, weights) == math.inf
    certificate = certify(problem, weights).certificate
    assert certificate.primal == math.inf
    assert certificate.dual <= optimum(problem).primal
    assert certificate.relative_gap == math.inf


def test_points_of_the_wrong_size_are_refused_by_name(problem):
    n, short = problem.n_rows, np.zeros(3)
    for name, point in (
        ("alpha", BoxPoint(short)),
        ("counts", CountPoint(short, 1)),
        ("p", DirectionPoint(short)),
        ("beta", CutPoint(np.zeros((2, problem.n_weights)), np.zeros(2), short)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be {2 if name == 'beta' else n} numbers"):
            lower_bound(problem, point)
    with pytest.raises(ValueError, match=f"weights must be {problem.n_weights} numbers"):
        certify(problem, np.zeros(problem.n_weights + 1))
    with pytest.raises(ValueError, match=f"gradients must be 1 lines of {problem.n_weights} numbers"):
        lower_bound(problem, CutPoint(np.zeros((1, 1)), np.zeros(1), np.zeros(1)))


def test_the_callers_arrays_are_left_alone(problem):
    best = optimum(problem)
    w, alpha = best.w + 0.1, best.alpha - 0.1
    kept = w.copy(), alpha.copy()
    for point in (BoxPoint(alpha), DirectionPoint(alpha), CountPoint(alpha, 1.0)):
        certify(problem, w, point)
    assert (w == kept[0]).all()
    assert (alpha == kept[1]).all()


# ---------------------------------------------------------------------------------------------- the certificate


def test_better_combines_the_best_halves():
    one, other = Certificate(1.0, 0.5, "C1"), Certificate(1.2, 0.8, "C2")
    assert one.better(other) == other.better(one) == Certificate(1.0, 0.8, "C2")
    assert one.better(Certificate(2.0, 0.1, "C6")) == one
    assert Certificate(math.inf, -math.inf, "C6").better(one) == one


def test_gaps():
    certificate = Certificate(1.02, 1.0, "C1")
    assert certificate.gap == pytest.approx(0.02, rel=1e-12)
    assert certificate.relative_gap == pytest.approx(0.02, rel=1e-12)
    assert Certificate(0.5, 0.4, "C1").relative_gap == pytest.approx(0.25, rel=1e-12)
    assert Certificate(0.5, 0.0, "C1").relative_gap == math.inf
    assert Certificate(0.5, -1.0, "C1").relative_gap == math.inf
    assert Certificate(0.5, -math.inf, "C1").relative_gap == math.inf
    assert Certificate(0.0, 0.0, "C1").relative_gap == 0.0
    assert Certificate(1.0, 1.0 + 1e-16, "C1").relative_gap == 0.0


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        (Certificate(1.02, 1.0, "C1"), "primal 1.020, proven lower bound 1.000, gap 2% (rule C1)"),
        (Certificate(0.5, -1.0, "C6"), "primal 0.5000, proven lower bound -1.000, gap 1.5, relatively unbounded"),
        (Certificate(0.0, 0.0, "C1+C7"), "primal 0, proven lower bound 0, gap 0% (rule C1+C7)"),
        (Certificate(1.0, 0.99999, "C1"), "primal 1.00000, proven lower bound 0.999990, gap 0.001% (rule C1)"),
        (Certificate(math.inf, 0.5, "C2"), "primal inf, proven lower bound 0.5000, gap inf, relatively unbounded"),
    ],
)
def test_text(certificate, text):
    assert str(certificate).startswith(text)


def test_the_texts_digits_tell_the_two_values_apart():
    for gap in (1e-2, 1e-4, 1e-7, 1e-10):
        primal, dual = (
            str(Certificate(1.2345 * (1 + gap), 1.2345, "C1")).split(", gap")[0].split(", proven lower bound ")
        )
        assert float(primal.removeprefix("primal ")) > float(dual)


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
