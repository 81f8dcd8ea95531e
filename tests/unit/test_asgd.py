"""ASGD: lazy averages are those taken step by step, of which kind they are, and what they gain."""

import math

import numpy as np
import pytest

from descents import rounds
from problems import LOSSES, dense, loss_id, optimum, random_problem
from reference.svm_sgd_twin import averaged as twin_average
from reference.svm_sgd_twin import svm_sgd_twin
from slackwater.objective import certify, hinge, primal_value
from slackwater.solvers.linear import asgd
from slackwater.solvers.linear.asgd import ASGD
from slackwater.solvers.steps import inverse_step
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
WEIGHTS = {"uniform": lambda k: 1.0 / k, "weighted": lambda k: 2.0 / (k + 1.0)}


def twin(problem, solver, state, orders):
    """All iterates, explicitly scaled, and the slopes."""
    lam, free = problem.regularisation, problem.bias == "free"
    steps = state.method.method.steps
    return svm_sgd_twin(
        dense(problem), problem.labels, lam, problem.loss, lambda t: 1.0 / inverse_step(steps, float(t)), orders,
        problem.shares, solver.bias_step if free else None,
    )  # fmt: skip


def without_free_bias(problem, w):
    return w[:-1] if problem.bias == "free" else w


@interpreted
@pytest.mark.parametrize("averaging", ["uniform", "weighted"])
@pytest.mark.parametrize("start", [0.0, 1.0, 1.3])
@pytest.mark.parametrize(("loss", "bias"), list(zip(LOSSES, ["none", "penalised", "free"] * 2, strict=True)), ids=str)
def test_lazy_averages_are_those_of_every_step(one_epoch, loss, bias, start, averaging):
    problem = random_problem(1, loss, bias, weighted=True, sparse=bias == "none", scale=2.0)
    solver, orders = ASGD(eta0=0.11, bias_step=0.3, averaging=averaging, start_epoch=start), []
    for state in rounds(problem, solver, 4):
        orders.append(state.visits.order.tolist())
        path, slopes = twin(problem, solver, state, orders)
        expected = twin_average(path, round(start * problem.n_rows), WEIGHTS[averaging])
        found = solver.model(problem, state).weights(problem.rows.bias)
        assert solver.iterate(state) == pytest.approx(path[-1], rel=1e-10, abs=1e-12)
        assert without_free_bias(problem, found) == pytest.approx(without_free_bias(problem, expected), rel=1e-9)
        assert state.table[:, 1] == pytest.approx(slopes, rel=1e-9, abs=1e-10)
        total = (problem.shares * state.table[:, 1] * problem.labels) @ dense(problem)
        assert without_free_bias(problem, state.total) == pytest.approx(without_free_bias(problem, total), rel=1e-9)


@interpreted
def test_the_suffix_is_the_mean_of_the_iterates_in_the_window(one_epoch):
    problem = random_problem(2, hinge(), weighted=True, C=0.5)
    solver, orders = ASGD(eta0=0.2), []
    for state in rounds(problem, solver, 9):
        orders.append(state.visits.order.tolist())
    windows = state.windows
    _, best = windows._best(solver._now(problem, state), problem.regularisation)
    first = round(windows.snapshots[best].epochs) * problem.n_rows
    path, _ = twin(problem, solver, state, orders)
    assert 0 < first < len(path)
    mean = path[first:].mean(axis=0)
    assert solver.model(problem, state).weights(0.0) == pytest.approx(mean, rel=1e-10)


@interpreted
@pytest.mark.parametrize("averaging", ["suffix", "uniform", "weighted"])
@pytest.mark.parametrize("start", [0.0, 1.0, 2.5])
def test_folding_the_scales_changes_nothing(one_epoch, monkeypatch, averaging, start):
    """Large steps let the scale fall quickly; or it is rescaled after every step."""
    problem = random_problem(3, hinge(), "penalised", weighted=True, C=0.01)
    solver, orders = ASGD(eta0=1e300, averaging=averaging, start_epoch=start), []
    for state in rounds(problem, solver, 4):
        orders.append(state.visits.order.tolist())
        path, _ = twin(problem, solver, state, orders)
        begin = 0.0 if averaging == "suffix" else start * problem.n_rows
        expected = twin_average(path, begin, WEIGHTS["weighted" if averaging == "weighted" else "uniform"])
        assert asgd.averaged(state.moving) == pytest.approx(expected, rel=1e-7, abs=1e-12)
        lazily = asgd.averaged(state.moving)
        asgd._rescale(state.method, *state.moving)
        assert state.moving.now[0] == 1.0
        assert asgd.averaged(state.moving) == pytest.approx(lazily, rel=1e-12)


def test_before_the_averaging_begins_it_is_svm_sgd_with_longer_steps(one_epoch):
    problem = random_problem(4, hinge(), C=2.0)
    solver, other = ASGD(eta0=0.1, start_epoch=100.0, averaging="uniform"), ASGD(eta0=0.1, average=False)
    for left, right in zip(rounds(problem, solver, 5), rounds(problem, other, 5), strict=True):
        w = solver.model(problem, left).weights(0.0)
        assert np.array_equal(w, solver.iterate(left))
        assert np.array_equal(w, other.model(problem, right).weights(0.0))


@pytest.mark.parametrize("averaging", ["suffix", "uniform", "weighted"])
def test_the_mean_is_better_than_the_last_iterate(one_epoch, averaging):
    """On noisy data, at equal epochs."""
    problem = random_problem(5, hinge(), n=300, d=6, C=30.0)
    solver = ASGD(averaging=averaging)
    state = list(rounds(problem, solver, 20))[-1]
    best = primal_value(problem, solver.model(problem, state).weights(0.0))
    assert best < primal_value(problem, solver.iterate(state))


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("averaging", ["suffix", "uniform", "weighted"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_one_per_cent_is_certified(loss, averaging, bias):
    problem = random_problem(11, loss, bias, weighted=True, n=60, C=0.3)
    answer = run(problem, ASGD(averaging=averaging), Limits(tol=0.01, max_rounds=100), rng=1)
    assert answer.status.converged, answer.status
    best = optimum(problem).primal
    assert best * (1 - 1e-10) <= answer.certificate.primal <= 1.01 * best
    assert answer.certificate.dual <= best * (1 + 1e-10)


@pytest.mark.parametrize("averaging", ["suffix", "uniform", "weighted"])
def test_a_warm_start_keeps_what_it_is_given(one_epoch, averaging):
    problem = random_problem(16, hinge(), "penalised", weighted=True, n=50, C=2.0)
    best, solver = optimum(problem), ASGD(averaging=averaging)
    state = solver.start(problem, np.random.default_rng(0), best.alpha)
    weights = solver.model(problem, state).weights(problem.rows.bias)
    found = certify(problem, weights, solver.dual_point(problem, state)).certificate
    assert (found.primal, found.dual) == pytest.approx((best.primal, best.dual), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"averaging": "none"}, "averaging must be one of suffix, uniform, weighted, got 'none'"),
        ({"start_epoch": -1.0}, "start_epoch must be at least 0 and finite, got -1.0"),
        ({"start_epoch": math.nan}, "start_epoch must be at least 0 and finite, got nan"),
        ({"eta0": -1.0}, "eta0 must be positive and finite or None, got -1.0"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        ASGD(**settings)
