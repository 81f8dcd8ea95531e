"""``path``: every point is the certified optimum of its C, reached in fewer epochs than a fit of its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import slackwater.estimators.linear_svc as linear_svc
from slackwater import LinearSVC, path
from slackwater.estimators.regularisation_path import LARGEST_C, SMALLEST_C
from slackwater.objective import linear_problem, parse_loss, primal_value
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes

COSTS = np.geomspace(1e-3, 10.0, 6)


def clouds(n=300, d=8, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(classes, d))[y], y


def primal(X, y, model, C, loss="hinge", weights=None):
    problem = linear_problem(as_rows(X), np.where(y == 1, 1.0, -1.0), parse_loss(loss), C, weights, "penalised")
    return primal_value(problem, model.weights(1.0))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "huber"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_point_is_the_optimum_of_its_cost(loss, weighted):
    X, y = clouds()
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float) if weighted else None
    points = path(X, y, COSTS, loss=loss, sample_weight=weights, tol=1e-6, random_state=0)
    np.testing.assert_allclose(points.Cs, COSTS)
    for k, C in enumerate(COSTS):
        (certificate,), (status,) = points.certificates[k], points.statuses[k]
        assert status.converged and certificate.relative_gap <= 1e-6
        value = primal(X, y, points.model(k), C, loss, weights)
        assert value == pytest.approx(certificate.primal, rel=1e-9)
        alone = LinearSVC(C=C, loss=loss, tol=1e-6, random_state=0).fit(X, y, sample_weight=weights)
        rounding = 1.0 + 1e-12
        assert alone.certificate_.dual <= value * rounding and certificate.dual <= alone.certificate_.primal * rounding


def test_a_path_needs_clearly_fewer_epochs_than_single_fits():
    X, y = clouds(n=3000, d=100)  # rounds of one epoch
    rng = np.random.default_rng(3)
    y = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
    costs = np.geomspace(1e-3, 1.0, 8)
    points = path(X, y, costs, tol=1e-3, random_state=0)
    alone = sum(LinearSVC(C=C, tol=1e-3, random_state=0).fit(X, y).n_iter_ for C in costs)
    assert alone >= 2 * points.epochs.sum()


def test_rows_are_converted_once(monkeypatch):
    X, y = clouds()
    calls = []
    monkeypatch.setattr(linear_svc, "packed", lambda rows: calls.append(rows) or rows)
    path(X, y, COSTS, tol=0.1)
    assert len(calls) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_more_classes_have_one_output_each(n_jobs):
    X, y = clouds(classes=3)
    points = path(X, np.array(["a", "b", "c"])[y], [1.0, 0.1], tol=1e-5, n_jobs=n_jobs, random_state=0)
    assert points.coefs.shape == (2, 3, 8) and points.intercepts.shape == (2, 3) and len(points) == 2
    assert [len(point) for point in points.certificates] == [3, 3]
    np.testing.assert_array_equal(points.Cs, [0.1, 1.0])
    alone = LinearSVC(C=1.0, tol=1e-5, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    assert np.mean(points.model(1).predict(X) == alone.predict(X)) > 0.98
    assert points.worst(1) == max(points.certificates[1], key=lambda c: c.relative_gap)


@pytest.mark.parametrize(
    "name", [n for n, cls in solver_classes("classification").items() if cls.optimises and "l2" in cls.penalties]
)
def test_every_solver_runs_along_a_path(name):
    X, y = clouds(n=100, d=3)
    loss = "hinge" if "hinge" in solver_classes()[name].losses else "squared_hinge"
    bias = "penalised" in solver_classes()[name].biases
    points = path(X, y, [0.01, 0.1], solver=name, loss=loss, fit_intercept=bias, tol=0.05, random_state=0)
    assert points.solver == name
    assert all(status.converged for point in points.statuses for status in point)


def test_sparse_and_dense_rows_have_the_same_path():
    X, y = clouds()
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = (path(form, y, [0.01, 0.1], tol=1e-9, random_state=0) for form in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.coefs, sparse.coefs, rtol=1e-3, atol=1e-4)


def test_the_same_seed_gives_the_same_path_and_threads_do_not_matter():
    X, y = clouds(classes=3)
    first, again = (path(X, y, COSTS, random_state=5, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(first.coefs, again.coefs)


def test_a_number_of_costs_is_spread_evenly():
    X, y = clouds(n=60)
    np.testing.assert_allclose(path(X, y, 3, tol=0.1).Cs, [SMALLEST_C, (SMALLEST_C * LARGEST_C) ** 0.5, LARGEST_C])


def test_the_answer_as_text_has_a_line_for_each_point():
    X, y = clouds(n=60)
    lines = str(path(X, y, [0.1, 0.2], tol=0.1)).splitlines()
    assert len(lines) == 2 and "C 0.1" in lines[0] and "epochs" in lines[1]


def test_limits_are_said_once():
    X, y = clouds(n=3000, d=100)
    with pytest.warns(
        ConvergenceWarning, match=r"path: \d of 2 fits ended early, the last with C=10: limit of 1 round"
    ):
        path(X, y, [1.0, 10.0], tol=1e-9, max_rounds=1)


def test_a_time_limit_is_that_of_the_whole_path():
    X, _ = clouds(n=3000, d=100)
    y = np.random.default_rng(0).integers(0, 2, len(X))  # nothing to learn: hard to fit
    with pytest.warns(ConvergenceWarning, match="time limit"):
        points = path(X, y, [1e2, 1e3, 1e4], tol=1e-12, max_time=0.3)
    assert points.seconds.sum() < 1.5 and np.isfinite(points.coefs).all()


@pytest.mark.parametrize(
    "Cs, words",
    [
        ([], "Cs is empty: a path needs at least one cost"),
        ([1.0, -2.0], "every C of Cs must be positive and finite, got -2"),
        ([0.0], "every C of Cs must be positive and finite, got 0"),
        ([np.nan], "every C of Cs must be positive and finite, got nan"),
        (0, "Cs must be costs or how many to try, at least 1; got 0"),
        (True, "Cs must be costs or how many to try"),
        ("many", "Cs must be costs or how many to try"),
        (0.5, "Cs must be one row of costs"),
        ([[1.0]], "Cs must be one row of costs"),
    ],
)
def test_wrong_costs(Cs, words):
    with pytest.raises(ValueError, match=words):
        path(*clouds(n=20), Cs)


def test_wrong_input():
    X, y = clouds(n=20)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        path(X, y[:-1], [1.0])
    with pytest.raises(ValueError, match="one class only"):
        path(X, np.zeros(20), [1.0])
    with pytest.raises(ValueError, match="tol must be"):
        path(X, y, [1.0], tol=-1.0)
    with pytest.raises(ValueError, match="solver='none' is not known"):
        path(X, y, [1.0], solver="none")
