"""Chunking: what a chunk holds, that it is solved, that the dual rises from one to the next and that they end."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import dual_by_definition, whole
from kernel_runs import certificate, clouds, derivative, golden_problem, problem_of, train
from problems import LOSSES, loss_id
from reference.decomposition_twin import solve_set
from slackwater.objective import hinge, squared_hinge
from slackwater.solvers.kernel.active_set import negligible, part_of, violation
from slackwater.solvers.kernel.chunking import Chunking

interpreted = pytest.mark.interpreted


@interpreted
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_chunk_is_solved_as_the_twin_solves_it(loss, bias):
    """The support vectors and the worst violators; its points are the best of the problem on them."""
    problem = problem_of(clouds(30), loss, bias)
    solver, K, pairs = Chunking(least=6), whole(problem), bias == "free"
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(3):
        before, v = state.beta.copy(), state.v.copy()
        solver._choose(problem, state)
        B = state.active.copy()
        support = np.flatnonzero(before)
        assert set(support) <= set(B)
        assert B.size <= support.size + max(6, support.size)
        if B.size == 30:
            break
        best = solve_set(K[np.ix_(B, B)], v[B], state.ridge[B], before[B], state.lower[B], state.upper[B], pairs)
        solver.work(problem, state)
        assert state.active.size == 30  # the chunk is done
        expected = before.copy()
        expected[B] = best
        reached, possible = (dual_by_definition(problem, beta * problem.labels) for beta in (state.beta, expected))
        assert reached == pytest.approx(possible, rel=1e-9)
        assert np.array_equal(np.delete(state.beta, B), np.delete(before, B))
        assert state.v == pytest.approx(derivative(problem, state.beta), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_violators_are_the_worst(bias):
    problem = problem_of(clouds(300), hinge(), bias)
    solver = Chunking(least=20)
    state = solver.start(problem, np.random.default_rng(0))
    while np.count_nonzero(state.beta) < 20 or state.active.size < 300:
        solver.work(problem, state)
    support = np.flatnonzero(state.beta)
    v, wants_up = state.v.copy(), state.beta < state.upper
    solver._choose(problem, state)
    fresh, left = np.setdiff1d(state.active, support), np.setdiff1d(np.arange(300), state.active)
    if bias == "none":
        wish = np.where(wants_up, v, -v)
        assert wish[fresh].min() >= max(wish[left].max(), 0.0)
    else:
        for side, sign in ((wants_up, 1.0), (~wants_up, -1.0)):
            taken, others = sign * v[fresh[side[fresh]]], sign * v[left[side[left]]]
            assert taken.min() >= others.max()


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_dual_rises_and_chunks_come_to_an_end(loss, bias):
    problem = problem_of(clouds(200), loss, bias)
    solver, dual = Chunking(least=10), 0.0
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(200):
        before = state.counters.updates
        solver.advance(problem, state)
        risen = dual_by_definition(problem, state.beta * problem.labels)
        assert risen >= dual * (1.0 - 1e-12)
        dual = risen
        if state.counters.updates == before or violation(state, bias == "free") <= 1e-9:
            break
    else:
        pytest.fail("chunks go on for ever")
    assert certificate(problem, solver, state).relative_gap <= 1e-8


@interpreted
def test_nothing_is_done_at_the_optimum():
    problem = golden_problem()
    state, found = train(problem, Chunking(), gap=1e-13, rounds=5)
    assert state.beta == pytest.approx(golden.SVM.alpha, abs=1e-9)
    assert found[-1].primal == pytest.approx(golden.SVM.optimum, rel=1e-12)
    assert violation(part_of(problem, state), False) <= max(1e-12, negligible(state))


def test_rows_outside_of_chunks_are_never_computed():
    """Rows that are far on their side of the margin are in no chunk."""
    table = clouds(400)._replace(weights=None)
    table.X[:] += 3.0 * table.labels[:, None]
    problem = problem_of(table, squared_hinge(), "free", C=10.0)
    _, found = train(problem, Chunking(least=4), gap=1e-6)
    assert found[-1].relative_gap <= 1e-6
    assert problem.gram.evaluations < 0.5 * 400**2


@interpreted
def test_settings_are_checked():
    with pytest.raises(ValueError, match="least must be at least 2, got 1"):
        Chunking(least=1)
