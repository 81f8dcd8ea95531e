"""SpSVM: the optimum of the span, the promise of one coordinate, the greedy choice, weights, kinds of bias."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.kernel_problems import optimum, whole
from conformance.problems import Table
from kernel_runs import clouds
from problems import optimum_of
from reference.restricted_twin import spsvm_twin
from slackwater.objective import squared_hinge
from slackwater.objective.bias import optimal_bias
from slackwater.objective.kernels import Kernel
from slackwater.solvers.kernel.blocked_smo import BlockedSMO
from slackwater.sparsify.contract import registered
from slackwater.sparsify.spsvm import Growth, SpSVM
from slackwater.training import Limits, run
from teachers import smalls, teacher_of, untrained

BIASES = ("none", "penalised", "free")


def optimum_over(problem, ids):
    """The squared hinge machine with w in the span of some rows."""
    K = whole(problem)
    sizes, vectors = np.linalg.eigh(K[np.ix_(ids, ids)])
    Z = K[:, ids] @ (vectors / np.sqrt(np.maximum(sizes, 1e-9)))
    bias = "free" if problem.bias == "free" else "none"
    return optimum_of(Z, problem.labels, problem.costs, squared_hinge(), bias)


@pytest.mark.parametrize("bias", BIASES)
def test_all_rows_give_the_squared_hinge_machine(bias):
    teacher = untrained(50, bias)
    small = smalls(SpSVM(candidates=50), teacher)[-1]
    problem = replace(teacher.problem, loss=squared_hinge(), known={})
    found = run(problem, BlockedSMO(), Limits(tol=1e-9), rng=0)
    assert small.certificate.primal == pytest.approx(found.certificate.primal, rel=1e-6)
    assert small.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-6)
    values = whole(problem)[:, small.ids] @ small.coefficients + small.bias
    np.testing.assert_allclose(values, found.model.decision_values(problem.rows), atol=1e-3)


@pytest.mark.parametrize("bias", BIASES)
def test_every_predictor_is_the_optimum_of_its_span(bias):
    teacher = untrained(60, bias)
    for small in smalls(SpSVM(candidates=5), teacher, most=12):
        best = optimum_over(teacher.problem, small.ids)
        assert small.certificate.primal == pytest.approx(best.primal, rel=1e-6)
        assert small.certificate.dual <= best.primal * (1.0 + 1e-7)
        assert small.certificate.relative_gap <= 1e-9
        assert small.certificate.rule == ("C6+C7" if bias == "free" else "C6")


def test_the_objective_never_rises_and_the_vectors_stay():
    found = smalls(SpSVM(), untrained(150), most=60)
    values = [small.certificate.primal for small in found]
    assert all(later <= earlier * (1.0 + 1e-12) for earlier, later in pairwise(values))
    for earlier, later in pairwise(found):
        np.testing.assert_array_equal(later.ids[: earlier.ids.size], earlier.ids)
    sizes = [small.ids.size for small in found]
    assert [small.ids.size for small in smalls(SpSVM(), untrained(150), most=8)] == sizes[:8]
    assert sizes == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 23, 27, 32, 39, 46, 54, 60]


def test_the_promised_decrease_of_one_coordinate_is_exact():
    """Where the step leaves the examples short of the margin as they are."""
    exact = 0
    for seed in range(30):
        growth = Growth(untrained(40, "none", Kernel("rbf", gamma=2.0)).problem, 10)
        growth.ridge = 1e-10
        rng = np.random.default_rng(seed)
        for _ in range(4):
            growth.add_one(3, rng)
        growth.machine.optimise()
        j = rng.choice(np.flatnonzero(growth.outside))
        found, before = growth.scores(np.array([j])), growth.machine.objective
        short = growth.machine.shortfalls > 0.0
        assert growth.take(int(j), -float(found.g[0] / found.h[0]))
        if np.array_equal(short, growth.machine.shortfalls > 0.0):
            exact += 1
            assert before - growth.machine.objective == pytest.approx(0.5 * found.gains[0], rel=1e-8)
    assert exact >= 10


def test_scores_by_definition():
    problem = untrained(50).problem
    growth = Growth(problem, 8)
    for _ in range(5):
        growth.add_one(7, np.random.default_rng(1))
    growth.machine.optimise()
    ids, K, J = np.flatnonzero(growth.outside), whole(problem), growth.ids[: growth.size]
    u, b = growth.machine.u, growth.machine.bias
    short = np.maximum(0.0, 1.0 - problem.labels * (u @ K[J] + b))
    found = growth.scores(ids)
    np.testing.assert_allclose(
        found.g, u @ K[np.ix_(J, ids)] - K[ids] @ (2.0 * problem.costs * problem.labels * short), atol=1e-9
    )
    np.testing.assert_allclose(found.h, np.diagonal(K)[ids] + K[ids] ** 2 @ (2.0 * problem.costs * (short > 0.0)))


def test_agrees_with_the_twin_while_every_step_is_optimised():
    """Up to 8 vectors, where each size is a power of 2^(1/4) or more."""
    problem = untrained(60).problem
    start = optimal_bias(squared_hinge(), np.zeros(60), problem.labels, problem.costs).chosen
    J, beta, b = spsvm_twin(whole(problem), problem.labels, problem.costs, start, 9, 8, np.random.default_rng(4))
    small = smalls(SpSVM(candidates=9), untrained(60), most=8, seed=4)[-1]
    np.testing.assert_array_equal(small.ids, J)
    np.testing.assert_allclose(small.coefficients, beta, rtol=1e-5, atol=1e-6)
    assert small.bias == pytest.approx(b, abs=1e-6)


def test_equal_rows_are_no_use_twice():
    X, labels = clouds(20, weighted=False).X, clouds(20, weighted=False).labels
    table = Table(np.vstack((X, X, X)), np.tile(labels, 3), None)
    teacher = teacher_of(table=table)
    small = smalls(SpSVM(), teacher)[-1]
    problem = replace(teacher.problem, loss=squared_hinge(), known={})
    assert small.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-6)
    assert np.abs(small.coefficients).max() < 1e4


def test_rows_without_length_are_left_out():
    X = clouds(30).X.copy()
    X[::3] = 0.0
    table = Table(X, clouds(30).labels, None)
    small = smalls(SpSVM(candidates=100), teacher_of(table=table, kernel=Kernel("linear")))[-1]
    assert X[small.ids].any(axis=1).all() and small.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("polynomial", 0.5, 1.0, 2), Kernel("laplacian", 0.2)])
def test_other_kernels(kernel):
    teacher = untrained(60, kernel=kernel)
    small = smalls(SpSVM(), teacher)[-1]
    problem = replace(teacher.problem, loss=squared_hinge(), known={})
    assert small.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-6)


def test_a_kernel_that_is_not_positive_definite_lends_what_is():
    teacher = untrained(40, kernel=Kernel("sigmoid", gamma=1.0, coef0=0.5))
    assert np.linalg.eigvalsh(whole(teacher.problem)).min() < -1e-3
    for small in smalls(SpSVM(), teacher):
        K = whole(teacher.problem)[np.ix_(small.ids, small.ids)]
        assert np.linalg.eigvalsh(K).min() > -1e-9 and small.certificate.relative_gap <= 1e-7


def test_values_that_were_computed_before():
    plain = untrained(40)
    table = Table(whole(plain.problem), plain.problem.labels, clouds(40).weights)
    first, second = (
        smalls(SpSVM(), plain, 10)[-1],
        smalls(SpSVM(), teacher_of(table=table, kernel=Kernel("precomputed")), 10)[-1],
    )
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_allclose(first.coefficients, second.coefficients, rtol=1e-6)


def test_little_room_sparse_rows_and_float32():
    expected = smalls(SpSVM(), untrained(150), 30)[-1]
    tight = smalls(SpSVM(candidates=100), untrained(150, room=1), 30)[-1]
    roomy = smalls(SpSVM(candidates=100), untrained(150), 30)[-1]
    np.testing.assert_allclose(tight.coefficients, roomy.coefficients, atol=1e-9)
    sparse = smalls(SpSVM(), untrained(150, stored=sp.csr_array), 30)[-1]
    np.testing.assert_array_equal(sparse.ids, expected.ids)
    single = smalls(SpSVM(), untrained(150, dtype=np.float32), 30)[-1]
    assert single.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-2)
    assert single.certificate.relative_gap <= 1e-9


def test_nothing_to_learn_ends_at_once():
    table = Table(np.random.default_rng(0).normal(size=(20, 3)), -np.ones(20), None)
    assert smalls(SpSVM(), teacher_of(table=table)) == []
    assert list(SpSVM().sequence(untrained(), 0, np.random.default_rng(0))) == []


def test_settings():
    assert registered()["spsvm"]().candidates == 59
    assert smalls(SpSVM(largest=3), untrained(20))[-1].ids.size == 3
    with pytest.raises(ValueError, match="candidates must be at least 1"):
        SpSVM(candidates=0)


@pytest.mark.interpreted
def test_without_the_compiler():
    small = smalls(SpSVM(candidates=4), untrained(15), 5)[-1]
    assert small.certificate.relative_gap <= 1e-9
