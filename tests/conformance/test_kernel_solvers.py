"""What every kernel solver promises: true bounds at every round, the optimum in the end, honest counts, invariances."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.kernel_problems import (
    CASES,
    CLASSES,
    KERNELS,
    LOCAL,
    build,
    dual_by_definition,
    optimum,
    primal_by_definition,
)
from conformance.kernel_running import ROUNDS, path, reach, settle
from conformance.problems import CLOUDS, SMALL, WEIGHTED, variants
from conformance.running import agree, at_zero
from slackwater.compiled import JIT
from slackwater.gram import gram
from slackwater.models import KernelModel
from slackwater.objective.kernels import Kernel
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


def pytest_generate_tests(metafunc):
    """Tests that ask for an ``any_case`` meet all that the registry knows; ``kernel_case`` is one with an optimum."""
    for name, cases in (("kernel_case", CASES), ("any_case", CASES + LOCAL), ("local_case", LOCAL)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, cases, ids=str)


@pytest.mark.parametrize("name", KERNELS)
def test_bounds_hold_at_every_round(kernel_case, name):
    problem = build(kernel_case, name)
    best, slack = optimum(problem), 1e-8 * at_zero(kernel_case.loss)
    found = path(kernel_case, problem, 12)
    for record in found.history:
        assert record.dual <= record.primal + slack
        assert record.dual <= best.primal + slack
        assert record.primal >= best.dual - slack
    model = found.model
    beta = np.zeros(problem.n_rows)
    beta[model.support] = model.coef[0]
    by_definition = primal_by_definition(problem, beta, model.intercept[0])
    assert found.certificate.primal == pytest.approx(by_definition, rel=1e-7, abs=1e-9)
    if found.alpha is not None:
        assert (found.alpha >= 0.0).all()
        assert (found.alpha <= kernel_case.loss.cap * problem.costs * (1.0 + 1e-12)).all()
        assert found.certificate.dual == pytest.approx(dual_by_definition(problem, found.alpha), rel=1e-7, abs=1e-9)
        if kernel_case.bias == "free":
            assert abs(found.alpha @ problem.labels) <= 1e-10 * max(found.alpha.sum(), 1e-300)


@pytest.mark.parametrize("name", KERNELS)
def test_the_optimum_is_the_reference_solvers(kernel_case, name):
    problem = build(kernel_case, name)
    best, found = optimum(problem), settle(kernel_case, problem).certificate
    gap = max(found.gap, 1e-8)
    assert best.primal - gap - 1e-8 <= found.dual <= best.primal + 1e-8
    assert best.dual - 1e-8 <= found.primal <= best.primal + gap + 1e-8


@pytest.mark.parametrize("name", KERNELS)
def test_local_gaps_close_and_are_of_the_last_model(local_case, name):
    problem = build(local_case, name)
    found, closed = path(local_case, problem, 6), settle(local_case, problem)
    for record in (*found.history, *closed.history):
        assert record.dual <= record.primal + 1e-9
        assert record.primal <= at_zero(local_case.loss) + 1e-9
    for way in (found, closed):
        assert way.certificate.local
        assert (way.certificate.primal, way.history[-1].gap) == (way.history[-1].primal, way.certificate.gap)


@pytest.mark.parametrize("case", variants(CLASSES), ids=str)
def test_other_settings_keep_the_bounds(case):
    problem = build(case, "weighted")
    best = optimum(problem)
    found = run(problem, case.new(), Limits(tol=reach(case) if case.cls.optimises else 1e-7, max_rounds=ROUNDS), rng=0)
    assert found.certificate.dual <= best.primal + 1e-8
    assert found.certificate.primal >= best.dual - 1e-8


@interpreted
def test_layouts_take_one_way(any_case):
    ways = [path(any_case, build(any_case, SMALL, stored=stored), 3) for stored in (np.asarray, sp.csr_array)]
    one, other = (way.history.columns() for way in ways)
    assert one["primal"] == pytest.approx(other["primal"], rel=1e-9)
    assert one["dual"] == pytest.approx(other["dual"], rel=1e-9, abs=1e-12)


def test_float32_kernels_come_to_the_same_optimum(kernel_case):
    found = path(kernel_case, build(kernel_case, "weighted", dtype=np.float32), 40).certificate
    best = optimum(build(kernel_case, "weighted"))
    assert found.dual <= best.primal * (1.0 + 1e-5)
    assert found.primal >= best.dual * (1.0 - 1e-5)


def test_a_small_cache_changes_nothing(any_case, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 6)
    full, small = build(any_case, CLOUDS), build(any_case, CLOUDS, room=1)
    assert (full.gram.capacity, small.gram.capacity) == (30, 6)
    assert agree(settle(any_case, full), settle(any_case, small))


def test_weights_equal_repetitions(any_case):
    times = np.arange(30) % 3 + 1
    weighted = settle(any_case, build(any_case, CLOUDS._replace(weights=times.astype(float))))
    repeated = settle(any_case, build(any_case, CLOUDS.take(np.repeat(np.arange(30), times))))
    assert agree(weighted, repeated)


def test_labels_turned_round_turn_the_model_round(any_case):
    found = settle(any_case, build(any_case, WEIGHTED))
    turned = settle(any_case, build(any_case, WEIGHTED._replace(labels=-WEIGHTED.labels)))
    assert agree(found, turned)


def test_orders_of_rows_do_not_matter(any_case):
    order = np.random.default_rng(3).permutation(30)
    assert agree(settle(any_case, build(any_case, WEIGHTED)), settle(any_case, build(any_case, WEIGHTED.take(order))))


def test_seeds_make_runs_again(any_case):
    one, other = (path(any_case, build(any_case, WEIGHTED), 5, seed=4) for _ in range(2))
    assert np.array_equal(one.model.coef, other.model.coef)
    assert one.certificate == other.certificate


def test_evaluations_are_those_of_the_kernel(any_case):
    """The counts against the calls of a kernel that counts itself."""
    calls = []

    def counting(A, B):
        calls.append(len(A) * len(B))
        return A @ B.T + 0.0

    problem = build(any_case, WEIGHTED, Kernel("callable", function=counting))
    calls.clear()
    case_run = path(any_case, problem, 4)
    assert problem.gram.evaluations == sum(calls)
    state_evaluations = case_run.history[-1].kernel_evaluations
    assert 0 < state_evaluations <= sum(calls)
    assert problem.gram.requests >= problem.gram.evaluations // problem.n_rows


def test_warm_starts_lead_to_the_same_optimum(any_case):
    problem = build(any_case, WEIGHTED)
    top = np.minimum(any_case.loss.cap * problem.costs, 2.0)
    found = settle(any_case, problem)
    for alpha in (np.zeros(30), optimum(problem).alpha, top):
        assert agree(found, settle(any_case, build(any_case, WEIGHTED), alpha=alpha))


def test_models_are_kernel_models_and_survive_pickling(any_case):
    found = path(any_case, build(any_case, WEIGHTED), 3)
    assert isinstance(found.model, KernelModel)
    again = pickle.loads(pickle.dumps(found.model))
    assert np.array_equal(again.decision_values(WEIGHTED.X), found.model.decision_values(WEIGHTED.X))


@pytest.mark.parametrize("kernel", [Kernel("sigmoid", gamma=0.7, coef0=-1.0)], ids=["sigmoid"])
def test_kernels_that_are_not_positive_definite_end_somewhere(any_case, kernel):
    if math.isinf(any_case.loss.cap):
        return  # the dual has no maximum
    found = run(build(any_case, CLOUDS, kernel), any_case.new(), Limits(tol=1e-3, max_rounds=40 if JIT else 3))
    assert np.isfinite(found.model.coef).all()
    assert math.isfinite(found.certificate.primal)
