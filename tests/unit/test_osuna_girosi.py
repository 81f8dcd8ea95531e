"""Osuna-Girosi: its own gap, agreement with a twin and with LIBSVM's regression, the ends of the path of tubes."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm

from conformance.kernel_problems import whole
from reference.osuna_girosi_twin import gap_of, osuna_girosi_twin
from slackwater.objective.kernels import Kernel
from slackwater.sparsify import osuna_girosi
from slackwater.sparsify.contract import registered
from slackwater.sparsify.osuna_girosi import TUBES, OsunaGirosi
from slackwater.training import Status
from sparsifying import spread
from teachers import smalls, teacher_of

BIASES = ("none", "penalised", "free")


def value_of(K, values, costs, epsilon, beta):
    return 0.5 * beta @ K @ beta + costs @ np.maximum(np.abs(values - K @ beta) - epsilon, 0.0)


def parts_of(teacher):
    return whole(teacher.problem), teacher.values - teacher.bias, teacher.problem.costs


@pytest.mark.parametrize("bias", BIASES)
def test_agrees_with_the_twin(bias):
    teacher = teacher_of(40, bias)
    K, values, costs = parts_of(teacher)
    (small,) = smalls(OsunaGirosi(epsilon=0.2, tol=1e-9), teacher)
    beta = spread(small, 40)
    twin = osuna_girosi_twin(K, values, costs, 0.2)
    assert value_of(K, values, costs, 0.2, beta) == pytest.approx(value_of(K, values, costs, 0.2, twin), rel=1e-6)
    np.testing.assert_array_equal(beta != 0.0, np.abs(twin) > 1e-9)
    assert small.bias == teacher.bias


def test_the_certificate_is_its_own_gap():
    teacher = teacher_of(60)
    K, values, costs = parts_of(teacher)
    found = smalls(OsunaGirosi(tol=1e-4), teacher)
    assert len(found) == len(TUBES)
    for epsilon, small in zip(TUBES, found, strict=True):
        beta, lam = spread(small, 60), teacher.problem.regularisation
        assert (np.abs(beta) <= costs).all()
        assert small.certificate.relative_gap <= 1e-4
        primal = lam * value_of(K, values, costs, epsilon, beta)
        assert primal == pytest.approx(small.certificate.primal, rel=1e-9)
        assert lam * gap_of(K, values, costs, epsilon, beta) >= small.certificate.gap - 1e-12


def test_agrees_with_libsvm():
    teacher = teacher_of(80, "none")  # LIBSVM's regression has a free bias: its value can only be lower
    K, values, costs = parts_of(teacher)
    teacher.problem.costs[:] = 0.7
    peer = sklearn.svm.SVR(kernel="precomputed", C=0.7, epsilon=0.1, tol=1e-10).fit(K, values)
    shifted = values - peer.intercept_[0]
    beta = np.zeros(80)
    beta[peer.support_] = peer.dual_coef_[0]
    target = osuna_girosi.Target(teacher.gram, shifted, costs, 0.0)
    (small,) = osuna_girosi.imitations(target, (0.1,), 1e-9, 80, np.random.default_rng(0))
    assert value_of(K, shifted, costs, 0.1, spread(small, 80)) == pytest.approx(
        value_of(K, shifted, costs, 0.1, beta), rel=1e-6
    )


def test_no_tube_at_all_reproduces_w():
    teacher = teacher_of(50)
    K, values, _ = parts_of(teacher)
    (small,) = smalls(OsunaGirosi(epsilon=0.0, tol=1e-12), teacher)
    apart = spread(small, 50)
    apart[teacher.model.support] -= teacher.model.coef[0]
    assert apart @ K @ apart <= 1e-8 * teacher.squared_norm
    np.testing.assert_allclose(K @ spread(small, 50), values, atol=1e-4)


def test_a_tube_around_everything_needs_no_vector():
    teacher = teacher_of(50)
    widest = float(np.abs(teacher.values - teacher.bias).max())
    (small,) = smalls(OsunaGirosi(epsilon=1.001 * widest), teacher)
    assert small.ids.size == small.coefficients.size == 0
    assert small.certificate.primal == small.certificate.dual == 0.0


def test_fewer_vectors_than_asked_for_and_the_widest_tubes_first():
    teacher = teacher_of(120)
    sizes = [small.ids.size for small in smalls(OsunaGirosi(), teacher, most=15)]
    assert sizes and max(sizes) <= 15 and sizes[0] == 0 and sizes[-1] > 0
    all_sizes = [small.ids.size for small in smalls(OsunaGirosi(), teacher)]
    assert all_sizes[: len(sizes)] == sizes and all_sizes[len(sizes)] > 15


def test_dense_and_sparse_rows_give_the_same():
    first, second = (smalls(OsunaGirosi(0.1), teacher_of(60, stored=how)) for how in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(spread(first[0], 60), spread(second[0], 60), atol=1e-9)


def test_a_kernel_matrix_that_was_computed_before():
    table_teacher = teacher_of(30)
    K = whole(table_teacher.problem)
    from conformance.problems import Table

    teacher = teacher_of(table=Table(K, table_teacher.problem.labels, None), kernel=Kernel("precomputed"))
    (small,) = smalls(OsunaGirosi(epsilon=0.0, tol=1e-12), teacher)
    np.testing.assert_allclose(K @ spread(small, 30) + small.bias, teacher.values, atol=1e-4)


def test_settings():
    method = registered()["osuna-girosi"]()
    assert TUBES[0] == 16.0 and TUBES[-1] == 2.0**-16 and method.grid(None) == [method]
    with pytest.raises(ValueError, match="epsilon must be None or a finite number"):
        OsunaGirosi(epsilon=-1.0)
    with pytest.raises(ValueError, match="tol must be"):
        OsunaGirosi(tol=-1.0)


def test_an_interrupted_run_is_no_predictor(monkeypatch):
    teacher, run = teacher_of(30), osuna_girosi.run

    def interrupted(*arguments, **options):
        from dataclasses import replace

        return replace(run(*arguments, **options), status=Status("interrupted", "interrupted"))

    monkeypatch.setattr(osuna_girosi, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        smalls(OsunaGirosi(0.1), teacher)
