"""Block descent for Crammer and Singer's problem: its step against a brute-force QP, its epochs against the twin."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from problems import dense, random_table
from reference.crammer_singer_twin import best_room, crammer_singer_twin
from slackwater.compiled import JIT, shuffle
from slackwater.objective import BoxPoint, certify, hinge, linear_problem, multiclass_problem
from slackwater.rows import as_rows
from slackwater.solvers.linear import crammer_singer
from slackwater.solvers.linear.crammer_singer import CrammerSinger
from slackwater.solvers.registry import make_solver
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(crammer_singer, "epochs_per_round", lambda problem: 1)


def some_problem(seed=0, n=20, d=4, k=4, bias="none", sparse=False, C=0.7):
    rng = np.random.default_rng(seed)
    X, _ = random_table(rng, n, d)
    codes, weights = rng.integers(0, k, n), rng.uniform(0.2, 3.0, n)
    X += rng.normal(size=(k, d))[codes]
    X[3] = 0.0
    return multiclass_problem(as_rows(sp.csr_array(X) if sparse else X), codes, k, C, weights, bias, 1.0)


def beta_of(problem, solver, state):
    return solver.dual_point(problem, state).alpha


# -------------------------------------------------------------------------------------------------------- the step


def level_by_trying_all(bumps, volume):
    """Of all sets of wet bumps the one whose level lies above all of them and below all others."""
    for size in range(1, len(bumps) + 1):
        for wet in itertools.combinations(range(len(bumps)), size):
            level = (volume + bumps[list(wet)].sum()) / size
            dry = np.delete(bumps, wet)
            if (bumps[list(wet)] <= level).all() and (dry >= level).all():
                return np.maximum(level - bumps, 0.0)
    raise AssertionError


@interpreted
@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("volume", [1e-9, 0.3, 4.0, 1e6])
def test_water_finds_its_level(rng, k, volume):
    for bumps in (rng.normal(size=k), np.zeros(k), np.arange(k) * 1.0, np.round(rng.normal(size=k))):
        depths = np.append(bumps, 7.0)
        crammer_singer.poured(depths, k, volume)
        assert depths[:k] == pytest.approx(level_by_trying_all(bumps, volume), rel=1e-9, abs=1e-15 * (1.0 + volume))
        assert depths[:k] == pytest.approx(best_room(bumps, volume), rel=1e-9, abs=1e-15 * (1.0 + volume))
        assert depths[:k].sum() == pytest.approx(volume, rel=1e-6)
        assert depths[k] == 7.0


@interpreted
def test_no_volume_wets_the_lowest_alone():
    depths = np.array([0.5, -2.0, 3.0])
    crammer_singer.poured(depths, 3, 0.0)
    assert depths.tolist() == [0.0, 1.0, 0.0]


def block_value(problem, beta, i, line):
    """D times sum C, with these coefficients for example i."""
    beta = beta.copy()
    beta[i] = line
    W = beta.T @ dense(problem)
    return beta[np.arange(problem.n_rows), problem.codes].sum() - 0.5 * (W**2).sum()


def test_a_step_is_the_best_that_its_example_allows(one_epoch, rng):
    """No other point of the simplex is better: neither random ones nor the corners nor points near by."""
    problem = some_problem(seed=2)
    solver = CrammerSinger(shrinking=False, inner=0)
    state = solver.start(problem, rng)
    solver.advance(problem, state)
    blocks = state.blocks
    for i in range(problem.n_rows):
        before = block_value(problem, beta_of(problem, solver, state), i, beta_of(problem, solver, state)[i])
        lowest, highest, _ = crammer_singer.see(problem.rows, blocks, i)
        if highest - lowest <= 1e-12:
            continue
        gain, _ = crammer_singer.step(problem.rows, blocks, i, lowest)
        beta = beta_of(problem, solver, state)
        best = block_value(problem, beta, i, beta[i])
        assert best - before == pytest.approx(gain, rel=1e-9, abs=1e-12)
        own = problem.costs[i] * np.eye(4)[problem.codes[i]]
        points = np.vstack((rng.dirichlet(np.ones(4), 50), np.eye(4))) * problem.costs[i]
        here = own - beta[i]
        for room in np.vstack((points, here + 1e-4 * (points - here))):
            assert block_value(problem, beta, i, own - room) <= best + 1e-12


# ------------------------------------------------------------------------------------------------------ the epochs


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_epoch_is_the_twins(one_epoch, bias, sparse):
    problem = some_problem(1, bias=bias, sparse=sparse, n=20 if JIT else 8)
    solver, orders = CrammerSinger(shrinking=False, inner=0), []
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(4):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        beta, W = crammer_singer_twin(dense(problem), problem.codes, 4, problem.costs, orders)
        zero = (dense(problem) == 0.0).all(axis=1)
        assert beta_of(problem, solver, state)[~zero] == pytest.approx(beta[~zero], rel=1e-10, abs=1e-12)
        assert state.blocks.W[:, :4].T == pytest.approx(W, rel=1e-10, abs=1e-12)
    assert state.counters.inner_products == 4 * problem.n_rows * 4


@interpreted
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("inner", [0, 3])
def test_the_dual_rises_and_every_step_keeps_the_constraints(one_epoch, shrinking, inner):
    problem = some_problem(4, bias="penalised")
    solver, last = CrammerSinger(shrinking=shrinking, inner=inner), 0.0
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(25 if JIT else 5):
        solver.advance(problem, state)
        room, beta = state.blocks.room, beta_of(problem, solver, state)
        assert (room >= 0.0).all()
        assert room.sum(axis=1) == pytest.approx(problem.costs, rel=1e-13)
        assert np.abs(beta.sum(axis=1)).max() <= 1e-13 * problem.costs.max()
        assert state.blocks.W[:, :4] == pytest.approx(dense(problem).T @ beta, rel=1e-11, abs=1e-12)
        found = certify(problem, solver.model(problem, state).weights(1.0), solver.dual_point(problem, state))
        assert found.certificate.dual >= last * (1.0 - 1e-13)
        assert state.dual * problem.regularisation == pytest.approx(found.certificate.dual, rel=1e-9)
        last = found.certificate.dual


def test_shrinking_saves_inner_products_and_finds_the_same():
    problem = some_problem(5, n=400, d=12, k=6, C=0.5)
    limits = Limits(tol=1e-6, max_rounds=3000)
    plain, shrunk = (run(problem, CrammerSinger(shrinking=s), limits, rng=0) for s in (False, True))
    assert plain.status.converged and shrunk.status.converged
    assert shrunk.history[-1].inner_products < 0.7 * plain.history[-1].inner_products
    assert shrunk.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-6)


def test_the_estimate_is_close_to_the_certified_gap():
    problem = some_problem(6, n=800, d=10, k=5, C=0.5)
    solver = CrammerSinger()
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(3):
        solver.advance(problem, state)
        weights = solver.model(problem, state).weights(1.0)
        gap = certify(problem, weights, solver.dual_point(problem, state)).certificate.relative_gap
    assert 0.2 * gap < solver.estimate(problem, state) < 5.0 * gap


# -------------------------------------------------------------------------------------------------------- its kin


@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_two_classes_are_the_binary_hinge_with_twice_the_cost(bias):
    """w = w_1 - w_0 = 2 w_1, alpha = 2 beta, C = 2 C_LR; P and D are the same numbers."""
    X, labels = random_table(np.random.default_rng(3), 40, 5)
    codes = (labels > 0).astype(int)
    both = multiclass_problem(as_rows(X), codes, 2, 0.35, bias=bias, scale=1.0)
    binary = linear_problem(as_rows(X), labels, hinge(), 0.7, bias=bias, scale=1.0)
    found = run(both, make_solver("crammer-singer"), Limits(tol=1e-10, max_rounds=200), rng=0)
    wanted = run(binary, make_solver("dcd"), Limits(tol=1e-10, max_rounds=200), rng=0)
    assert found.certificate.primal == pytest.approx(wanted.certificate.primal, rel=1e-9)
    assert found.certificate.dual == pytest.approx(wanted.certificate.dual, rel=1e-9)
    lines = found.model.weights(1.0)
    assert lines[1] - lines[0] == pytest.approx(wanted.model.weights(1.0), abs=1e-4)
    assert lines[1] + lines[0] == pytest.approx(0.0 * lines[0], abs=1e-9)
    twice = 2.0 * found.alpha[np.arange(40), codes]
    value = certify(binary, lines[1] - lines[0], BoxPoint(twice))
    assert value.certificate.dual == pytest.approx(found.certificate.dual, rel=1e-12)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="inner must be at least 0, got -1"):
        CrammerSinger(inner=-1)
