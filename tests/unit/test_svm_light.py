"""SVM-light: working sets as Zoutendijk's method defines them, newcomers, sets solved, shrinking by multipliers."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import dual_by_definition, optimum, whole
from kernel_runs import certificate, clouds, derivative, golden_problem, problem_of, train
from problems import LOSSES, loss_id
from reference.decomposition_twin import solve_set, working_set
from reference.smo_twin import smo_twin
from slackwater.objective import hinge, squared_hinge
from slackwater.solvers.kernel import active_set
from slackwater.solvers.kernel.active_set import part_of, put_back
from slackwater.solvers.kernel.svm_light import SVMLight, choose, solve_sets

interpreted = pytest.mark.interpreted
TABLE = clouds(24)


def begin(problem, **settings):
    """A state at a point without ties, its part and the first choice, all rows in memory."""
    solver = SVMLight(**settings)
    alpha = np.random.default_rng(2).uniform(0.0, 0.3, problem.n_rows)
    state = solver.start(problem, np.random.default_rng(0), alpha)
    problem.gram.keep(np.arange(problem.n_rows))
    part = part_of(problem, state)
    return solver, state, part, solver._choice(problem, state, part)


def next_set(part, choice) -> list[int]:
    size, n = choice.size, part.beta.size
    wanted = np.empty(size, dtype=np.int64)
    count, _, _ = choose(part, choice, wanted, np.zeros(n, dtype=bool), np.empty(size))
    return wanted[:count].tolist()


@interpreted
@pytest.mark.parametrize("q", [2, 6, 10])
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_sets_are_the_twins(loss, bias, q):
    problem = problem_of(TABLE, loss, bias)
    _, state, part, choice = begin(problem, q=q)
    expected = working_set(state.v, state.beta, state.lower, state.upper, q, bias == "free")
    assert next_set(part, choice) == expected
    solved, steps, missing = solve_sets(problem.gram.kept, 0, part, choice, 1e-12, 1)
    assert (solved, missing.size) == (1, 0)
    assert steps >= 1
    assert choice.members.tolist() == expected
    B, K = np.array(expected), whole(problem)
    best = solve_set(
        K[np.ix_(B, B)], state.v[B], state.ridge[B], state.beta[B], state.lower[B], state.upper[B], bias == "free"
    )
    exact, before = state.beta.copy(), dual_by_definition(problem, state.beta * problem.labels)
    exact[B] = best
    possible = dual_by_definition(problem, exact * problem.labels) - before
    put_back(state, part)
    gain = dual_by_definition(problem, state.beta * problem.labels) - before
    assert possible * (1.0 - 1e-5) <= gain <= possible * (1.0 + 1e-9)
    assert state.v == pytest.approx(derivative(problem, state.beta), rel=1e-9, abs=1e-11)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_two_variables_are_first_order_smo(loss):
    problem = problem_of(TABLE, loss, "free")
    _, state, part, choice = begin(problem, q=2)
    solved, steps, _ = solve_sets(problem.gram.kept, 0, part, choice, 1e-12, 12)
    assert solved == steps == 12
    beta, _ = smo_twin(
        whole(problem), problem.labels, problem.costs, loss, state.beta, 12, pairs=True, second_order=False
    )
    assert part.beta == pytest.approx(beta, rel=1e-10, abs=1e-12)


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_all_variables_are_one_set(loss, bias):
    problem = problem_of(TABLE, loss, bias)
    solver, state, part, choice = begin(problem, q=24)
    solved, _, _ = solve_sets(problem.gram.kept, 0, part, choice, 0.0, 1)
    put_back(state, part)
    assert solved == 1
    found = certificate(problem, solver, state)
    assert found.relative_gap <= 1e-8
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-8)


@interpreted
@pytest.mark.parametrize("bias", ["none", "free"])
def test_at_most_so_many_are_new(bias):
    problem = problem_of(TABLE, hinge(), bias)
    _, _, part, choice = begin(problem, q=8, new=4)
    solve_sets(problem.gram.kept, 0, part, choice, 1e-12, 1)
    changed = []
    for _ in range(6):
        before = choice.members[choice.members >= 0].tolist()
        coming = next_set(part, choice)
        assert len(coming) == len(set(coming)) <= 8
        assert set(before[-4:]) <= set(coming)
        changed.append(len(set(coming) - set(before)))
        solve_sets(problem.gram.kept, 0, part, choice, 1e-12, 1)
        assert choice.members[choice.members >= 0].tolist() == coming
    assert 0 < max(changed) <= 4


@interpreted
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_dual_never_falls(loss, bias):
    problem = problem_of(TABLE, loss, bias)
    _, state, part, choice = begin(problem, q=4)
    dual = dual_by_definition(problem, part.beta * problem.labels)
    for _ in range(30):
        solve_sets(problem.gram.kept, 0, part, choice, 1e-9, 1)
        risen = dual_by_definition(problem, part.beta * problem.labels)
        assert risen >= dual * (1.0 - 1e-12)
        assert (part.beta >= state.lower).all()
        assert (part.beta <= state.upper).all()
        dual = risen
    if bias == "free":
        assert abs(part.beta.sum()) <= 1e-13 * np.abs(part.beta).sum()


@interpreted
def test_the_golden_machine():
    state, found = train(golden_problem(), SVMLight(), gap=1e-13, rounds=5)
    assert state.beta == pytest.approx(golden.SVM.alpha, abs=1e-9)
    assert found[-1].primal == pytest.approx(golden.SVM.optimum, rel=1e-12)


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=loss_id)
def test_rows_leave_after_so_many_calm_sets_and_the_optimum_stays(loss, bias, monkeypatch):
    monkeypatch.setattr(active_set, "WORK", 2**14)
    monkeypatch.setattr("slackwater.solvers.kernel.svm_light.WORK", 2**16)
    problem, least = problem_of(clouds(400), loss, bias, C=3.0), 400
    solver = SVMLight(h=20)
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(300):
        sets = state.counters.epochs
        solver.advance(problem, state)
        if state.active.size < least:
            least = state.active.size
            assert sets + state.counters.epochs >= 20
        assert state.calm.max() <= state.counters.epochs
        if solver.estimate(problem, state) < 1e-8:
            break
    assert least < 400
    solver.review(problem, state, None)
    assert state.active.size == 400
    assert not state.calm.any()
    _, found = train(problem, SVMLight(shrinking=False), gap=1e-8)
    assert certificate(problem, solver, state).primal == pytest.approx(found[-1].primal, rel=1e-5)


@interpreted
@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"q": 3}, "q must be even and at least 2, got 3"),
        ({"q": 0}, "q must be even and at least 2, got 0"),
        ({"q": 4, "new": 6}, "new must be 0 or even and between 2 and q, got 6"),
        ({"new": 3}, "new must be 0 or even and between 2 and q, got 3"),
        ({"h": 0}, "h must be at least 1, got 0"),
        ({"ahead": 0}, "ahead must be at least 1, got 0"),
    ],
)
def test_settings_are_checked(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        SVMLight(**settings)
