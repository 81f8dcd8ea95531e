"""Kernel solvers at the limits: matrices that say nothing or too much, rows of any size, threads, caches, counts."""

import numpy as np
import pytest

from conformance.kernel_problems import CASES, build, optimum, whole
from conformance.kernel_running import path, settle
from conformance.problems import CLOUDS, WEIGHTED, Case, Table, variants
from conformance.running import ROUNDING, agree, at_zero, close
from slackwater import threads
from slackwater.compiled import JIT
from slackwater.gram import gram
from slackwater.models import kernel as kernel_model
from slackwater.objective import certify, kernel_panels, kernel_points
from slackwater.objective.kernels import Kernel
from slackwater.solvers.kernel.kernel_solver import DualKernelSolver
from slackwater.solvers.registry import solver_classes

RBF, LINEAR = Kernel("rbf", gamma=0.3), Kernel("linear")
CAPPED = [case for case in CASES if np.isfinite(case.loss.cap)]
SHRINKING = [case for case in variants(solver_classes("kernel")) if dict(case.changed).get("shrinking") is False]


def pytest_generate_tests(metafunc):
    """Every test that asks for a ``kernel_case`` meets all that the registry knows."""
    if "kernel_case" in metafunc.fixturenames:
        metafunc.parametrize("kernel_case", CASES, ids=str)


def constant(A, B):
    return np.full((len(A), len(B)), 0.5)


# ------------------------------------------------------------------------------------------ matrices at the limits

ALL_EQUAL = Table(np.tile([0.5, -1.0, 0.25], (12, 1)), np.where(np.arange(12) % 3 == 0, 1.0, -1.0))

DEGENERATE = {
    "equal rows": (ALL_EQUAL, RBF),
    "equal rows of one class": (ALL_EQUAL._replace(labels=np.ones(12)), RBF),
    "constant kernel": (WEIGHTED, Kernel("callable", function=constant)),
    "rank one": (WEIGHTED._replace(X=WEIGHTED.X[:, :1]), LINEAR),
    "identity": (CLOUDS, Kernel("rbf", gamma=1e6)),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_matrices_that_say_nothing_have_their_optimum(kernel_case, name):
    problem = build(kernel_case, *DEGENERATE[name])
    best, found = optimum(problem), settle(kernel_case, problem).certificate
    gap = max(found.gap, 1e-8)
    assert best.primal - gap - 1e-8 <= found.dual <= best.primal + 1e-8
    assert best.dual - 1e-8 <= found.primal <= best.primal + gap + 1e-8


@pytest.mark.parametrize("case", CAPPED, ids=str)
def test_indefinite_matrices_leave_a_point_of_the_box_and_a_true_value(case):
    """No bound holds where the matrix has negative directions; what is reported is what the definitions give."""
    problem = build(case, CLOUDS, Kernel("sigmoid", gamma=0.7, coef0=-1.0))
    sizes = np.linalg.eigvalsh(whole(problem))
    assert sizes[0] < -0.1 and sizes[-1] > 0.1
    solver, rng = case.new(), np.random.default_rng(0)
    state = solver.start(problem, rng)
    for _ in range(20 if JIT else 2):
        solver.advance(problem, state)
        weights, point = solver.model(problem, state).weights(), solver.dual_point(problem, state)
        found = certify(problem, weights, point)
        assert np.isfinite(found.weights).all() and np.isfinite(found.certificate.primal)
        if found.alpha is not None:
            assert (found.alpha >= 0.0).all()
            assert (found.alpha <= case.loss.cap * problem.costs * (1.0 + 1e-12)).all()
        same = found.alpha is not None and np.allclose(found.alpha * problem.labels, found.weights[:-1], rtol=1e-9)
        if same and issubclass(case.cls, DualKernelSolver):  # P - D of one point is a sum of terms of at least 0
            assert found.certificate.dual <= found.certificate.primal + ROUNDING


# --------------------------------------------------------------------------------------------------- sizes, copies


@pytest.mark.parametrize(
    "size, kernel", [(1e-8, LINEAR), (1e8, Kernel("polynomial", 0.5, 1.0, 2))], ids=["tiny", "huge"]
)
def test_rows_of_any_size_have_valid_bounds(kernel_case, kernel, size):
    found = path(kernel_case, build(kernel_case, CLOUDS._replace(X=CLOUDS.X * size), kernel), 6)
    slack = 1e-9 * at_zero(kernel_case.loss)
    for record in found.history:
        assert np.isfinite([record.primal, record.dual]).all()
        assert record.dual <= record.primal + slack
    assert 0.0 <= found.certificate.dual <= found.certificate.primal + slack
    assert found.certificate.primal <= at_zero(kernel_case.loss) + slack
    assert np.isfinite(found.model.coef).all() and np.isfinite(found.model.intercept).all()


def test_sizes_that_the_kernel_takes_back_change_nothing(kernel_case):
    """x -> 8 x with gamma -> gamma / 64."""
    here = path(kernel_case, build(kernel_case, CLOUDS, RBF), 4)
    there = path(kernel_case, build(kernel_case, CLOUDS._replace(X=8.0 * CLOUDS.X), Kernel("rbf", 0.3 / 64.0)), 4)
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.primal, one.dual) == pytest.approx((other.primal, other.dual), rel=1e-9, abs=1e-12)


def test_doubled_rows_at_half_of_C(kernel_case):
    """The same P of the same w."""
    once = settle(kernel_case, build(kernel_case, CLOUDS))
    twice = settle(kernel_case, build(kernel_case, CLOUDS.take(np.repeat(np.arange(30), 2)), C=0.35))
    assert agree(once, twice)


# ------------------------------------------------------------------------------------- threads, shrinking, counts


def test_threads_change_nothing_but_rounding(kernel_case, monkeypatch):
    monkeypatch.setattr(threads, "_LEAST", 1)
    found = []
    for count in (1, 2):
        for module in (gram, kernel_points, kernel_panels, kernel_model):
            monkeypatch.setattr(module, "thread_count", lambda wanted, count=count: count)
        found.append(path(kernel_case, build(kernel_case, WEIGHTED, RBF), 6))
    for one, other in zip(*(answer.history for answer in found), strict=True):
        assert (one.primal, one.dual) == pytest.approx((other.primal, other.dual), rel=1e-9, abs=1e-12)
        assert (one.row_requests, one.kernel_evaluations) == (other.row_requests, other.kernel_evaluations)
    values = [answer.model.decision_values(WEIGHTED.X) for answer in found]
    assert values[0] == close(values[1], 1e-8)


@pytest.mark.parametrize("case", SHRINKING, ids=str)
def test_shrinking_leads_to_the_same_optimum(case):
    problems = build(case, "more rows"), build(case, "more rows")
    plain = Case(case.name, case.cls, case.loss, case.bias)
    assert plain.new().shrinking
    assert agree(settle(case, problems[0]), settle(plain, problems[1]))


@pytest.mark.parametrize("room", [1, 2**30], ids=["small cache", "cache"])
def test_every_evaluation_is_a_call_of_the_kernel(kernel_case, room, monkeypatch):
    """With squares of values that are computed apart from rows, and rows that are forgotten."""
    monkeypatch.setattr(gram, "_LEAST_ROWS", 6)
    monkeypatch.setattr(gram, "_SHORT", 0)
    calls = []

    def counting(A, B):
        calls.append(len(A) * len(B))
        return np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    problem = build(kernel_case, WEIGHTED, Kernel("callable", function=counting), room=room)
    assert problem.gram.capacity == (6 if room == 1 else 30)
    calls.clear()  # the diagonal
    found = path(kernel_case, problem, 5)
    assert problem.gram.evaluations == sum(calls) > 0
    counted = [record.kernel_evaluations for record in found.history]
    assert counted == sorted(counted) and counted[-1] <= sum(calls)
