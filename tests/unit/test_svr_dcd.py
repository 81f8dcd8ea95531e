"""Dual coordinate descent for regression: step by step as its twin, with its box, its dual and its estimate."""

import numpy as np
import pytest
import scipy.sparse as sp

from reference.svr_dcd_twin import svr_dcd_twin
from reference.svr_reference import dual_of
from slackwater.compiled import shuffle
from slackwater.objective import TUBE_LOSSES, certify, regression_problem, tube_loss
from slackwater.rows import as_rows
from slackwater.solvers.linear import dcd
from slackwater.solvers.linear.svr_dcd import SVRDCD

interpreted = pytest.mark.interpreted

KINDS = [(loss, epsilon) for loss in TUBE_LOSSES for epsilon in (0.0, 0.4)]


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(dcd, "epochs_per_round", lambda problem: 1)


def random_problem(loss, epsilon, n=24, d=4, C=0.7, bias="none"):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[3] = 0.0
    y = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.5
    return X, regression_problem(
        as_rows(sp.csr_array(X)), y, tube_loss(loss, epsilon), C, rng.uniform(0.2, 3.0, n), bias, 1.0
    )


@interpreted
@pytest.mark.parametrize("loss, epsilon", KINDS)
def test_every_epoch_is_the_twins(one_epoch, loss, epsilon):
    X, problem = random_problem(loss, epsilon)
    solver = SVRDCD(shrinking=False, inner=0)
    state = solver.start(problem, np.random.default_rng(0))
    orders = []
    for _ in range(5):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        beta, w = svr_dcd_twin(X, problem.targets, problem.costs, problem.loss, orders)
        assert state.table[:, 0] == pytest.approx(beta, rel=1e-10, abs=1e-12)
        assert state.w[:-1] == pytest.approx(w, rel=1e-10, abs=1e-12)
    assert state.counters.inner_products == 5 * problem.n_rows


@interpreted
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("loss, epsilon", KINDS)
def test_the_dual_rises_inside_the_box(one_epoch, loss, epsilon, shrinking):
    X, problem = random_problem(loss, epsilon)
    solver = SVRDCD(shrinking=shrinking)
    state, last = solver.start(problem, np.random.default_rng(0)), 0.0
    for _ in range(12):
        solver.advance(problem, state)
        beta = state.table[:, 0]
        assert (np.abs(beta) <= problem.loss.cap * problem.costs).all()
        assert state.w[:-1] == pytest.approx(beta @ X, rel=1e-11, abs=1e-12)
        found = certify(problem, state.w, solver.dual_point(problem, state)).certificate
        assert found.dual == pytest.approx(dual_of(X, problem.targets, problem.costs, problem.loss, beta), rel=1e-11)
        assert last * (1.0 - 1e-13) <= found.dual <= found.primal
        last = found.dual


@interpreted
@pytest.mark.parametrize("loss", TUBE_LOSSES)
def test_a_step_crosses_zero_to_the_other_edge(one_epoch, loss):
    """One row: from a beta of the wrong sign one visit finds the optimum of the right one, or zero."""
    for y in (3.0, -3.0, 0.1):
        problem = regression_problem(as_rows(np.array([[2.0]])), [y], tube_loss(loss, 0.5), 0.5)
        solver = SVRDCD(inner=0)
        state = solver.start(problem, np.random.default_rng(0), np.array([-0.25 * np.sign(y)]))
        solver.advance(problem, state)
        best = np.sign(y) * min(max(abs(y) - 0.5, 0.0) / (4.0 + problem.loss.width / 0.5), problem.loss.cap * 0.5)
        assert state.table[0, 0] == pytest.approx(best, rel=1e-14)
        assert state.w[0] == pytest.approx(2.0 * best, rel=1e-14)


@pytest.mark.parametrize("loss, epsilon", KINDS)
def test_zero_rows_go_to_the_end_of_their_box(loss, epsilon):
    """Under the loss of the first degree nothing else stops them; a target inside the tube stays at zero."""
    y = np.array([2.0, -2.0, 0.1, epsilon])
    problem = regression_problem(as_rows(np.zeros((4, 2))), y, tube_loss(loss, epsilon), 0.5)
    solver = SVRDCD()
    state = solver.start(problem, np.random.default_rng(0), np.array([-0.5, 0.5, 0.25, 0.0]))
    solver.advance(problem, state)
    beyond = np.maximum(np.abs(y) - epsilon, 0.0)
    best = np.where(beyond > 0.0, 0.5, 0.0) if problem.loss.width == 0.0 else beyond
    assert state.table[:, 0] == pytest.approx(np.sign(y) * best, abs=1e-12)
    assert np.isfinite(solver.estimate(problem, state))


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss, epsilon", KINDS)
def test_shrinking_changes_the_way_and_not_the_optimum(one_epoch, loss, epsilon, bias):
    _, problem = random_problem(loss, epsilon, n=120, d=8, bias=bias)
    values, goal = [], 1e-5 if bias == "free" else 1e-7  # the multiplier of a free bias closes in slowly
    for shrinking in (True, False):
        solver = SVRDCD(shrinking=shrinking)
        state = solver.start(problem, np.random.default_rng(0))
        for _ in range(1000):
            solver.advance(problem, state)
            weights = solver.model(problem, state).weights(problem.rows.bias)
            found = certify(problem, weights, solver.dual_point(problem, state)).certificate
            if found.relative_gap <= goal:
                break
            solver.review(problem, state, found)
        assert found.relative_gap <= goal
        values.append(found.primal)
    assert values[0] == pytest.approx(values[1], rel=2.0 * goal)


@pytest.mark.parametrize("loss, epsilon", KINDS)
def test_the_estimate_is_near_the_certified_gap(one_epoch, loss, epsilon):
    _, problem = random_problem(loss, epsilon, n=400, d=10)
    solver = SVRDCD()
    state = solver.start(problem, np.random.default_rng(0))
    assert solver.estimate(problem, state) == np.inf
    for _ in range(8):
        solver.advance(problem, state)
        weights = solver.model(problem, state).weights(problem.rows.bias)
        gap = certify(problem, weights, solver.dual_point(problem, state)).certificate.relative_gap
        if gap < 1e-9:
            break
        assert gap / 30.0 <= solver.estimate(problem, state) <= 30.0 * gap
