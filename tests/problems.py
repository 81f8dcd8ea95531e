"""Small random problems and their reference optima, for tests of anything that takes a problem."""

from functools import cache
from itertools import product

import numpy as np
import scipy.sparse as sp

from reference.penalised_reference import solve_penalised
from reference.qp_reference import Reference, solve
from slackwater.objective import (
    CutPoint,
    LinearProblem,
    Loss,
    hinge,
    huber,
    l2,
    linear_problem,
    loss_name,
    smoothed_hinge,
    squared_hinge,
)
from slackwater.rows import as_matrix, as_rows

#: One loss of each family, and a second width of those that have one.
LOSSES = (hinge(), squared_hinge(), smoothed_hinge(1.0), smoothed_hinge(0.3), huber(0.5), huber(0.05))
SMOOTH = LOSSES[1:]
BIASES = ("none", "penalised", "free")
#: Every loss with every bias; weights and the layout take turns.
KINDS = [(loss, bias, k % 2 == 0, k % 3 == 0) for k, (loss, bias) in enumerate(product(LOSSES, BIASES))]


def loss_id(value) -> str | None:
    """A name for pytest's reports."""
    return loss_name(value) if isinstance(value, Loss) else None


def random_table(rng, n=24, d=4, density=0.7):
    """Two overlapping clouds with zeros in them: X, labels."""
    labels = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    rng.shuffle(labels)
    X = rng.normal(size=(n, d)) + 0.5 * labels[:, None]
    X[rng.random(X.shape) > density] = 0.0
    return X, labels


@cache
def random_problem(seed, loss, bias="none", *, n=24, d=4, C=0.7, weighted=False, sparse=False, scale=1.0, penalty=None):
    """A problem whose optimum has examples below, on and above the margin."""
    rng = np.random.default_rng(seed)
    X, labels = random_table(rng, n, d)
    weights = rng.uniform(0.2, 3.0, n) if weighted else None
    rows = as_rows(sp.csr_array(X) if sparse else X)
    return linear_problem(rows, labels, loss, C=C, weights=weights, bias=bias, scale=scale, penalty=penalty)


def dense(problem: LinearProblem) -> np.ndarray:
    """The rows as a float64 array with the constant feature as last column."""
    stored = as_matrix(problem.rows)
    stored = stored.toarray() if sp.issparse(stored) else stored
    return np.column_stack((stored.astype(float), np.full(problem.n_rows, problem.rows.bias)))


_OPTIMA: dict[int, tuple[LinearProblem, Reference]] = {}


def optimum(problem: LinearProblem) -> Reference:
    """P*, D*, w*, b*, alpha* from the independent solver; remembered per problem."""
    if id(problem) not in _OPTIMA:
        X, scale = dense(problem)[:, :-1], problem.rows.bias or 1.0
        if problem.penalty == l2():
            found = solve(X, problem.labels, problem.costs, problem.loss, problem.bias, scale)
        else:
            Z = np.column_stack((X, np.full(len(X), scale * (problem.bias == "penalised")))) * problem.labels[:, None]
            parts = Z, problem.labels, problem.costs, problem.loss, problem.penalty, problem.bias, scale
            found = solve_penalised(*parts)
        _OPTIMA[id(problem)] = problem, found  # the problem is kept too, so its id stays its own
    return _OPTIMA[id(problem)][1]


def cut_of(problem, alpha) -> CutPoint:
    """One cut whose slopes are alpha_i / C_i."""
    lam, loss = problem.regularisation, problem.loss
    gradient = -lam * (alpha * problem.labels) @ dense(problem)
    if problem.bias == "free":
        gradient[-1] = 0.0
    offset = lam * (loss.target * alpha.sum() - 0.5 * loss.width * alpha @ (alpha / problem.costs))
    return CutPoint(gradient[None, :], np.array([offset]), np.ones(1))


def quarters(rng, n=9, d=23) -> np.ndarray:
    """Values that float32 holds exactly; one row of zeros, one full row, one column of zeros."""
    X = rng.integers(-8, 9, size=(n, d)) / 4.0
    X[rng.random((n, d)) < 0.5] = 0.0
    X[3], X[5], X[:, 2] = 0.0, 1.25, 0.0
    return X


def optimum_of(X, labels, costs, loss, bias) -> Reference:
    """The optimum of a problem that is no LinearProblem, from the same independent solver."""
    return solve(X, labels, costs, loss, bias)
