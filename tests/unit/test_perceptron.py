"""Rosenblatt's perceptron: step by step as its twin, its average as the plain mean, its bound of mistakes."""

import numpy as np
import pytest

from problems import LOSSES, dense, loss_id, optimum, random_problem
from reference.perceptron_twin import perceptron_twin
from slackwater.compiled import shuffle
from slackwater.objective import certify, hinge, linear_problem, primal_value
from slackwater.rows import as_rows
from slackwater.solvers.linear import perceptron
from slackwater.solvers.linear.margin_perceptron import at_its_best_length
from slackwater.solvers.linear.perceptron import Perceptron
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(perceptron, "epochs_per_round", lambda problem: 1)


def separable(seed=1, n=60, d=5, margin=0.3):
    """Rows a margin away from a plane, and the vector u with y <u, x> >= 1."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=d)
    normal /= np.linalg.norm(normal)
    X = rng.normal(size=(n, d))
    labels = np.where(X @ normal > 0.0, 1.0, -1.0)
    X += margin * labels[:, None] * normal
    return X, labels, normal / (labels * (X @ normal)).min()


@interpreted
@pytest.mark.parametrize("output", ["average", "last"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_epoch_is_the_twins(one_epoch, output, weighted):
    problem = random_problem(1, hinge(), "penalised", weighted=weighted, sparse=weighted)
    solver = Perceptron(output=output)
    state = solver.start(problem, np.random.default_rng(0))
    orders = []
    for _ in range(5):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        orders.append(coming.tolist())
        solver.advance(problem, state)
        path, counts = perceptron_twin(dense(problem), problem.labels, problem.shares, orders)
        expected = path[-1] if output == "last" else path.mean(axis=0)
        assert state.a == pytest.approx(path[-1], rel=1e-11, abs=1e-12)
        assert state.table[:, 0] == pytest.approx(counts * problem.shares, rel=1e-12)
        assert state.counters.updates == counts.sum()
        weights = solver.model(problem, state).weights(problem.rows.bias)
        cosine = weights @ expected / np.linalg.norm(weights) / np.linalg.norm(expected)
        assert cosine == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_no_more_mistakes_than_the_margin_allows(seed):
    """R^2 ||u||^2 for every u with margins of at least 1; then nothing moves any more."""
    X, labels, u = separable(seed)
    problem = linear_problem(as_rows(X), labels, hinge())
    solver = Perceptron(output="last")
    state = solver.start(problem, np.random.default_rng(seed))
    solver.advance(problem, state)
    mistakes, R2 = state.counters.updates, (X**2).sum(axis=1).max()
    assert 0 < mistakes <= R2 * (u @ u)
    assert state.a @ state.a <= mistakes * R2
    assert (labels * (X @ state.a[:-1]) > 0.0).all()
    solver.advance(problem, state)
    assert state.counters.updates == mistakes
    assert run(problem, solver, Limits(max_rounds=50), rng=seed).status.code == "stalled"


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_bound_is_true_and_the_length_is_the_best(loss):
    problem = random_problem(3, loss, "penalised", weighted=True)
    solver = Perceptron()
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    weights = solver.model(problem, state).weights(problem.rows.bias)
    found = certify(problem, weights, solver.dual_point(problem, state)).certificate
    assert 0.0 < found.dual <= optimum(problem).primal <= found.primal
    lengths = primal_value(problem, 0.999 * weights), primal_value(problem, 1.001 * weights)
    assert found.primal <= min(lengths)
    assert at_its_best_length(problem, 7.0 * weights) == pytest.approx(weights, rel=1e-9)
    assert (at_its_best_length(problem, -weights) == 0.0).all()


def test_settings_that_make_no_sense():
    with pytest.raises(ValueError, match="output='vote' is not known; the outputs are average, last"):
        Perceptron(output="vote")
