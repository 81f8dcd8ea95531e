"""SGD-QN: step by step as its twin, what its curvatures are, and the bounds."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from descents import rounds
from problems import LOSSES, dense, loss_id, optimum, quarters, random_problem
from reference.sgd_qn_twin import sgd_qn_twin
from slackwater.compiled import compiled
from slackwater.objective import certify, hinge, linear_problem, squared_hinge
from slackwater.rows import add_scaled, as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.linear.sgd_qn import SGDQN, affordable_skip
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


@compiled
def add_scaled_row(rows, i, scale, sizes, w):
    add_scaled(rows, np.uint64(i), scale, sizes, w)


@interpreted
@pytest.mark.parametrize("sparse", [False, True])
def test_every_coordinate_is_scaled_by_its_own_size(rng, sparse):
    X = quarters(rng)
    rows = as_rows(sp.csr_array(X) if sparse else X.astype(np.float32), bias=2.0)
    full = np.column_stack((X, np.full(len(X), 2.0)))
    sizes, w = rng.uniform(0.1, 2.0, full.shape[1]), rng.normal(size=full.shape[1])
    expected = w + 0.75 * sizes * full[5]
    for i in (3, 5):
        add_scaled_row(rows, i, 0.75 if i == 5 else 0.0, sizes, w)
    assert w == pytest.approx(expected, rel=1e-14)


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_epoch_is_the_twins(one_epoch, loss, bias):
    problem = random_problem(1, loss, bias, weighted=True, sparse=bias == "none", scale=2.0)
    solver, orders = SGDQN(t0=10.0, skip=2, cmin=0.5, cmax=20.0, average=False), []
    for state in rounds(problem, solver, 6):
        orders.append(state.visits.order.tolist())
        w, h, slopes, used = sgd_qn_twin(
            dense(problem), problem.labels, problem.regularisation, loss, orders, problem.shares, 10.0, 2, (0.5, 20.0)
        )
        filled = slice(None) if bias == "penalised" else slice(-1)
        assert solver.iterate(state) == pytest.approx(w, rel=1e-9, abs=1e-11)
        assert 1.0 / state.moving.aside[0][filled] == pytest.approx(h[filled], rel=1e-9)
        assert state.table[:, 1] == pytest.approx(slopes, rel=1e-9, abs=1e-9)
        total = (problem.shares * state.table[:, 1] * problem.labels) @ dense(problem)
        assert solver.pulls(state) == pytest.approx(total, rel=1e-9, abs=1e-11)
    assert len(used) > 0
    assert (used >= 0.5 * problem.regularisation).all() and (used <= 20.0 * problem.regularisation).all()
    assert len({round(r, 9) for r in (used / problem.regularisation).ravel()}) > (
        3 if loss.width else 1
    )  # pulls of the hinge jump: the caps


def test_sizes_only_shrink(one_epoch):
    problem = random_problem(2, hinge(), weighted=True)
    before = math.inf
    for state in rounds(problem, SGDQN(skip=3), 10):
        assert (state.moving.aside[0] <= before).all()
        before = state.moving.aside[0].copy()
        assert (state.moving.aside[2] == 0.0).all()


@interpreted
def test_without_curvatures_it_is_plain_descent(one_epoch):
    """cmin = cmax = 1: h = lambda (t0 + t')."""
    problem = random_problem(3, squared_hinge(), "penalised")
    lam = problem.regularisation
    for state in rounds(problem, SGDQN(cmin=1.0, cmax=1.0, t0=50.0, skip=4), 5):
        assert 1.0 / state.moving.aside[0] == pytest.approx(lam * (50.0 + state.moving.now[2]), rel=1e-12)
        assert 0 < state.moving.now[2] <= state.moving.now[1] == state.counters.epochs * problem.n_rows


def test_skips_fit_the_columns_that_are_filled():
    X = np.zeros((10, 30))
    X[:, :8] = np.eye(10, 8) + np.eye(10, 8, -1) + np.eye(10, 8, 1)
    for data in (X, sp.csr_array(X)):
        problem = linear_problem(as_rows(data), np.resize([1.0, -1.0], 10), hinge())
        assert affordable_skip(problem) == round(16 * 8 * 10 / np.count_nonzero(X))
    assert affordable_skip(linear_problem(as_rows(np.zeros((3, 2))), [1.0, 1.0, -1.0], hinge())) == 16


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_two_per_cent_are_certified(loss):
    problem = random_problem(11, loss, "penalised", weighted=True, n=60, C=0.3)
    answer = run(problem, SGDQN(), Limits(tol=0.02, max_rounds=60), rng=1)
    assert answer.status.converged, answer.status
    best = optimum(problem).primal
    assert best * (1 - 1e-10) <= answer.certificate.primal <= 1.02 * best
    assert answer.certificate.dual <= best * (1 + 1e-10)


@pytest.mark.parametrize("t0", [1e-3, 1e6])
def test_bounds_hold_however_bad_the_first_step(one_epoch, t0):
    problem = random_problem(12, hinge(), weighted=True, C=3.0)
    solver, best = SGDQN(t0=t0), optimum(problem).primal
    for state in rounds(problem, solver, 20):
        weights = solver.model(problem, state).weights(0.0)
        found = certify(problem, weights, solver.dual_point(problem, state)).certificate
        assert found.dual <= best * (1 + 1e-10) <= found.primal * (1 + 2e-10)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cmin": 0.0}, "cmin and cmax must be positive, finite and in order, got 0.0 and 100.0"),
        ({"cmin": 5.0, "cmax": 2.0}, "cmin and cmax must be positive, finite and in order, got 5.0 and 2.0"),
        ({"skip": 0}, "skip must be at least 1 or None, got 0"),
        ({"t0": math.nan}, "t0 must be positive and finite or None, got nan"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        SGDQN(**settings)


def test_a_free_bias_is_refused():
    with pytest.raises(UnsupportedError, match="solver 'sgd-qn' does not treat bias 'free'"):
        SGDQN().check(random_problem(1, hinge(), "free"))
