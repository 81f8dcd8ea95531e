"""Dual coordinate descent: step by step as its twin, at the optimum as the reference solver, and the facts between."""

import numpy as np
import pytest
import scipy.sparse as sp

import golden
from problems import LOSSES, dense, loss_id, optimum, random_problem, random_table
from reference.dcd_twin import dcd_twin
from slackwater.compiled import JIT, shuffle
from slackwater.objective import certify, hinge, linear_problem, squared_hinge
from slackwater.rows import as_rows
from slackwater.solvers.linear import dcd
from slackwater.solvers.linear.dcd import DCD

interpreted = pytest.mark.interpreted


def start(problem, alpha=None, shrinking=True, seed=0, inner=0):
    """In the paper's order of visits, unless inner passes are asked for."""
    solver = DCD(shrinking=shrinking, inner=inner)
    return solver, solver.start(problem, np.random.default_rng(seed), alpha)


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(problem.rows.bias)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


def solve(problem, rounds=60, gap=1e-11, **options):
    """Rounds until the certified gap is that small."""
    solver, state = start(problem, **options)
    for _ in range(rounds):
        solver.advance(problem, state)
        found = certificate(problem, solver, state)
        if found.relative_gap <= gap:
            break
        solver.review(problem, state, found)
    return solver, state, found


def projected_gradient(problem, alpha, w) -> np.ndarray:
    """From its definition: the gradient of -W(alpha), cut where the box ends."""
    loss, costs = problem.loss, problem.costs
    G = problem.labels * (dense(problem) @ w) - loss.target + loss.width / costs * alpha
    G = np.where(alpha == 0.0, np.minimum(G, 0.0), G)
    return np.where(alpha == loss.cap * costs, np.maximum(G, 0.0), G)


def primal_dual_weights(problem, alpha) -> np.ndarray:
    return (alpha * problem.labels) @ dense(problem)


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(dcd, "epochs_per_round", lambda problem: 1)


# ------------------------------------------------------------------------------------------------ step by step


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_epoch_is_the_twins(one_epoch, loss, bias):
    problem = random_problem(1, loss, bias, weighted=True, sparse=bias == "none")
    solver, state = start(problem, shrinking=False)
    orders = []
    for _ in range(4):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        alpha, w = dcd_twin(dense(problem), problem.labels, problem.costs, loss, orders=orders)
        assert state.table[:, 0] == pytest.approx(alpha, rel=1e-11, abs=1e-13)
        assert state.w == pytest.approx(w, rel=1e-11, abs=1e-13)
    assert len({tuple(order) for order in orders}) == 4
    assert state.counters.epochs == 4
    assert state.counters.inner_products == 4 * problem.n_rows


@interpreted
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_dual_rises_inside_the_box(one_epoch, loss, shrinking):
    problem = random_problem(4, loss, "penalised", weighted=True)
    solver, state = start(problem, shrinking=shrinking)
    last = 0.0
    for _ in range(30):
        solver.advance(problem, state)
        alpha = state.table[:, 0]
        assert (alpha >= 0.0).all()
        assert (alpha <= loss.cap * problem.costs).all()
        assert state.w == pytest.approx(primal_dual_weights(problem, alpha), rel=1e-11, abs=1e-12)
        found = certificate(problem, solver, state)
        assert last * (1.0 - 1e-13) <= found.dual <= found.primal
        last = found.dual
    assert last > 0.9 * optimum(problem).primal


# ---------------------------------------------------------------------------------------------- at the optimum


@interpreted
def test_the_optimum_is_the_reference_solvers(problem):
    solver, state, found = solve(problem)
    best = optimum(problem)
    assert found.relative_gap <= 1e-9
    assert found.primal == pytest.approx(best.primal, rel=1e-9)
    model = solver.model(problem, state)
    assert model.coef[0] == pytest.approx(best.w[:-1], rel=1e-3, abs=1e-4)
    if problem.bias != "free":
        assert model.intercept[0] == pytest.approx(best.b, rel=1e-3, abs=1e-4)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_projected_gradient_vanishes_where_the_gap_does(one_epoch, loss):
    problem = random_problem(9, loss, "penalised")
    solver, state = start(problem, shrinking=False)
    solver.advance(problem, state)
    assert certificate(problem, solver, state).relative_gap > 1e-4
    assert abs(projected_gradient(problem, state.table[:, 0], state.w)).max() > 1e-3
    for _ in range(3000 if JIT else 400):
        solver.advance(problem, state)
    reached = certificate(problem, solver, state)
    assert reached.relative_gap <= (1e-11 if JIT else 1e-5)
    assert abs(projected_gradient(problem, state.table[:, 0], state.w)).max() <= (1e-6 if JIT else 1e-2)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_shrinking_changes_the_way_and_not_the_optimum(loss, C):
    problem = random_problem(6, loss, "penalised", n=120, d=8, C=C, sparse=True)
    values = []
    for shrinking in (True, False):
        _, _, found = solve(problem, rounds=400, gap=5e-7, shrinking=shrinking)
        assert found.relative_gap <= 5e-7
        values.append(found.primal)
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert values[0] == pytest.approx(optimum(problem).primal, rel=1e-6)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_inner_passes_visit_the_rows_inside_their_box(one_epoch, loss):
    """Each of them in a new order, as the twin finds when it is given all orders of visits."""
    problem = random_problem(1, loss, weighted=True)
    solver, state = start(problem, shrinking=False, inner=3)
    top, orders = loss.cap * problem.costs, []

    def inside(rows):
        alpha, _ = dcd_twin(dense(problem), problem.labels, problem.costs, loss, orders=orders)
        return np.array([i for i in rows if 0.0 < alpha[i] < top[i]], dtype=np.uint32)

    for _ in range(3):
        order, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(order, order.size, random)
        orders.append(order.tolist())
        visited = order.size
        free = inside(order)
        for _ in range(3):
            shuffle(free, free.size, random)
            orders.append(free.tolist())
            visited += free.size
            free = inside(free)
        before = state.counters.inner_products
        solver.advance(problem, state)
        assert state.counters.inner_products == before + visited
        alpha, w = dcd_twin(dense(problem), problem.labels, problem.costs, loss, orders=orders)
        assert state.table[:, 0] == pytest.approx(alpha, rel=1e-11, abs=1e-13)
        assert state.w == pytest.approx(w, rel=1e-11, abs=1e-13)


def test_inner_passes_save_inner_products():
    problem = random_problem(6, hinge(), n=300, d=12, C=10.0)
    products = []
    for inner in (0, DCD().inner):
        _, state, found = solve(problem, rounds=2000, gap=1e-3, inner=inner)
        assert found.relative_gap <= 1e-3
        products.append(state.counters.inner_products)
    assert products[1] < products[0]


def test_a_negative_number_of_inner_passes_is_refused():
    with pytest.raises(ValueError, match="inner must be at least 0, got -1"):
        DCD(inner=-1)


def test_shrinking_saves_inner_products(one_epoch):
    problem = random_problem(6, hinge(), n=300, d=12, C=1.0)
    products = {}
    for shrinking in (True, False):
        solver, state = start(problem, shrinking=shrinking)
        for _ in range(200):
            solver.advance(problem, state)
        products[shrinking] = state.counters.inner_products
    assert products[False] == 200 * 300
    assert products[True] < 0.7 * products[False]


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_what_was_shrunk_is_looked_at_again(one_epoch, loss):
    """After a review every row takes part again."""
    problem = random_problem(6, loss, n=300, d=12)
    solver, state = start(problem)
    while state.active == 300:
        assert state.counters.epochs < 60, "nothing was ever shrunk"
        solver.advance(problem, state)
    solver.review(problem, state, certificate(problem, solver, state))
    assert state.active == 300
    assert sorted(state.visits.order) == list(range(300))
    before = state.counters.inner_products
    solver.advance(problem, state)
    assert state.counters.inner_products == before + 300


@interpreted
@pytest.mark.parametrize("bias", ["none", "free"])
def test_weights_equal_repetitions(bias):
    X, labels = random_table(np.random.default_rng(8), n=12)
    times = np.arange(12) % 3 + 1
    weighted = linear_problem(as_rows(X), labels, hinge(), weights=times, bias=bias, scale=1.0)
    X, labels = np.repeat(X, times, axis=0), np.repeat(labels, times)
    repeated = linear_problem(as_rows(X), labels, hinge(), bias=bias, scale=1.0)
    values = [solve(problem)[2].primal for problem in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_free_bias_balances_the_classes(loss):
    problem = random_problem(12, loss, "free", C=0.3, scale=2.0)
    _, state, found = solve(problem)
    best, alpha = optimum(problem), state.table[:, 0]
    assert found.primal == pytest.approx(best.primal, rel=1e-8)
    assert found.dual == pytest.approx(best.primal, rel=1e-8)
    assert abs(alpha @ problem.labels) <= 1e-6 * alpha.sum()
    assert state.w[:-1] == pytest.approx(best.w[:-1], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_free_bias_on_uneven_classes_far_from_the_origin(loss):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3)) + 20.0
    labels = np.where(np.arange(80) % 8 == 0, 1.0, -1.0)
    X[labels > 0] += 1.0
    problem = linear_problem(as_rows(X), labels, loss, C=0.5, bias="free")
    _, _, found = solve(problem, rounds=300, gap=1e-8)
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-6)
    assert found.relative_gap <= 1e-6


# ------------------------------------------------------------------------------------------------- warm starts


@interpreted
def test_a_warm_start_at_the_optimum_is_there_at_once(problem):
    _, state, _ = solve(problem)
    solver, again = start(problem, alpha=state.table[:, 0])
    found = certificate(problem, solver, again)
    assert found.dual == pytest.approx(optimum(problem).primal, rel=1e-8)
    assert problem.bias == "free" or found.relative_gap <= 1e-8
    assert again.w == pytest.approx(primal_dual_weights(problem, again.table[:, 0]), rel=1e-11, abs=1e-11)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_warm_start_outside_the_box_is_put_into_it(loss, rng):
    problem = random_problem(4, loss)
    upper = loss.cap * problem.costs
    wild = 10.0 * rng.normal(size=problem.n_rows)
    _, state = start(problem, alpha=wild)
    assert (state.table[:, 0] == np.clip(wild, 0.0, upper)).all()
    _, _, found = solve(problem, alpha=wild)
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-8)


def test_a_warm_start_after_a_small_change_of_C_takes_fewer_epochs(one_epoch):
    first, second = (random_problem(6, squared_hinge(), n=300, d=12, C=C) for C in (1.0, 1.1))
    _, state, _ = solve(first, rounds=500, gap=1e-8)
    cold = solve(second, rounds=500, gap=1e-6)[1].counters.epochs
    warm = solve(second, rounds=500, gap=1e-6, alpha=state.table[:, 0])[1].counters.epochs
    assert warm < cold


# -------------------------------------------------------------------------------------------------- the estimate


@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_estimate_is_close_to_the_certified_gap(one_epoch, loss, bias):
    problem = random_problem(6, loss, bias, n=300, d=12, C=0.1)
    solver, state = start(problem, shrinking=False)
    ratios = []
    for _ in range(40):
        solver.advance(problem, state)
        true = certificate(problem, solver, state).relative_gap
        if 1e-6 < true < 0.1:
            ratios.append(solver.estimate(problem, state) / true)
    assert len(ratios) >= 2
    assert 0.4 < np.median(ratios) < 5.0
    assert 0.1 < min(ratios) <= max(ratios) < 15.0


def test_before_the_first_epoch_nothing_is_estimated():
    problem = random_problem(6, hinge())
    solver, state = start(problem)
    assert solver.estimate(problem, state) == np.inf


# ------------------------------------------------------------------------------------------------- special rows


@interpreted
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_zero_rows_cost_what_they_must(loss, layout):
    X, labels = random_table(np.random.default_rng(5), n=10)
    X[[0, 4, 9]] = 0.0
    problem = linear_problem(as_rows(layout(X)), labels, loss)
    _, state, found = solve(problem)
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-9)
    expected = min(loss.cap, loss.target / loss.width if loss.width else np.inf)
    assert state.table[[0, 4, 9], 0] == pytest.approx(np.full(3, expected), rel=1e-12)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_nothing_but_zero_rows(loss):
    problem = linear_problem(as_rows(np.zeros((3, 2))), np.array([1.0, -1.0, 1.0]), loss)
    _, state, found = solve(problem)
    at_zero = loss.cap * (loss.target - loss.cap * loss.width / 2.0) if np.isfinite(loss.cap) else 1.0
    assert (found.primal, found.dual) == pytest.approx((at_zero, at_zero), rel=1e-13)
    assert (state.w == 0.0).all()


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_one_row_has_a_closed_form(loss):
    C, z = 0.8, np.array([0.6, -0.3])
    problem = linear_problem(as_rows(z[None, :]), np.array([-1.0]), loss, C=C)
    _, state, found = solve(problem)
    alpha = min(loss.target / (z @ z + loss.width / C), loss.cap * C)
    assert state.table[0, 0] == pytest.approx(alpha, rel=1e-12)
    assert state.w[:2] == pytest.approx(-alpha * z, rel=1e-12)
    assert found.relative_gap <= 1e-12


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_layouts_and_precisions_take_one_way(one_epoch, layout, dtype):
    X, labels = random_table(np.random.default_rng(2), n=30)
    X = np.round(X * 16.0) / 16.0
    ends = []
    for matrix in (X, layout(X.astype(dtype))):
        problem = linear_problem(as_rows(matrix), labels, hinge(), bias="penalised")
        solver, state = start(problem, seed=4)
        for _ in range(5):
            solver.advance(problem, state)
        ends.append(state.w)
    assert ends[0] == pytest.approx(ends[1], rel=1e-9, abs=1e-12)


@interpreted
def test_seeds_decide():
    problem = random_problem(2, hinge(), n=60)
    ways = []
    for seed in (1, 1, 2):
        _, state = start(problem, seed=seed)
        order = state.visits.order.copy()
        shuffle(order, order.size, state.visits.random)
        ways.append(order.tolist())
    assert ways[0] == ways[1] != ways[2]


# ------------------------------------------------------------------------------------------------ golden vectors


@interpreted
@pytest.mark.parametrize("shrinking", [True, False])
def test_golden_machine(shrinking):
    svm = golden.SVM
    problem = linear_problem(as_rows(np.array(svm.z)), np.ones(4), hinge(), C=svm.C)
    _, state, found = solve(problem, gap=1e-14, shrinking=shrinking)
    assert state.table[:, 0] == pytest.approx(svm.alpha, rel=1e-9, abs=1e-9)
    assert state.w[:2] == pytest.approx(svm.w, rel=1e-9)
    assert np.linalg.norm(state.w) == pytest.approx(svm.norm, rel=1e-9)
    assert (found.primal, found.dual) == pytest.approx((svm.optimum, svm.optimum), rel=1e-12)


@interpreted
def test_golden_single_example():
    case = golden.SGD_S
    problem = linear_problem(as_rows(np.ones((1, 1))), np.ones(1), hinge(), C=float(1 / case.lam))
    _, state, found = solve(problem)
    assert state.w[0] == pytest.approx(case.w_star, rel=1e-14)
    assert found.primal == pytest.approx(float(case.optimum), rel=1e-14)
