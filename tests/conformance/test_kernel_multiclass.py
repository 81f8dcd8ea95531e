"""What every solver of all classes over a kernel promises: true bounds, the optimum, honest counts, invariances."""

import pickle
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.kernel_problems import whole
from conformance.problems import LAYOUTS
from conformance.running import ROUNDING
from conformance.test_multiclass import CLOUDS, EXACT, SMALL, TABLES, WEIGHTED, agree, feasible, settle
from conformance.test_multiclass import path as certified
from reference.multiclass_reference import dual_value, primal_value, solve_multiclass
from slackwater.compiled import JIT
from slackwater.gram import Gram, gram
from slackwater.models import KernelModel
from slackwater.objective import certify
from slackwater.objective.kernel_multiclass import kernel_multiclass_problem
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.registry import make_solver, solver_classes

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

CLASSES = solver_classes("kernel-multiclass")
kinds = pytest.mark.parametrize("name, bias", [(name, bias) for name, cls in CLASSES.items() for bias in cls.biases])
KERNELS = {table: Kernel("linear") if "zero" in table else Kernel("rbf", gamma=0.3) for table in TABLES}


def build(table, bias, kernel=None, *, stored=np.asarray, dtype=np.float64, room=2**30, C=0.7):
    X, codes, k, weights = TABLES[table] if isinstance(table, str) else table
    kernel = kernel or KERNELS[table if isinstance(table, str) else "clouds"]
    points = Points.of(as_rows(stored(X)), kernel, dtype, 1.0 if bias == "penalised" else 0.0)
    return kernel_multiclass_problem(Gram(points, room), codes, k, C, weights, bias)


def factor(problem):
    """Z with K = Z Z': the rows of a linear problem."""
    sizes, vectors = np.linalg.eigh(whole(problem))
    return vectors * np.sqrt(np.maximum(sizes, 0.0))


@cache
def reference(table, bias):
    problem = build(table, bias)
    return solve_multiclass(factor(problem), problem.codes, problem.n_classes, problem.costs)


def everywhere(problem, model):
    """The model's coefficients of all rows, a line for each class."""
    lines = np.zeros((problem.n_classes, problem.n_rows))
    lines[:, model.support] = model.coef
    return lines


@interpreted
@short_rounds
@kinds
@pytest.mark.parametrize("table", TABLES)
def test_bounds_hold_at_every_round(name, bias, table):
    problem, best = build(table, bias), reference(table, bias)
    trained = certified(problem, name, 12 if JIT else 2)
    for record in trained.history:
        assert record.dual <= min(record.primal, best.primal) + ROUNDING
        assert record.primal >= best.dual - ROUNDING
    Z = factor(problem)
    found = primal_value(Z, problem.codes, problem.costs, everywhere(problem, trained.model) @ Z)
    assert trained.certificate.primal == pytest.approx(found, rel=1e-7, abs=1e-9)
    if trained.alpha is not None:
        assert feasible(problem, trained.alpha)
        found = dual_value(Z, problem.codes, problem.costs, trained.alpha)
        assert trained.certificate.dual == pytest.approx(found, rel=1e-7, abs=1e-9)


@kinds
@pytest.mark.parametrize("table", TABLES)
def test_the_optimum_is_reached(name, bias, table):
    trained, best = settle(build(table, bias), name), reference(table, bias)
    assert trained.certificate.primal == pytest.approx(best.primal, rel=2 * EXACT, abs=1e-9)
    assert trained.certificate.dual == pytest.approx(best.dual, rel=2 * EXACT, abs=1e-9)


@kinds
def test_layouts_and_precisions_come_to_one_optimum(name, bias):
    ways = [settle(build(WEIGHTED, bias, stored=layout), name) for layout in LAYOUTS.values()]
    assert agree(*ways)
    short = certified(build(WEIGHTED, bias, stored=sp.csr_array, dtype=np.float32), name, 10).certificate
    best = reference("weighted", bias)
    assert short.dual <= best.primal * (1.0 + 1e-5) and short.primal >= best.dual * (1.0 - 1e-5)


@kinds
def test_a_small_cache_changes_nothing(name, bias, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 6)
    assert agree(settle(build(CLOUDS, bias), name), settle(build(CLOUDS, bias, room=1), name))


@kinds
def test_repeats_orders_and_names(name, bias):
    X, codes, k, _ = CLOUDS
    times, order, renamed = np.arange(24) % 3 + 1, np.random.default_rng(5).permutation(24), np.array([2, 0, 3, 1])
    weighted = settle(build((X, codes, k, times.astype(float)), bias), name)
    repeated = settle(build((np.repeat(X, times, axis=0), np.repeat(codes, times), k, None), bias), name)
    turned = settle(build((X[order], renamed[codes[order]], k, times[order].astype(float)), bias), name)
    assert agree(weighted, repeated, turned)


@kinds
@pytest.mark.parametrize("start", ["zero", "optimum", "anything"])
def test_warm_starts_lead_to_the_same_optimum(name, bias, start):
    problem, best = build("weighted", bias), reference("weighted", bias)
    anything = np.random.default_rng(0).normal(scale=10.0, size=problem.dual_shape)
    alpha = {"zero": np.zeros(problem.dual_shape), "optimum": best.beta, "anything": anything}[start]
    given = alpha.copy()
    assert agree(settle(build("weighted", bias), name), settle(problem, name, alpha=alpha))
    assert np.array_equal(alpha, given)


@interpreted
@short_rounds
@kinds
def test_seeds_repeat_runs_and_models_are_kernel_models(name, bias):
    one, other = (certified(build(WEIGHTED if JIT else SMALL, bias), name, 3, seed=4) for _ in range(2))
    assert one.certificate == other.certificate
    assert isinstance(one.model, KernelModel) and one.model.n_outputs == (4 if JIT else 3)
    again = pickle.loads(pickle.dumps(one.model))
    assert np.array_equal(again.coef, other.model.coef)


@short_rounds
@kinds
def test_counts_are_those_of_the_matrix_and_looking_does_not_touch(name, bias):
    problem, solver = build(WEIGHTED, bias), make_solver(name)
    quiet, watched = (solver.start(problem, np.random.default_rng(1)) for _ in range(2))
    for _ in range(3):
        certify(problem, solver.model(problem, watched).weights(), solver.dual_point(problem, watched))
        solver.advance(problem, watched)
        solver.advance(problem, quiet)
        assert solver.estimate(problem, watched) == solver.estimate(problem, watched) >= 0.0
    assert np.array_equal(*(solver.model(problem, state).weights() for state in (quiet, watched)))
    done = [state.counters for state in (quiet, watched)]
    assert sum(count.kernel_evaluations for count in done) <= problem.gram.evaluations
    assert all(count.row_requests >= count.updates > 0 for count in done)


@kinds
def test_a_kernel_that_is_not_positive_definite_ends_somewhere(name, bias):
    trained = certified(build(CLOUDS, bias, Kernel("sigmoid", gamma=0.7, coef0=-1.0)), name, 10)
    assert np.isfinite(trained.model.coef).all() and np.isfinite(trained.certificate.primal)


@kinds
def test_without_a_point_the_gradient_bounds(name, bias):
    problem = build(WEIGHTED, bias)
    trained = certified(problem, name, 3)
    weights = np.column_stack((everywhere(problem, trained.model), np.zeros(4)))
    found = certify(problem, weights)
    assert found.certificate.rule == "C6" and feasible(problem, found.alpha)
    assert found.certificate.dual <= trained.certificate.primal
    assert found.certificate.primal == pytest.approx(trained.certificate.primal, rel=1e-9)
