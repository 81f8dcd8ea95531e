"""The best bias: every minimiser of the total loss, against brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from problems import LOSSES, loss_id
from reference.qp_reference import loss_value
from slackwater.compiled import JIT
from slackwater.objective import hinge, optimal_bias

pytestmark = pytest.mark.interpreted


def total(loss, scores, labels, costs, b) -> float:
    return float(costs @ loss_value(loss, labels * (scores + b)))


def lowest(loss, scores, labels, costs) -> float:
    """The minimum over b by ternary search: the total loss is convex."""
    reach = loss.target + loss.cap * loss.width if math.isfinite(loss.cap) else loss.target
    low, high = -abs(scores).max() - reach, abs(scores).max() + reach
    while high - low > 1e-9:
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        if total(loss, scores, labels, costs, a) <= total(loss, scores, labels, costs, b):
            high = b
        else:
            low = a
    corners = labels * loss.target - scores
    return min(total(loss, scores, labels, costs, b) for b in (*corners, 0.5 * (low + high)))


def check(loss, scores, labels, costs) -> None:
    scores, labels, costs = (np.asarray(a, dtype=float) for a in (scores, labels, costs))
    found = optimal_bias(loss, scores, labels, costs)
    best = lowest(loss, scores, labels, costs)
    tolerance = 1e-12 * (1.0 + best)
    assert found.low <= found.chosen <= found.high
    for b in found:
        assert total(loss, scores, labels, costs, b) <= best + tolerance
    for b in (found.low - 1e-3, found.high + 1e-3):
        assert total(loss, scores, labels, costs, b) > best + tolerance


@st.composite
def cases(draw):
    """Scores on a coarse grid, so that many breakpoints tie, with both classes present."""
    n = draw(st.integers(2, 12))
    scores = draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n))
    labels = [1, -1, *draw(st.lists(st.sampled_from([-1, 1]), min_size=n - 2, max_size=n - 2))]
    costs = draw(st.lists(st.sampled_from([0.25, 1.0, 1.0, 3.0]), min_size=n, max_size=n))
    return np.array(scores) / 4.0, labels, costs


@given(st.sampled_from(LOSSES), cases())
def test_all_minimisers_and_no_others_with_ties_and_weights(loss, case):
    check(loss, *case)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_generic_scores(loss, rng):
    for n in (2, 3, 20, 61):
        labels = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        labels[:2] = 1.0, -1.0
        check(loss, 3.0 * rng.normal(size=n), labels, rng.uniform(0.1, 2.0, n))


def test_unit_costs_put_the_hinges_interval_between_order_statistics(rng):
    for _ in range(20):
        scores, labels = rng.normal(size=15), np.where(rng.random(15) < 0.3, 1.0, -1.0)
        labels[:2] = 1.0, -1.0
        breakpoints, positives = np.sort(labels - scores), int((labels > 0).sum())
        found = optimal_bias(hinge(), scores, labels, np.ones(15))
        assert (found.low, found.high) == (breakpoints[positives - 1], breakpoints[positives])
        assert found.chosen == pytest.approx(0.5 * (found.low + found.high), rel=1e-14)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_costs_nothing(loss, label):
    scores = np.array([0.5, -2.0, 1.0])
    found = optimal_bias(loss, scores, np.full(3, label), np.ones(3))
    edge = found.low if label > 0 else found.high
    assert math.isinf(found.high if label > 0 else found.low)
    assert math.isfinite(found.chosen)
    assert total(loss, scores, label, np.ones(3), found.chosen) <= 1e-15
    assert total(loss, scores, label, np.ones(3), edge) <= 1e-15
    assert total(loss, scores, label, np.ones(3), edge - label * 1e-3) > 0.0


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_one_class_keeps_its_own_label_as_bias_where_it_can(label):
    for scores in (np.zeros(4), np.full(4, 2.0 * label)):
        assert optimal_bias(hinge(), scores, np.full(4, label), np.ones(4)).chosen == label


def test_rounding_of_the_costs_leaves_a_flat_stretch_flat(rng):
    """Classes of equal weight, well apart: every bias between them costs the same, in whatever order one adds."""
    n = 300
    scores = np.concatenate((np.linspace(-4.0, -3.0, n), np.linspace(3.0, 4.0, n)))
    labels = np.repeat([1.0, -1.0], n)
    for _ in range(20 if JIT else 2):
        costs = rng.uniform(0.1, 10.0, n)
        found = optimal_bias(hinge(), scores, labels, np.concatenate((costs, rng.permutation(costs))))
        assert (found.low, found.high) == (-4.0, 4.0)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_weights_equal_repetitions(loss, rng):
    scores, labels = rng.normal(size=8), np.array([1, -1, -1, 1, -1, -1, -1, 1.0])
    times = np.array([1, 2, 3, 1, 1, 4, 2, 2])
    weighted = optimal_bias(loss, scores, labels, times.astype(float))
    repeated = optimal_bias(loss, np.repeat(scores, times), np.repeat(labels, times), np.ones(times.sum()))
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_flipped_labels_flip_the_interval(loss, rng):
    scores, labels = rng.normal(size=9), np.array([1, -1, -1, 1, -1, -1, -1, 1, 1.0])
    costs = rng.uniform(0.5, 2.0, 9)
    one, other = optimal_bias(loss, scores, labels, costs), optimal_bias(loss, -scores, -labels, costs)
    assert (-other.high, -other.low) == pytest.approx((one.low, one.high), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_extreme_scores(scale, rng):
    labels = np.where(np.arange(30) % 2, 1.0, -1.0)
    scores = scale * rng.normal(size=30)
    for loss in LOSSES:
        found, costs = optimal_bias(loss, scores, labels, np.ones(30)), np.ones(30)
        best = total(loss, scores, labels, costs, found.chosen)
        around = [found.low - scale, found.high + scale, *(labels - scores), 0.0]
        assert best <= min(total(loss, scores, labels, costs, b) for b in around) * (1.0 + 1e-12)


def test_golden():
    case = golden.BEST_BIAS
    scores, labels = np.array(case.scores), np.array(case.labels, dtype=float)
    assert labels - scores == pytest.approx(case.breakpoints, rel=1e-15)
    found = optimal_bias(hinge(), scores, labels, np.ones(3))
    assert found == pytest.approx((case.low, case.high, 0.5 * (case.low + case.high)), rel=1e-15)
    for b in found:
        assert total(hinge(), scores, labels, np.ones(3), b) == pytest.approx(case.total_hinge, rel=1e-15)
