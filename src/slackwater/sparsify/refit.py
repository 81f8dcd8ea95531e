"""The best predictor on given vectors: the SVM with the squared hinge, restricted to their span.

    min over beta, b of  ||w||^2/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2,
    f = sum_j beta_j K(v_j, .) + b,   w = sum_j beta_j Phi(v_j).

With K_VV = L L' the rows L^{-1} k(x_i), k(x_i) = (K(v_j, x_i))_j, make a linear problem of it, beta = L'^{-1} u for its
weights u. It is solved by truncated Newton steps to a certified gap.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from slackwater.objective import BiasKind, squared_hinge
from slackwater.objective.problem import linear_problem
from slackwater.rows import DenseRows
from slackwater.solvers.registry import make_solver
from slackwater.sparsify.contract import Small, Teacher
from slackwater.training import Limits, run

_RIDGE = 1e-10  # of the mean of K_VV's diagonal: vectors may be equal
_GAP, _ROUNDS = 1e-2, 50


def refit(teacher: Teacher, ids: np.ndarray, max_time: float | None = None) -> Small:
    """The predictor on these training rows, trained to the teacher's labels."""
    problem, gram = teacher.problem, teacher.gram
    values = np.empty((problem.n_rows, ids.size))
    for start in range(0, ids.size, gram.capacity):
        part = slice(start, start + gram.capacity)
        values[:, part] = gram.rows(ids[part]).T
    lower = _root(values[ids])
    rows = DenseRows(np.ascontiguousarray(solve_triangular(lower, values.T, lower=True).T), 0.0)
    bias: BiasKind = "free" if problem.bias == "free" else "none"  # one that is penalised is in the kernel
    linear = linear_problem(rows, problem.labels, squared_hinge(), 1.0, problem.costs, bias)
    limits = Limits(tol=_GAP, max_rounds=_ROUNDS, max_time=max_time)
    model = run(linear, make_solver("newton"), limits, rng=0).model
    coefficients = solve_triangular(lower, model.coef[0], lower=True, trans="T")
    return Small(coefficients, float(model.intercept[0]), ids)


def _root(square: np.ndarray) -> np.ndarray:
    """L of K_VV with the ridge that rounding needs."""
    ridge = _RIDGE * max(float(np.mean(np.diagonal(square))), np.finfo(np.float64).tiny)
    while True:
        try:
            return cholesky(0.5 * (square + square.T) + ridge * np.eye(len(square)), lower=True)
        except np.linalg.LinAlgError:
            ridge *= 100.0
