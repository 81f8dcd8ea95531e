"""SIMBA: a round step by step as its twin, the facts of the slack-constrained form, and the bounds."""

import numpy as np
import pytest
import scipy.sparse as sp

import golden
from problems import dense, optimum, quarters, random_problem
from reference.simba_twin import knapsack_twin, simba_twin
from slackwater.compiled import next_below, random_state
from slackwater.objective import hinge, linear_problem, squared_hinge
from slackwater.objective.certificate import DirectionPoint, lower_bound
from slackwater.rows import as_matrix, as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.linear.simba import _GRAIN, SIMBA, _Game, _play, best_multiple, by_columns, knapsack
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


def uniform(random):
    """The numbers that a round draws with."""
    while True:
        yield next_below(random, _GRAIN) / _GRAIN


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("nu", [0.0, 0.3, 5.0])
def test_a_round_is_the_twins(rng, bias, nu):
    problem = random_problem(1, hinge(), bias, weighted=True, sparse=bias == "none", scale=2.0)
    Z, n = dense(problem) * problem.labels[:, None], problem.n_rows
    longest = np.sqrt((Z**2).sum(axis=1).max())
    columns = by_columns(problem)
    v, ratios = rng.normal(size=Z.shape[1]) * 0.3, rng.uniform(0.2, 1.0, n)
    expected = simba_twin(
        Z / longest, problem.shares, columns.place, 40, n * nu, v, ratios,
        uniform(random_state(np.random.default_rng(3))),
    )  # fmt: skip
    mean_w, mean_p = np.zeros(Z.shape[1]), np.zeros(n)
    game = _Game(40, np.sqrt(np.log(n) / 40), n * nu, longest)
    random = random_state(np.random.default_rng(3))
    _play(problem.rows, columns, problem.labels, problem.shares, game, v, ratios, mean_w, mean_p, random)
    for found, twin in zip((mean_w, mean_p, v, ratios), expected, strict=True):
        assert found == pytest.approx(twin, rel=1e-8, abs=1e-11)
    assert np.linalg.norm(mean_w) <= 1.0 + 1e-12
    assert mean_p.sum() == pytest.approx(1.0, rel=1e-12)


@interpreted
def test_slack_goes_where_p_is_largest(rng):
    for _ in range(200):
        n = int(rng.integers(1, 12))
        ratios, shares = rng.integers(1, 5, n) / 4.0, rng.uniform(0.2, 3.0, n)
        volume = float(rng.choice([0.0, rng.uniform(0.0, 3.0 * n)]))
        level, part = knapsack(ratios, shares, volume / 2.0, np.empty(n), np.empty(n))
        xi = np.where(ratios > level, 2.0, np.where(ratios == level, 2.0 * part, 0.0))
        assert xi == pytest.approx(knapsack_twin(ratios, shares, volume), abs=1e-12)
        assert shares @ xi == pytest.approx(min(volume, 2.0 * shares.sum()), abs=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_a_copy_of_the_rows_longest_first(rng, sparse):
    X = quarters(rng)
    rows = as_rows(sp.csr_array(X) if sparse else X.astype(np.float32))
    problem = linear_problem(rows, np.resize([1.0, -1.0], len(X)), hinge(), bias="penalised", scale=3.0)
    entries, place = by_columns(problem)
    found = as_matrix(entries)
    found = found.toarray() if sp.issparse(found) else found
    assert np.array_equal(found, dense(problem)[:, place].T)
    assert entries.dtype == rows.dtype
    assert (np.diff((found.astype(float) ** 2).sum(axis=1)) <= 0.0).all()


def test_the_best_multiple_is_a_minimum(rng):
    for _ in range(100):
        n = int(rng.integers(1, 9))
        margins, costs, square = rng.integers(-4, 9, n) / 2.0, rng.uniform(0.1, 2.0, n), float(rng.uniform(0.1, 20.0))

        def J(s, margins=margins, costs=costs, square=square):
            return 0.5 * s * s * square + costs @ np.maximum(0.0, 1.0 - s * margins)

        s = best_multiple(margins, costs, square)
        assert s >= 0.0
        assert J(s) <= min(J(t) for t in np.append(np.linspace(0.0, 2.0 * s + 1.0, 400), s * 1.0001)) + 1e-12


def test_at_an_optimum_nu_is_the_one_that_belongs_to_lambda():
    known = golden.SVM
    problem = linear_problem(as_rows(np.array(known.z)), np.ones(4), hinge(), C=known.C)
    state = SIMBA().start(problem, np.random.default_rng(0), np.array(known.alpha))
    assert state.nu * state.longest == pytest.approx(known.nu, rel=1e-12)
    assert state.weights[:2] == pytest.approx(known.w, rel=1e-12)
    assert state.bound == pytest.approx(known.optimum, rel=1e-12)


def test_both_sides_close_in_on_the_optimum():
    problem = random_problem(1, hinge(), n=100, d=8)
    best, solver = optimum(problem).primal, SIMBA()
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(15):
        solver.advance(problem, state)
        assert np.linalg.norm(state.v) <= 1.0 + 1e-12
        assert lower_bound(problem, DirectionPoint(state.p)) == state.bound <= best
    found = run(problem, solver, Limits(tol=0.1, max_rounds=60), rng=0)
    assert found.status.converged, found.status
    assert found.certificate.dual <= best <= found.certificate.primal <= 1.05 * best


def test_what_it_refuses():
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        SIMBA(steps=0)
    with pytest.raises(UnsupportedError, match="solver 'simba' does not treat loss 'squared_hinge'"):
        SIMBA().check(random_problem(1, squared_hinge()))
