"""The problem: costs, lambda, the constant feature, rows of weight zero, and what is refused."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from problems import dense, optimum, random_problem, random_table
from slackwater.objective import GradientPoint, hinge, linear_problem, lower_bound, primal_value, squared_hinge
from slackwater.rows import as_rows

pytestmark = pytest.mark.interpreted


@pytest.fixture
def data(rng):
    X, labels = random_table(rng)
    return as_rows(X), labels


def test_lambda_and_costs(data):
    rows, labels = data
    problem = linear_problem(rows, labels, hinge(), C=0.5)
    assert problem.costs.tolist() == [0.5] * 24
    assert problem.regularisation == pytest.approx(1.0 / (24 * 0.5), rel=1e-15)
    assert problem.shares == pytest.approx(np.ones(24), rel=1e-14)
    assert (problem.n_rows, problem.n_weights) == (24, 5)
    assert primal_value(problem, np.zeros(5)) == pytest.approx(1.0, rel=1e-14)


def test_weights_scale_the_costs(data, rng):
    rows, labels = data
    weights = rng.uniform(0.5, 2.0, 24)
    problem = linear_problem(rows, labels, hinge(), C=3.0, weights=weights)
    assert problem.costs == pytest.approx(3.0 * weights, rel=1e-15)
    assert problem.regularisation == pytest.approx(1.0 / (3.0 * weights.sum()), rel=1e-14)
    assert problem.shares.mean() == pytest.approx(1.0, rel=1e-14)
    assert problem.shares / weights == pytest.approx(np.full(24, 24.0 / weights.sum()), rel=1e-14)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_of_weight_zero_are_left_out(layout, rng):
    X, labels = random_table(rng)
    weights = np.where(np.arange(24) % 4 == 0, 0.0, 1.5)
    kept = weights > 0
    problem = linear_problem(as_rows(layout(X)), labels, squared_hinge(), weights=weights, bias="penalised")
    assert problem.n_rows == kept.sum() == len(problem.labels) == len(problem.costs)
    assert (dense(problem)[:, :-1] == X[kept]).all()
    assert (problem.labels == labels[kept]).all()
    alone = linear_problem(as_rows(layout(X[kept])), labels[kept], squared_hinge(), C=1.5, bias="penalised")
    assert optimum(problem).primal == pytest.approx(optimum(alone).primal, rel=1e-12)


def test_weights_equal_repetitions(rng):
    X, labels = random_table(rng, n=12)
    times = np.arange(12) % 3 + 1
    weighted = linear_problem(as_rows(X), labels, hinge(), weights=times)
    repeated = linear_problem(as_rows(np.repeat(X, times, axis=0)), np.repeat(labels, times), hinge())
    assert weighted.regularisation == pytest.approx(repeated.regularisation, rel=1e-15)
    w = rng.normal(size=5)
    assert primal_value(weighted, w) == pytest.approx(primal_value(repeated, w), rel=1e-13)
    assert lower_bound(weighted, GradientPoint(w)) == pytest.approx(lower_bound(repeated, GradientPoint(w)), rel=1e-11)


def test_the_kinds_of_bias(data):
    rows, labels = data
    w = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    none = linear_problem(rows._replace(bias=7.0), labels, hinge(), scale=3.0)
    penalised = linear_problem(rows, labels, hinge(), bias="penalised", scale=3.0)
    free = linear_problem(rows, labels, hinge(), bias="free", scale=3.0)
    assert (none.rows.bias, penalised.rows.bias, free.rows.bias) == (0.0, 3.0, 3.0)
    assert penalised.squared_norm(w) == 55.0
    assert free.squared_norm(w) == 30.0
    assert penalised.rows.values is rows.values
    assert linear_problem(rows, labels, hinge(), bias="penalised").rows.bias == 1.0


def test_the_scale_of_a_free_bias_changes_nothing():
    one, other = (random_problem(2, hinge(), "free", scale=scale) for scale in (1.0, 50.0))
    assert optimum(one).primal == pytest.approx(optimum(other).primal, rel=1e-9)
    default = linear_problem(one.rows, one.labels, hinge(), C=0.7, bias="free")
    assert optimum(default).primal == pytest.approx(optimum(one).primal, rel=1e-9)
    assert 0.0 < default.rows.bias < math.inf


def test_the_scale_of_a_penalised_bias_sets_its_price():
    """The penalty is b^2 / (2 scale^2): a large scale comes near a free bias, a small one near none."""
    free, none = optimum(random_problem(2, hinge(), "free")), optimum(random_problem(2, hinge()))
    values = [optimum(random_problem(2, hinge(), "penalised", scale=s)).primal for s in (1e-3, 0.3, 3.0, 1e3)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(none.primal, rel=1e-5)
    assert values[-1] == pytest.approx(free.primal, rel=1e-5)
    assert none.primal > free.primal * 1.0001


@pytest.mark.parametrize("C", [0.0, -1.0, math.nan, math.inf])
def test_bad_costs_are_refused(data, C):
    with pytest.raises(ValueError, match=f"C must be positive and finite, got {C}"):
        linear_problem(*data, hinge(), C=C)


@pytest.mark.parametrize("labels", [np.ones(23), np.zeros(24), np.full(24, 2.0), np.full(24, np.nan), np.ones((24, 1))])
def test_bad_labels_are_refused(data, labels):
    with pytest.raises(ValueError, match=r"labels must be 24 numbers, each -1 or \+1"):
        linear_problem(data[0], labels, hinge())


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf])
def test_bad_weights_are_refused(data, number):
    weights = np.ones(24)
    weights[5] = number
    with pytest.raises(ValueError, match="sample weights must be 24 finite numbers, none negative"):
        linear_problem(*data, hinge(), weights=weights)
    with pytest.raises(ValueError, match="sample weights must be 24 finite numbers"):
        linear_problem(*data, hinge(), weights=np.ones(7))


def test_weights_that_are_all_zero_are_refused(data):
    with pytest.raises(ValueError, match="every sample weight is zero"):
        linear_problem(*data, hinge(), weights=np.zeros(24))


def test_unknown_biases_are_refused(data):
    with pytest.raises(ValueError, match="bias='regularised' is not known; the kinds are none, penalised, free"):
        linear_problem(*data, hinge(), bias="regularised")


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("bias", ["penalised", "free"])
def test_bad_scales_are_refused(data, bias, scale):
    with pytest.raises(ValueError, match=f"constant feature of a bias must be positive and finite, got {scale}"):
        linear_problem(*data, hinge(), bias=bias, scale=scale)


def test_golden_shape_of_one_example():
    problem = linear_problem(as_rows(np.ones((1, 1))), [1], hinge(), C=2.0)
    assert problem.labels.dtype == np.float64
    assert problem.regularisation == 0.5
