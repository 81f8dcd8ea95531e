"""Teachers for the tests of sparsifiers: dense predictors with their training rows' kernel matrix."""

import numpy as np

from kernel_runs import clouds
from slackwater.gram import Gram
from slackwater.models import KernelModel
from slackwater.objective import hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel, parse_kernel
from slackwater.rows import as_rows
from slackwater.solvers.registry import make_solver
from slackwater.sparsify.contract import Teacher
from slackwater.training import Limits, run

RBF = Kernel("rbf", gamma=0.3)


def teacher_of(X, labels, kernel=RBF, bias="free", C=1.0, weights=None, room=2**30, dtype=np.float64) -> Teacher:
    """Trained on these rows to a small gap."""
    rows = as_rows(X)
    points = Points.of(rows, parse_kernel(kernel, rows), dtype, 1.0 if bias == "penalised" else 0.0)
    problem = kernel_problem(Gram(points, room), labels, hinge(), C, weights, bias)
    model = run(problem, make_solver("blocked-smo"), Limits(tol=1e-6), rng=0).model
    return Teacher(model, problem)


def teacher(n=80, d=4, seed=5, **options) -> Teacher:
    """Of two overlapping clouds."""
    table = clouds(n, d, seed, weighted=False)
    return teacher_of(table.X, table.labels, **options)


def with_values(found: Teacher, coefficients, bias=0.0) -> Teacher:
    """The same rows under another predictor."""
    model = KernelModel.from_points(found.gram.points, np.asarray(coefficients, dtype=float), bias)
    return Teacher(model, found.problem)


def spread(small, n) -> np.ndarray:
    """Its coefficients as a vector over the training rows."""
    beta = np.zeros(n)
    beta[small.ids] = small.coefficients
    return beta


def values_of(teacher: Teacher, small) -> np.ndarray:
    """Its decision values on the training rows."""
    return matrix_of(teacher) @ spread(small, teacher.problem.n_rows) + small.bias


def matrix_of(teacher: Teacher) -> np.ndarray:
    """K, by a second set of points."""
    points = teacher.gram.points
    out = np.empty((points.n_rows, points.n_rows), dtype=points.dtype)
    return points.values(points.own_lines(np.arange(points.n_rows)), out).astype(float)
