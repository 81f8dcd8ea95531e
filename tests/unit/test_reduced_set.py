"""Reduced set: E falls, gradients are those of E, fixed points are stationary, the bias is the best one."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.problems import Table
from kernel_runs import clouds
from reference.fixed_point_twin import fixed_point_twin
from slackwater.objective.bias import optimal_bias
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, DenseRows, dense_block
from slackwater.sparsify.preimages import Images, Pull, fixed_points, gradients
from slackwater.sparsify.reduced_set import ReducedSet, Target
from virtual_vectors import RBF, dense, distance, kernel_by_definition, scores, smalls, taught, teacher_on

interpreted = pytest.mark.interpreted
POLYNOMIAL = Kernel("polynomial", gamma=0.5, coef0=1.0, degree=3)
KERNELS = [RBF, POLYNOMIAL, Kernel("linear")]


def named(kernel):
    return kernel.name


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_the_distance_to_the_teacher_falls(kernel, bias):
    teacher = taught(bias=bias, kernel=kernel)
    found = smalls(ReducedSet(descents=10), teacher)
    E = [distance(small, teacher) for small in found]
    scale = teacher.squared_norm
    assert all(later <= earlier + 1e-9 * scale for earlier, later in itertools.pairwise(E))
    assert E[-1] < 0.05 * scale
    sizes = [small.coefficients.size for small in found]
    assert sizes == sorted(sizes) and sizes[-1] <= 16


def test_the_joint_phase_comes_closer():
    teacher = taught()
    apart = {s.coefficients.size: distance(s, teacher) for s in smalls(ReducedSet(descents=0), teacher)}
    joint = {s.coefficients.size: distance(s, teacher) for s in smalls(ReducedSet(), teacher)}
    assert list(apart) == list(joint) == [1, 2, 3, 4, 6, 8, 11, 16]
    assert joint[1] <= apart[1] * (1.0 + 1e-9)
    assert joint[16] < 0.5 * apart[16]


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=named)
def test_the_teachers_own_vectors_leave_nothing(kernel):
    teacher = taught(bias="penalised", kernel=kernel)
    target = Target.of(teacher)
    fit = target.fit(dense(teacher.model.vectors))
    assert abs(fit.error) <= 1e-8 * teacher.squared_norm
    assert target.squared_norm == pytest.approx(teacher.squared_norm)


def test_one_vector_is_enough_for_the_linear_kernel():
    teacher = taught(bias="free", kernel=Kernel("linear"))
    first, *_ = smalls(ReducedSet(), teacher)
    assert distance(first, teacher) <= 1e-6 * teacher.squared_norm


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_gradients_are_those_of_the_sum(kernel, bias):
    teacher = taught(24, bias, kernel)
    parts, rng = [Target.of(teacher).images], np.random.default_rng(1)
    Z, step = rng.normal(size=(3, 4)), 1e-5
    found = gradients(parts, Z)
    K = kernel_by_definition(kernel, Z, teacher.model.vectors, teacher.gram.points.shift)
    assert Pull.of(parts, Z).values == pytest.approx(K @ teacher.model.coef[0], rel=1e-10)
    for j in range(4):
        ahead, behind = (Pull.of(parts, Z + sign * step * np.eye(4)[j]).values for sign in (1.0, -1.0))
        assert found[:, j] == pytest.approx((ahead - behind) / (2.0 * step), rel=1e-6, abs=1e-6)


@interpreted
def test_fixed_points_are_the_twins_and_stationary():
    teacher = taught(24, "none")
    model, parts = teacher.model, [Target.of(teacher).images]
    starts = dense(model.vectors)[:5]
    Z, values = fixed_points(parts, starts, 400)
    for start, z, value in zip(starts, Z, values, strict=True):
        twin = fixed_point_twin(dense(model.vectors), model.coef[0], RBF.gamma, start, 400)
        assert z == pytest.approx(twin, abs=1e-6)
        assert abs(value) >= abs(Pull.of(parts, start[None]).values[0]) * (1.0 - 1e-12)
    best = np.argmax(np.abs(values))  # others may have come to where the sum changes its sign
    assert np.abs(gradients(parts, Z[[best]])).max() <= 1e-3 * np.abs(values[best])


def test_a_vanishing_denominator_ends_the_way():
    points = Target.of(taught(24, "none")).images.points
    parts = [Images.of(points, np.zeros(points.n_rows))]
    Z, values = fixed_points(parts, np.ones((2, 4)), 5)
    assert (Z == 1.0).all() and (values == 0.0).all()


def test_a_free_bias_is_the_best_on_weighted_rows():
    teacher = taught()
    problem = teacher.problem
    for small in smalls(ReducedSet(descents=5), teacher):
        best = optimal_bias(problem.loss, scores(small, teacher), problem.labels, problem.costs)
        assert best.low - 1e-9 <= small.bias <= best.high + 1e-9
    for small in smalls(ReducedSet(descents=0), taught(bias="none"), 4):
        assert small.bias == 0.0


def far_away(n=60, d=4) -> Table:
    table = clouds(n, d)
    return Table(table.X + 30.0, table.labels, table.weights)


def test_rows_around_another_centre_are_given_back_where_they_were():
    kernel = Kernel("rbf", gamma=0.3)
    teacher = teacher_on(far_away(), kernel=kernel, dtype=np.float32)
    assert isinstance(teacher.gram.points.centre, np.ndarray)
    small = smalls(ReducedSet(), teacher)[-1]
    assert np.abs(dense(small.vectors) - 30.0).max() < 6.0
    assert distance(small, teacher) < 0.05 * teacher.squared_norm


def test_wide_sparse_rows_give_vectors_in_the_columns_they_use():
    table, kernel = clouds(80, 6), Kernel("rbf", gamma=0.1)
    used = np.array([3, 700, 701, 20_000, 40_000, 59_999])
    entries = table.X.ravel(), (np.repeat(np.arange(80), 6), np.tile(used, 80))
    wide = Table(sp.csr_array(entries, shape=(80, 60_000)), table.labels, table.weights)
    teacher, narrow = teacher_on(wide, kernel=kernel, stored=lambda X: X), teacher_on(table, kernel=kernel)
    small, same = smalls(ReducedSet(), teacher, 4)[-1], smalls(ReducedSet(), narrow, 4)[-1]
    assert isinstance(small.vectors, CSRRows) and isinstance(same.vectors, DenseRows)
    assert small.vectors.n_columns == 60_000 and small.vectors.n_entries <= 4 * 6
    columns = dense_block(small.vectors, np.arange(4))[:, used]
    assert columns == pytest.approx(dense(same.vectors), rel=1e-3, abs=1e-3)


def test_a_seed_makes_it_reproducible():
    first, second = (smalls(ReducedSet(descents=3), taught(), 6, seed=4)[-1] for _ in range(2))
    assert (first.coefficients == second.coefficients).all() and (dense(first.vectors) == dense(second.vectors)).all()


def test_no_more_than_asked_for():
    assert smalls(ReducedSet(largest=3), taught())[-1].coefficients.size == 3
    assert smalls(ReducedSet(), taught(), 0) == []
    with pytest.raises(ValueError, match="descents must be at least 0, got -1"):
        ReducedSet(descents=-1)
