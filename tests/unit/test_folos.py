"""FOLOS and the truncated gradient: lazy as eager, their limits, exact zeros, what they refuse."""

import math

import numpy as np
import pytest

from problems import LOSSES, dense, loss_id, random_problem
from reference.folos_twin import folos_twin, truncated_twin
from slackwater.compiled import shuffle
from slackwater.objective import elastic_net, hinge, l1, l2, squared_hinge
from slackwater.objective.penalties import penalty_name
from slackwater.solvers.linear import descent, growing_margin
from slackwater.solvers.linear.folos import FOLOS
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.solvers.linear.truncated_gradient import TruncatedGradient
from slackwater.solvers.steps import inverse_step

interpreted = pytest.mark.interpreted
EPOCHS = 4


@pytest.fixture(autouse=True)
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    for module in (descent, growing_margin):
        monkeypatch.setattr(module, "epochs_per_round", lambda problem: 1)


def way(solver, problem, epochs=EPOCHS, seed=0):
    """The state after some epochs, and the order in which rows were visited."""
    state = solver.start(problem, np.random.default_rng(seed))
    order = []
    for _ in range(epochs):
        coming, random = state.visits.order.copy(), state.visits.random.copy()
        shuffle(coming, coming.size, random)
        order += coming.tolist()
        solver.advance(problem, state)
    return state, order


# ---------------------------------------------------------------------------------------------- lazy equals eager


@interpreted
@pytest.mark.parametrize("penalty", [l2(), l1(), elastic_net(0.3)], ids=penalty_name)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_folos_is_its_eager_twin(loss, penalty, bias):
    problem = random_problem(3, loss, bias, weighted=True, sparse=bias == "none", penalty=penalty)
    solver = FOLOS()
    state, order = way(solver, problem)
    expected = folos_twin(
        dense(problem), problem.labels, problem.shares, loss, penalty, problem.regularisation,
        lambda t: inverse_step(state.method.steps, float(t)), order,
    )  # fmt: skip
    assert np.abs(expected).max() > 0.0
    assert solver.iterate(state) == pytest.approx(expected, rel=1e-9, abs=1e-11)


@interpreted
@pytest.mark.parametrize("theta", [math.inf, 0.3])
@pytest.mark.parametrize("every", [1, 3, 10])
def test_the_truncated_gradient_is_its_eager_twin(every, theta):
    problem = random_problem(3, hinge(), "penalised", weighted=True, sparse=True, penalty=l1())
    solver = TruncatedGradient(every=every, theta=theta)
    state, order = way(solver, problem)
    expected = truncated_twin(
        dense(problem), problem.labels, problem.shares, hinge(), problem.regularisation, every, theta,
        lambda t: inverse_step(state.method.steps, float(t)), order,
    )  # fmt: skip
    assert solver.iterate(state) == pytest.approx(expected, rel=1e-9, abs=1e-11)


# ----------------------------------------------------------------------------------------------------- the limits


@interpreted
def test_with_l2_and_the_hinge_folos_is_sgd_s():
    problem = random_problem(4, hinge(), "penalised", weighted=True)
    solver, other = FOLOS(), SGDS()
    state, order = way(solver, problem)
    theirs, same = way(other, problem)
    assert order == same and theirs.t == len(order)
    assert solver.iterate(state) == pytest.approx(theirs.a / (problem.regularisation * theirs.t), rel=1e-9, abs=1e-12)


@interpreted
def test_truncated_at_every_step_is_folos():
    problem = random_problem(4, hinge(), penalty=l1(), weighted=True)
    one, _ = way(FOLOS(), problem)
    other, _ = way(TruncatedGradient(every=1), problem)
    assert TruncatedGradient().iterate(other) == pytest.approx(FOLOS().iterate(one), rel=1e-10, abs=1e-12)


# -------------------------------------------------------------------------------------------------------- sparsity


def test_zeros_are_exact_and_grow_with_the_penalty():
    zeros = []
    for C in (0.05, 0.02, 0.01):
        problem = random_problem(8, hinge(), n=100, d=30, C=C, penalty=l1())
        state, _ = way(FOLOS(), problem, epochs=60)
        zeros.append(int((FOLOS().iterate(state) == 0.0).sum()))
    assert zeros[0] < zeros[1] < zeros[2]


def test_large_weights_are_left_alone_beyond_theta():
    problem = random_problem(8, hinge(), n=100, d=30, C=0.05, penalty=l1())
    norms = []
    for theta in (1e-6, math.inf):
        solver = TruncatedGradient(theta=theta)
        norms.append(np.abs(solver.iterate(way(solver, problem, epochs=30)[0])).sum())
    assert norms[0] > 1.5 * norms[1]


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("cls", "settings", "sentence"),
    [
        (FOLOS, {"eta0": 0.0}, "eta0 must be positive and finite or None, got 0.0"),
        (TruncatedGradient, {"eta0": -1.0}, "eta0 must be positive and finite or None, got -1.0"),
        (TruncatedGradient, {"every": 0}, "every must be at least 1, got 0"),
        (TruncatedGradient, {"theta": 0.0}, "theta must be positive, got 0.0"),
    ],
)
def test_settings_are_checked(cls, settings, sentence):
    with pytest.raises(ValueError) as refusal:
        cls(**settings)
    assert str(refusal.value) == sentence


def test_the_squared_hinge_starts_at_a_searched_step():
    """Without a cap on its slope steps of 1 / (lambda t) would grow beyond all bounds."""
    problem = random_problem(4, squared_hinge(), C=100.0)
    state, _ = way(FOLOS(), problem, epochs=30)
    assert inverse_step(state.method.steps, 0.0) > 0.0
    assert np.abs(FOLOS().iterate(state)).max() < 100.0
