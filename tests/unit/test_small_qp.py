"""The small program on the simplex: its optimality, other ways to the same value, cases without a single answer."""

import numpy as np
import pytest
from scipy.optimize import minimize

from reference.cutting_planes_twin import simplex_twin
from slackwater.compiled import JIT
from slackwater.solvers.small_qp import simplex_qp

interpreted = pytest.mark.interpreted


def program(rng, n, rank, scale=1.0):
    """H = G G' of this rank, b; the first variable is the zero cut."""
    G = scale * rng.normal(size=(n, rank)) / np.sqrt(rank)
    G[0] = 0.0
    b = rng.uniform(0.0, 1.0, n)
    b[0] = 0.0
    return G @ G.T, b


def solved(H, b, beta=None):
    if beta is None:
        beta = np.eye(b.size)[0]
    steps = simplex_qp(H, b, beta)
    assert steps < 100 + 20 * b.size
    assert (beta >= 0.0).all()
    assert beta.sum() == pytest.approx(1.0, rel=1e-13)
    return beta


def value(H, b, beta):
    return b @ beta - 0.5 * beta @ H @ beta


def excess(H, b, beta):
    """No point of the simplex is higher by more: the steepest way up a concave function."""
    slopes = b - H @ beta
    return slopes.max() - beta @ slopes


def size(H, b, beta):
    """Of the terms that cancel in a slope."""
    return np.abs(b).max() + (np.abs(H) @ beta).max()


@interpreted
@pytest.mark.parametrize("scale", [0.3, 3.0, 1000.0])
@pytest.mark.parametrize("rank", [1, 3, 20])
def test_nothing_is_higher(rank, scale):
    rng = np.random.default_rng(rank)
    for n in (2, 5, 12, 40 if JIT else 15):
        H, b = program(rng, n, rank, scale)
        beta = solved(H, b)
        assert excess(H, b, beta) <= 2e-14 * size(H, b, beta)


@interpreted
def test_every_support_was_tried():
    rng = np.random.default_rng(5)
    for rank in (2, 4, 8):
        H, b = program(rng, 7, rank, 2.0)
        beta, best = simplex_twin(H, b)
        assert value(H, b, solved(H, b)) == pytest.approx(best, rel=1e-12)
        if rank == 8:
            assert solved(H, b) == pytest.approx(beta, abs=1e-9)


def test_scipy_comes_as_high():
    rng = np.random.default_rng(6)
    for _ in range(5):
        H, b = program(rng, 15, 10, 2.0)
        found = minimize(
            lambda x, H=H, b=b: -value(H, b, x), np.full(15, 1.0 / 15.0), jac=lambda x, H=H, b=b: H @ x - b,
            bounds=[(0.0, 1.0)] * 15, constraints={"type": "eq", "fun": lambda x: x.sum() - 1.0}, method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )  # fmt: skip
        ours = value(H, b, solved(H, b))
        assert ours >= -found.fun - 1e-12
        assert ours == pytest.approx(-found.fun, rel=1e-7)


@interpreted
@pytest.mark.parametrize("copies", [2, 5])
def test_cuts_that_occur_several_times(copies):
    rng = np.random.default_rng(copies)
    H, b = program(rng, 6, 4, 2.0)
    ids = np.tile(np.arange(6), copies)
    beta = solved(H[np.ix_(ids, ids)], b[ids])
    assert value(H[np.ix_(ids, ids)], b[ids], beta) == pytest.approx(simplex_twin(H, b)[1], rel=1e-12)


@interpreted
def test_nothing_but_flat_directions():
    """H = 0: the largest b; all b alike: any point, whose value is known."""
    b = np.array([0.0, 0.2, 0.7, 0.7, 0.1])
    assert value(np.zeros((5, 5)), b, solved(np.zeros((5, 5)), b)) == pytest.approx(0.7, rel=1e-14)
    H = np.ones((4, 4))
    assert value(H, np.ones(4), solved(H, np.ones(4))) == pytest.approx(0.5, rel=1e-14)


@interpreted
def test_one_variable_is_all_there_is():
    assert solved(np.array([[2.0]]), np.array([0.3])).tolist() == [1.0]


@interpreted
def test_a_new_cut_never_lowers_the_value_and_takes_few_steps():
    rng = np.random.default_rng(9)
    n = 60 if JIT else 12
    H, b = program(rng, n, 30, 3.0)
    beta, before, steps = np.eye(n)[0], 0.0, []
    for count in range(2, n + 1):
        steps.append(simplex_qp(H[:count, :count], b[:count], beta[:count]))
        now = value(H[:count, :count], b[:count], beta[:count])
        assert now >= before - 1e-14
        before = now
    assert np.median(steps) <= 6
    assert before == pytest.approx(value(H, b, solved(H, b)), rel=1e-12)


@interpreted
def test_any_start_leads_to_the_same_value():
    rng = np.random.default_rng(10)
    H, b = program(rng, 12, 5, 2.0)
    values = []
    for _ in range(5):
        beta = rng.dirichlet(np.full(12, 0.3))
        before = value(H, b, beta)
        values.append(value(H, b, solved(H, b, beta)))
        assert values[-1] >= before
    assert values == pytest.approx([values[0]] * 5, rel=1e-12)
