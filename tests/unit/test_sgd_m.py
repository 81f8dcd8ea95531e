"""Repeated presentations: how many of them are margin errors, and when there are any."""

import math
from fractions import Fraction

import numpy as np
import pytest

import golden
from reference.sgd_m_twin import multiplicity, presentations
from slackwater.solvers.linear.growing_margin import margin_errors
from slackwater.solvers.linear.sgd_m import SGDM


@pytest.mark.interpreted
def test_margin_errors_of_the_golden_cases():
    for (X, q), expected in golden.MULTIPLICITY.items():
        assert margin_errors(X, q, 1.0, 5) == expected


@pytest.mark.interpreted
def test_margin_errors_are_those_of_the_presentations_one_by_one(rng):
    """Exact: dyadic numbers, so that neither side rounds."""
    seen = set()
    for _ in range(1500):
        lam, times = Fraction(int(rng.integers(1, 9)), 8), int(rng.integers(1, 12))
        z, share = Fraction(int(rng.integers(-16, 17)), 8), Fraction(int(rng.integers(1, 9)), 4)
        t = int(rng.integers(0, 20))
        # Around the end of the tolerated range, where floor and ties decide.
        p = lam * t + Fraction(int(rng.integers(-40, 60)), 8) * lam
        a = np.array([p / z, Fraction(1)], dtype=object) if z else np.array([Fraction(0), Fraction(1)], dtype=object)
        vector = np.array([z, Fraction(0)], dtype=object)
        X, q = a @ vector - lam * t, share * z * z
        after, errors = presentations(a, vector, lam, t, times, share)
        assert margin_errors(float(X), float(q), float(lam), times) == errors
        assert after[0] == a[0] + errors * share * z
        seen.add(min(errors, 6))
    assert seen == set(range(7))


def test_the_papers_schedule():
    solver = SGDM(growth=1.0)
    assert [solver.stretch(e - 1)[0] for e in range(1, 400)] == [multiplicity(e) for e in range(1, 400)]


@pytest.mark.parametrize("growth", [1.0, 1.5, 2.0])
def test_stretches_end_where_the_schedule_changes(growth):
    solver = SGDM(multiplicity=3, period=6, repeated=2, growth=growth)
    epoch, paces = 0, []
    while epoch < 500:
        times, stretch = solver.stretch(epoch)
        assert stretch >= 1
        assert [solver.stretch(epoch + k) for k in range(stretch)] == [(times, stretch - k) for k in range(stretch)]
        paces.append((times, stretch))
        epoch += stretch
    assert [times for times, _ in paces] == [3, 1] * (len(paces) // 2) + [3] * (len(paces) % 2)
    assert [stretch for _, stretch in paces[:4]] == {
        1.0: [2, 4, 2, 4],
        1.5: [2, 4, 3, 6],
        2.0: [2, 4, 4, 8],
    }[growth]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"multiplicity": 0}, "multiplicity must be at least 1, got 0"),
        ({"repeated": 10}, "repeated must lie between 0 and period, got 10 of 9"),
        ({"growth": 0.5}, "growth must be at least 1, got 0.5"),
        ({"growth": math.nan}, "growth must be at least 1, got nan"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        SGDM(**settings)
