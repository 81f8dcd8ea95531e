"""Certificates of nonsense prove nothing that is not so; wrong sizes are refused; the certificate's own arithmetic."""

import math

import numpy as np
import pytest

from problems import cut_of, optimum
from slackwater.objective import (
    BoxPoint,
    Certificate,
    CountPoint,
    CutPoint,
    DirectionPoint,
    GradientPoint,
    certify,
    lower_bound,
    primal_value,
)

pytestmark = pytest.mark.interpreted


# -------------------------------------------------------------------------------------------------- nonsense

NOT_NUMBERS = [
    pytest.param(lambda a: np.full_like(a, np.nan), id="nan"),
    pytest.param(lambda a: np.where(np.arange(a.size) == 3, np.nan, a), id="one-nan"),
    pytest.param(lambda a: np.full_like(a, np.inf), id="inf"),
    pytest.param(lambda a: np.where(np.arange(a.size) == 3, -np.inf, a), id="one-minus-inf"),
    pytest.param(lambda a: np.full_like(a, 1e200), id="1e200"),
]
OUTSIDE = [
    pytest.param(lambda a: -a - 1.0, id="negative"),
    pytest.param(lambda a: 1e6 * (a + 1.0), id="above"),
    pytest.param(lambda a: np.zeros_like(a), id="zero"),
    pytest.param(lambda a: np.full_like(a, 5e-324), id="denormal"),
]


@pytest.mark.parametrize("spoil", NOT_NUMBERS + OUTSIDE)
def test_nonsense_never_proves_too_much(problem, spoil):
    best = optimum(problem)
    alpha = spoil(best.alpha)
    points = [BoxPoint(alpha), CountPoint(10.0 * alpha / problem.costs, 10.0), DirectionPoint(alpha)]
    cut = cut_of(problem, best.alpha)  # cuts are taken as they are, their mixture is not
    beta = spoil(np.full(4, 0.5))
    points.append(CutPoint(np.repeat(cut.gradients, 4, axis=0), np.repeat(cut.offsets, 4), beta))
    points.append(GradientPoint(spoil(best.w)))
    for point in points:
        certificate = certify(problem, best.w, point).certificate
        assert not math.isnan(certificate.dual)
        assert certificate.dual <= best.primal * (1.0 + 1e-12)
        assert certificate.relative_gap >= 0.0


def test_negative_directions_count_as_none(problem, rng):
    p = rng.normal(size=problem.n_rows)
    assert lower_bound(problem, DirectionPoint(p)) == lower_bound(problem, DirectionPoint(np.maximum(p, 0.0)))


@pytest.mark.parametrize("epochs", [0.0, -3.0, math.nan, math.inf, 1e-300])
def test_nonsense_epochs_never_prove_too_much(problem, epochs):
    best = optimum(problem)
    bound = lower_bound(problem, CountPoint(best.alpha / problem.costs, epochs))
    assert bound <= best.primal * (1.0 + 1e-12)
    assert not math.isnan(bound)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e200, 1e308, -1e308])
def test_weights_that_overflow_have_no_finite_value(problem, number):
    weights = np.full(problem.n_weights, number)
    assert primal_value(problem, weights) == math.inf
    certificate = certify(problem, weights).certificate
    assert certificate.primal == math.inf
    assert certificate.dual <= optimum(problem).primal
    assert certificate.relative_gap == math.inf


def test_points_of_the_wrong_size_are_refused_by_name(problem):
    n, short = problem.n_rows, np.zeros(3)
    for name, point in (
        ("alpha", BoxPoint(short)),
        ("counts", CountPoint(short, 1)),
        ("p", DirectionPoint(short)),
        ("beta", CutPoint(np.zeros((2, problem.n_weights)), np.zeros(2), short)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be {2 if name == 'beta' else n} numbers"):
            lower_bound(problem, point)
    with pytest.raises(ValueError, match=f"weights must be {problem.n_weights} numbers"):
        certify(problem, np.zeros(problem.n_weights + 1))
    with pytest.raises(ValueError, match=f"gradients must be 1 lines of {problem.n_weights} numbers"):
        lower_bound(problem, CutPoint(np.zeros((1, 1)), np.zeros(1), np.zeros(1)))


def test_the_callers_arrays_are_left_alone(problem):
    best = optimum(problem)
    w, alpha = best.w + 0.1, best.alpha - 0.1
    kept = w.copy(), alpha.copy()
    for point in (BoxPoint(alpha), DirectionPoint(alpha), CountPoint(alpha, 1.0)):
        certify(problem, w, point)
    assert (w == kept[0]).all()
    assert (alpha == kept[1]).all()


# ---------------------------------------------------------------------------------------------- the certificate


def test_better_combines_the_best_halves():
    one, other = Certificate(1.0, 0.5, "C1"), Certificate(1.2, 0.8, "C2")
    assert one.better(other) == other.better(one) == Certificate(1.0, 0.8, "C2")
    assert one.better(Certificate(2.0, 0.1, "C6")) == one
    assert Certificate(math.inf, -math.inf, "C6").better(one) == one


def test_gaps():
    certificate = Certificate(1.02, 1.0, "C1")
    assert certificate.gap == pytest.approx(0.02, rel=1e-12)
    assert certificate.relative_gap == pytest.approx(0.02, rel=1e-12)
    assert Certificate(0.5, 0.4, "C1").relative_gap == pytest.approx(0.25, rel=1e-12)
    assert Certificate(0.5, 0.0, "C1").relative_gap == math.inf
    assert Certificate(0.5, -1.0, "C1").relative_gap == math.inf
    assert Certificate(0.5, -math.inf, "C1").relative_gap == math.inf
    assert Certificate(0.0, 0.0, "C1").relative_gap == 0.0
    assert Certificate(1.0, 1.0 + 1e-16, "C1").relative_gap == 0.0


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        (Certificate(1.02, 1.0, "C1"), "primal 1.020, proven lower bound 1.000, gap 2% (rule C1)"),
        (Certificate(0.5, -1.0, "C6"), "primal 0.5000, proven lower bound -1.000, gap 1.5, relatively unbounded"),
        (Certificate(0.0, 0.0, "C1+C7"), "primal 0, proven lower bound 0, gap 0% (rule C1+C7)"),
        (Certificate(1.0, 0.99999, "C1"), "primal 1.00000, proven lower bound 0.999990, gap 0.001% (rule C1)"),
        (Certificate(math.inf, 0.5, "C2"), "primal inf, proven lower bound 0.5000, gap inf, relatively unbounded"),
    ],
)
def test_text(certificate, text):
    assert str(certificate).startswith(text)


def test_the_texts_digits_tell_the_two_values_apart():
    for gap in (1e-2, 1e-4, 1e-7, 1e-10):
        primal, dual = (
            str(Certificate(1.2345 * (1 + gap), 1.2345, "C1")).split(", gap")[0].split(", proven lower bound ")
        )
        assert float(primal.removeprefix("primal ")) > float(dual)
