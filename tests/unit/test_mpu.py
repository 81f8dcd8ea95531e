"""The margin perceptron with unlearning: its twin, the rising dual, what a stall leaves, the optimum."""

import numpy as np
import pytest

import golden
from problems import LOSSES, dense, loss_id, optimum, random_problem
from reference.mpu_twin import mpu_twin
from slackwater.compiled import shuffle
from slackwater.objective import certify, hinge, linear_problem
from slackwater.rows import as_rows
from slackwater.solvers.linear import mpu
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.mpu import MPU
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one pass, on tiny problems too."""
    monkeypatch.setattr(mpu, "epochs_per_round", lambda problem: 1)


def start(problem, seed=0, alpha=None, **settings):
    solver = MPU(**settings)
    return solver, solver.start(problem, np.random.default_rng(seed), alpha)


def plain_orders(problem, state, solver, rounds):
    """Advance; the orders of the passes, where every pass visits all rows."""
    orders = []
    for _ in range(rounds):
        order, random = np.arange(problem.n_rows, dtype=np.uint32), state.visits.random.copy()
        shuffle(order, order.size, random)
        orders.append(order.tolist())
        solver.advance(problem, state)
    return orders


@interpreted
@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_plain_passes_are_the_twins(one_epoch, loss, quantised):
    problem = random_problem(1, loss, "penalised", weighted=True)
    solver, state = start(problem, delta=0.2, shrink=1.0, inner=0, every=1, quantised=quantised)
    orders = plain_orders(problem, state, solver, 6)
    X, labels, costs = dense(problem), problem.labels, problem.costs
    alpha, values = mpu_twin(X, labels, costs, loss, 0.2, orders, quantised)
    assert state.table[:, 0] == pytest.approx(alpha, rel=1e-10, abs=1e-12)
    assert state.w == pytest.approx((alpha * labels) @ X, rel=1e-10, abs=1e-12)
    if quantised:
        counts = state.table[:, 0] / (0.2 * costs)
        assert counts == pytest.approx(np.round(counts), abs=1e-9)
    else:
        assert (np.diff(values) >= -1e-12).all()


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_stall_leaves_no_larger_gap_than_delta_allows(loss, delta):
    """After at most 2 R^2 W*/delta^2 unclipped changes and the clipped ones nothing moves."""
    problem = random_problem(2, loss, "penalised", weighted=True)
    solver, state = start(problem, delta=delta, shrink=1.0)
    before = -1
    while state.counters.updates != before:
        before = state.counters.updates
        solver.advance(problem, state)
    alpha, upper, ridge = state.table[:, 0], loss.cap * problem.costs, loss.width / problem.costs
    short = loss.target - problem.labels * (dense(problem) @ state.w)
    with np.errstate(divide="ignore", invalid="ignore"):
        answer = np.clip(np.where(ridge > 0.0, short / ridge, np.where(short > 0.0, np.inf, 0.0)), 0.0, upper)
    found = certify(problem, state.w, solver.dual_point(problem, state)).certificate
    allowed = delta * loss.target * np.abs(answer - alpha).sum() * problem.regularisation
    assert found.gap <= allowed * (1.0 + 1e-9) + 1e-12
    assert found.dual <= optimum(problem).primal <= found.primal


@pytest.mark.parametrize("settings", [{}, {"quantised": True}, {"delta": 0.9}, {"idle": 1, "every": 9}], ids=str)
@pytest.mark.parametrize("bias", ["none", "free"])
def test_the_optimum_is_dcds(settings, bias):
    problem = random_problem(6, hinge(), bias, n=80, d=6, weighted=True)
    ours = run(problem, MPU(**settings), Limits(tol=1e-6, max_rounds=100), rng=0)
    theirs = run(problem, DCD(), Limits(tol=1e-6, max_rounds=100), rng=0)
    assert ours.status.converged and theirs.status.converged
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=2e-6)


def test_rows_with_nothing_to_do_are_left_alone_and_looked_at_again(one_epoch):
    problem = random_problem(6, hinge(), n=300, d=12)
    solver, state = start(problem, inner=0, every=4)
    met = []
    for _ in range(40):
        before = state.counters.inner_products
        solver.advance(problem, state)
        met.append(state.counters.inner_products - before)
    assert set(met[::4]) == {300}
    assert max(met[-3:]) < 200
    solver.review(problem, state, certify(problem, state.w, solver.dual_point(problem, state)).certificate)
    assert state.active == 300


@interpreted
def test_delta_shrinks_on_the_way(one_epoch):
    problem = random_problem(6, hinge())
    solver, state = start(problem, delta=0.5)
    deltas = []
    for _ in range(30):
        solver.advance(problem, state)
        deltas.append(state.delta)
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] < 0.1


@interpreted
def test_golden_machine():
    svm = golden.SVM
    problem = linear_problem(as_rows(np.array(svm.z)), np.ones(4), hinge(), C=svm.C)
    solver, state = start(problem)
    for _ in range(3):
        solver.advance(problem, state)
    assert state.table[:, 0] == pytest.approx(svm.alpha, rel=1e-9, abs=1e-9)
    assert state.w[:2] == pytest.approx(svm.w, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delta": 1.0}, "delta must lie between 0 and 1, got 1.0"),
        ({"shrink": 0.0}, r"shrink must lie in \(0, 1\], got 0.0"),
        ({"inner": -1}, "inner must be at least 0, got -1"),
        ({"idle": 0}, "idle must lie between 1 and 254, got 0"),
        ({"every": 0}, "every must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        MPU(**settings)
