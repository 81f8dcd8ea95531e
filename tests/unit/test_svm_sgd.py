"""SVM-SGD: step by step as its twin, the search for its first step, and what its slopes prove."""

import math

import numpy as np
import pytest

from descents import rounds
from problems import LOSSES, dense, loss_id, optimum, random_problem, random_table
from reference.svm_sgd_twin import svm_sgd_twin
from slackwater.objective import certify, hinge, linear_problem, squared_hinge
from slackwater.rows import as_rows
from slackwater.solvers.linear.pegasos import Pegasos
from slackwater.solvers.linear.svm_sgd import SVMSGD, searched_first_step, slow_bias
from slackwater.solvers.steps import best_first_step, inverse_step, reciprocal, root, sample_of, slower
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(problem.rows.bias)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


# ------------------------------------------------------------------------------------------------ step by step


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_lazy_scaling_is_explicit_scaling(one_epoch, loss, bias):
    problem = random_problem(1, loss, bias, weighted=True, sparse=bias == "none", scale=2.0)
    lam, eta0 = problem.regularisation, 0.11
    solver, orders = SVMSGD(eta0=eta0, bias_step=0.3, average=False), []
    for state in rounds(problem, solver, 5):
        orders.append(state.visits.order.tolist())
        path, slopes = svm_sgd_twin(
            dense(problem), problem.labels, lam, loss, lambda t: eta0 / (1.0 + lam * eta0 * t), orders,
            problem.shares, 0.3 if bias == "free" else None,
        )  # fmt: skip
        w = path[-1]
        assert solver.iterate(state) == pytest.approx(w, rel=1e-10, abs=1e-12)
        assert solver.model(problem, state).weights(problem.rows.bias) == pytest.approx(w, rel=1e-10, abs=1e-12)
        assert state.table[:, 1] == pytest.approx(slopes, rel=1e-9, abs=1e-10)
    assert state.counters.epochs == 5
    assert state.counters.inner_products == 5 * problem.n_rows


@interpreted
def test_a_tiny_scale_is_moved_into_the_vector(one_epoch):
    problem = random_problem(2, hinge(), "free", n=40)
    solver = SVMSGD(eta0=0.5)
    plain, tiny = (list(rounds(problem, solver, 2))[-1] for _ in range(2))
    tiny.moving.v[:] *= tiny.moving.now[0] * 1e6
    tiny.moving.now[0] = 1e-6
    for state in (plain, tiny):
        solver.advance(problem, state)
    assert tiny.moving.now[0] > 0.1
    assert solver.iterate(tiny) == pytest.approx(solver.iterate(plain), rel=1e-10)
    assert tiny.table[:, 1].tolist() == plain.table[:, 1].tolist()


def test_the_largest_first_steps_are_pegasos_without_its_projection(one_epoch):
    problem = random_problem(3, hinge(), "penalised", weighted=True, C=2.0)
    one, other = SVMSGD(eta0=1e300), Pegasos(projection=False)
    for left, right in zip(rounds(problem, one, 20), rounds(problem, other, 20), strict=True):
        assert left.visits.order.tolist() == right.visits.order.tolist()
        assert left.table[:, 1].tolist() == right.table[:, 1].tolist()
        assert one.iterate(left) == pytest.approx(right.scale * right.v, rel=1e-10, abs=1e-12)


def test_the_sum_of_the_pulls_needs_no_vector_of_its_own(one_epoch):
    problem = random_problem(4, squared_hinge(), "free", weighted=True)
    solver = SVMSGD(eta0=0.05)
    for state in rounds(problem, solver, 8):
        total = (problem.shares * state.table[:, 1] * problem.labels) @ dense(problem)
        assert solver._now(problem, state).total[:-1] == pytest.approx(total[:-1], rel=1e-10, abs=1e-11)
        assert solver._now(problem, state).total[-1] == 0.0


# ------------------------------------------------------------------------------------------------- step sizes


@interpreted
def test_sizes_are_those_of_the_papers():
    lam, eta0 = 0.01, 3.0
    for t in (1.0, 7.0, 1e6):
        x = 1.0 + lam * eta0 * t
        assert 1.0 / inverse_step(reciprocal(lam, 1.0 / (lam * eta0)), t) == pytest.approx(eta0 / x, rel=1e-14)
        assert 1.0 / inverse_step(slower(lam, eta0), t) == pytest.approx(eta0 / x**0.75, rel=1e-14)
        assert 1.0 / inverse_step(root(eta0), t) == pytest.approx(eta0 / math.sqrt(t + 1.0), rel=1e-14)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("eta0", [None, 1e-6, 1.0, 1e6])
def test_no_step_turns_the_weights_round(C, eta0):
    """eta_t lambda < 1, from the first step on."""
    problem = random_problem(5, hinge(), C=C)
    state = SVMSGD(eta0=eta0).start(problem, np.random.default_rng(0))
    assert problem.regularisation < inverse_step(state.method.steps, 1.0)


def costs_by_power(costs):
    """A cost of eta = 2^k from a table of k, and where it was asked."""
    asked = []

    def cost(eta):
        asked.append(round(math.log2(eta)))
        return costs.get(asked[-1], 9.0)

    return cost, asked


@pytest.mark.parametrize(
    ("costs", "best", "asked"),
    [
        ({0: 5.0, 1: 4.0, 2: 3.0, 3: 3.5}, 2, [0, 1, 2, 3]),
        ({0: 4.0, 1: 5.0, -1: 3.0, -2: 2.0, -3: 2.5}, -3, [0, 1, -1, -2, -3]),  # of -2 and -3 the smaller
        ({0: 4.0, 1: 4.0, -1: 4.0}, 0, [0, 1]),
        ({0: 4.0, 1: math.inf, -1: math.inf}, -1, [0, 1, -1]),
        ({k: 4.0 - k for k in range(20)}, 3, [0, 1, 2, 3]),  # no further than half of 1 / lambda
    ],
)
def test_the_first_step_is_the_smaller_end_of_the_bracket(costs, best, asked):
    problem = linear_problem(as_rows(np.eye(4)), [1.0, -1.0, 1.0, -1.0], hinge(), C=4.0)  # 1 / lambda = 16
    cost, seen = costs_by_power(costs)
    assert best_first_step(problem, cost) == 2.0**best
    assert seen == asked


def test_the_search_repeats_and_depends_on_its_seed():
    problem = random_problem(6, hinge(), n=1500, C=1.0)
    samples = [sample_of(problem, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert samples[0].n_rows == 1000
    assert np.array_equal(samples[0].labels, samples[1].labels)
    assert not np.array_equal(samples[0].rows.values, samples[2].rows.values)
    assert samples[0].regularisation == pytest.approx(problem.regularisation, rel=1e-12)
    found = [searched_first_step(problem, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]


def test_the_searched_step_is_near_the_best_of_all(one_epoch):
    problem = random_problem(7, hinge(), n=150, d=6, C=1.0)
    found = searched_first_step(problem, np.random.default_rng(0))

    def after_two(eta0):
        solver = SVMSGD(eta0=eta0)
        return certificate(problem, solver, list(rounds(problem, solver, 2))[-1]).primal

    best = min(after_two(found * 4.0**k) for k in range(-4, 5))
    assert after_two(found) - optimum(problem).primal <= 3.0 * (best - optimum(problem).primal) + 1e-3


# ------------------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_one_per_cent_is_certified(loss, bias):
    problem = random_problem(11, loss, bias, weighted=True, n=60, C=0.3)
    answer = run(problem, SVMSGD(), Limits(tol=0.01, max_rounds=60), rng=1)
    assert answer.status.converged, answer.status
    best = optimum(problem).primal
    assert best * (1 - 1e-10) <= answer.certificate.primal <= 1.01 * best
    assert answer.certificate.dual <= best * (1 + 1e-10)


def test_a_free_bias_hardly_moves_where_many_examples_pull():
    large, small = (random_problem(12, hinge(), "free", n=n, C=1.0) for n in (10_000, 24))
    assert slow_bias(large) == 0.01
    assert 0.01 < slow_bias(small) <= 1.0


def test_any_size_of_numbers(one_epoch):
    X, y = random_table(np.random.default_rng(23))
    for size in (1e-8, 1e8):
        problem = linear_problem(as_rows(size * X), y, squared_hinge(), bias="penalised")
        solver = SVMSGD()
        for state in rounds(problem, solver, 10):
            found = certificate(problem, solver, state)
            assert found.dual <= found.primal < math.inf


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eta0": 0.0}, "eta0 must be positive and finite or None, got 0.0"),
        ({"eta0": math.inf}, "eta0 must be positive and finite or None, got inf"),
        ({"bias_step": -1.0}, "bias_step must be positive and finite or None, got -1.0"),
        ({"bias_step": math.nan}, "bias_step must be positive and finite or None, got nan"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    with pytest.raises(ValueError, match=words):
        SVMSGD(**settings)
