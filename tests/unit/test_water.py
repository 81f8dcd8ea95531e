"""The water level against sorting, the linear program's facts and the golden case."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from slackwater.compiled import random_state
from slackwater.solvers.water import water_level

pytestmark = pytest.mark.interpreted


def level(responses, volume, seed=0):
    responses = np.array(responses, dtype=float)
    kept = responses.copy()
    found = water_level(responses, volume, np.empty(responses.size), random_state(np.random.default_rng(seed)))
    assert np.array_equal(responses, kept)
    return found


def by_sorting(responses, volume):
    """min_k (A(k) + V) / k."""
    return ((np.cumsum(np.sort(responses)) + volume) / np.arange(1, len(responses) + 1)).min()


def test_the_golden_case():
    case = golden.WATER
    gamma = level(case.responses, case.volume)
    assert gamma == pytest.approx(case.level, rel=1e-14)
    wet = np.array(case.responses) <= gamma
    assert (wet / wet.sum()).tolist() == list(case.p)
    dual = np.dot(case.p, case.responses) + case.volume * max(case.p)  # f = min_p p'c + V max p
    assert gamma == pytest.approx(dual, rel=1e-14)


numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-100.0, 100.0))


@given(st.lists(numbers, min_size=1, max_size=40), st.floats(0.0, 50.0), st.integers(0, 3))
def test_it_is_the_level_that_sorting_finds(responses, volume, seed):
    gamma = level(responses, volume, seed)
    size = max(1.0, np.abs(responses).max(), volume)
    assert gamma == pytest.approx(by_sorting(responses, volume), abs=1e-12 * size)
    assert np.maximum(0.0, gamma - np.array(responses)).sum() == pytest.approx(volume, abs=1e-11 * size)


@given(st.lists(numbers, min_size=1, max_size=40))
def test_without_water_it_is_the_lowest(responses):
    assert level(responses, 0.0) == min(responses)


def test_large_volumes_cover_everything(rng):
    responses = rng.normal(size=500)
    assert level(responses, 1e6) == pytest.approx((responses.sum() + 1e6) / 500, rel=1e-13)


def test_equal_responses_share_the_water():
    assert level([0.25] * 8, 4.0) == 0.75


def test_small_differences_on_a_high_plateau_are_kept():
    """Heights are measured from the lowest."""
    heights = np.array([0.0, 1.0, 2.0, 5.0])
    assert level(1e9 + heights, 3.0) - 1e9 == pytest.approx(by_sorting(heights, 3.0), abs=2e-7)
