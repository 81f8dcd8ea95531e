"""RSVM, and the restricted squared hinge under it: optima, bounds, gradients, subsets, weights."""

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.kernel_problems import whole
from conformance.problems import Table
from problems import optimum_of
from reference.restricted_twin import newton_twin
from slackwater.objective import BoxPoint, GradientPoint, certify, squared_hinge
from slackwater.objective.kernels import Kernel
from slackwater.sparsify.contract import registered
from slackwater.sparsify.restricted import Restricted, RestrictedProblem
from slackwater.sparsify.rsvm import RATIOS, RSVM
from sparsifying import spread
from teachers import smalls, teacher_of, untrained


def restricted(bias, n=40, m=6, seed=3):
    """A problem over random functions with a random R."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    B, A = rng.normal(size=(m, n)) + 0.5 * labels, rng.normal(size=(m, m))
    R = A @ A.T + 0.1 * np.eye(m)
    return RestrictedProblem(B, R, np.linalg.cholesky(R), labels, rng.uniform(0.3, 3.0, n), bias)


def reference_of(problem):
    """The optimum through w = L'u on the columns of L^{-1}B."""
    Z = np.linalg.solve(problem.factor, problem.functions).T
    return optimum_of(Z, problem.labels, problem.costs, squared_hinge(), problem.bias)


# ------------------------------------------------------------------------------------------- the restricted problem


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_at_any_point(bias, seed):
    problem, rng = restricted(bias), np.random.default_rng(seed)
    best = reference_of(problem).primal
    weights = rng.normal(size=7) * 10.0 ** rng.integers(-2, 2)
    for point in (None, BoxPoint(rng.uniform(-0.1, 2.0, 40)), GradientPoint(weights)):
        found = certify(problem, weights, point).certificate
        assert found.dual <= best * (1.0 + 1e-9) and best * (1.0 - 1e-9) <= found.primal


@pytest.mark.parametrize("bias", ["none", "free"])
def test_the_bound_is_the_dual_by_definition(bias):
    problem = restricted(bias)
    alpha = np.random.default_rng(0).uniform(0.0, 1.0, 40)
    found = certify(problem, np.zeros(7), BoxPoint(alpha))
    alpha, y = found.alpha, problem.labels
    assert bias == "none" or abs(alpha @ y) < 1e-12
    g = problem.functions @ (alpha * y)
    quadratic = g @ np.linalg.solve(problem.regulariser, g) + 0.5 * alpha @ (alpha / problem.costs)
    assert found.certificate.dual == pytest.approx(problem.regularisation * (alpha.sum() - 0.5 * quadratic), rel=1e-12)


def test_the_gradient_tells_the_gap():
    problem = restricted("none")
    u = np.random.default_rng(1).normal(size=6)
    found = certify(problem, np.append(u, 0.0)).certificate
    short = np.maximum(0.0, 1.0 - problem.labels * (u @ problem.functions))
    g = problem.regulariser @ u - problem.functions @ (2.0 * problem.costs * problem.labels * short)
    gap = 0.5 * problem.regularisation * (g @ np.linalg.solve(problem.regulariser, g))
    assert found.gap == pytest.approx(gap, rel=1e-10)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_rounding_does_not_lift_a_bound_over_the_optimum(bias):
    """R is singular but for a ridge of 1e-10."""
    rng = np.random.default_rng(0)
    B = np.repeat(rng.normal(size=(3, 30)), 2, axis=0)
    R = np.kron(np.eye(3), np.ones((2, 2))) + 1e-10 * np.eye(6)
    labels = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    problem = RestrictedProblem(B, R, np.linalg.cholesky(R), labels, np.ones(30), bias)
    merged = RestrictedProblem(B[::2], np.eye(3), np.eye(3), labels, np.ones(30), bias)
    best = reference_of(merged).primal
    u = newton_twin(B, R, labels, np.ones(30), bias == "free")[0]
    found = certify(problem, np.append(u, 0.0)).certificate
    assert best * (1.0 - 1e-9) <= found.dual <= best * (1.0 + 1e-9) and found.relative_gap <= 1e-9


# ------------------------------------------------------------------------------------------------------------ RSVM


def machine_by_definition(teacher, ids):
    """The optimum of RSVM over these rows: a linear problem on kernel values, its bias penalised."""
    problem = teacher.problem
    kind = "penalised" if problem.bias == "free" else "none"
    return optimum_of(whole(problem)[:, ids], problem.labels, problem.costs, squared_hinge(), kind)


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_reaches_the_optimum_of_its_problem(bias, ratio):
    teacher = teacher_of(60, bias)
    (small,) = smalls(RSVM(ratio), teacher)
    assert small.ids.size == np.unique(small.ids).size == ratio * 60
    best = machine_by_definition(teacher, small.ids)
    assert small.certificate.primal == pytest.approx(best.primal, rel=1e-6)
    assert small.certificate.dual <= best.primal * (1.0 + 1e-9) and small.certificate.relative_gap <= 1e-9
    np.testing.assert_allclose(small.coefficients, best.w[:-1], atol=1e-5)
    assert small.bias == pytest.approx(best.b, abs=1e-5)


def test_the_gradient_is_zero_where_it_stops():
    teacher = teacher_of(80)
    (small,) = smalls(RSVM(0.25), teacher)
    problem, u = teacher.problem, spread(small, 80)
    K = whole(problem)
    short = np.maximum(0.0, 1.0 - problem.labels * (K @ u + small.bias))
    pulls = 2.0 * problem.costs * problem.labels * short
    np.testing.assert_allclose((u - K @ pulls)[small.ids], 0.0, atol=1e-8)
    assert small.bias == pytest.approx(pulls.sum(), abs=1e-8)


def test_agrees_with_the_twin():
    teacher = teacher_of(50)
    (small,) = smalls(RSVM(0.2), teacher)
    problem = teacher.problem
    functions = np.vstack((whole(problem)[small.ids], np.ones(50)))
    u, _ = newton_twin(functions, np.eye(11), problem.labels, problem.costs, False)
    np.testing.assert_allclose(np.append(small.coefficients, small.bias), u, atol=1e-8)


def test_the_seed_fixes_the_subset_and_larger_ones_contain_it():
    teacher = teacher_of(60)
    draws = (0.1, 0), (0.1, 0), (0.5, 0), (0.1, 1)
    few, again, more, other = (smalls(RSVM(ratio), teacher, seed=seed)[0].ids for ratio, seed in draws)
    np.testing.assert_array_equal(few, again)
    assert set(few) < set(more) and set(few) != set(other)


def test_no_more_vectors_than_asked_for():
    (small,) = smalls(RSVM(1.0), untrained(), most=7)
    assert small.ids.size == 7
    assert list(RSVM(1.0).sequence(untrained(), 0, np.random.default_rng(0))) == []


def test_a_kernel_that_is_not_positive_definite():
    teacher = teacher_of(60, "none", Kernel("sigmoid", gamma=0.5, coef0=-1.0))
    (small,) = smalls(RSVM(0.3), teacher)
    assert small.certificate.relative_gap <= 1e-9
    assert small.certificate.primal == pytest.approx(machine_by_definition(teacher, small.ids).primal, rel=1e-6)


def test_one_class_needs_hardly_anything():
    table = Table(np.random.default_rng(0).normal(size=(20, 3)), np.ones(20), None)
    (small,) = smalls(RSVM(0.2), teacher_of(table=table))
    assert small.certificate.relative_gap <= 1e-9


def test_rows_in_blocks_sparse_rows_and_float32():
    expected = smalls(RSVM(0.5), teacher_of(150))[0]
    tight = teacher_of(150, room=1)
    assert tight.gram.capacity < 75
    np.testing.assert_allclose(smalls(RSVM(0.5), tight)[0].coefficients, expected.coefficients, atol=1e-9)
    sparse = smalls(RSVM(0.5), teacher_of(150, stored=sp.csr_array))[0]
    np.testing.assert_allclose(sparse.coefficients, expected.coefficients, atol=1e-9)
    single = smalls(RSVM(0.5), teacher_of(150, dtype=np.float32))[0]
    assert single.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-5)
    assert single.certificate.relative_gap <= 1e-9


def test_settings():
    teacher, method = teacher_of(60), registered()["rsvm"]()
    sizes = [len(smalls(setting, teacher)[0].ids) for setting in method.grid(teacher)]
    assert [s.ratio for s in RSVM(largest=10).grid(teacher)] == [2.0**-6, 2.0**-5, 2.0**-4, 2.0**-3, 1.0]
    assert sizes == [1, 2, 4, 8, 15, 30, 60] and RATIOS[0] == 2.0**-16 and RATIOS[-1] == 1.0
    with pytest.raises(ValueError, match="ratio must lie in"):
        RSVM(0.0)
    with pytest.raises(ValueError, match="largest must be at least 1"):
        RSVM(largest=0)


# -------------------------------------------------------------------------------------------- Newton under strain


@pytest.mark.parametrize("power", [-6, 0, 6])
def test_newton_at_small_and_large_costs(power):
    (small,) = smalls(RSVM(0.3), untrained(C=10.0**power))
    assert small.certificate.relative_gap <= 1e-8


def test_normal_equations_are_the_same_however_they_came_about():
    teacher = teacher_of(60)
    machine = Restricted(teacher.problem, 10, biased=True)
    machine.add(teacher.gram.rows(np.arange(10)), np.ones(10))
    machine.optimise()
    short, functions = machine.shortfalls > 0.0, np.vstack((machine.functions, np.ones(60)))
    machine._account(short)
    expected = (functions * (2.0 * teacher.problem.costs * short)) @ functions.T
    np.testing.assert_allclose(machine._normal, expected, rtol=1e-9, atol=1e-9)
