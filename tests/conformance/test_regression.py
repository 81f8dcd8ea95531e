"""What every solver of regression promises: true bounds, the optimum of others, and what must not change it."""

import pickle

import numpy as np
import pytest
from sklearn.svm import SVR, LinearSVR

from conformance.problems import STORAGES, in_turn
from conformance.regressions import (
    CASES,
    PLAIN_TABLE,
    SMALL,
    TABLES,
    VARIANTS,
    WEIGHTED,
    WIDE,
    build,
    path,
    primal_by_definition,
    reference,
    settle,
)
from conformance.running import ROUNDING, agree, close
from conformance.running import weights_on_the_way as way
from reference.svr_reference import dual_of
from slackwater.compiled import JIT
from slackwater.models import LinearModel
from slackwater.objective import TUBE_LOSSES, certify
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.registry import make_solver, solver_classes
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

# --------------------------------------------------------------------------------------------------- certificates

STORED = [("weighted", storage) for storage in STORAGES] + in_turn(name for name in TABLES if name != "weighted")


@interpreted
@short_rounds
@pytest.mark.parametrize("name, storage", STORED, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bounds_hold_at_every_round(case, name, storage):
    table, problem = TABLES[name], build(case, TABLES[name], storage)
    _, best = reference(case.loss, case.epsilon, case.bias, name)
    trained = path(case, problem, 20 if JIT else 3)
    slack = ROUNDING * max(problem.at_zero, 1e-3)
    gap = np.inf
    for record in trained.history:
        assert record.dual <= record.primal + slack
        assert record.dual <= best.primal + slack
        assert record.primal >= best.dual - slack
        assert record.gap <= gap
        gap = record.gap
    found = trained.certificate
    assert found.primal == close(primal_by_definition(problem, table, trained.model))
    if trained.alpha is not None:
        assert (np.abs(trained.alpha) <= problem.loss.cap * problem.costs).all()
        scale = 1.0 if case.bias == "penalised" else 0.0
        assert found.dual == close(
            dual_of(table.X, table.targets, problem.costs, problem.loss, trained.alpha, scale), 1e-8
        )
        if case.bias == "free":
            assert abs(trained.alpha.sum()) <= 1e-12 * np.abs(trained.alpha).sum()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_optimum_is_the_reference_solvers(case, name):
    problem, best = reference(case.loss, case.epsilon, case.bias, name)
    found = settle(case, problem).certificate
    assert best.primal - best.dual <= ROUNDING * max(1.0, problem.at_zero)
    assert found.primal == pytest.approx(best.primal, rel=1e-6, abs=1e-9 * max(1.0, problem.at_zero))
    assert found.dual <= best.primal + ROUNDING * max(1.0, problem.at_zero)


@pytest.mark.parametrize("case", VARIANTS, ids=str)
def test_other_settings_find_the_same_optimum(case):
    problem, best = reference(case.loss, case.epsilon, case.bias, "weighted")
    assert settle(case, problem).certificate.primal == pytest.approx(best.primal, rel=1e-6)


def peers_model(case, problem, table):
    """LIBLINEAR's or LIBSVM's answer through scikit-learn."""
    if case.bias == "free":
        peer = SVR(kernel="linear", epsilon=case.epsilon, C=0.7, tol=1e-10)
    else:
        peer = LinearSVR(
            epsilon=case.epsilon, C=0.7, loss=case.loss, fit_intercept=case.bias == "penalised", tol=1e-8,
            max_iter=1_000_000, random_state=0, dual=True,
        )  # fmt: skip
    peer.fit(table.X, table.targets, sample_weight=table.weights)
    return LinearModel(peer.coef_.reshape(1, -1), np.broadcast_to(peer.intercept_, 1))


PEERED = [case for case in CASES if case.bias != "free" or case.loss == "epsilon_insensitive"]


@pytest.mark.parametrize("case", PEERED, ids=str)
def test_the_optimum_is_that_of_other_libraries(case):
    problem = build(case, WEIGHTED)
    theirs = primal_by_definition(problem, WEIGHTED, peers_model(case, problem, WEIGHTED))
    assert settle(case, problem).certificate.primal == pytest.approx(theirs, rel=1e-6)


# ------------------------------------------------------------------------------------------------- special cases


@pytest.mark.parametrize("case, storage", in_turn(WIDE), ids=str)
def test_a_tube_around_all_targets_needs_no_weights(case, storage):
    trained = settle(case, build(case, WEIGHTED, storage, epsilon=2.0 * np.abs(WEIGHTED.targets).max()))
    assert (trained.certificate.primal, trained.certificate.dual) == (0.0, 0.0)
    assert (trained.model.coef == 0.0).all()
    assert trained.rounds == 1


@pytest.mark.parametrize("case, storage", in_turn(CASES), ids=str)
def test_a_free_bias_meets_constant_targets_alone(case, storage):
    trained = settle(case, build(case, TABLES["constant targets"], storage))
    if case.bias == "free":
        assert trained.certificate.primal == pytest.approx(0.0, abs=1e-15)
        assert trained.model.intercept[0] == pytest.approx(-1.5, abs=case.epsilon + 1e-12)
    else:
        assert 0.0 < trained.certificate.dual < build(case, TABLES["constant targets"]).at_zero


@interpreted
@pytest.mark.parametrize("C", [0.02, 0.7, 50.0])
@pytest.mark.parametrize("case", [case for case in CASES if case.bias == "none"], ids=str)
def test_one_row_has_a_closed_form(case, C):
    table = TABLES["one row"]
    problem = build(case, table, C=C)
    (x,), (y,), loss = table.X, table.targets, problem.loss
    beta = np.sign(y) * min((abs(y) - loss.epsilon) / (x @ x + loss.width / C), loss.cap * C)
    trained = path(case, problem, 2)
    assert trained.model.coef[0] == pytest.approx(beta * x, rel=1e-12)
    assert trained.certificate.gap == pytest.approx(0.0, abs=1e-12)


# ----------------------------------------------------------------------------------------------------- invariances


@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_weights_equal_repetitions(case, stored):
    times = np.arange(30) % 3 + 1
    weighted = settle(case, build(case, PLAIN_TABLE._replace(weights=times.astype(float)), stored))
    repeated = settle(case, build(case, PLAIN_TABLE.take(np.repeat(np.arange(30), times)), stored))
    assert agree(weighted, repeated)


@short_rounds
@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_weights_of_zero_equal_removal(case, stored):
    weights = np.where(np.arange(30) % 4 == 1, 0.0, WEIGHTED.weights)
    marked = build(case, WEIGHTED._replace(weights=weights), stored)
    removed = build(case, WEIGHTED._replace(weights=weights).take(weights > 0.0), stored)
    assert np.array_equal(way(case, marked, 4), way(case, removed, 4))


@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_the_order_of_rows_does_not_matter(case, stored):
    orders = [np.arange(30), np.arange(30)[::-1], np.random.default_rng(5).permutation(30)]
    assert agree(*(settle(case, build(case, WEIGHTED.take(order), stored)) for order in orders))


@interpreted
@short_rounds
@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_turning_all_targets_turns_the_weights(case, stored):
    there, back = (
        way(case, build(case, SMALL._replace(targets=t), stored), 4) for t in (SMALL.targets, -SMALL.targets)
    )
    assert np.abs(there).max() > 0.0
    assert np.array_equal(there, -back)


@pytest.mark.parametrize("case", [case for case in CASES if case.bias == "free"], ids=str)
def test_a_free_bias_takes_up_any_shift(case):
    here, there = (
        settle(case, build(case, WEIGHTED._replace(targets=WEIGHTED.targets + shift))) for shift in (0.0, 64.0)
    )
    assert agree(here, there)


@short_rounds
@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_targets_of_any_size_take_the_same_path(case, size):
    """y -> s y, eps -> s eps: w -> s w, where C -> s C for the loss of the first degree; digits stay."""
    C = 0.75 * (size if case.loss == "epsilon_insensitive" else 1.0)
    here = path(case, build(case, WEIGHTED, C=0.75), 6)
    there = path(
        case, build(case, WEIGHTED._replace(targets=size * WEIGHTED.targets), epsilon=size * case.epsilon, C=C), 6
    )
    weights = [trained.model.weights(0.0 if case.bias == "none" else 1.0) for trained in (here, there)]
    assert weights[1] / size == close(weights[0])
    degree = size if case.loss == "epsilon_insensitive" else size**2
    for one, other in zip(here.history, there.history, strict=True):
        assert (other.primal / degree, other.dual / degree) == pytest.approx(
            (one.primal, one.dual), rel=1e-9, abs=1e-12
        )
        assert one.inner_products == other.inner_products


@interpreted
@short_rounds
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layouts_and_precisions_take_one_way(case):
    ways = [way(case, build(case, WEIGHTED if JIT else SMALL, storage), 5) for storage in STORAGES]
    assert np.abs(ways[0]).max() > 0.0
    for other in ways[1:]:
        assert other == close(ways[0])


# ------------------------------------------------------------------------------------------------- the contract


@interpreted
@short_rounds
@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_a_seed_repeats_its_run_bit_for_bit(case, stored):
    problem = build(case, SMALL, stored)
    ways = [way(case, problem, 4, seed) for seed in (3, 3, 4)]
    assert np.array_equal(ways[0], ways[1])
    assert not np.array_equal(ways[0], ways[2])


@short_rounds
@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_a_state_goes_on_where_it_was_pickled(case, stored):
    problem, solver = build(case, WEIGHTED, stored), case.new()
    state = solver.start(problem, np.random.default_rng(2))
    for done in range(6):
        if done in (0, 3):
            state, solver = pickle.loads(pickle.dumps((state, solver)))
        solver.advance(problem, state)
    assert np.array_equal(solver.model(problem, state).weights(problem.rows.bias), way(case, problem, 6, 2)[-1])


@pytest.mark.parametrize("start", ["zero", "optimum", "top of the box", "outside the box"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_warm_starts_lead_to_the_same_optimum(case, start):
    problem, best = reference(case.loss, case.epsilon, case.bias, "weighted")
    alpha = {
        "zero": np.zeros(30),
        "optimum": best.alpha,
        "top of the box": np.minimum(problem.loss.cap * problem.costs, 2.0),
        "outside the box": np.random.default_rng(0).normal(scale=10.0, size=30),
    }[start]
    given = alpha.copy()
    assert settle(case, problem, alpha=alpha).certificate.primal == pytest.approx(best.primal, rel=1e-6)
    assert np.array_equal(alpha, given)


@short_rounds
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_warm_start_at_the_optimum_is_worth_something(case):
    problem, best = reference(case.loss, case.epsilon, case.bias, "weighted")
    limits = Limits(tol=0.0, max_rounds=1, certify_every=1)
    cold, warm = (run(problem, case.new(), limits, rng=0, alpha=a).certificate for a in (None, best.alpha))
    assert warm.gap < 0.5 * cold.gap


@short_rounds
@pytest.mark.parametrize("case, stored", in_turn(CASES), ids=str)
def test_looking_does_not_touch(case, stored):
    problem, solver = build(case, WEIGHTED, stored), case.new()
    state = solver.start(problem, np.random.default_rng(1))
    for _ in range(5):
        weights = solver.model(problem, state).weights(problem.rows.bias)
        certify(problem, weights, solver.dual_point(problem, state))
        solver.advance(problem, state)
        assert solver.estimate(problem, state) == solver.estimate(problem, state) >= 0.0
    end = solver.model(problem, state).weights(problem.rows.bias)
    assert np.array_equal(end, way(case, problem, 5, 1)[-1])


@pytest.mark.parametrize("name", solver_classes("regression"))
def test_other_tasks_and_losses_are_refused(name):
    cls = solver_classes("regression")[name]
    assert set(cls.losses) <= set(TUBE_LOSSES)
    problem = build(CASES[0], SMALL)
    with pytest.raises(UnsupportedError, match=f"solver 'dcd' does not treat task 'regression'; .* {name}"):
        run(problem, make_solver("dcd"))
