"""CPSP: projected rows, the certified optimum of the restricted problem, the whole problem where all rows are in."""

import itertools

import numpy as np
import pytest

from conformance.kernel_problems import optimum, whole
from conformance.problems import Table
from kernel_runs import clouds
from problems import optimum_of
from slackwater.objective import hinge, squared_hinge
from slackwater.objective.kernels import Kernel
from slackwater.sparsify.cpsp import CPSP
from slackwater.sparsify.projection import Projection
from virtual_vectors import RBF, dense, kernel_by_definition, primal, smalls, squared_norm, taught, teacher_on

BIASES = ["none", "penalised", "free"]


def basis_values(teacher, small):
    """K_BB and K_XB, in plain NumPy."""
    if small.ids is not None:
        K = whole(teacher.problem)
        return K[np.ix_(small.ids, small.ids)], K[:, small.ids]
    points, B = teacher.gram.points, small.vectors
    return tuple(kernel_by_definition(points.kernel, X, B, points.shift) for X in (B, points.rows))


@pytest.mark.interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_rows_are_projected_on_the_span(bias):
    problem = taught(24, bias).problem
    projection, K = Projection.of(problem), whole(problem)
    ids = [3, 17, 5, 11, 0, 8, 21, 14, 2, 9]
    for i in ids:
        projection.add_row(i)
    phi = projection.features[:, : projection.size]
    projected = K[:, ids] @ np.linalg.solve(K[np.ix_(ids, ids)], K[ids])
    assert phi @ phi.T == pytest.approx(projected, abs=1e-9)
    u = np.random.default_rng(0).normal(size=10)
    beta = projection.coefficients(u)
    assert K[:, ids] @ beta == pytest.approx(phi @ u, abs=1e-8)
    assert beta @ K[np.ix_(ids, ids)] @ beta == pytest.approx(u @ u, rel=1e-8)
    assert (projection.left_of_rows(np.array(ids)) == 0.0).all()


@pytest.mark.interpreted
def test_vectors_and_rows_of_the_same_points_give_the_same():
    teacher = taught(24, "penalised")
    by_rows, by_vectors = Projection.of(teacher.problem), Projection.of(teacher.problem)
    for i in (3, 17, 5):
        by_rows.add_row(i)
        assert by_vectors.add_vector(dense(teacher.problem.rows)[i])
        assert not by_vectors.add_vector(dense(teacher.problem.rows)[i])
    assert by_vectors.features == pytest.approx(by_rows.features, abs=1e-10)


@pytest.mark.parametrize("basis", ["preimages", "sampling"])
@pytest.mark.parametrize("bias", BIASES)
def test_the_restricted_problem_is_solved(bias, basis):
    teacher = taught(bias=bias)
    problem, tol = teacher.problem, 1e-3
    for small in smalls(CPSP(basis=basis, tol=tol), teacher, 8):
        inner, across = basis_values(teacher, small)
        phi = np.linalg.solve(np.linalg.cholesky(inner), across.T).T
        best = optimum_of(phi, problem.labels, problem.costs, problem.loss, "free" if bias == "free" else "none")
        found = small.certificate
        assert found.relative_gap <= tol
        assert found.dual <= best.primal * (1.0 + 1e-9) and best.primal <= found.primal * (1.0 + 1e-9)
        assert primal(small, teacher) == pytest.approx(found.primal, rel=1e-7)


@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", BIASES)
def test_all_rows_in_the_basis_give_the_whole_problem(bias, loss):
    teacher = taught(40, bias, loss=loss)
    *_, last = smalls(CPSP(basis="sampling", tol=1e-7), teacher, 40)
    assert last.coefficients.size == 40
    best = optimum(teacher.problem)
    assert last.certificate.primal == pytest.approx(best.primal, rel=1e-6)
    assert primal(last, teacher) == pytest.approx(best.primal, rel=1e-6)


@pytest.mark.parametrize("basis", ["preimages", "sampling"])
def test_a_larger_basis_does_no_worse(basis):
    found = smalls(CPSP(basis=basis), taught(), 16)
    assert [small.coefficients.size for small in found] == [1, 2, 4, 8, 16]
    values = [small.certificate.primal for small in found]
    assert all(later <= earlier * 1.001 for earlier, later in itertools.pairwise(values))
    assert values[-1] < 0.8 * values[0]


def test_the_basis_ends_where_the_span_is_whole():
    teacher = taught(kernel=Kernel("linear"), bias="none")
    found = smalls(CPSP(tol=1e-7), teacher, 30)
    assert found[-1].coefficients.size == 4
    assert found[-1].certificate.primal == pytest.approx(optimum(teacher.problem).primal, rel=1e-6)


def test_the_kernel_decides_on_the_basis():
    assert smalls(CPSP(), taught(), 2)[0].ids is None
    polynomial = taught(kernel=Kernel("polynomial", gamma=0.5, coef0=1.0, degree=2))
    assert smalls(CPSP(), polynomial, 2)[0].ids is not None
    with pytest.raises(ValueError, match="basis='preimages' needs the rbf kernel, got 'polynomial'"):
        smalls(CPSP(basis="preimages"), polynomial, 2)
    with pytest.raises(ValueError, match="basis='x' is not known"):
        CPSP(basis="x")
    with pytest.raises(ValueError, match="sample must be at least 1, got 0"):
        CPSP(sample=0)


def test_rows_around_another_centre_are_given_back_where_they_were():
    table = clouds(60)
    far = table.X + 30.0
    teacher = teacher_on(Table(far, table.labels, table.weights), dtype=np.float32)
    assert isinstance(teacher.gram.points.centre, np.ndarray)
    small, problem = smalls(CPSP(), teacher, 8)[-1], teacher.problem
    margins = problem.labels * (kernel_by_definition(RBF, far, small.vectors) @ small.coefficients + small.bias)
    losses = problem.costs @ np.maximum(0.0, 1.0 - margins)
    value = problem.regularisation * (0.5 * squared_norm(small, teacher) + losses)
    assert value == pytest.approx(small.certificate.primal, rel=1e-3)


def test_a_precomputed_kernel_gives_training_rows():
    by_kernel = taught(40, "none")
    table = Table(whole(by_kernel.problem), by_kernel.problem.labels, by_kernel.problem.costs / 0.7)
    small = smalls(CPSP(basis="sampling"), teacher_on(table, "none", Kernel("precomputed")), 8)[-1]
    same = smalls(CPSP(basis="sampling"), by_kernel, 8)[-1]
    assert small.ids[0] == same.ids[0]  # later ones are chosen by what is left, which rounding decides
    K, problem = table.X, by_kernel.problem
    scores = K[:, small.ids] @ small.coefficients + small.bias
    square = small.coefficients @ K[np.ix_(small.ids, small.ids)] @ small.coefficients
    losses = problem.costs @ np.maximum(0.0, 1.0 - problem.labels * scores)
    assert problem.regularisation * (0.5 * square + losses) == pytest.approx(small.certificate.primal, rel=1e-3)
    assert small.certificate.primal == pytest.approx(same.certificate.primal, rel=0.1)


def test_no_more_than_asked_for_and_reproducible():
    first, second = (smalls(CPSP(largest=3), taught(), seed=7)[-1] for _ in range(2))
    assert first.coefficients.size == 3
    assert (first.coefficients == second.coefficients).all() and first.bias == second.bias
    assert smalls(CPSP(), taught(), 0) == []
