"""Zhan-Shen: curvatures against whole Hessians and known surfaces, the way to the surface, who leaves, retraining."""

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.kernel_problems import whole
from slackwater.gram import Gram
from slackwater.models import KernelModel
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows, take
from slackwater.solvers.kernel.blocked_smo import BlockedSMO
from slackwater.sparsify import curvature, zhan_shen
from slackwater.sparsify.contract import Teacher, registered
from slackwater.sparsify.curvature import DIFFERENTIABLE, Surface, bends_near
from slackwater.sparsify.osuna_girosi import OsunaGirosi
from slackwater.sparsify.zhan_shen import PERCENTS, ZhanShen, curvatures
from slackwater.training import Limits, run
from sparsifying import spread
from teachers import smalls, teacher_of

KERNELS = [
    Kernel("rbf", gamma=0.4),
    Kernel("polynomial", 0.5, 1.0, 3),
    Kernel("polynomial", 0.7, 0.0, 2),
    Kernel("polynomial", 0.5, 1.0, 1),
    Kernel("sigmoid", 0.3, 0.2),
    Kernel("linear"),
]


def model_of(kernel, vectors, coefficients, bias):
    count = len(coefficients)
    return KernelModel(
        kernel, as_rows(vectors), np.asarray(coefficients)[None], np.array([bias]), np.arange(count, dtype=np.int64)
    )


def surface(kernel, m=9, d=4, seed=0, stored=np.asarray):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(m, d))
    return Surface.of(model_of(kernel, stored(vectors), rng.normal(size=m), 0.1))


def slope_by_differences(f, x, step=1e-5):
    lines = step * np.eye(x.size)
    return np.array([(f(x + e) - f(x - e)) / (2.0 * step) for e in lines])


def bend_by_definition(shape, x):
    """The tangential Hessian, from differences of gradients."""
    gradient = shape.slope(x[None]).gradients[0]
    n = gradient / np.linalg.norm(gradient)
    H = slope_by_differences(lambda y: shape.slope(y[None]).gradients[0], x)
    P = np.eye(x.size) - np.outer(n, n)
    return np.linalg.norm(P @ H @ P) / np.linalg.norm(gradient)


# ------------------------------------------------------------------------------------------------------ the surface


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name}{kernel.degree}")
def test_gradients_are_those_of_the_values(kernel):
    shape, x = surface(kernel), np.random.default_rng(1).normal(size=(5, 4))
    found = shape.slope(x)
    for i in range(5):
        expected = slope_by_differences(lambda y: shape.slope(y[None]).values[0], x[i])
        np.testing.assert_allclose(found.gradients[i], expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("m", [9, 30])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name}{kernel.degree}")
def test_curvatures_are_those_of_the_whole_hessian(kernel, m, monkeypatch):
    """With fewer vectors than pairs of columns, and with more; in strips and pieces."""
    monkeypatch.setattr(curvature, "_STRIP", 4)
    monkeypatch.setattr(curvature, "_PIECE", 2 * m)
    shape, x = surface(kernel, m), np.random.default_rng(2).normal(size=(5, 4))
    expected = [bend_by_definition(shape, point) for point in x]
    np.testing.assert_allclose(shape.curvatures(x), expected, rtol=1e-5, atol=1e-6)


def test_values_are_those_of_the_model():
    teacher = teacher_of(60, "penalised")
    shape = Surface.of(teacher.model)
    np.testing.assert_allclose(shape.slope(teacher.problem.rows.values).values, teacher.values, atol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_spheres(d, radius):
    """||x||^2 = radius^2 by a polynomial of the unit vectors; the level of one Gaussian."""
    x = np.random.default_rng(0).normal(size=(6, d))
    squares = model_of(Kernel("polynomial", 1.0, 0.0, 2), np.eye(d), np.ones(d), -(radius**2))
    bell = model_of(Kernel("rbf", 0.1), np.zeros((1, d)), np.ones(1), -float(np.exp(-0.1 * radius**2)))
    for shape in (Surface.of(squares), Surface.of(bell)):
        there, arrived = shape.projected(x)
        assert arrived.all()
        np.testing.assert_allclose(np.linalg.norm(there, axis=1), radius, rtol=1e-6)
        np.testing.assert_allclose(shape.curvatures(there), np.sqrt(d - 1) / radius, rtol=1e-6)


def test_planes_do_not_bend():
    flat = surface(Kernel("linear"))
    assert (bends_near(flat, as_rows(np.eye(4)), np.arange(4)) == 0.0).all()
    assert (flat.curvatures(np.eye(4)) <= 1e-7).all()


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda kernel: kernel.name)
def test_points_come_to_the_surface_and_never_away_from_it(kernel):
    shape, x = surface(kernel, 30), np.random.default_rng(3).normal(size=(40, 4))
    there, arrived = shape.projected(x)
    before, after = np.abs(shape.slope(x).values), np.abs(shape.slope(there).values)
    assert (after <= before).all() and np.mean(after <= 1e-8) > 0.8
    np.testing.assert_array_equal(arrived, after <= 1e-3 * before.max())
    assert (bends_near(shape, as_rows(x), np.arange(40))[~arrived] == 0.0).all()


def test_without_a_gradient_there_is_no_curvature():
    shape = Surface.of(model_of(Kernel("rbf", 1.0), np.zeros((1, 3)), np.ones(1), -0.5))
    x = np.array([[0.0, 0.0, 0.0], [1e3, 0.0, 0.0]])
    np.testing.assert_array_equal(shape.projected(x)[0], x)
    np.testing.assert_array_equal(shape.curvatures(x), 0.0)


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda kernel: kernel.name)
def test_sparse_vectors_and_small_blocks(kernel, monkeypatch):
    dense, sparse = (surface(kernel, 30, stored=how) for how in (np.asarray, sp.csr_array))
    rows, ids = as_rows(sp.csr_array(np.random.default_rng(5).normal(size=(12, 4)))), np.arange(2, 11)
    expected = bends_near(dense, rows, ids)
    monkeypatch.setattr(curvature, "_NUMBERS", 60)
    np.testing.assert_allclose(bends_near(sparse, rows, ids), expected, rtol=1e-9)


def test_kernel_values_in_float32_change_little():
    exact, single = (teacher_of(80, dtype=dtype) for dtype in (np.float64, np.float32))
    ids = np.arange(80)
    np.testing.assert_allclose(curvatures(single, ids), curvatures(exact, ids), rtol=1e-3)


# --------------------------------------------------------------------------------------------------------- the method


def test_the_most_bent_support_vectors_leave():
    teacher = teacher_of(80)
    ids = np.flatnonzero(teacher.problem.labels * teacher.values <= 1.01)
    assert set(teacher.model.support) <= set(ids)
    bends = curvatures(teacher, ids)
    gone = np.setdiff1d(np.arange(80), ZhanShen(percent=40).kept(teacher))
    assert gone.size == int(0.4 * ids.size) and set(gone) <= set(ids)
    assert bends[np.isin(ids, gone)].min() >= bends[~np.isin(ids, gone)].max()


def test_a_grid_shares_the_curvatures(monkeypatch):
    teacher, calls = teacher_of(50), []
    alone = [ZhanShen(percent).kept(teacher) for percent in PERCENTS]
    monkeypatch.setattr(zhan_shen, "bends_near", lambda *given: calls.append(1) or bends_near(*given))
    settings = ZhanShen().grid(teacher)
    for setting, expected in zip(settings, alone, strict=True):
        np.testing.assert_array_equal(setting.kept(teacher), expected)
    assert len(calls) == 1 and settings[2] == ZhanShen(30.0)
    settings[0].kept(teacher_of(40))
    assert len(calls) == 2


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
def test_imitates_a_machine_trained_on_the_rest(bias):
    """Costs and kind of bias are the teacher's; without a tube the imitation is that machine."""
    teacher = teacher_of(70, bias)
    method = ZhanShen(percent=30, epsilon=0.0, tol=1e-11)
    kept, (small,) = method.kept(teacher), smalls(method, teacher)
    old = teacher.problem
    rows = take(old.rows, kept)
    gram = Gram(Points.of(rows, old.gram.points.kernel, np.float64, old.gram.points.shift), 2**20)
    problem = type(old)(gram, old.labels[kept], old.costs[kept], old.loss, bias)
    expected = run(problem, BlockedSMO(), Limits(tol=1e-11), rng=0).model
    values = whole(old)[:, small.ids] @ small.coefficients + small.bias
    np.testing.assert_allclose(values[kept], expected.decision_values(rows), atol=1e-4)
    assert set(small.ids) <= set(kept)


def test_nobody_leaves_at_no_percent():
    teacher = teacher_of(60)
    first, second = smalls(ZhanShen(percent=0, epsilon=0.1, tol=1e-9), teacher), smalls(OsunaGirosi(0.1, 1e-9), teacher)
    np.testing.assert_allclose(spread(first[0], 60), spread(second[0], 60), atol=1e-3)


def test_rows_far_from_the_origin():
    """Points around their mean and vectors where they were given: the same surface."""
    near = teacher_of(60)
    rows = as_rows(near.problem.rows.values + 300.0)
    gram = Gram(Points.of(rows, near.model.kernel, np.float64), 2**20)
    assert isinstance(gram.points.centre, np.ndarray)
    old = near.problem
    problem = type(old)(gram, old.labels, old.costs, old.loss, old.bias)
    far = Teacher(run(problem, BlockedSMO(), Limits(tol=1e-10), rng=0).model, problem)
    ids = np.arange(60)
    np.testing.assert_allclose(curvatures(far, ids), curvatures(near, ids), rtol=1e-3)


def test_one_class_does_not_vanish():
    teacher = teacher_of(12)
    teacher.problem.labels[:] = np.where(np.arange(12) == 0, 1.0, -1.0)
    kept = ZhanShen(percent=99).kept(teacher)
    assert {-1.0, 1.0} <= set(teacher.problem.labels[kept])


def test_settings():
    method = registered()["zhan-shen"]()
    assert method.kernels == DIFFERENTIABLE and [s.percent for s in method.grid(None)] == list(PERCENTS)
    with pytest.raises(ValueError, match="kernel 'laplacian' has no curvature"):
        smalls(method, teacher_of(20, kernel=Kernel("laplacian", 0.3)))
    with pytest.raises(ValueError, match="percent must lie in"):
        ZhanShen(percent=100.0)
    with pytest.raises(ValueError, match="epsilon must be None"):
        ZhanShen(epsilon=-1.0)
