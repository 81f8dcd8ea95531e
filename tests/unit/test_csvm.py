"""CSVM: merging by its formulas, the box and the budget, the plain incremental SVM at threshold 0."""

import numpy as np
import pytest

from conformance.kernel_problems import optimum, whole
from conformance.problems import Table
from kernel_runs import clouds
from problems import LOSSES, loss_id
from slackwater.objective.bias import optimal_bias
from slackwater.objective.kernels import Kernel
from slackwater.sparsify import csvm
from slackwater.sparsify.condensed import WorkingSet
from slackwater.sparsify.csvm import CSVM
from virtual_vectors import RBF, dense, kernel_by_definition, primal, scores, smalls, taught, teacher_on

interpreted = pytest.mark.interpreted


def working_set(ids, n=24, bias="free", room=30):
    work = WorkingSet.of(taught(n, bias).problem, room)
    work.add(np.array(ids))
    return work


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_the_matrix_is_that_of_the_members(bias):
    work = working_set([3, 7, 1, 20, 11, 5], bias=bias)
    work.optimise(1e-10)
    _, i, j = work.nearest()
    work.merge(i, j)
    work.remove(1)
    work.add(np.array([2]))
    members, points = work.vectors[: work.size], work.problem.gram.points
    K = kernel_by_definition(RBF, members, members, points.shift)
    assert work.K[: work.size, : work.size] == pytest.approx(K, abs=1e-12)
    here = np.sort(np.concatenate(work.rows))
    assert (np.flatnonzero(work.inside) == here).all()
    f = kernel_by_definition(RBF, points.rows, members, points.shift) @ work.beta[: work.size] + work.bias
    assert work.scores(np.arange(24)) == pytest.approx(f, abs=1e-12)


@interpreted
def test_merging_follows_its_formulas():
    work = working_set(range(12))
    work.optimise(1e-10)
    distance, i, j = work.nearest()
    K, y, C = work.K[:12, :12].copy(), work.labels[:12].copy(), work.costs[:12].copy()
    alpha, v = work.beta[:12] * y, work.vectors[:12].copy()
    apart = np.add.outer(np.diag(K), np.diag(K)) - 2.0 * K
    apart[np.not_equal.outer(y, y) | np.eye(12, dtype=bool)] = np.inf
    assert distance == apart.min() == apart[i, j]
    work.merge(i, j)
    zeta = (C[i] * v[i] + C[j] * v[j]) / (C[i] + C[j])
    k = np.exp(-RBF.gamma * ((v[[i, j]] - zeta) ** 2).sum(axis=1))
    assert work.vectors[10] == pytest.approx(zeta)
    assert work.costs[10] == pytest.approx(C[[i, j]] @ k)
    assert work.beta[10] == pytest.approx(y[i] * min(alpha[[i, j]] @ k, C[[i, j]] @ k))
    assert work.size == 11 and sorted(work.rows[10]) == sorted([i, j])


@interpreted
def test_merging_equal_points_keeps_the_caps():
    problem = taught(24).problem
    work = WorkingSet.of(problem, 4)
    work.add(np.array([5, 5]))
    work.merge(0, 1)
    assert work.costs[0] == pytest.approx(2.0 * problem.costs[5])


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[1], LOSSES[4]], ids=loss_id)
def test_without_merging_it_is_the_incremental_svm(loss, bias):
    teacher = taught(bias=bias, loss=loss)
    *_, last = smalls(CSVM(threshold=0.0, scans=60, tolerance=1e-8), teacher, 60)
    assert primal(last, teacher) == pytest.approx(optimum(teacher.problem).primal, rel=1e-6)


@pytest.mark.parametrize("threshold", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("bias", ["none", "free"])
def test_the_budget_and_the_box_hold(bias, threshold, monkeypatch):
    teacher, sizes = taught(bias=bias), []
    optimise = WorkingSet.optimise

    def watched(work, tolerance):
        steps = optimise(work, tolerance)
        alpha, m = work.beta[: work.size] * work.labels[: work.size], work.size
        assert (alpha >= 0.0).all() and (alpha <= work.costs[:m]).all()
        if bias == "free":
            assert abs(work.beta[:m].sum()) <= 1e-9 * max(1.0, alpha.sum())
        sizes.append(m)
        return steps

    monkeypatch.setattr(WorkingSet, "optimise", watched)
    found = smalls(CSVM(threshold=threshold, scans=2), teacher, 10)
    assert max(sizes) <= 10
    assert all(0 < small.coefficients.size <= 10 for small in found)
    assert np.mean(np.sign(scores(found[-1], teacher) + found[-1].bias) != teacher.problem.labels) < 0.35


def test_rows_that_are_repeated_are_merged_into_one():
    table = clouds(30, weighted=False)
    once = teacher_on(table, C=1.4)
    doubled = Table(np.vstack((table.X, table.X)), np.tile(table.labels, 2), None)
    method = CSVM(threshold=1e-9, scans=60, tolerance=1e-8)
    *_, last = smalls(method, teacher_on(doubled, C=0.7), 60)
    assert last.coefficients.size <= 30
    assert primal(last, once) == pytest.approx(optimum(once.problem).primal, rel=1e-6)


def test_weights_are_costs():
    table = clouds(30)
    whole_numbers = np.arange(30) % 3 + 1.0
    repeated = Table(table.X.repeat(whole_numbers.astype(int), axis=0), table.labels.repeat(whole_numbers.astype(int)))
    weighted = teacher_on(Table(table.X, table.labels, whole_numbers))
    method = CSVM(threshold=1e-9, scans=60, tolerance=1e-8)
    one, other = (smalls(method, t, 60)[-1] for t in (weighted, teacher_on(repeated)))
    assert scores(one, weighted) + one.bias == pytest.approx(scores(other, weighted) + other.bias, abs=1e-5)


def test_a_free_bias_is_the_best_on_the_training_rows():
    teacher = taught()
    problem = teacher.problem
    for small in smalls(CSVM(), teacher, 12):
        best = optimal_bias(problem.loss, scores(small, teacher), problem.labels, problem.costs)
        assert best.low - 1e-9 <= small.bias <= best.high + 1e-9


def test_rows_around_another_centre_are_given_back_where_they_were():
    table = clouds(60)
    far = Table(table.X + 30.0, table.labels, table.weights)
    teacher = teacher_on(far, dtype=np.float32)
    assert isinstance(teacher.gram.points.centre, np.ndarray)
    near = smalls(CSVM(), teacher_on(table, dtype=np.float32), 8)[-1]
    small = smalls(CSVM(), teacher, 8)[-1]
    assert np.abs(dense(small.vectors) - 30.0).max() < 6.0
    assert small.coefficients.size == near.coefficients.size


def test_other_kernels_and_one_class():
    for kernel in (Kernel("linear"), Kernel("polynomial", gamma=0.5, coef0=1.0, degree=2), Kernel("laplacian", 0.3)):
        assert smalls(CSVM(), taught(kernel=kernel), 8)[-1].coefficients.size <= 8
    alone = teacher_on(Table(clouds(10).X, np.ones(10), None))
    assert smalls(CSVM(), alone, 8) == smalls(CSVM(), taught(), 0) == []
    assert whole(alone.problem).shape == (10, 10)


def test_what_is_too_wide_is_told(monkeypatch):
    monkeypatch.setattr(csvm, "_MOST_NUMBERS", 200)
    with pytest.raises(ValueError, match="csvm merges rows into dense points: 30 of 4 columns are too many"):
        smalls(CSVM(), taught(), 30)
    with pytest.raises(ValueError, match="threshold must be at least 0, got -1"):
        CSVM(threshold=-1)
