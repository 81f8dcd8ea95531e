"""SMO: step by step as its twin, the gains that steps promise, shrinking and rebuilding, rows and their counts."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import dual_by_definition, optimum, whole
from kernel_runs import certificate, clouds, derivative, golden_problem, problem_of, train
from problems import LOSSES, loss_id
from reference.smo_twin import smo_twin
from slackwater.objective import hinge, squared_hinge
from slackwater.objective.kernels import Kernel
from slackwater.solvers.kernel import active_set, smo
from slackwater.solvers.kernel.active_set import climb_pairs, climb_singles, part_of, put_back, rebuild, violation
from slackwater.solvers.kernel.smo import SMO

interpreted = pytest.mark.interpreted
TABLE = clouds(24)


def started(problem):
    """At a point where no two variables are alike, so that rounding decides nothing."""
    return SMO().start(problem, np.random.default_rng(0), np.random.default_rng(2).uniform(0.0, 0.3, problem.n_rows))


def walk(problem, steps, second_order=True):
    """So many steps with all rows in memory."""
    state = started(problem)
    kept, part = problem.gram.keep(np.arange(problem.n_rows)), part_of(problem, state)
    climb = climb_pairs if problem.bias == "free" else climb_singles
    taken, i, j = climb(kept, 0, part, second_order, 1e-12, steps)
    assert (i, j) == (problem.n_rows, problem.n_rows)
    put_back(state, part)
    return state, taken


@interpreted
@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_steps_are_the_twins_and_gain_what_they_promise(loss, bias, second_order):
    problem = problem_of(TABLE, loss, bias)
    K, lam, first = whole(problem), problem.regularisation, started(problem).beta
    dual = before = dual_by_definition(problem, first * problem.labels)
    for steps in (1, 2, 7, 20):
        state, taken = walk(problem, steps, second_order)
        beta, gains = smo_twin(
            K, problem.labels, problem.costs, loss, first, steps, pairs=bias == "free", second_order=second_order
        )
        assert taken == len(gains) == steps
        assert state.beta == pytest.approx(beta, rel=1e-10, abs=1e-12)
        assert state.v == pytest.approx(derivative(problem, beta), rel=1e-9, abs=1e-11)
        assert (gains > 0.0).all()
        risen = dual_by_definition(problem, state.beta * problem.labels)
        assert risen - before == pytest.approx(lam * gains.sum(), rel=1e-9)
        assert risen > dual
        dual = risen


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_violation_vanishes_where_the_gap_does(loss, bias):
    problem = problem_of(TABLE, loss, bias)
    state, _ = walk(problem, 5)
    assert violation(state, bias == "free") > 1e-2
    assert certificate(problem, SMO(), state).relative_gap > 1e-3
    state, found = train(problem, SMO(), gap=1e-12, rounds=8)
    assert found[-1].relative_gap <= 1e-10
    assert violation(state, bias == "free") <= 1e-6
    assert found[-1].primal == pytest.approx(optimum(problem).primal, rel=1e-9)
    if bias == "free":
        assert abs(state.beta.sum()) <= 1e-14 * np.abs(state.beta).sum()


def test_no_variable_stays_a_rounding_error_away_from_its_bound():
    problem = problem_of(clouds(300), hinge(), "free")
    state, _ = train(problem, SMO())
    room = np.minimum(state.beta - state.lower, state.upper - state.beta)
    assert (room >= 0.0).all()
    assert room[room > 0.0].min() > 1e-9


@interpreted
def test_the_golden_machine():
    problem = golden_problem()
    state, found = train(problem, SMO(), gap=1e-13, rounds=5)
    assert state.beta == pytest.approx(golden.SVM.alpha, abs=1e-9)
    assert found[-1].primal == pytest.approx(golden.SVM.optimum, rel=1e-12)
    assert found[-1].dual == pytest.approx(golden.SVM.optimum, rel=1e-12)


def test_a_heavily_penalised_bias_is_nearly_free():
    """The free optimum with its bias penalised bounds the other from above, the free optimum from below."""
    table, lam = clouds(40), problem_of(clouds(40), hinge(), "free").regularisation
    free = optimum(problem_of(table, hinge(), "free"))
    shifted = problem_of(table, hinge(), "none", Kernel("callable", function=_wide))
    primal = train(shifted, SMO())[1][-1].primal
    assert free.primal - 1e-9 <= primal <= free.primal + 0.5 * lam * free.b**2 / 100.0 + 1e-9


def _wide(A, B):
    """The Gaussian kernel with a constant feature of ten."""
    squares = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    return np.exp(-0.3 * np.maximum(squares, 0.0)) + 100.0


# --------------------------------------------------------------------------------------- shrinking, rebuilding


@pytest.fixture
def short(monkeypatch):
    """Rounds of few steps, and shrinking every hundred."""
    monkeypatch.setattr(active_set, "WORK", 2**14)
    monkeypatch.setattr(smo, "_STEPS_TO_SHRINK", 100)


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_shrinking_changes_the_way_and_not_the_optimum(short, loss, bias):
    problem = problem_of(clouds(400), loss, bias, C=3.0)
    primal = {}
    for shrinking in (True, False):
        solver = SMO(shrinking=shrinking)
        state, sizes = solver.start(problem, np.random.default_rng(0)), set()
        for _ in range(600):
            solver.advance(problem, state)
            sizes.add(state.active.size)
            if solver.estimate(problem, state) < 1e-8:
                break
        assert (min(sizes) < 400) == shrinking
        found = certificate(problem, solver, state)
        if shrinking and found.relative_gap > 1e-7:
            solver.review(problem, state, found)
            for _ in range(100):
                solver.advance(problem, state)
            found = certificate(problem, solver, state)
        assert found.relative_gap <= 1e-6
        primal[shrinking] = found.primal
    assert primal[True] == pytest.approx(primal[False], rel=1e-6)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_rebuilding_gives_what_the_definition_gives(short, bias):
    """Over several shrinkings, with variables that came to the far end of their box and left it."""
    problem = problem_of(clouds(400), hinge(), bias, C=3.0)
    solver = SMO()
    state, old = solver.start(problem, np.random.default_rng(0)), 0.0
    for _ in range(60):
        solver.advance(problem, state)
        if state.active.size < 400:
            away = np.setdiff1d(np.arange(400), state.active)
            exact = derivative(problem, state.beta)
            assert state.v[state.active] == pytest.approx(exact[state.active], rel=1e-9, abs=1e-9)
            old = max(old, abs(state.v - exact)[away].max(initial=0.0))
            rebuild(problem, state)
            assert state.v == pytest.approx(exact, rel=1e-10, abs=1e-10)
    assert old > 1e-3  # there was something to rebuild
    assert np.count_nonzero(state.held) > 10


def test_a_review_brings_every_row_back(short):
    problem = problem_of(clouds(400), hinge(), "free", C=3.0)
    solver = SMO()
    state = solver.start(problem, np.random.default_rng(0))
    while state.active.size == 400:
        solver.advance(problem, state)
        assert state.counters.epochs < 200, "nothing was ever shrunk"
    solver.review(problem, state, None)
    assert state.active.tolist() == list(range(400))
    assert state.v == pytest.approx(derivative(problem, state.beta), rel=1e-10, abs=1e-10)


# ------------------------------------------------------------------------------------------------ kernel rows


@pytest.mark.parametrize("bias", ["none", "free"])
def test_rows_are_computed_once_where_they_fit(bias):
    problem = problem_of(clouds(300), squared_hinge(), bias)
    train(problem, SMO())
    kept = int((problem.gram.kept.slots >= 0).sum())
    assert problem.gram.evaluations == 300 * kept <= 300 * 300


@interpreted
@pytest.mark.parametrize("bias, rows", [("none", 1), ("free", 2)])
def test_every_step_asks_for_its_rows(bias, rows):
    problem = problem_of(TABLE, hinge(), bias)
    solver = SMO(ahead=2)
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    done = state.counters
    computed = done.kernel_evaluations // problem.n_rows
    assert done.row_requests == problem.gram.requests
    assert rows * done.updates + computed <= done.row_requests <= rows * done.updates + 2 * computed + 2


@pytest.mark.parametrize("bias", ["none", "free"])
def test_a_cache_of_few_rows_takes_the_same_steps(bias, monkeypatch):
    monkeypatch.setattr("slackwater.gram.gram._LEAST_ROWS", 4)
    runs = []
    for room in (2**30, 1):
        problem = problem_of(clouds(120), hinge(), bias, room=room)
        solver = SMO(shrinking=False)
        state = solver.start(problem, np.random.default_rng(0))
        solver.advance(problem, state)
        for _ in range(20):
            solver.advance(problem, state)
        runs.append(state)
    assert problem.gram.capacity == 4
    assert runs[0].beta == pytest.approx(runs[1].beta, abs=1e-6)


@interpreted
def test_settings_are_checked():
    with pytest.raises(ValueError, match="ahead must be at least 2, got 1"):
        SMO(ahead=1)
