"""Teachers, and what predictors with vectors of their own are by definition, for the tests of sparsifiers."""

from functools import cache

import numpy as np

from conformance.kernel_problems import whole
from kernel_runs import clouds
from reference.qp_reference import loss_value
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_matrix
from slackwater.sparsify.contract import Small, Teacher
from teachers import teacher_of

RBF = Kernel("rbf", gamma=0.3)


@cache
def taught(n=60, bias="free", kernel=RBF, loss=None, weighted=True, seed=5) -> Teacher:
    """Trained to the limit on two clouds, in float64."""
    return teacher_on(clouds(n, seed=seed, weighted=weighted), bias, kernel, loss)


def teacher_on(table, bias="free", kernel=RBF, loss=None, **options) -> Teacher:
    """Trained to the limit on a table."""
    return teacher_of(bias=bias, kernel=kernel, table=table, loss=loss, **options)


def smalls(method, teacher, most=16, seed=0) -> list[Small]:
    """All predictors of a sequence."""
    return list(method.sequence(teacher, most, np.random.default_rng(seed)))


def kernel_by_definition(kernel, X, Z, shift=0.0) -> np.ndarray:
    """K(x, z) in plain NumPy."""
    X, Z = dense(X), dense(Z)
    if kernel.name == "rbf":
        return np.exp(-kernel.gamma * ((X[:, None, :] - Z[None]) ** 2).sum(axis=2)) + shift
    if kernel.name == "linear":
        return X @ Z.T + shift
    return (kernel.gamma * X @ Z.T + kernel.coef0) ** kernel.degree + shift


def dense(rows) -> np.ndarray:
    values = as_matrix(rows) if hasattr(rows, "n_rows") else rows
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)


def scores(small: Small, teacher: Teacher, X=None) -> np.ndarray:
    """<v, Phi(x)> without the bias, of the training rows unless others are given."""
    points = teacher.gram.points
    if small.ids is not None:
        return whole(teacher.problem)[:, small.ids] @ small.coefficients
    rows = teacher.problem.rows if X is None else X
    return kernel_by_definition(points.kernel, rows, small.vectors, points.shift) @ small.coefficients


def squared_norm(small: Small, teacher: Teacher) -> float:
    """||v||^2."""
    points = teacher.gram.points
    if small.ids is not None:
        K = whole(teacher.problem)[np.ix_(small.ids, small.ids)]
    else:
        K = kernel_by_definition(points.kernel, small.vectors, small.vectors, points.shift)
    return float(small.coefficients @ K @ small.coefficients)


def primal(small: Small, teacher: Teacher) -> float:
    """P of the predictor on the teacher's problem."""
    problem = teacher.problem
    margins = problem.labels * (scores(small, teacher) + small.bias)
    losses = problem.costs @ loss_value(problem.loss, margins)
    return problem.regularisation * (0.5 * squared_norm(small, teacher) + losses)


def distance(small: Small, teacher: Teacher) -> float:
    """E = ||w - v||^2."""
    model, points = teacher.model, teacher.gram.points
    own = kernel_by_definition(points.kernel, model.vectors, model.vectors, points.shift)
    across = kernel_by_definition(points.kernel, model.vectors, small.vectors, points.shift)
    a = model.coef[0]
    return float(a @ own @ a - 2.0 * a @ across @ small.coefficients) + squared_norm(small, teacher)
