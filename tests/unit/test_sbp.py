"""The Stochastic Batch Perceptron: the facts of its section, its settings, its twin."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import whole
from problems import optimum_of, random_table
from reference.sbp_twin import sbp_twin, wet
from slackwater.gram import Gram
from slackwater.objective import hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.basins import Goal, new_pool, part_of, pour
from slackwater.solvers.kernel import sbp, under_water
from slackwater.solvers.kernel.sbp import SBP
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
BIASES = ("none", "free")
PAPER = {"draws": 1, "steps": "paper"}


def problem_of(X, labels, kernel=None, *, C=1.0, weights=None, bias="none", room=2**30):
    rows = as_rows(np.asarray(X, dtype=float))
    points = Points.of(rows, kernel or Kernel("rbf", gamma=0.3), np.float64, 0.0)
    return kernel_problem(Gram(points, room), labels, hinge(), C, weights, bias)


def clouds(seed=0, n=40, **options):
    X, labels = random_table(np.random.default_rng(seed), n)
    return problem_of(X, labels, **options)


def reference(problem):
    """The optimum of the problem, from an independent solver."""
    sizes, vectors = np.linalg.eigh(whole(problem))
    Z = vectors * np.sqrt(np.maximum(sizes, 0.0))
    return optimum_of(Z, problem.labels, problem.costs, problem.loss, problem.bias)


def exchange(problem):
    """nu, gamma* of the optimum, and its p*: the exchange rules."""
    best = reference(problem)
    signed = problem.labels * best.alpha
    norm = np.sqrt(signed @ whole(problem) @ signed)
    lam = problem.regularisation
    mean_hinge = best.primal - 0.5 * lam * norm**2
    return mean_hinge / norm, 1.0 / norm, best.alpha / best.alpha.sum()


def walked(problem, rounds, seed=0, **settings):
    solver = SBP(**settings)
    state = solver.start(problem, np.random.default_rng(seed))
    for _ in range(rounds):
        solver.advance(problem, state)
    return solver, state


# ------------------------------------------------------------------------------------------------------ the facts


@interpreted
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(
    "settings", [{}, {"nu": 0.05}, {"draws": 1, "steps": "paper"}, {"nu": 0.0, "draws": 3}], ids=str
)
def test_w_stays_in_the_ball_and_alpha_is_not_negative(bias, settings):
    problem = clouds(bias=bias, n=20)
    Q = whole(problem) * np.outer(problem.labels, problem.labels)
    _, state = walked(problem, 1, **settings)
    walk = state.walk
    assert (walk.alpha >= 0.0).all()
    assert walk.c == pytest.approx(Q @ walk.alpha, abs=1e-12)
    assert walk.alpha @ Q @ walk.alpha <= 1.0 + 1e-12
    assert walk.facts[0] == pytest.approx(walk.alpha @ walk.c, rel=1e-12)


@pytest.mark.parametrize("draws", [1, 16])
@pytest.mark.parametrize("bias", BIASES)
def test_every_draw_asks_for_a_row(draws, bias):
    problem = clouds(bias=bias)
    _, state = walked(problem, 1, draws=draws)
    unused = problem.gram.evaluations // problem.n_rows - np.count_nonzero(state.walk.alpha)
    assert state.counters.row_requests == state.counters.updates + unused
    assert unused <= problem.n_rows


@pytest.mark.parametrize("bias", BIASES)
def test_the_mean_hinge_of_the_rescaled_average_is_nu_over_gamma(bias):
    problem, nu = clouds(bias=bias), 0.07
    _, state = walked(problem, 2, nu=nu)
    walk, task = state.walk, state.task
    _, c, _ = (walk.sums[0] + walk.sums[1]) / (walk.times[2] + walk.times[3])
    level = pour(Goal(problem.n_rows * nu, -1.0, task.basins), c, task.basin, task.weights, state.pool)
    b = 0.5 * (level.low + level.high)
    margins = (c + problem.labels * b) / level.gamma
    assert np.maximum(0.0, 1.0 - margins).mean() * level.gamma == pytest.approx(nu, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", BIASES)
def test_value_and_bound_enclose_the_reference(bias, weighted):
    """f(w_t) <= f* <= U(p), and both come to f* = 1 / ||w*||."""
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 40) if weighted else None
    problem = clouds(bias=bias, weights=weights)
    nu, best, _ = exchange(problem)
    solver = SBP(nu=nu)
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(6):
        solver.advance(problem, state)
        value, bound = solver.slack_bounds(problem, state)
        assert value <= best * (1.0 + 1e-7)
        assert bound >= best * (1.0 - 1e-7)
    assert value == pytest.approx(best, rel=0.01)
    assert bound == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("bias", BIASES)
def test_at_the_optimum_value_and_bound_are_one_over_the_norm(bias):
    problem = clouds(bias=bias)
    nu, best, p = exchange(problem)
    Q = whole(problem) * np.outer(problem.labels, problem.labels)
    c = Q @ p / np.sqrt(p @ Q @ p)
    basins = 2 if bias == "free" else 1
    side = (problem.labels < 0.0).astype(np.uint8) * (basins - 1)
    level = pour(Goal(40 * nu, -1.0, basins), c, side, np.ones(40), new_pool(40))
    assert level.gamma == pytest.approx(best, rel=1e-5)
    assert np.sqrt(p @ Q @ p) + 40 * nu * p.max() == pytest.approx(best, rel=1e-5)


def test_the_golden_machine():
    """lambda = 0.1 and nu = 0.335 are exchanged for each other."""
    case = golden.SVM
    problem = problem_of(case.z, np.ones(4), Kernel("linear"), C=case.C)
    solver, state = walked(problem, 10, nu=case.nu)
    value, bound = solver.slack_bounds(problem, state)
    assert value == pytest.approx(case.gamma, rel=5e-3)
    assert bound == pytest.approx(case.gamma, rel=5e-3)
    found = run(problem, SBP(), Limits(tol=3e-3), rng=0)
    assert found.status.converged
    assert found.certificate.dual <= case.optimum + 1e-12 <= found.certificate.primal + 2e-12


def test_without_slack_gamma_comes_to_the_largest_margin():
    rng = np.random.default_rng(1)
    labels = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 2)) * 0.3 + labels[:, None] * [1.5, 0.0]
    hard = problem_of(X, labels, Kernel("linear"), C=1e4)
    margin = exchange(hard)[1]
    solver, state = walked(problem_of(X, labels, Kernel("linear")), 10, nu=0.0)
    value, bound = solver.slack_bounds(hard, state)
    assert value <= margin * (1.0 + 1e-6)
    assert value == pytest.approx(margin, rel=0.02)
    assert bound >= margin * (1.0 - 1e-6)


# ----------------------------------------------------------------------------------------------- the way it goes


@pytest.mark.parametrize("bias", BIASES)
def test_single_draws_go_the_way_of_the_twin(bias):
    """The twin's levels are sorted; its draws are those that the solver makes."""
    problem = clouds(n=24, bias=bias)
    Q = whole(problem) * np.outer(problem.labels, problem.labels)
    solver, before, drawn = SBP(nu=0.05, **PAPER), np.zeros(24), []
    state = solver.start(problem, np.random.default_rng(0))
    problem.gram.keep(np.arange(24))
    chosen = under_water.Chosen(np.empty(1, dtype=np.int64), np.empty(1))
    for _ in range(300):
        before[:] = state.walk.c
        p, _ = wet(before, problem.labels, 24 * 0.05, bias == "free")
        assert under_water.take_levels(state.task, state.walk, problem.gram.kept, chosen, 1, 1) == 1
        drawn.append(int(chosen.ids[0]))
        assert p[drawn[-1]] > 0.0 or np.unique(before).size < 24
    order = iter(drawn)
    alpha, c = sbp_twin(Q, problem.labels, 0.05, lambda p: next(order), 300, bias == "free")
    assert state.walk.alpha == pytest.approx(alpha, abs=1e-12)
    assert state.walk.c == pytest.approx(c, abs=1e-12)


def test_with_one_draw_and_equal_norms_the_adaptive_step_is_the_papers():
    ways = [walked(clouds(n=24), 1, nu=0.05, draws=1, steps=steps)[1].walk for steps in ("paper", "adaptive")]
    assert ways[0].alpha == pytest.approx(ways[1].alpha, abs=1e-9)


@pytest.mark.parametrize("bias", BIASES)
def test_a_level_takes_one_step_along_the_mean_of_its_draws(bias):
    """eta = 1 / sqrt(sum ||g||^2), the draws those that the solver makes."""
    problem = clouds(n=24, bias=bias)
    Q = whole(problem) * np.outer(problem.labels, problem.labels)
    state = SBP(nu=0.05, draws=4).start(problem, np.random.default_rng(0))
    problem.gram.keep(np.arange(24))
    chosen = under_water.Chosen(np.empty(4, dtype=np.int64), np.empty(4))
    alpha, squares = np.zeros(24), 0.0
    for _ in range(200):
        assert under_water.take_levels(state.task, state.walk, problem.gram.kept, chosen, 1, 1) == 1
        g = np.bincount(chosen.ids, minlength=24) / 4.0
        squares += g @ Q @ g
        alpha += g / np.sqrt(squares)
        alpha /= max(1.0, np.sqrt(alpha @ Q @ alpha))
        if bias == "free":
            assert (problem.labels[chosen.ids] > 0.0).sum() == 2
    assert state.walk.alpha == pytest.approx(alpha, abs=1e-9)


def test_a_bound_that_asks_for_too_many_rows_is_that_of_alpha(monkeypatch):
    problem = clouds(n=400, room=1)
    solver = SBP(nu=10.0)
    state = solver.start(problem, np.random.default_rng(0))
    monkeypatch.setattr(sbp, "_ROUND", 1)
    for _ in range(3):
        solver.advance(problem, state)
    alpha, _, p = under_water.averages(state.walk)
    assert np.count_nonzero(p) > max(problem.gram.capacity, 2 * np.count_nonzero(alpha))
    assert np.array_equal(solver.dual_point(problem, state).p, alpha)


@pytest.mark.parametrize("rare", [0.0, 2.0], ids=["proposals everywhere", "a list of the wet"])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_follow_the_best_distribution(weighted, rare, monkeypatch):
    rng = np.random.default_rng(4)
    problem = clouds(n=24, weights=rng.uniform(0.3, 3.0, 24) if weighted else None)
    if not weighted and rare:
        problem = clouds(n=24, bias="free")
    solver = SBP(nu=0.02)
    state = solver.start(problem, rng)
    state.walk.c[:] = rng.normal(size=24)
    if rare:  # few of many: as many dry ones besides
        state.walk.c[:20] += 5.0
    level = under_water._level(state.task, state.walk)
    ids = np.empty(40_000, dtype=np.int64)
    under_water._draw(state.task, state.walk, level, ids)
    side = state.task.basin
    p = np.array([part_of(level, k, c) for k, c in zip(side, state.walk.c, strict=True)]) * state.task.weights
    shares = np.bincount(ids, minlength=24) / ids.size
    assert shares == pytest.approx(p / p.sum(), abs=0.02)
    assert (shares[p == 0.0] == 0.0).all()


@pytest.mark.parametrize("bias", BIASES)
def test_rare_water_is_drawn_from_a_list(bias):
    """3 of 1000 examples are wet: all draws are among them, in the right shares."""
    rng = np.random.default_rng(4)
    problem = clouds(n=1000, bias=bias)
    state = SBP(nu=0.0).start(problem, rng)
    state.walk.c[:] = 1.0 + rng.random(1000)
    lowest = np.flatnonzero(problem.labels > 0.0)[:2], np.flatnonzero(problem.labels < 0.0)[:2]
    for ids in lowest:
        state.walk.c[ids] = 0.25
    level = under_water._level(state.task, state.walk)
    assert under_water._list(state.task, state.walk, level)[0] == 4
    drawn = np.empty(8000, dtype=np.int64)
    under_water._draw(state.task, state.walk, level, drawn)
    assert np.bincount(drawn, minlength=1000)[np.concatenate(lowest)] / 8000 == pytest.approx([0.25] * 4, abs=0.02)


def test_a_little_of_two_examples_may_be_all_the_water():
    """Responses so large that the level ends within the first: rejection is measured by what is wet."""
    problem = clouds(n=40, bias="free")
    state = SBP().start(problem, np.random.default_rng(0))
    state.walk.c[:] = 1e20 * (1.0 + np.random.default_rng(1).random(40))
    state.walk.facts[0] = 1.0
    level = under_water._level(state.task, state.walk)
    assert 0.0 < level.depth < 1e-20
    drawn = np.empty(100, dtype=np.int64)
    under_water._draw(state.task, state.walk, level, drawn)
    lowest = [
        ids[np.argmin(state.walk.c[ids])] for ids in map(np.flatnonzero, (problem.labels > 0, problem.labels < 0))
    ]
    assert set(drawn) == set(lowest)


def test_blocks_of_rows_do_not_change_the_way():
    """Whether rows are brought ahead or one by one, the same examples are drawn."""
    ways = [walked(clouds(n=30, room=room), 1, draws=2)[1].walk for room in (2**30, 1)]
    assert np.array_equal(ways[0].alpha, ways[1].alpha)


def test_averages_are_over_the_last_half():
    problem = clouds(n=20)
    solver = SBP(draws=1)
    state = solver.start(problem, np.random.default_rng(0))
    problem.gram.keep(np.arange(20))
    chosen, history = under_water.Chosen(np.empty(1, dtype=np.int64), np.empty(1)), []
    for t in range(1, 101):
        history.append(state.walk.alpha.copy())
        under_water.take_levels(state.task, state.walk, problem.gram.kept, chosen, 1, 1)
        first = 2 ** max(0, int(np.log2(t)) - 1)
        if t >= 2:
            assert under_water.averages(state.walk)[0] == pytest.approx(
                np.mean(history[first - 1 :], axis=0), abs=1e-12
            )


def test_responses_do_not_drift():
    problem = clouds(n=30)
    _, state = walked(problem, 5)
    Q = whole(problem) * np.outer(problem.labels, problem.labels)
    assert state.counters.updates >= 50_000
    assert state.walk.c == pytest.approx(Q @ state.walk.alpha, abs=1e-11)


# ---------------------------------------------------------------------------------------------------- settings


def test_settings_are_checked():
    for nu in (-1.0, np.inf, "much"):
        with pytest.raises(ValueError, match="nu must be None or a number of at least 0"):
            SBP(nu=nu)
    for draws in (0, 2.5, True):
        with pytest.raises(ValueError, match="draws must be a whole number of at least 1"):
            SBP(draws=draws)
    with pytest.raises(ValueError, match="steps must be 'adaptive' or 'paper', got 'long'"):
        SBP(steps="long")
    with pytest.raises(ValueError, match="output must be 'best' or 'average', got 'last'"):
        SBP(output="last")


def test_the_output_is_the_average_where_that_is_asked_for():
    problem = clouds()
    for output in ("best", "average"):
        solver, state = walked(problem, 1, output=output)
        alpha, _, _ = under_water.averages(state.walk)
        beta = solver.model(problem, state).coefficients * problem.labels
        average = np.allclose(beta / beta.sum(), alpha / alpha.sum(), atol=1e-12)
        assert average or output == "best"


def test_slack_bounds_need_nu():
    problem = clouds(n=9)
    solver, state = walked(problem, 1)
    with pytest.raises(ValueError, match="needs a number for nu"):
        solver.slack_bounds(problem, state)


def test_one_class_with_a_free_bias_has_nothing_to_do():
    X, _ = random_table(np.random.default_rng(0), 8)
    found = run(problem_of(X, np.ones(8), bias="free"), SBP(), Limits(max_rounds=3))
    assert found.certificate.primal == 0.0
