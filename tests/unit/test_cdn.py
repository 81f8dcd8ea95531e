"""Coordinate descent with Newton directions: as its twin, at the optimum, what rests, what it refuses."""

import numpy as np
import pytest

from problems import SMOOTH, dense, loss_id, optimum, random_problem
from reference.cdn_twin import cdn_twin
from slackwater.compiled import shuffle
from slackwater.objective import certify, elastic_net, l1, l2, primal_value, squared_hinge
from slackwater.objective.penalties import penalty_name
from slackwater.rows import as_columns
from slackwater.solvers.linear import cdn
from slackwater.solvers.linear.cdn import CDN
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
EACH = pytest.mark.parametrize("penalty", [l2(), l1(), elastic_net(0.5)], ids=penalty_name)


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(cdn, "epochs_per_round", lambda problem: 1)


@interpreted
@EACH
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_every_epoch_is_the_twins(one_epoch, loss, penalty):
    problem = random_problem(1, loss, "penalised", weighted=True, sparse=True, penalty=penalty)
    solver = CDN(shrinking=False)
    state = solver.start(problem, np.random.default_rng(0))
    Z, orders = dense(problem) * problem.labels[:, None], []
    for _ in range(3):
        coming, random = state.order.copy(), state.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        assert state.w == pytest.approx(cdn_twin(Z, problem.costs, loss, penalty, orders), rel=1e-7, abs=1e-9)


@interpreted
@EACH
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_the_objective_falls_with_every_epoch(one_epoch, loss, penalty):
    problem = random_problem(2, loss, "free", weighted=True, C=3.0, penalty=penalty)
    solver = CDN()
    state = solver.start(problem, np.random.default_rng(0))
    last = np.inf
    for _ in range(20):
        solver.advance(problem, state)
        scores = dense(problem) @ state.w
        assert state.table[:, 0] == pytest.approx(loss.target - problem.labels * scores, abs=1e-9)
        value = problem.regulariser(state.w) + cdn._losses(loss, state.table)
        assert value <= last * (1.0 + 1e-12)
        last = value
    assert primal_value(problem, state.w) == pytest.approx(optimum(problem).primal, rel=0.05)


@EACH
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_shrinking_changes_the_way_and_not_the_optimum(penalty, C):
    problem = random_problem(6, squared_hinge(), "penalised", n=120, d=40, C=C, sparse=True, penalty=penalty)
    for shrinking in (True, False):
        found = run(problem, CDN(shrinking=shrinking), Limits(tol=1e-8, max_rounds=500), rng=0)
        assert found.status.converged, found.status
        assert found.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-7)


def test_columns_at_zero_rest_until_a_review(one_epoch):
    problem = random_problem(6, squared_hinge(), n=200, d=60, C=0.02, penalty=l1())
    solver = CDN()
    state = solver.start(problem, np.random.default_rng(0))
    fewest = 60
    for _ in range(30):
        solver.advance(problem, state)
        fewest = min(fewest, state.active)
        assert sorted(state.order) == list(range(60))
    assert fewest < 50
    solver.review(problem, state, certify(problem, state.w).certificate)
    assert state.active == 60


@interpreted
@pytest.mark.parametrize("sparse", [True, False])
def test_columns_hold_the_numbers_of_the_rows(sparse):
    problem = random_problem(1, squared_hinge(), "penalised", sparse=sparse)
    columns, Z = as_columns(problem.rows, problem.labels), dense(problem) * problem.labels[:, None]
    again = np.zeros_like(Z)
    for j in range(Z.shape[1]):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        assert (columns.values[part] != 0.0).all() and (np.diff(columns.indices[part].astype(int)) > 0).all()
        again[columns.indices[part], j] = columns.values[part]
    assert np.array_equal(again, Z)


@pytest.mark.parametrize("sigma", [0.0, 0.5, -1.0])
def test_sigma_is_checked(sigma):
    with pytest.raises(ValueError, match=f"sigma must lie between 0 and 0.5, got {sigma}"):
        CDN(sigma=sigma)
