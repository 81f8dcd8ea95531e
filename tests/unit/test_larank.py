"""LaRank: every step is the twin's and keeps the constraints; two classes are kernel SDCA's, linear ones Keerthi's."""

import numpy as np
import pytest

from conformance.kernel_problems import whole
from conformance.test_multiclass import WEIGHTED, clouds
from kernel_runs import clouds as two_clouds
from kernel_runs import problem_of
from reference.larank_twin import dual_of, larank_step
from slackwater.compiled import shuffle
from slackwater.gram import Gram, gram
from slackwater.objective import hinge, multiclass_problem
from slackwater.objective.kernel_multiclass import kernel_multiclass_problem
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.class_room import coefficients_of
from slackwater.solvers.kernel import larank
from slackwater.solvers.kernel.kernel_sdca import KernelSDCA
from slackwater.solvers.kernel.larank import LaRank, values
from slackwater.solvers.linear.crammer_singer import CrammerSinger
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
OTHER = clouds(300, 6, 5, density=1.0)


def build(table, kernel=None, bias="none", C=0.7, room=2**30):
    X, codes, k, weights = table
    points = Points.of(as_rows(X), kernel or Kernel("rbf", gamma=0.2), np.float64, float(bias == "penalised"))
    return kernel_multiclass_problem(Gram(points, room), codes, k, C, weights, bias)


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(larank, "epochs_per_round", lambda problem: 1)


def steps_of(problem, state, adaptive, most):
    """Step after step: beta before, the pattern, whether it was an Optimize, beta after."""
    patterns, n = state.patterns, problem.n_rows
    problem.gram.keep(np.arange(n))
    before = coefficients_of(patterns.room, patterns.codes, patterns.costs)
    for _ in range(most):
        if patterns.at[larank._PLACE] == n and patterns.at[larank._LEFT] == 0:
            shuffle(patterns.order, n, patterns.random)
            patterns.at[larank._PLACE] = 0
        steps, missing = larank._operate(problem.gram.kept, 0, patterns, adaptive, 1e-6, 1)
        assert missing == n
        after = coefficients_of(patterns.room, patterns.codes, patterns.costs)
        if steps:
            (changed,) = np.flatnonzero((after != before).any(axis=1))
            yield before, changed, patterns.at[larank._OPERATION] == larank._OPTIMIZE, after
        before = after


@interpreted
@pytest.mark.parametrize("adaptive", [True, False])
def test_every_step_is_the_twins_and_keeps_the_constraints(adaptive):
    problem = build(WEIGHTED)
    state, K = LaRank().start(problem, np.random.default_rng(0)), whole(problem)
    codes, costs, own = problem.codes, problem.costs, np.eye(problem.n_classes)[problem.codes]
    dual, optimized, count, same = 0.0, 0, 0, 0
    for before, i, optimize, after in steps_of(problem, state, adaptive, 150):
        wanted, gain = larank_step(K, codes, costs, before, i, optimize)
        same += np.allclose(after, wanted, rtol=1e-9, atol=1e-12)  # ties are broken by rounding
        assert (after <= costs[:, None] * own + 1e-15).all()
        assert np.abs(after.sum(axis=1)).max() <= 1e-13
        risen = dual_of(K, codes, after)
        assert gain > 0.0 and risen == pytest.approx(dual + gain, rel=1e-9, abs=1e-12)
        patterns = state.patterns
        support = patterns.support[: patterns.at[larank._SUPPORT]]
        assert sorted(support) == np.flatnonzero((np.abs(after) > 0.0).any(axis=1)).tolist()
        assert np.array_equal(patterns.where[support], np.arange(support.size))
        dual, optimized, count = risen, optimized + optimize, count + 1
    assert patterns.scores == pytest.approx(after.T @ K, rel=1e-9, abs=1e-12)
    assert count > 30 and optimized > 5 and same > 0.9 * count


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_linear_kernels_have_the_linear_solvers_optimum(adaptive, bias):
    X, codes, k, weights = OTHER
    ours = run(build(OTHER, Kernel("linear"), bias), LaRank(adaptive=adaptive), Limits(tol=1e-7), rng=0).certificate
    theirs = multiclass_problem(as_rows(X), codes, k, 0.7, weights, bias, 1.0)
    theirs = run(theirs, CrammerSinger(), Limits(tol=1e-7), rng=0).certificate
    assert ours.primal == pytest.approx(theirs.primal, rel=1e-6)
    assert max(ours.dual, theirs.dual) <= min(ours.primal, theirs.primal) * (1.0 + 1e-10)


@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_two_classes_have_twice_the_costs(bias):
    table = two_clouds(200)
    binary = problem_of(table, hinge(), bias, C=1.4)
    both = (table.X, (table.labels > 0).astype(int), 2, table.weights)
    together = build(both, Kernel("rbf", gamma=0.3), bias, C=0.7)
    tight = Limits(tol=1e-8)
    found = [run(problem, LaRank(), tight, rng=0) for problem in (binary, together)]
    best = run(problem_of(table, hinge(), bias, C=1.4), KernelSDCA(), tight, rng=0).certificate.primal
    for way in found:
        assert way.certificate.primal == pytest.approx(best, rel=2e-8)
    lines = found[1].model.coef
    assert lines[1] == pytest.approx(-lines[0], abs=1e-12)
    alpha = 2.0 * found[1].alpha[np.arange(200), both[1]]
    assert binary.regularisation * (
        alpha.sum() - 0.5 * (alpha * table.labels) @ whole(binary) @ (alpha * table.labels)
    ) == pytest.approx(best, rel=2e-8)


def test_one_epoch_comes_near(one_epoch):
    problem, solver = build(OTHER), LaRank()
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    assert state.counters.epochs == 1
    first = values(state.patterns)[1]
    found = run(build(OTHER), LaRank(), Limits(tol=1e-6), rng=0)
    best = found.certificate.dual / problem.regularisation
    assert 0.7 * best < first <= best * (1.0 + 1e-6)
    chosen = (solver.model(problem, state).coefficients @ whole(problem)).argmax(axis=0)
    assert np.mean(chosen == found.model.predict(OTHER[0])) > 0.9


def test_the_estimate_is_the_gap(one_epoch):
    for problem in (build(OTHER), problem_of(two_clouds(80), hinge(), "none")):
        found = run(problem, LaRank(), Limits(tol=0.0, max_rounds=3, certify_every=1), rng=0)
        solver = LaRank()
        state = solver.start(problem, np.random.default_rng(0), found.alpha)
        gap = found.history[-1].primal / found.history[-1].dual - 1.0
        assert solver.estimate(problem, state) == pytest.approx(gap, rel=1e-6)


def test_the_way_does_not_depend_on_the_cache(one_epoch, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 12)
    ways = []
    for room, ahead in ((2**30, 256), (1, 256), (2**30, 1)):
        problem, solver = build(OTHER, room=room), LaRank(ahead=ahead)
        state = solver.start(problem, np.random.default_rng(0))
        while state.counters.epochs < 2:
            solver.advance(problem, state)
        ways.append(state.patterns.room)
    assert np.array_equal(ways[0], ways[1]) and np.array_equal(ways[0], ways[2])


def test_rounds_stop_where_enough_was_done(one_epoch, monkeypatch):
    monkeypatch.setattr(larank, "WORK", 300 * 20)
    problem, solver = build(OTHER), LaRank(ahead=10)
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(6):
        before = state.counters.updates
        solver.advance(problem, state)
        assert state.counters.updates - before <= 20
    assert problem.gram.requests == state.counters.row_requests


def test_a_fixed_schedule_takes_turns():
    state = LaRank(adaptive=False).start(build(WEIGHTED), np.random.default_rng(0))
    seen = []
    for _ in range(7):
        state.patterns.at[larank._OPERATION] = larank._drawn(state.patterns, False)
        seen.append(int(state.patterns.at[larank._OPERATION]))
    assert seen == [0, 1, 2, 0, 1, 2, 0]


def test_draws_follow_the_gain_and_nobody_starves():
    patterns = LaRank().start(build(WEIGHTED), np.random.default_rng(0)).patterns
    patterns.rates[:3] = 0.0, 3.0, 1.0
    drawn = np.bincount([larank._drawn(patterns, True) for _ in range(4000)], minlength=3) / 4000
    assert drawn == pytest.approx(np.array([0.2, 3.0, 1.0]) / 4.2, abs=0.03)


@interpreted
def test_settings_are_checked():
    with pytest.raises(ValueError, match="ahead must be at least 1, got 0"):
        LaRank(ahead=0)
    with pytest.raises(ValueError, match="tau must be positive and finite, got 0"):
        LaRank(tau=0)
