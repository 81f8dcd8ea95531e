"""Losses: duality, derivatives, kinks and names."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems import LOSSES, SMOOTH, loss_id
from reference.qp_reference import loss_value
from slackwater.objective import Loss, hinge, huber, loss_family, loss_name, parse_loss, smoothed_hinge, squared_hinge
from slackwater.objective.losses import conjugate, slope, value

pytestmark = pytest.mark.interpreted

margins = st.floats(-50.0, 50.0)
losses = st.sampled_from(LOSSES)


def rounding(*terms) -> float:
    return 1e-13 * (1.0 + sum(abs(t) for t in terms))


@given(losses, margins, st.floats(0.0, 1.0))
def test_fenchel_young(loss, m, share):
    a = share * (loss.cap if math.isfinite(loss.cap) else 200.0)
    terms = value(loss, m), conjugate(loss, a), a * m
    assert sum(terms) >= -rounding(*terms)


@given(losses, margins)
def test_fenchel_young_is_an_equality_at_the_slope(loss, m):
    a = slope(loss, m)
    terms = value(loss, m), conjugate(loss, a), a * m
    assert 0.0 <= a <= loss.cap
    assert abs(sum(terms)) <= rounding(*terms)


@given(losses, margins)
def test_the_slope_is_the_numerical_derivative(loss, m):
    h = 1e-5
    kinks = (loss.target, loss.target - loss.cap * loss.width)
    bend = max((h / loss.width if loss.width else loss.cap) for k in kinks) if any(abs(m - k) < h for k in kinks) else 0
    numerical = (value(loss, m - h) - value(loss, m + h)) / (2.0 * h)
    assert slope(loss, m) == pytest.approx(numerical, abs=bend + 1e-8 * (1.0 + abs(m)))


@given(losses, margins)
def test_values_are_those_of_the_definition(loss, m):
    assert value(loss, m) == pytest.approx(float(loss_value(loss, np.float64(m))), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("a", [-1e-300, -1.0, np.nextafter(1.0, 2.0), 5.0])
def test_the_conjugate_is_infinite_outside_the_dual_box(a):
    assert conjugate(hinge(), a) == math.inf
    assert (conjugate(squared_hinge(), a) == math.inf) == (a < 0.0)


def test_the_conjugate_is_the_supremum_over_margins():
    grid = np.linspace(-3.0, 3.0, 6001)
    for loss in LOSSES:
        for a in (0.0, 0.25, 0.5, 1.0):
            highest = max(-a * m - value(loss, m) for m in grid)
            assert conjugate(loss, a) == pytest.approx(highest, abs=1e-6 / (loss.width or 1.0))


def test_the_hinge_takes_the_left_derivative_at_its_kink():
    assert slope(hinge(), 1.0) == 1.0
    assert slope(hinge(), np.nextafter(1.0, 0.0)) == 1.0
    assert slope(hinge(), np.nextafter(1.0, 2.0)) == 0.0
    assert value(hinge(), 1.0) == 0.0


@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_smooth_losses_bend_without_a_jump(loss):
    assert slope(loss, loss.target) == 0.0
    assert value(loss, loss.target) == 0.0
    for kink in (loss.target, loss.target - loss.cap * loss.width):
        if math.isfinite(kink):
            left, right = kink - 1e-9, kink + 1e-9
            assert slope(loss, left) - slope(loss, right) == pytest.approx(1e-9 / loss.width, rel=1e-4)
            assert abs(value(loss, left) - value(loss, right)) <= 2.1e-9 * loss.cap


def test_the_published_forms():
    assert value(hinge(), 0.25) == 0.75
    assert value(squared_hinge(), -1.0) == 4.0
    assert slope(squared_hinge(), -1.0) == 4.0
    assert value(smoothed_hinge(0.5), 0.75) == 0.0625
    assert value(smoothed_hinge(0.5), 0.0) == 0.75
    assert value(huber(0.5), 1.5) == 0.0
    assert value(huber(0.5), 1.0) == 0.125
    assert value(huber(0.5), 0.25) == 0.75


@given(losses, margins, st.floats(0.0, 2.0))
def test_compiled_and_interpreted_texts_agree(loss, m, a):
    for function, argument in ((value, m), (slope, m), (conjugate, a)):
        interpreted = getattr(function, "py_func", function)(loss, argument)
        assert function(loss, argument) == pytest.approx(interpreted, rel=1e-14, abs=1e-300)


@given(st.floats(1e-3, 1.0), st.sampled_from([smoothed_hinge, huber]))
def test_names_are_read_back_as_the_same_loss(width, family):
    loss = family(width)
    assert parse_loss(loss_name(loss)) == loss
    assert loss_family(loss) == family.__name__


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_names_of_the_usual_losses(loss):
    assert parse_loss(loss_name(loss)) == loss
    assert parse_loss(loss) is loss
    assert loss_name(loss).partition(":")[0] == loss_family(loss)


def test_names_are_short():
    assert [loss_name(loss) for loss in LOSSES] == [
        "hinge", "squared_hinge", "smoothed_hinge:1", "smoothed_hinge:0.3", "huber:0.5", "huber:0.05"
    ]  # fmt: skip
    assert parse_loss("smoothed_hinge") == smoothed_hinge(1.0)
    assert parse_loss("huber") == huber(0.5)
    assert parse_loss("hinge") == Loss(1.0, 0.0, 1.0)


@pytest.mark.parametrize("width", ["0", "-0.5", "1.5", "nan", "inf"])
@pytest.mark.parametrize("family", ["smoothed_hinge", "huber"])
def test_widths_outside_their_range_are_refused(family, width):
    with pytest.raises(ValueError, match=r"must lie in \(0, 1\], got"):
        parse_loss(f"{family}:{width}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("logistic", "loss='logistic' is not known; the losses are hinge, squared_hinge, smoothed_hinge, huber"),
        ("", "loss='' is not known"),
        (None, "loss=None is not known"),
        ("hinge:0.5", "loss='hinge:0.5': hinge has no width"),
        ("huber:wide", "loss='huber:wide': the width 'wide' is not a number"),
    ],
)
def test_bad_names_are_refused_in_one_sentence(text, sentence):
    with pytest.raises(ValueError) as refusal:
        parse_loss(text)
    assert str(refusal.value).startswith(sentence)
