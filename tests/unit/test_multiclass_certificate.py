"""The multiclass problem and its certificate: values by their definitions, bounds from any point whatever."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from problems import dense, random_table
from reference.multiclass_reference import dual_value, primal_value, solve_multiclass
from slackwater.objective import BoxPoint, CountPoint, GradientPoint, certify, multiclass_problem
from slackwater.objective.multiclass import MulticlassProblem
from slackwater.rows import add_some, as_rows, dot_each, dot_some, padded

interpreted = pytest.mark.interpreted


@pytest.fixture(params=["none", "penalised"])
def problem(request) -> MulticlassProblem:
    rng = np.random.default_rng(8)
    X, _ = random_table(rng, 18, 4)
    rows = as_rows(sp.csr_array(X) if request.param == "none" else X)
    return multiclass_problem(rows, rng.integers(0, 5, 18), 5, 0.7, rng.uniform(0.2, 3.0, 18), request.param, 1.5)


def solved(problem):
    return solve_multiclass(dense(problem), problem.codes, problem.n_classes, problem.costs)


@interpreted
def test_values_are_those_of_the_definitions(problem, rng):
    X = dense(problem)
    for _ in range(5):
        W = rng.normal(size=problem.weights_shape)
        W[:, -1] *= problem.bias != "none"
        found = certify(problem, W, BoxPoint(np.zeros(problem.dual_shape)))
        assert found.certificate.primal == pytest.approx(primal_value(X, problem.codes, problem.costs, W), rel=1e-12)
        assert found.certificate.dual == 0.0
        assert np.array_equal(found.weights, W) and found.weights is not W
    assert certify(problem, np.zeros(problem.weights_shape)).certificate.primal == pytest.approx(problem.at_zero)


@interpreted
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e200])
def test_any_numbers_become_a_feasible_point_and_a_true_bound(problem, rng, size):
    X, best, rows = dense(problem), solved(problem), np.arange(problem.n_rows)
    for _ in range(20):
        given = size * rng.normal(size=problem.dual_shape)
        kept = given.copy()
        found = certify(problem, np.zeros(problem.weights_shape), BoxPoint(given))
        assert np.array_equal(given, kept)
        beta = found.alpha
        own = beta[rows, problem.codes]
        others = beta.copy()
        others[rows, problem.codes] = 0.0
        assert (others <= 0.0).all() and (own >= 0.0).all() and (own <= problem.costs).all()
        assert np.abs(own + others.sum(axis=1)).max() <= 1e-14 * problem.costs.max()
        assert found.certificate.dual <= best.primal
        assert found.certificate.dual == pytest.approx(dual_value(X, problem.codes, problem.costs, beta), rel=1e-11)
        assert found.certificate.rule == "C1"


@interpreted
def test_a_feasible_point_stays_where_it_is(problem):
    best = solved(problem)
    found = certify(problem, best.W, BoxPoint(best.beta))
    assert found.alpha == pytest.approx(best.beta, abs=1e-12)
    assert found.certificate.primal == pytest.approx(best.primal, rel=1e-12)
    assert found.certificate.dual == pytest.approx(best.dual, rel=1e-9)


@interpreted
def test_the_gradient_rule_proves_by_the_slopes(problem, rng):
    """beta_i is C_i for the own class, -C_i for the one that costs most: P - D = ||gradient||^2 / (2 lambda)."""
    W = 0.3 * rng.normal(size=problem.weights_shape)
    W[:, -1] *= problem.bias != "none"
    found = certify(problem, W)
    assert found.certificate.rule == "C6"
    lam, X = problem.regularisation, dense(problem)
    gradient = lam * (W - found.alpha.T @ X)
    assert found.certificate.gap == pytest.approx((gradient**2).sum() / (2.0 * lam), rel=1e-9)
    same = certify(problem, 0.0 * W, GradientPoint(W)).certificate
    assert same.dual == pytest.approx(found.certificate.dual, rel=1e-12)


@interpreted
@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_proves_nothing(problem, strange):
    W, beta = np.zeros(problem.weights_shape), np.zeros(problem.dual_shape)
    W[1, 0] = beta[2, (problem.codes[2] + 1) % 5] = strange
    found = certify(problem, W, BoxPoint(beta)).certificate
    assert found.primal == math.inf and found.relative_gap == math.inf
    assert found.dual <= solved(problem).primal


def test_points_of_other_kinds_and_shapes_are_refused(problem):
    W = np.zeros(problem.weights_shape)
    with pytest.raises(TypeError, match="no bound of a multiclass problem follows from a CountPoint"):
        certify(problem, W, CountPoint(np.zeros(18), 1.0))
    with pytest.raises(ValueError, match=r"beta must have the shape \(18, 5\), got \(18,\)"):
        certify(problem, W, BoxPoint(np.zeros(18)))
    with pytest.raises(ValueError, match=r"weights must have the shape \(5, 5\), got \(5,\)"):
        certify(problem, W[0])


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"bias": "free"}, "bias='free' is not treated for crammer_singer; the kinds are none, penalised"),
        ({"codes": [0, 1, 3]}, "codes must be 3 whole numbers from 0 to 2"),
        ({"codes": [0, 1]}, "codes must be 3 whole numbers from 0 to 2"),
        ({"n_classes": 1, "codes": [0, 0, 0]}, "a multiclass problem needs at least two classes, got 1"),
        ({"C": 0.0}, "C must be positive and finite, got 0.0"),
        ({"weights": [1.0, -1.0, 0.0]}, "sample weights must be 3 finite numbers, none negative"),
        ({"weights": [0.0, 0.0, 0.0]}, "every sample weight is zero: nothing to learn from"),
    ],
)
def test_problems_that_cannot_be(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        multiclass_problem(as_rows(np.eye(3)), **{"codes": [0, 1, 2], "n_classes": 3} | options)


@interpreted
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [0, 1, 4, 11])
def test_one_row_against_all_outputs_or_some(rng, layout, dtype, d):
    X = rng.integers(-3, 4, size=(5, d)).astype(dtype)
    rows = as_rows(layout(X))._replace(bias=0.5)
    full = np.column_stack((X, np.full(5, 0.5)))
    W, out = rng.normal(size=(d + 1, padded(6))), np.zeros(padded(6))
    which, amounts = np.array([4, 1, 5, 9], dtype=np.uint32), np.array([0.5, -2.0, 0.25, 7.0])
    for i in range(5):
        dot_each(rows, i, W, out)
        assert out == pytest.approx(full[i] @ W, abs=1e-12)
        for count in range(4):
            some = np.full(4, 9.0)
            dot_some(rows, i, W, which, count, some)
            assert some[:count] == pytest.approx((full[i] @ W)[which[:count]], abs=1e-12)
            assert (some[count:] == 9.0).all()
        wanted = W.copy()
        wanted[:, which[:3]] += np.outer(full[i], amounts[:3])
        add_some(rows, i, which, amounts, 3, W)
        assert wanted == pytest.approx(W, abs=1e-12)


@interpreted
def test_sums_a_hair_too_large_lose_no_more_than_that(problem, rng):
    """At the caps the others' coefficients come to C_i up to rounding, above as well as below."""
    n, k = problem.dual_shape
    rows, lost = np.arange(n), []
    for _ in range(50):
        given = -rng.dirichlet(np.ones(k - 1), n)
        given *= (problem.costs * (1.0 + 2.0**-52 * rng.integers(0, 3, n)))[:, None]
        beta = np.array([np.insert(line, own, -line.sum()) for line, own in zip(given, problem.codes, strict=True)])
        found = certify(problem, np.zeros(problem.weights_shape), BoxPoint(beta)).alpha
        assert (found[rows, problem.codes] <= problem.costs).all()
        lost.append(np.abs(found - beta).max())
    assert max(lost) <= 1e-14 * problem.costs.max()
