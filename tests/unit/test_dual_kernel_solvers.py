"""All solvers of the kernel dual against each other: their proven intervals around the optimum overlap."""

import numpy as np
import pytest

from kernel_runs import case_of, clouds, problem_of
from problems import LOSSES, loss_id
from slackwater.solvers.kernel.kernel_solver import DualKernelSolver
from slackwater.solvers.registry import solver_classes
from slackwater.training import Limits, run

SOLVERS = [n for n, cls in solver_classes("kernel").items() if issubclass(cls, DualKernelSolver) and cls.convex]


def test_they_are_all_here():
    assert {"blocked-smo", "chunking", "kernel-sdca", "smo", "svm-light"} <= set(SOLVERS)


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_they_agree(loss, bias):
    found = {}
    for name in SOLVERS:
        problem = problem_of(clouds(320), loss, bias, dtype=np.float64)
        solver = case_of(name, loss, bias).new()
        found[name] = run(problem, solver, Limits(tol=1e-5, max_rounds=500), rng=0).certificate
        assert found[name].relative_gap <= 1e-5, name
    best = max(certificate.dual for certificate in found.values())
    for name, certificate in found.items():
        assert certificate.primal >= best * (1.0 - 1e-10), name
        assert certificate.primal <= best * (1.0 + 2.1e-5), name


@pytest.mark.parametrize("name", SOLVERS)
def test_every_row_is_computed_once_where_all_fit(name):
    problem = problem_of(clouds(320), LOSSES[0], "free")
    run(problem, case_of(name, LOSSES[0], "free").new(), Limits(tol=1e-6, max_rounds=300), rng=0)
    kept = int((problem.gram.kept.slots >= 0).sum())
    assert problem.gram.evaluations == 320 * kept
