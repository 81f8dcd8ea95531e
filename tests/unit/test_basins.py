"""The levels over one basin or two against linear programs, the golden cases and the best scale by minimisation."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import golden
from reference.sbp_twin import level_by_program
from slackwater.objective.bias import optimal_bias
from slackwater.objective.losses import hinge
from slackwater.solvers.basins import Goal, basins_of, bias_of, new_pool, part_of, pour, two_basins

interpreted = pytest.mark.interpreted


def instance(rng, few=2, most=14):
    """Responses with ties, labels of unbalanced classes, weights, a volume that may be nothing."""
    n = int(rng.integers(few, most))
    responses = rng.normal(size=n)
    if rng.random() < 0.5:
        responses = np.round(2.0 * responses) / 2.0
    labels = np.where(rng.random(n) < rng.choice([0.2, 0.5, 0.9]), 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    weights = rng.choice([np.ones(n), rng.uniform(0.2, 3.0, n), rng.integers(1, 4, n).astype(float)])
    volume = float(rng.choice([0.0, 0.01, 0.5, 3.0, 40.0]) * rng.random())
    return responses, labels, weights, volume


def poured(goal, responses, labels, weights, pool=None):
    side = basins_of(labels, goal.basins == 2)
    return pour(goal, responses, side, weights, pool or new_pool(responses.size))


def distribution(level, responses, labels, weights, basins):
    side = basins_of(labels, basins == 2)
    parts = np.array([part_of(level, k, c) for k, c in zip(side, responses, strict=True)])
    return parts * weights / (basins * level.depth)


@interpreted
def test_the_golden_case_of_one_basin():
    case = golden.WATER
    c, ones = np.array(case.responses), np.ones(4)
    level = poured(Goal(case.volume, -1.0, 1), c, ones, ones)
    assert (level.gamma, level.depth) == (pytest.approx(case.level, rel=1e-14), 2.0)
    assert distribution(level, c, ones, ones, 1).tolist() == list(case.p)


@interpreted
def test_the_golden_case_of_two_basins():
    case = golden.TWO_BASINS
    c = np.array(case.positive + case.negative)
    labels = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    level = two_basins(c, labels, case.volume)
    assert level.gamma == pytest.approx(case.level, rel=1e-14)
    assert level.depth == case.pairs
    assert (level.low, level.high) == pytest.approx(case.bias, rel=1e-13)
    p = distribution(level, c, labels, np.ones(5), 2)
    assert p.tolist() == list(case.p_positive + case.p_negative)


@pytest.mark.parametrize("basins", [1, 2])
def test_levels_are_those_of_the_linear_program(basins):
    rng = np.random.default_rng(basins)
    for _ in range(200):
        c, labels, u, volume = instance(rng)
        level = poured(Goal(volume, -1.0, basins), c, labels, u)
        best = level_by_program(c, labels, u, volume, free=basins == 2)
        assert level.gamma == pytest.approx(best, abs=1e-9)
        p = distribution(level, c, labels, u, basins)
        assert p.sum() == pytest.approx(1.0, rel=1e-12)
        assert p @ c + volume * (p / u).max() == pytest.approx(level.gamma, abs=1e-12)
        if basins == 2:
            assert abs(p @ labels) < 1e-12
            for b in (level.low, level.high, bias_of(level)):
                if np.isfinite(b):
                    used = u @ np.maximum(level.gamma - c - labels * b, 0.0)
                    assert used <= volume + 1e-9


def test_the_bias_has_no_wider_interval():
    rng = np.random.default_rng(5)
    for _ in range(100):
        c, labels, u, volume = instance(rng)
        level = poured(Goal(volume, -1.0, 2), c, labels, u)
        for b in (level.low - 1e-3, level.high + 1e-3):
            if np.isfinite(b):
                assert u @ np.maximum(level.gamma - c - labels * b, 0.0) > volume + 1e-6


def at_scale(s, c, labels, u, ridge, free):
    """ridge s^2 / 2 + the hinges, with the best bias."""
    b = optimal_bias(hinge(), labels * c * s, labels, u).chosen if free else 0.0
    return 0.5 * ridge * s * s + u @ np.maximum(1.0 - s * c - labels * b, 0.0)


@pytest.mark.parametrize("basins", [1, 2])
def test_levels_for_a_given_lambda_give_the_best_scale(basins):
    rng = np.random.default_rng(7)
    for _ in range(100):
        c, labels, u, _ = instance(rng, few=4)
        ridge = float(10.0 ** rng.uniform(-2, 2))
        level = poured(Goal(0.0, ridge, basins), c, labels, u)
        args = (c, labels, u, ridge, basins == 2)
        most = u @ np.abs(c) / ridge  # no larger scale pays
        found = minimize_scalar(at_scale, bounds=(0.0, most), args=args, method="bounded", options={"xatol": 1e-9})
        ours = at_scale(1.0 / level.gamma, *args)
        assert ours <= min(found.fun, at_scale(0.0, *args)) + 1e-9
        if basins == 2 and level.gamma < np.inf:
            s, b = 1.0 / level.gamma, bias_of(level) / level.gamma
            assert 0.5 * ridge * s * s + u @ np.maximum(1.0 - s * c - labels * b, 0.0) == pytest.approx(ours, abs=1e-9)
        if level.gamma < np.inf:  # the derivative by the scale vanishes
            p = distribution(level, c, labels, u, basins) * basins * level.depth
            assert p @ c == pytest.approx(ridge / level.gamma, rel=1e-9)


@pytest.mark.parametrize("basins", [1, 2])
@pytest.mark.parametrize("ridge", [-1.0, 30.0])
def test_windows_lose_nothing(basins, ridge):
    """A pool that follows responses on their way against one that starts anew."""
    rng = np.random.default_rng(3)
    c = rng.normal(size=5000) + 0.5
    labels = np.where(rng.random(5000) < 0.3, 1.0, -1.0)
    u = rng.uniform(0.5, 2.0, 5000)
    pool, goal = new_pool(5000), Goal(100.0, ridge, basins)
    narrow = 0
    for k in range(40):
        level = poured(goal, c, labels, u, pool)
        fresh = new_pool(5000)
        whole = poured(goal, c, labels, u, fresh)
        assert level.gamma == pytest.approx(whole.gamma, rel=1e-11)
        assert level.depth == pytest.approx(whole.depth, rel=1e-9)
        narrow += pool.high[0] - pool.low[0] < 0.2  # the window follows
        c += rng.normal(size=5000) * (0.5 if k == 20 else 0.003)
    assert narrow >= 10


def test_two_basins_need_two_classes():
    with pytest.raises(ValueError, match="both classes"):
        two_basins(np.zeros(3), np.ones(3), 1.0)
