"""The seed decides everything: runs repeat bit for bit, and what is pickled goes on as if nothing had been."""

import pickle

import numpy as np
import pytest

from conformance.problems import CLOUDS, SMALL, WEIGHTED, build
from conformance.running import agree, path, settle, weights_on_the_way
from slackwater.compiled import JIT

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")


def facts(trained):
    """What a run came to, without the clocks."""
    alpha = () if trained.alpha is None else tuple(trained.alpha)
    numbers = [
        (r.round, r.epochs, r.primal, r.dual, r.gap, r.updates, r.inner_products, r.relative_gap)
        for r in trained.history
    ]
    weights = tuple(trained.model.coef[0]), float(trained.model.intercept[0])
    return weights, alpha, trained.certificate, str(trained.status), trained.rounds, trained.epochs, numbers


@interpreted
@short_rounds
def test_a_seed_repeats_its_run_bit_for_bit(case, storage):
    problem = build(case, WEIGHTED if JIT else SMALL, storage)
    first, second = (facts(path(case, problem, 6, seed=3)) for _ in range(2))
    assert first == second
    assert len(first[-1]) >= 1


def test_when_a_run_is_looked_at_does_not_matter(case):
    """The defaults of the loop draw certificates by rounds and estimates, never by the clock."""
    problem = build(case, WEIGHTED)
    first, second = (facts(settle(case, problem, seed=11)) for _ in range(2))
    assert first == second


@short_rounds
def test_seeds_decide_the_order(case):
    """A solver that draws from the generator takes another way with another seed; one that does not, never does."""
    problem = build(case, CLOUDS)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    case.new().advance(problem, case.new().start(problem, rng))
    draws = rng.bit_generator.state != before
    ways = {weights_on_the_way(case, problem, 2, seed).tobytes() for seed in range(4)}
    assert len(ways) == (4 if draws else 1)


def test_seeds_agree_within_their_certificates(case, stored):
    problem = build(case, WEIGHTED, stored)
    assert agree(*(settle(case, problem, seed) for seed in range(4)))


# ---------------------------------------------------------------------------------------------------- pickling


def again(thing):
    """The thing after a journey through bytes."""
    return pickle.loads(pickle.dumps(thing))


def test_solvers_survive_pickling(case):
    solver = case.new()
    assert again(solver) == solver
    assert type(again(solver)) is type(solver)


@short_rounds
def test_a_state_goes_on_where_it_was_pickled(case, storage):
    problem, solver = build(case, WEIGHTED, storage), case.new()
    state = solver.start(problem, np.random.default_rng(2))
    for done in range(7):
        if done in (0, 3):
            state, solver = again(state), again(solver)
        solver.advance(problem, state)
    uninterrupted = weights_on_the_way(case, problem, 7, seed=2)[-1]
    assert np.array_equal(solver.model(problem, state).weights(problem.rows.bias), uninterrupted)


@short_rounds
def test_a_pickled_state_shares_nothing_with_the_first(case):
    problem, solver = build(case, WEIGHTED), case.new()
    state = solver.start(problem, np.random.default_rng(2))
    solver.advance(problem, state)
    kept = again(state)
    here = solver.model(problem, kept).weights(problem.rows.bias)
    solver.advance(problem, state)
    assert np.array_equal(solver.model(problem, kept).weights(problem.rows.bias), here)
    assert kept.counters.epochs < state.counters.epochs


def test_runs_survive_pickling(case):
    trained = settle(case, build(case, WEIGHTED))
    assert facts(again(trained)) == facts(trained)
    assert np.array_equal(again(trained).model.predict(WEIGHTED.X), trained.model.predict(WEIGHTED.X))
    assert (again(trained).history.columns()["seconds"] == trained.history.columns()["seconds"]).all()


@short_rounds
def test_a_model_is_not_changed_by_the_rounds_that_follow(case):
    problem, solver = build(case, CLOUDS), case.new()
    state = solver.start(problem, np.random.default_rng(2))
    solver.advance(problem, state)
    model = solver.model(problem, state)
    kept = model.coef.copy()
    for done in range(100):  # a model that is the best so far does not change in every round
        solver.advance(problem, state)
        if done >= 2 and not np.array_equal(solver.model(problem, state).coef, kept):
            break
    assert np.array_equal(model.coef, kept)
    assert not np.array_equal(solver.model(problem, state).coef, kept)
