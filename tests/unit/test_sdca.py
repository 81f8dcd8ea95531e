"""Stochastic dual coordinate ascent: its twin, its outputs by brute force, the modified SGD of the first epoch."""

import numpy as np
import pytest

import golden
from problems import LOSSES, dense, loss_id, optimum, random_problem
from reference.dcd_twin import dcd_twin
from slackwater.compiled import shuffle
from slackwater.objective import certify, hinge, linear_problem, primal_value
from slackwater.rows import as_rows
from slackwater.solvers.linear import sdca
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.sdca import SDCA
from slackwater.solvers.visits import draw
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(sdca, "epochs_per_round", lambda problem: 1)


def start(problem, seed=0, alpha=None, **settings):
    solver = SDCA(**settings)
    return solver, solver.start(problem, np.random.default_rng(seed), alpha)


def next_order(state, replacement):
    """The visits of the epoch to come."""
    order, random = state.visits.order.copy(), state.visits.random.copy()
    if replacement:
        draw(order, random)
    else:
        shuffle(order, order.size, random)
    return order.tolist()


@interpreted
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_epoch_is_the_twins(one_epoch, loss, replacement):
    problem = random_problem(1, loss, "penalised", weighted=True, sparse=True)
    solver, state = start(problem, replacement=replacement)
    orders, last = [], 0.0
    for _ in range(4):
        orders.append(next_order(state, replacement))
        solver.advance(problem, state)
        alpha, w = dcd_twin(dense(problem), problem.labels, problem.costs, loss, orders=orders)
        assert state.table[:, 0] == pytest.approx(alpha, rel=1e-11, abs=1e-13)
        assert state.w == pytest.approx(w, rel=1e-11, abs=1e-13)
        assert (alpha >= 0.0).all() and (alpha <= loss.cap * problem.costs).all()
        found = certify(problem, state.w, solver.dual_point(problem, state)).certificate
        assert last * (1.0 - 1e-13) <= found.dual <= optimum(problem).primal
        last = found.dual
    permuted = [sorted(order) == list(range(problem.n_rows)) for order in orders]
    assert permuted == [not replacement] * 4


@interpreted
@pytest.mark.parametrize("replacement", [False, True])
def test_the_average_is_that_of_the_iterates_after_every_visit(one_epoch, replacement):
    """Over the last half of them or a little more: from the epoch that is half the last power of two."""
    loss = hinge()
    problem = random_problem(2, loss, "penalised", n=12, weighted=True)
    solver, state = start(problem, replacement=replacement, output="average")
    X, orders, path = dense(problem), [], []
    for epoch in range(1, 10):
        orders.append(next_order(state, replacement))
        before = orders[:-1]
        for s in range(1, 13):
            path.append(dcd_twin(X, problem.labels, problem.costs, loss, orders=[*before, orders[-1][:s]])[1])
        solver.advance(problem, state)
        first = {1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 2, 8: 4, 9: 4}[epoch]
        expected = np.mean(path[12 * first :], axis=0)
        assert solver.model(problem, state).weights(1.0) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@interpreted
def test_the_random_iterate_is_one_of_the_last_half(one_epoch):
    loss = hinge()
    problem = random_problem(2, loss, n=8, d=3)
    found = set()
    for seed in range(40):
        solver, state = start(problem, seed, output="random")
        path, orders = [], []
        for _ in range(4):
            orders.append(next_order(state, False))
            for s in range(1, 9):
                path.append(
                    dcd_twin(
                        dense(problem), problem.labels, problem.costs, loss, orders=[*orders[:-1], orders[-1][:s]]
                    )[1]
                )
            solver.advance(problem, state)
        weights = solver.model(problem, state).weights(0.0)
        near = [t for t, w in enumerate(path) if np.allclose(w, weights, rtol=1e-10, atol=1e-12)]
        assert near and near[-1] >= 16
        found.add(near[-1])
    assert len(found) > 5


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_first_epoch_by_modified_sgd(one_epoch, loss):
    """Each step maximises the dual of the problem of the examples so far, at the weights before it."""
    problem = random_problem(3, loss, "penalised", weighted=True)
    solver, state = start(problem, sgd_start=True)
    order = next_order(state, False)
    solver.advance(problem, state)
    Z, costs, alpha = dense(problem) * problem.labels[:, None], problem.costs, np.zeros(problem.n_rows)
    for t, i in enumerate(order):
        seen = costs[order[: t + 1]].sum()
        w = alpha @ Z * (costs.sum() / costs[order[:t]].sum()) if t else np.zeros(Z.shape[1])
        slope = (loss.target - Z[i] @ w) / (Z[i] @ Z[i] * costs.sum() / seen + loss.width / costs[i])
        alpha[i] = min(max(slope, 0.0), loss.cap * costs[i])
    assert state.table[:, 0] == pytest.approx(alpha, rel=1e-10, abs=1e-13)
    assert state.w == pytest.approx(alpha @ Z, rel=1e-10, abs=1e-12)
    for _ in range(60):
        solver.advance(problem, state)
    assert primal_value(problem, state.w) == pytest.approx(optimum(problem).primal, rel=0.05)


@pytest.mark.parametrize("settings", [{}, {"replacement": True}, {"output": "average"}, {"sgd_start": True}], ids=str)
@pytest.mark.parametrize("bias", ["none", "free"])
def test_every_way_leads_to_dcds_optimum(settings, bias):
    problem = random_problem(6, hinge(), bias, n=80, d=6, weighted=True)
    ours = run(problem, SDCA(**settings), Limits(tol=1e-6, max_rounds=100), rng=0)
    theirs = run(problem, DCD(), Limits(tol=1e-6, max_rounds=100), rng=0)
    assert ours.status.converged and theirs.status.converged
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-6)


@interpreted
def test_golden_machine():
    svm = golden.SVM
    problem = linear_problem(as_rows(np.array(svm.z)), np.ones(4), hinge(), C=svm.C)
    solver, state = start(problem)
    solver.advance(problem, state)
    assert state.table[:, 0] == pytest.approx(svm.alpha, rel=1e-9, abs=1e-9)
    assert state.w[:2] == pytest.approx(svm.w, rel=1e-9)


def test_outputs_that_are_not_known():
    with pytest.raises(ValueError, match="output='best' is not known; the outputs are last, average, random"):
        SDCA(output="best")
