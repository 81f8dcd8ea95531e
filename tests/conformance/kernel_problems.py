"""Kernel problems for the conformance of kernel solvers: the matrix, tables with kernels, their reference optima."""

import numpy as np

from conformance.problems import TABLES, Table, matrix
from problems import optimum_of
from reference.qp_reference import Reference
from slackwater.gram import Gram
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem, kernel_problem
from slackwater.objective.kernels import Kernel, parse_kernel
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes

CLASSES = {name: cls for name, cls in solver_classes("kernel").items() if cls.convex}
CASES = matrix(CLASSES)
LOCAL = matrix({name: cls for name, cls in solver_classes("kernel").items() if not cls.convex})

#: Every table with a kernel: no columns and nothing but zeros are left to their own tests.
KERNELS = {
    "clouds": Kernel("rbf", gamma=0.3),
    "weighted": Kernel("linear"),
    "more columns than rows": Kernel("rbf", gamma=0.1),
    "zero rows": Kernel("polynomial", gamma=0.5, coef0=1.0, degree=2),
    "nothing but zeros": Kernel("linear"),
    "duplicates": Kernel("rbf", gamma=1.0),
    "contradictions": Kernel("rbf", gamma=0.3),
    "constant columns": Kernel("laplacian", gamma=0.2),
    "one class": Kernel("rbf", gamma=0.3),
    "one row": Kernel("rbf", gamma=1.0),
    "two rows": Kernel("linear"),
    "two rows of one class": Kernel("rbf", gamma=1.0),
    "more rows": Kernel("rbf", gamma=0.5),
}


def build(case, name_or_table, kernel=None, *, stored=np.asarray, dtype=np.float64, room=2**30, C=0.7) -> KernelProblem:
    """The problem of a case on a table, with the kernel that belongs to it."""
    table = TABLES[name_or_table] if isinstance(name_or_table, str) else name_or_table
    kernel = kernel or KERNELS[name_or_table if isinstance(name_or_table, str) else "clouds"]
    table = _with_weights_above_zero(table)
    rows = as_rows(stored(table.X))
    shift = 1.0 if case.bias == "penalised" else 0.0
    points = Points.of(rows, parse_kernel(kernel, rows), dtype, shift)
    return kernel_problem(Gram(points, room), table.labels, case.loss, C, table.weights, case.bias)


def _with_weights_above_zero(table: Table) -> Table:
    return table if table.weights is None else table.take(np.flatnonzero(table.weights > 0.0))


def whole(problem: KernelProblem) -> np.ndarray:
    """The kernel matrix, by a second set of points: the counts of the problem's own stay as they are."""
    points = problem.gram.points
    out = np.empty((problem.n_rows, problem.n_rows), dtype=points.dtype)
    return points.values(points.own_lines(np.arange(problem.n_rows)), out).astype(float)


def optimum(problem: KernelProblem) -> Reference:
    """From K = Z Z' a linear problem on the rows of Z, for the independent solver."""
    sizes, vectors = np.linalg.eigh(whole(problem))
    Z = vectors * np.sqrt(np.maximum(sizes, 0.0))
    bias = "none" if problem.bias == "penalised" else problem.bias  # the kernel holds the constant feature
    return optimum_of(Z, problem.labels, problem.costs, problem.loss, bias)


def primal_by_definition(problem: KernelProblem, beta: np.ndarray, b: float) -> float:
    """P in plain NumPy."""
    from reference.qp_reference import loss_value

    K = whole(problem)
    losses = problem.costs @ loss_value(problem.loss, problem.labels * (K @ beta + b))
    return problem.regularisation * (0.5 * beta @ K @ beta + losses)


def dual_by_definition(problem: KernelProblem, alpha: np.ndarray) -> float:
    """D in plain NumPy."""
    signed, loss = alpha * problem.labels, problem.loss
    quadratic = signed @ whole(problem) @ signed + loss.width * (alpha @ (alpha / problem.costs))
    return problem.regularisation * (loss.target * alpha.sum() - 0.5 * quadratic)
