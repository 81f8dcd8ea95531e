"""The batch perceptron: step by step as its twin, in the ball, towards the largest margin of separable data."""

import numpy as np
import pytest

from conformance.kernel_problems import optimum, whole
from problems import random_table
from reference.batch_perceptron_twin import batch_perceptron_twin
from slackwater.gram import Gram
from slackwater.objective import certify, hinge, squared_hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.kernel import batch_perceptron, lowest
from slackwater.solvers.kernel.batch_perceptron import BatchPerceptron
from slackwater.training import Limits, run

RBF = Kernel("rbf", gamma=0.4)


def make(kernel=RBF, *, n=30, C=1.0, apart=0.0, loss=None, scale=1.0):
    rng = np.random.default_rng(4)
    X, labels = random_table(rng, n, 3, density=1.0)
    points = Points.of(as_rows(scale * (X + apart * labels[:, None])), kernel, np.float64)
    return kernel_problem(Gram(points, 2**30), labels, loss or hinge(), C, None, "none")


def rounds(problem, count, alpha=None):
    solver = BatchPerceptron()
    state = solver.start(problem, np.random.default_rng(0), alpha)
    for _ in range(count):
        solver.advance(problem, state)
        yield state


@pytest.mark.interpreted
def test_every_round_is_the_twins(monkeypatch):
    monkeypatch.setattr(batch_perceptron, "_WORK", 30 * 7)
    monkeypatch.setattr(lowest, "AHEAD", 3)
    monkeypatch.setattr(batch_perceptron, "_FETCHES", 30)
    problem = make(scale=2.0, kernel=Kernel("linear"))
    way = batch_perceptron_twin(whole(problem), problem.labels, 42)
    for k, state in enumerate(rounds(problem, 6), start=1):
        assert state.t == state.counters.updates == 7 * k
        assert state.scale * state.alpha == pytest.approx(way[7 * k - 1], rel=1e-9, abs=1e-12)


def test_w_stays_in_the_ball_and_below_the_largest_margin(monkeypatch):
    monkeypatch.setattr(batch_perceptron, "_WORK", 30 * 50)
    problem = make(apart=1.0, C=1e6)
    K, y = whole(problem), problem.labels
    widest = 1.0 / np.sqrt(optimum(problem).alpha.sum())  # gamma* = 1 / ||w*||
    reached = []
    for state in rounds(problem, 40):
        p = state.scale * state.alpha
        responses = y * (K @ (y * p))
        assert (p >= 0.0).all()
        assert p @ responses <= 1.0 + 1e-9
        assert state.scale * state.c == pytest.approx(responses, rel=1e-9, abs=1e-9)
        assert responses.min() <= widest * (1.0 + 1e-6)  # f(w) <= f* <= U(p)
        assert np.sqrt(p @ responses) / p.sum() >= widest * (1.0 - 1e-6)
        reached.append(responses.min())
    assert reached[-1] >= 0.95 * widest


def test_the_largest_margin_is_the_optimum_for_a_large_cost():
    problem = make(apart=1.0, C=1e6)
    found = run(problem, BatchPerceptron(), Limits(tol=0.03, max_rounds=400))
    assert found.status.code == "converged"
    assert found.certificate.primal == pytest.approx(optimum(problem).primal, rel=0.03)


@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=["hinge", "squared hinge"])
def test_the_model_is_the_best_multiple(loss):
    problem, solver = make(loss=loss), BatchPerceptron()
    state = list(rounds(problem, 3))[-1]
    weights = solver.model(problem, state).weights()
    best = certify(problem, weights).certificate.primal
    for factor in (0.0, 0.5, 0.99, 1.01, 2.0):
        assert best <= certify(problem, factor * weights).certificate.primal * (1.0 + 1e-12)
    responses = problem.labels * weights[:-1]
    assert responses * state.alpha.sum() == pytest.approx(state.alpha * responses.sum(), rel=1e-9, abs=1e-12)


def test_rows_are_computed_once(monkeypatch):
    monkeypatch.setattr(lowest, "AHEAD", 4)
    problem = make()
    *_, state = rounds(problem, 20)
    assert problem.gram.evaluations <= problem.n_rows**2
    assert np.count_nonzero(state.alpha) <= state.counters.kernel_evaluations / problem.n_rows


def test_a_warm_start_keeps_its_direction():
    problem = make()
    alpha = optimum(problem).alpha
    solver = BatchPerceptron()
    state = solver.start(problem, np.random.default_rng(0), alpha)
    found = certify(problem, solver.model(problem, state).weights()).certificate.primal
    assert found == pytest.approx(optimum(problem).primal, rel=1e-6)
    assert state.square <= 1.0
