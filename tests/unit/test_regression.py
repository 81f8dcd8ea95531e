"""The losses of regression, their best offset, and the certificate of hand-made points."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from reference.svr_reference import dual_of, primal_of, tube_loss_value
from slackwater.objective import (
    TUBE_LOSSES,
    BoxPoint,
    CountPoint,
    best_offset,
    certify,
    regression_problem,
    tube_loss,
)
from slackwater.objective.regression import tube_conjugate, tube_slope, tube_value
from slackwater.rows import as_rows

interpreted = pytest.mark.interpreted
KINDS = [tube_loss(name, epsilon) for name in TUBE_LOSSES for epsilon in (0.0, 0.5)]


@interpreted
@pytest.mark.parametrize("loss", KINDS)
def test_fenchel_and_young(loss):
    """l(r) + l*(b) >= b r everywhere, with equality where b is the slope at r."""
    for r in np.linspace(-3.0, 3.0, 25):
        assert tube_value(loss, r) == pytest.approx(tube_loss_value(loss, r), rel=1e-14)
        b = tube_slope(loss, r)
        assert tube_value(loss, r) + tube_conjugate(loss, b) == pytest.approx(b * r, abs=1e-14)
        for other in np.linspace(-1.0, 1.0, 9):
            assert tube_value(loss, r) + tube_conjugate(loss, other) >= other * r - 1e-14
    assert tube_conjugate(loss, 1.5) == (np.inf if loss.cap == 1.0 else loss.epsilon * 1.5 + 0.25 * 1.5**2)


@interpreted
@pytest.mark.parametrize("loss", KINDS)
def test_the_best_offset_is_that_of_a_search(loss):
    rng = np.random.default_rng(1)
    for n in (1, 2, 7, 30):
        residuals, costs = rng.normal(size=n).round(1), rng.uniform(0.1, 2.0, n)

        def paid(b, residuals=residuals, costs=costs):
            return costs @ tube_loss_value(loss, residuals - b)

        low, high, chosen = best_offset(loss, residuals, costs)
        assert low <= chosen <= high
        found = minimize_scalar(paid, bounds=(-5.0, 5.0), method="bounded", options={"xatol": 1e-10}).fun
        assert paid(chosen) <= found + 1e-9
        assert paid(low) == pytest.approx(paid(high), abs=1e-9)


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", KINDS)
def test_certificates_of_any_point_are_bounds(loss, bias):
    rng = np.random.default_rng(2)
    X, y, weights = rng.normal(size=(12, 3)), rng.normal(size=12) + 1.0, rng.uniform(0.5, 2.0, 12)
    problem = regression_problem(as_rows(X), y, loss, 0.8, weights, bias, 1.0)
    best = np.inf
    for scale in (0.0, 0.1, 1.0, 10.0):
        w, point = scale * rng.normal(size=4), scale * rng.normal(size=12)
        for given in (BoxPoint(point), None):
            certificate, kept, beta = certify(problem, w if bias != "none" else np.append(w[:3], 0.0), given)
            inside = kept[:3] @ kept[:3] + (kept[3] ** 2 if bias == "penalised" else 0.0)
            primal = primal_of(X, y, problem.costs, loss, kept[:3], problem.rows.bias * kept[3], inside)
            assert certificate.primal == pytest.approx(primal, rel=1e-12)
            constant = 1.0 if bias == "penalised" else 0.0
            assert certificate.dual == pytest.approx(dual_of(X, y, problem.costs, loss, beta, constant), rel=1e-9)
            assert (np.abs(beta) <= loss.cap * problem.costs).all()
            assert bias != "free" or abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
            assert certificate.rule == ("C6" if given is None else "C1") + ("+C7" if bias == "free" else "")
            best = min(best, certificate.primal)
            assert certificate.dual <= best


def test_what_is_not_finite_proves_nothing():
    problem = regression_problem(as_rows(np.eye(2)), [1.0, 2.0], tube_loss("epsilon_insensitive"))
    found = certify(problem, np.array([np.nan, 0.0, 0.0]), BoxPoint(np.array([np.nan, 0.0]))).certificate
    assert (found.primal, found.dual) == (np.inf, -np.inf)
    with pytest.raises(TypeError, match="no bound of a CountPoint"):
        certify(problem, np.zeros(3), CountPoint(np.zeros(2), 1))


def test_bad_problems_are_refused():
    rows, loss = as_rows(np.eye(2)), tube_loss("epsilon_insensitive")
    for targets in ([1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="targets must be 2 finite numbers"):
            regression_problem(rows, targets, loss)
    with pytest.raises(ValueError, match="epsilon must be a number of at least 0, got -1"):
        tube_loss("epsilon_insensitive", -1.0)
    with pytest.raises(ValueError, match="loss='hinge' is not known; the losses of regression are"):
        tube_loss("hinge")
