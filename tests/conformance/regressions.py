"""What the conformance suite of regression runs on: its matrix and tables, and how it runs a solver."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from conformance.problems import CLOUDS, PLAIN
from reference.svr_reference import primal_of, solve_regression
from slackwater.objective import regression_problem, tube_loss
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes
from slackwater.training import Limits, run

EXACT, ROUNDING = 1e-8, 1e-9

# ------------------------------------------------------------------------------------------ the matrix, the tables


@dataclass(frozen=True)
class Case:
    """A solver of regression with a loss, a half width of its tube and a bias."""

    cls: type
    loss: str
    epsilon: float
    bias: str
    changed: tuple[tuple[str, Any], ...] = ()

    def new(self):
        return self.cls(**dict(self.changed))

    def __str__(self):
        changed = (f"{key}={value}" for key, value in self.changed)
        return "-".join([self.cls.name, self.loss, f"{self.epsilon:g}", self.bias, *changed])


class Table(NamedTuple):
    """Rows, targets, weights or None; the rows are numbers that float32 holds exactly."""

    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None = None

    def take(self, ids):
        return Table(self.X[ids], self.targets[ids], None if self.weights is None else self.weights[ids])


CASES = [
    Case(cls, loss, epsilon, bias)
    for cls in solver_classes("regression").values()
    for loss in cls.losses
    for bias in cls.biases
    for epsilon in (0.0, 0.25)
]
WIDE = [case for case in CASES if case.epsilon]
VARIANTS = [
    replace(case, changed=((setting, not value if isinstance(value, bool) else 2 * value),))
    for case in WIDE
    for setting, value in case.cls().settings().items()
    if isinstance(value, bool | int)
]


def _targets(X):
    """A line through some columns, an offset and noise."""
    rng = np.random.default_rng(5)
    return 0.75 + X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(len(X))


RNG = np.random.default_rng(3)
PLAIN_TABLE = Table(CLOUDS.X, _targets(CLOUDS.X))
WEIGHTED = PLAIN_TABLE._replace(weights=RNG.uniform(0.2, 3.0, 30))
SMALL = WEIGHTED.take(np.arange(9))
ZERO_ROWS = WEIGHTED._replace(X=WEIGHTED.X * (np.arange(30) % 4 > 0)[:, None])
MANY_COLUMNS = RNG.normal(size=(8, 40)).astype(np.float32).astype(float)

TABLES = {
    "plain": PLAIN_TABLE,
    "weighted": WEIGHTED,
    "zero rows": ZERO_ROWS,
    "nothing but zeros": WEIGHTED._replace(X=0.0 * WEIGHTED.X),
    "more columns than rows": Table(MANY_COLUMNS, _targets(MANY_COLUMNS)),
    "constant targets": WEIGHTED._replace(targets=np.full(30, -1.5)),
    "one row": Table(np.array([[0.5, -0.25]]), np.array([-2.0])),
    "two rows": Table(np.array([[1.0, 0.5], [0.25, -0.5]]), np.array([3.0, -1.0])),
    "no columns": Table(np.zeros((5, 0)), np.array([1.0, -1.0, 2.0, 0.5, 4.0])),
    "repeated targets": PLAIN_TABLE._replace(targets=np.round(PLAIN_TABLE.targets)),
    "an outlier": PLAIN_TABLE._replace(targets=PLAIN_TABLE.targets + 1000.0 * (np.arange(30) == 7)),
}


def build(case, table, storage=PLAIN, epsilon=None, C=0.7, scale=1.0):
    """The problem of a case on a table."""
    loss = tube_loss(case.loss, case.epsilon if epsilon is None else epsilon)
    return regression_problem(as_rows(storage(table.X)), table.targets, loss, C, table.weights, case.bias, scale)


def settle(case, problem, seed=0, alpha=None):
    """Train until the gap is small, and insist that it is."""
    trained = run(problem, case.new(), Limits(tol=EXACT, max_rounds=200), rng=seed, alpha=alpha)
    assert trained.status.converged, trained.status
    return trained


def path(case, problem, rounds, seed=0):
    return run(problem, case.new(), Limits(tol=0.0, max_rounds=rounds, certify_every=1), rng=seed)


@cache
def reference(loss, epsilon, bias, name):
    case = Case(next(iter(solver_classes("regression").values())), loss, epsilon, bias)
    table, problem = TABLES[name], build(case, TABLES[name])
    return problem, solve_regression(table.X, table.targets, problem.costs, problem.loss, bias)


def primal_by_definition(problem, table, model):
    w, b = model.coef[0], model.intercept[0]
    inside = w @ w + (b * b if problem.bias == "penalised" else 0.0)  # the constant feature is 1
    return primal_of(table.X, table.targets, problem.costs, problem.loss, w, b, inside)
