"""The margin perceptron: its twin on the longer rows, the bound of updates, the margin that it reaches."""

import math

import numpy as np
import pytest

from problems import dense, optimum, random_problem
from reference.perceptron_twin import margin_perceptron_twin
from slackwater.compiled import shuffle
from slackwater.objective import certify, squared_hinge
from slackwater.solvers.linear import margin_perceptron
from slackwater.solvers.linear.margin_perceptron import MarginPerceptron

interpreted = pytest.mark.interpreted


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(margin_perceptron, "epochs_per_round", lambda problem: 1)


def ridge(problem):
    return 0.5 / problem.costs


def longer_rows(problem):
    """[y_i x_i, sqrt(d_i) e_i]."""
    return np.hstack([dense(problem) * problem.labels[:, None], np.diag(np.sqrt(ridge(problem)))])


@interpreted
@pytest.mark.parametrize("threshold", [0.0, 0.3, 2.0])
def test_every_epoch_is_the_twins(one_epoch, threshold):
    problem = random_problem(1, squared_hinge(), "penalised", weighted=True, sparse=True)
    solver = MarginPerceptron(threshold=threshold, growth=1.0)
    state = solver.start(problem, np.random.default_rng(0))
    orders, d = [], problem.n_weights
    for _ in range(5):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        a, counts = margin_perceptron_twin(dense(problem), problem.labels, ridge(problem), state.b, orders)
        assert (state.table[:, 0] == counts).all()
        assert state.a == pytest.approx(a[:d], rel=1e-11, abs=1e-12)
        assert np.sqrt(ridge(problem)) * counts == pytest.approx(a[d:], rel=1e-10)


@pytest.mark.parametrize("threshold", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_updates_and_margin_keep_their_promise(seed, threshold):
    """At most (R^2 + 2b)/gamma^2 updates; then a margin of at least b gamma/(R^2 + 2b)."""
    problem = random_problem(seed, squared_hinge(), weighted=True)
    solver = MarginPerceptron(threshold=threshold, growth=1.0)
    state = solver.start(problem, np.random.default_rng(seed))
    before = -1
    while state.counters.updates != before:
        before = state.counters.updates
        solver.advance(problem, state)
    rows = longer_rows(problem)
    R2, b = (rows**2).sum(axis=1).max(), state.b
    assert b == pytest.approx(threshold * R2, rel=1e-12)
    gamma = 1.0 / math.sqrt(2.0 * optimum(problem).primal / problem.regularisation)  # J* = ||longer w*||^2 / 2
    assert 0 < state.counters.updates <= (R2 + 2.0 * b) / gamma**2
    a = state.table[:, 0] @ rows
    reached = (rows @ a).min() / np.linalg.norm(a)
    assert b / (R2 + 2.0 * b) * gamma <= reached <= gamma * (1.0 + 1e-9)


def test_a_growing_threshold_comes_closer_to_the_optimum():
    problem = random_problem(4, squared_hinge(), "penalised", n=60)
    gaps = {}
    for growth in (1.0, 2.0):
        solver = MarginPerceptron(threshold=0.02, growth=growth)
        state = solver.start(problem, np.random.default_rng(0))
        for _ in range(5):
            solver.advance(problem, state)
        weights = solver.model(problem, state).weights(problem.rows.bias)
        found = certify(problem, weights, solver.dual_point(problem, state)).certificate
        assert found.dual <= optimum(problem).primal <= found.primal
        gaps[growth] = found.relative_gap
    assert gaps[2.0] < 0.5 * gaps[1.0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"threshold": -1.0}, "threshold must be at least 0 and finite, got -1.0"),
        ({"threshold": math.nan}, "threshold must be at least 0 and finite, got nan"),
        ({"growth": 0.5}, "growth must be at least 1 and finite, got 0.5"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        MarginPerceptron(**settings)
