"""Kernel SDCA: epoch by epoch as its twin, the facts of its steps, rows that come ahead, the multiplier of the bias."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import dual_by_definition, optimum, whole
from kernel_runs import clouds, derivative, golden_problem, problem_of, train
from problems import LOSSES, loss_id
from reference.kernel_sdca_twin import kernel_sdca_twin
from slackwater.objective import hinge, huber
from slackwater.solvers.kernel import kernel_sdca
from slackwater.solvers.kernel.kernel_sdca import KernelSDCA

interpreted = pytest.mark.interpreted
TABLE = clouds(24)


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(kernel_sdca, "epochs_per_round", lambda problem: 1)


@interpreted
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("ahead", [1, 256])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_epoch_is_the_twins(one_epoch, loss, ahead, replacement):
    problem = problem_of(TABLE, loss, "none")
    solver = KernelSDCA(ahead=ahead, replacement=replacement)
    state, K, orders = solver.start(problem, np.random.default_rng(1)), whole(problem), []
    for _ in range(4):
        solver.advance(problem, state)
        orders.append(state.order.tolist())
        beta = kernel_sdca_twin(K, problem.labels, problem.costs, loss, orders)
        assert state.beta == pytest.approx(beta, rel=1e-10, abs=1e-12)
    assert state.counters.epochs == 4
    assert len({tuple(order) for order in orders}) == 4
    if not replacement:
        assert all(sorted(order) == list(range(24)) for order in orders)
    else:
        assert len(set(orders[0])) < 24


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_dual_rises_inside_the_box(one_epoch, loss, bias):
    problem = problem_of(TABLE, loss, bias)
    solver, dual = KernelSDCA(), 0.0
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(15):
        solver.advance(problem, state)
        assert (state.beta >= state.lower).all()
        assert (state.beta <= state.upper).all()
        assert state.v == pytest.approx(derivative(problem, state.beta), rel=1e-10, abs=1e-11)
        risen = dual_by_definition(problem, state.beta * problem.labels)
        assert risen >= dual * (1.0 - 1e-13)
        dual = risen
    assert dual > 0.9 * optimum(problem).primal


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_free_bias_balances_the_classes(loss):
    problem = problem_of(clouds(60), loss, "free")
    state, found = train(problem, KernelSDCA(), gap=1e-9)
    assert found[-1].primal == pytest.approx(optimum(problem).primal, rel=1e-8)
    assert abs(state.beta.sum()) <= 1e-6 * np.abs(state.beta).sum()
    assert state.multiplier == pytest.approx(optimum(problem).b, rel=1e-3, abs=1e-4)


@interpreted
def test_the_golden_machine():
    state, found = train(golden_problem(), KernelSDCA(), gap=1e-12, rounds=20)
    assert state.beta == pytest.approx(golden.SVM.alpha, abs=1e-6)
    assert found[-1].primal == pytest.approx(golden.SVM.optimum, rel=1e-10)


def test_rows_come_ahead_of_the_visits_and_once(one_epoch):
    problem = problem_of(clouds(400), huber(0.5), "none")
    solver = KernelSDCA(ahead=64)
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    moved = np.count_nonzero(state.beta)
    kept = int((problem.gram.kept.slots >= 0).sum())
    assert moved <= kept <= 400
    assert problem.gram.evaluations == 400 * kept
    assert problem.gram.requests == state.counters.updates + kept


def test_rounds_stop_where_enough_rows_came(one_epoch, monkeypatch):
    """And the next goes on from there: the way is the same."""
    ways = []
    for work, rounds in ((2**23, 1), (400 * 32, 40)):
        monkeypatch.setattr(kernel_sdca, "WORK", work)
        problem = problem_of(clouds(400), hinge(), "none")
        solver = KernelSDCA(ahead=32)
        state = solver.start(problem, np.random.default_rng(0))
        for _ in range(rounds):
            solver.advance(problem, state)
            if state.counters.epochs == 1:
                break
        assert state.counters.epochs == 1
        ways.append(state.beta)
    assert np.array_equal(*ways)


@interpreted
def test_settings_are_checked():
    with pytest.raises(ValueError, match="ahead must be at least 1, got 0"):
        KernelSDCA(ahead=0)
