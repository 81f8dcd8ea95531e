"""What every solver of the multiclass problem promises: bounds, storages, invariances, odd tables, starts, seeds."""

import pickle
from functools import cache

import numpy as np
import pytest

from conformance.problems import LAYOUTS, PLAIN, STORAGES, Storage, in_turn
from conformance.running import ROUNDING, close, way_of
from problems import dense
from reference.multiclass_reference import dual_value, primal_value, solve_multiclass
from slackwater.compiled import JIT
from slackwater.objective import certify, multiclass_problem
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.registry import make_solver, solver_classes
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

CLASSES = solver_classes("multiclass")
KINDS = [(name, bias) for name, cls in CLASSES.items() for bias in cls.biases]
kinds = pytest.mark.parametrize("name, bias", KINDS)
EXACT = 1e-7

# ------------------------------------------------------------------------------------------------------ the tables


def clouds(n, d, k, density=0.7):
    rng = np.random.default_rng(n + d + k)
    codes = rng.permutation(np.arange(n) % k)
    X = rng.normal(size=(n, d)) + rng.normal(size=(k, d))[codes]
    X[rng.random(X.shape) > density] = 0.0
    return X.astype(np.float32).astype(np.float64), codes, k, None


def changed(table, change):
    X, codes, k, weights = table
    X, codes = X.copy(), codes.copy()
    change(X, codes)
    return X, codes, k, weights


def zero_rows(X, codes):
    X[[0, 4, 9]] = 0.0


def duplicates(X, codes):
    X[10:20], codes[10:20] = X[:10], codes[:10]


def contradictions(X, codes):
    X[10:20] = X[:10]


def one_row_of_a_class(X, codes):
    codes[codes == 2] = 1
    codes[5] = 2


def nothing_but_zeros(X, codes):
    X[:] = 0.0


CLOUDS = clouds(24, 5, 4)
SMALL = clouds(9, 3, 3)
WEIGHTED = (*CLOUDS[:3], np.random.default_rng(1).uniform(0.2, 3.0, 24))
TABLES = {
    "clouds": CLOUDS,
    "weighted": WEIGHTED,
    "two classes": clouds(20, 3, 2),
    "more classes than a block": clouds(20, 6, 9),
    "as many rows as classes": clouds(5, 4, 5),
    "more columns than rows": clouds(8, 40, 3, density=0.3),
    "zero rows": changed(WEIGHTED, zero_rows),
    "duplicates": changed(CLOUDS, duplicates),
    "contradictions": changed(CLOUDS, contradictions),
    "a class with one row": changed(CLOUDS, one_row_of_a_class),
    "a class without rows": (*CLOUDS[:2], 5, None),
    "nothing but zeros": changed(CLOUDS, nothing_but_zeros),
    "one row": (np.array([[0.5, -0.25]]), np.array([1]), 3, None),
    "one column": clouds(15, 1, 3),
    "no columns": (np.zeros((4, 0)), np.array([0, 1, 2, 1]), 3, None),
}


def build(table, bias, storage=PLAIN, **options):
    X, codes, k, weights = table
    options = {"C": 0.7, "weights": weights, "bias": bias, "scale": 1.0} | options
    return multiclass_problem(as_rows(storage(X)), codes, k, **options)


@cache
def reference(table, bias):
    problem = build(TABLES[table], bias)
    return solve_multiclass(dense(problem), problem.codes, problem.n_classes, problem.costs)


# ----------------------------------------------------------------------------------------------------- the running


def settle(problem, name, seed=0, alpha=None, rounds=100):
    found = run(problem, make_solver(name), Limits(tol=EXACT, max_rounds=rounds), rng=seed, alpha=alpha)
    assert found.certificate.relative_gap <= EXACT, found.status
    return found


def path(problem, name, rounds, seed=0):
    return run(problem, make_solver(name), Limits(tol=0.0, max_rounds=rounds, certify_every=1), rng=seed)


def way(problem, name, rounds, seed=0):
    """The weights after every round."""
    return way_of(make_solver(name), problem, rounds, seed)


def agree(*runs):
    highest = max(found.certificate.dual for found in runs)
    lowest = min(found.certificate.primal for found in runs)
    return highest <= lowest + ROUNDING


def feasible(problem, beta):
    """Up to the rounding of the sums."""
    others = beta.copy()
    others[np.arange(problem.n_rows), problem.codes] = 0.0
    own = beta[np.arange(problem.n_rows), problem.codes]
    sums = np.abs(beta.sum(axis=1)) <= 1e-14 * problem.costs
    return (others <= 0.0).all() and (own <= problem.costs).all() and (own >= 0.0).all() and sums.all()


# ------------------------------------------------------------------------------------------------------- the bounds

STORED = [("weighted", storage) for storage in STORAGES]
STORED += in_turn(table for table in TABLES if table != "weighted")


@interpreted
@short_rounds
@kinds
@pytest.mark.parametrize("table, storage", STORED, ids=str)
def test_bounds_hold_at_every_round(name, bias, table, storage):
    problem = build(TABLES[table], bias, storage)
    trained = path(problem, name, 20 if JIT else 3)
    best = reference(table, bias)
    gap = np.inf
    for record in trained.history:
        assert record.dual <= min(record.primal, best.primal) + ROUNDING
        assert record.primal >= best.dual - ROUNDING
        assert record.gap <= gap
        gap = record.gap
    assert 0.0 <= trained.certificate.dual <= trained.certificate.primal + ROUNDING <= 1.0 + 2 * ROUNDING
    X, weights = dense(problem), trained.model.weights(problem.rows.bias)
    found = primal_value(X, problem.codes, problem.costs, weights)
    assert trained.certificate.primal == pytest.approx(found, rel=ROUNDING)
    if trained.alpha is not None:
        assert feasible(problem, trained.alpha)
        found = dual_value(X, problem.codes, problem.costs, trained.alpha)
        assert trained.certificate.dual == pytest.approx(found, rel=ROUNDING, abs=ROUNDING)


@kinds
@pytest.mark.parametrize("table", TABLES)
def test_the_optimum_is_reached(name, bias, table):
    trained, best = settle(build(TABLES[table], bias), name), reference(table, bias)
    assert best.primal - best.dual <= 1e-9
    assert trained.certificate.primal == pytest.approx(best.primal, rel=2 * EXACT)
    assert trained.certificate.dual == pytest.approx(best.dual, rel=2 * EXACT)


# ------------------------------------------------------------------------------------------ storages, invariances


@interpreted
@short_rounds
@kinds
def test_layouts_and_precisions_take_one_way(name, bias):
    ways = [way(build(WEIGHTED if JIT else SMALL, bias, storage), name, 4 if JIT else 2) for storage in STORAGES]
    assert np.abs(ways[0]).max() > 0.0
    for other in ways[1:]:
        assert other == close(ways[0])


@kinds
def test_weights_are_repeats(name, bias, storage):
    X, codes, k, _ = CLOUDS
    times = np.arange(24) % 4
    weighted = build((X, codes, k, times.astype(float)), bias, storage)
    repeated = build((np.repeat(X, times, axis=0), np.repeat(codes, times), k, None), bias, storage)
    assert weighted.n_rows == np.count_nonzero(times)
    assert agree(settle(weighted, name), settle(repeated, name))


@kinds
def test_the_order_of_rows_does_not_matter(name, bias):
    X, codes, k, weights = WEIGHTED
    orders = np.arange(24), np.arange(24)[::-1], np.random.default_rng(5).permutation(24)
    assert agree(*(settle(build((X[o], codes[o], k, weights[o]), bias), name) for o in orders))


@kinds
def test_the_names_of_classes_do_not_matter(name, bias, storage):
    X, codes, k, weights = WEIGHTED
    renamed = np.array([2, 0, 3, 1])
    here = settle(build(WEIGHTED, bias, storage), name)
    there = settle(build((X, renamed[codes], k, weights), bias, storage), name)
    assert agree(here, there)
    lines = there.model.weights(1.0)[renamed]
    assert lines == pytest.approx(here.model.weights(1.0), abs=2e-3 * np.abs(lines).max())


@short_rounds
@kinds
@pytest.mark.parametrize("size", [2.0**-27, 2.0**27])
def test_rows_of_any_size_with_C_to_match_take_the_same_path(name, bias, size):
    X, *rest = CLOUDS
    here = path(build(CLOUDS, bias), name, 6)
    there = path(build((X * size, *rest), bias, C=0.7 / size**2, scale=size), name, 6)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.primal, one.dual) == pytest.approx((other.primal, other.dual), rel=1e-9)


@short_rounds
@kinds
@pytest.mark.parametrize("size", [1e-160, 1e-8, 1e4, 1e8])
def test_rows_of_any_size_have_valid_bounds(name, bias, size):
    X, *rest = CLOUDS
    trained = path(build((X * size, *rest), bias), name, 8)
    for record in trained.history:
        assert np.isfinite([record.primal, record.dual]).all()
        assert record.dual <= record.primal + ROUNDING
    assert np.isfinite(trained.model.coef).all()


# ------------------------------------------------------------------------------------------ round by round, starts


@interpreted
@short_rounds
@kinds
def test_counters_grow_and_looking_does_not_touch(name, bias, storage):
    problem, solver = build(SMALL, bias, storage), make_solver(name)
    quiet, watched = (solver.start(problem, np.random.default_rng(1)) for _ in range(2))
    before = (0, 0, 0)
    for _ in range(3):
        weights = solver.model(problem, watched).weights(problem.rows.bias)
        certify(problem, weights, solver.dual_point(problem, watched))
        solver.advance(problem, watched)
        solver.advance(problem, quiet)
        assert solver.estimate(problem, watched) == solver.estimate(problem, watched) >= 0.0
        done = watched.counters
        after = done.epochs, done.updates, done.inner_products
        assert all(isinstance(count, int | np.integer) for count in after)
        assert all(a >= b for a, b in zip(after, before, strict=True)) and after[0] > before[0]
        before = after
    ends = [solver.model(problem, state).weights(problem.rows.bias) for state in (quiet, watched)]
    assert np.array_equal(*ends)


@kinds
@pytest.mark.parametrize("start", ["zero", "optimum", "corner", "anything"])
def test_warm_starts_lead_to_the_same_optimum(name, bias, start):
    problem, best = build(WEIGHTED, bias), reference("weighted", bias)
    n, k = problem.dual_shape
    corner = -np.eye(k)[(problem.codes + 1) % k] * problem.costs[:, None]
    corner[np.arange(n), problem.codes] = problem.costs
    anything = np.random.default_rng(0).normal(scale=10.0, size=(n, k))
    alpha = {"zero": np.zeros((n, k)), "optimum": best.beta, "corner": corner, "anything": anything}[start]
    given = alpha.copy()
    warm = settle(problem, name, alpha=alpha)
    assert np.array_equal(alpha, given)
    assert agree(settle(problem, name), warm)


@short_rounds
@kinds
def test_a_warm_start_at_the_optimum_is_worth_something(name, bias):
    problem, best = build(WEIGHTED, bias), reference("weighted", bias)
    once = Limits(tol=0.0, max_rounds=1, certify_every=1)
    cold, warm = (run(problem, make_solver(name), once, rng=0, alpha=a).certificate for a in (None, best.beta))
    assert warm.gap < 0.1 * cold.gap


def facts(found):
    numbers = [(r.round, r.epochs, r.primal, r.dual, r.updates, r.inner_products) for r in found.history]
    return found.model.coef.tobytes(), found.certificate, str(found.status), found.alpha.tobytes(), numbers


@interpreted
@short_rounds
@kinds
def test_a_seed_repeats_its_run_bit_for_bit(name, bias, storage):
    problem = build(WEIGHTED if JIT else SMALL, bias, storage)
    first, second, other = (facts(path(problem, name, 3, seed)) for seed in (3, 3, 4))
    assert first == second != other


@short_rounds
@kinds
def test_a_state_goes_on_where_it_was_pickled(name, bias, storage):
    problem, solver = build(WEIGHTED, bias, storage), make_solver(name)
    state = solver.start(problem, np.random.default_rng(2))
    for done in range(6):
        if done in (0, 3):
            state, solver = pickle.loads(pickle.dumps((state, solver)))
        solver.advance(problem, state)
    here = solver.model(problem, state).weights(problem.rows.bias)
    assert np.array_equal(here, way(problem, name, 6, seed=2)[-1])


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("name", CLASSES)
def test_abilities(name):
    cls = CLASSES[name]
    assert cls.task == "multiclass" and cls.losses == ("hinge",) and set(cls.biases) <= {"none", "penalised"}
    binary = solver_classes("classification")["dcd"]()
    with pytest.raises(UnsupportedError, match=rf"'dcd' does not treat task 'multiclass'; solvers that can: .*{name}"):
        run(build(SMALL, "none"), binary)
    assert set(LAYOUTS) == {"dense", "csr"} and Storage("csr", "float32") in STORAGES
