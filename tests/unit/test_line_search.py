"""The exact line search: OCAS's golden case, its pseudo-code, and dense minimisation, for every loss."""

import numpy as np
import pytest

import golden
from problems import LOSSES, loss_id
from reference.cutting_planes_twin import line_search_twin
from reference.qp_reference import loss_value
from slackwater.compiled import JIT
from slackwater.objective import hinge, squared_hinge
from slackwater.solvers.line_search import line_search, room_for_kinks

interpreted = pytest.mark.interpreted
CASES = 300 if JIT else 20
MOST_EXAMPLES = 400 if JIT else 60


class Line:
    """lambda/2 ||w + k d||^2 + sum_i p_i l(m_i + k dm_i) with random numbers in it."""

    def __init__(self, loss, rng):
        n = int(rng.integers(1, MOST_EXAMPLES))
        grid = rng.choice([0.0, 0.25, 0.5])
        self.loss = loss
        self.margins = rng.normal(0.5, 1.0, n)
        self.change = rng.normal(0.2, 1.0, n) * (rng.random(n) < 0.9)
        if grid:  # ties: margins at the kinks, and kinks that coincide
            self.margins, self.change = (grid * np.round(x / grid) for x in (self.margins, self.change))
        self.shares = rng.uniform(0.1, 2.0, n) / n if rng.random() < 0.5 else np.full(n, 1.0 / n)
        self.curvature, self.rise = 10.0 ** rng.uniform(-3.0, 1.0), rng.normal(0.0, 0.2)

    def best(self, **room):
        return line_search(self.loss, self.shares, self.margins, self.change, self.curvature, self.rise, **room)

    def __call__(self, ks):
        margins = self.margins + np.multiply.outer(ks, self.change)
        return ks * (self.rise + 0.5 * self.curvature * ks) + loss_value(self.loss, margins) @ self.shares

    def lowest(self):
        """The minimum on ever finer grids: the function is convex, and falls no further than the parabola does."""
        steepest = abs(self.rise) + self.shares @ np.abs(self.change) * 10.0
        low, high = 0.0, steepest / self.curvature
        for _ in range(40):
            ks = np.linspace(low, high, 41)
            at = int(np.argmin(self(ks)))
            low, high = ks[max(at - 1, 0)], ks[min(at + 1, 40)]
        return self(np.array([low, high])).min()


@interpreted
def test_golden_case():
    case = golden.OCAS_LINE_SEARCH
    z, half = np.array(case.z), np.full(2, 0.5)
    k = line_search(hinge(), half, case.w_b * z, np.array(case.margins_t) - case.w_b * z, case.A0, case.B0)
    assert k == pytest.approx(case.k, rel=1e-15)
    assert case.w_b + k * (case.w_t - case.w_b) == pytest.approx(case.w)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_no_grid_finds_a_lower_point(loss):
    rng = np.random.default_rng(1)
    moved = beyond = 0
    for _ in range(CASES // len(LOSSES)):
        line = Line(loss, rng)
        k = line.best()
        assert k >= 0.0
        lowest = line.lowest()
        assert line(np.array([k]))[0] <= lowest + 1e-12 * max(1.0, abs(lowest))
        moved, beyond = moved + (k > 0.0), beyond + (k > 1.0)
    assert moved > 1
    assert beyond > 0 or not JIT


@interpreted
def test_the_hinge_goes_from_breakpoint_to_breakpoint():
    rng = np.random.default_rng(2)
    for _ in range(CASES):
        line = Line(hinge(), rng)
        wanted = line_search_twin(line.margins, line.margins + line.change, line.shares, line.curvature, line.rise)
        assert line.best() == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_derivative_changes_its_sign_there(loss):
    rng = np.random.default_rng(3)
    for _ in range(CASES // len(LOSSES)):
        line = Line(loss, rng)
        k = line.best()
        h = 1e-6 * max(k, 1e-3)
        here, right = line(np.array([k, k + h]))
        assert right >= here - 1e-13 * max(1.0, abs(here))
        if k > h:
            assert line(np.array([k - h]))[0] >= here - 1e-13 * max(1.0, abs(here))


@interpreted
def test_room_that_was_used_before_changes_nothing():
    rng = np.random.default_rng(4)
    room = room_for_kinks(hinge(), MOST_EXAMPLES)
    for _ in range(20):
        line = Line(hinge(), rng)
        assert line.best() == line.best(room=room)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_uphill_and_nowhere_are_answered_by_zero(loss):
    ones = np.ones(3)
    assert line_search(loss, ones, 5.0 * ones, ones, 1.0, 0.1) == 0.0
    assert line_search(loss, ones, 0.0 * ones, -ones, 1.0, 0.0) == 0.0
    assert line_search(loss, ones, 0.0 * ones, 0.0 * ones, 0.0, 0.0) == 0.0


@interpreted
def test_past_all_kinks_the_parabola_decides():
    """All margins pass 1 at k = 1; the regulariser falls until k = 3."""
    ones = np.ones(100)
    assert line_search(hinge(), 0.01 * ones, 0.0 * ones, ones, 1.0, -3.0) == pytest.approx(3.0)


@interpreted
@pytest.mark.parametrize(("loss", "k"), [(hinge(), 1.0), (squared_hinge(), 2.0 / 2.1)])
def test_many_kinks_at_one_place(loss, k):
    """min k^2 / 20 + l(k): the hinge stops at its corner, the parabola 2 (1 - k) = k / 10 before."""
    ones = np.ones(500)
    assert line_search(loss, ones / 500.0, 0.0 * ones, ones, 0.1, 0.0) == pytest.approx(k, rel=1e-14)
