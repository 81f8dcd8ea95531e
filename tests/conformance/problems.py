"""What the conformance suite runs on: the matrix of solvers, losses and biases, the storages, a family of tables."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from problems import random_table
from slackwater.objective import LinearProblem, Loss, Penalty, elastic_net, l1, l2, linear_problem, loss_name
from slackwater.objective.losses import LOSSES
from slackwater.objective.penalties import penalty_name
from slackwater.rows import as_rows
from slackwater.solvers.contract import Solver
from slackwater.solvers.registry import solver_classes

# ------------------------------------------------------------------------------------------------- the matrix


EACH_PENALTY: dict[str, Penalty] = {"l2": l2(), "l1": l1(), "elasticnet": elastic_net(0.5)}


@dataclass(frozen=True)
class Case:
    """One solver with a loss, a bias and a penalty that it declares; by default settings but for the changed ones."""

    name: str
    cls: type[Solver]
    loss: Loss
    bias: str
    changed: tuple[tuple[str, Any], ...] = ()
    penalty: Penalty = l2()  # noqa: RUF009

    def new(self) -> Solver:
        """The solver."""
        return self.cls(**dict(self.changed))

    def __str__(self) -> str:
        penalty = [] if self.penalty == l2() else [penalty_name(self.penalty)]
        return "-".join([self.name, loss_name(self.loss), self.bias, *penalty, *(f"{k}={v}" for k, v in self.changed)])


def matrix(classes: Mapping[str, type[Solver]]) -> list[Case]:
    """Every solver with every loss, every bias and every penalty that it declares."""
    return [
        Case(name, cls, LOSSES[family](), bias, penalty=EACH_PENALTY[penalty])
        for name, cls in classes.items()
        for family in cls.losses
        for bias in cls.biases
        for penalty in cls.penalties
    ]


def variants(classes: Mapping[str, type[Solver]]) -> list[Case]:
    """The same with one setting changed at a time: what is on or off turned round, counts doubled."""
    found = []
    for case in matrix(classes):
        for setting, value in case.cls().settings().items():
            if isinstance(value, bool | int):
                other = not value if isinstance(value, bool) else 2 * value
                found.append(replace(case, changed=((setting, other),)))
    return found


CLASSES = solver_classes("classification")
CASES = matrix(CLASSES)


# ----------------------------------------------------------------------------------------------- the storages

LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {"dense": np.asarray, "csr": sp.csr_array}


class Storage(NamedTuple):
    """A layout and a precision."""

    layout: str
    dtype: str

    def __call__(self, X: np.ndarray) -> Any:
        """The table stored so."""
        return LAYOUTS[self.layout](X.astype(self.dtype))

    def __str__(self) -> str:
        return f"{self.layout}-{self.dtype}"


STORAGES = [Storage(layout, dtype) for layout in LAYOUTS for dtype in ("float32", "float64")]
PLAIN = Storage("dense", "float64")


def in_turn(values: Iterable) -> list[tuple]:
    """The values with the storages, which take turns."""
    return list(zip(values, cycle(STORAGES), strict=False))


# ------------------------------------------------------------------------------------------------- the tables


class Table(NamedTuple):
    """Rows, labels, weights or None; the entries are numbers that float32 holds exactly."""

    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None = None

    def take(self, ids: np.ndarray) -> "Table":
        """These rows in this order."""
        return Table(self.X[ids], self.labels[ids], None if self.weights is None else self.weights[ids])


def _clouds(n: int, d: int, density: float = 0.7) -> Table:
    X, labels = random_table(np.random.default_rng(n + d), n, d, density)
    return Table(X.astype(np.float32).astype(np.float64), labels)


def _changed(table: Table, change: Callable[[Table], Any]) -> Table:
    table = Table(table.X.copy(), table.labels.copy(), table.weights)
    change(table)
    return table


def _no_rows_but_zeros(table: Table) -> None:
    table.X[:] = 0.0


def _some_zero_rows(table: Table) -> None:
    table.X[[0, 3, 11]] = 0.0


def _duplicates(table: Table) -> None:
    table.X[10:20], table.labels[10:20] = table.X[:10], table.labels[:10]


def _contradictions(table: Table) -> None:
    table.X[10:20], table.labels[10:20] = table.X[:10], -table.labels[:10]


def _empty_columns(table: Table) -> None:
    table.X[:, [0, 2, 4]] = 0.0


def _constant_columns(table: Table) -> None:
    table.X[:, [1, 3]] = 2.0, -0.5


def _columns_of_many_sizes(table: Table) -> None:
    table.X[:] *= np.array([2.0**-5, 1.0, 2.0**4, 0.25, 2.0**2])


def _one_class(table: Table) -> None:
    table.labels[:] = -1.0


def _disjoint() -> Table:
    """Rows that share no column: some of them long, some short, two of them zero."""
    rng = np.random.default_rng(7)
    X = np.zeros((12, 30))
    for i in range(10):
        X[i, 3 * i : 3 * i + 1 + i % 3] = rng.normal(size=1 + i % 3).astype(np.float32)
    return Table(X, np.where(np.arange(12) % 2 == 0, 1.0, -1.0), rng.uniform(0.3, 3.0, 12))


CLOUDS = _clouds(30, 5)
WEIGHTED = CLOUDS._replace(weights=np.random.default_rng(1).uniform(0.2, 3.0, 30))
SMALL = _clouds(9, 3)
DISJOINT = _disjoint()
ONE_ROW = Table(np.array([[0.5, -0.25, 0.0]]), np.array([-1.0]))

TABLES: dict[str, Table] = {
    "clouds": CLOUDS,
    "weighted": WEIGHTED,
    "more columns than rows": _clouds(8, 40, density=0.3),
    "zero rows": _changed(CLOUDS, _some_zero_rows),
    "nothing but zeros": _changed(CLOUDS, _no_rows_but_zeros),
    "duplicates": _changed(CLOUDS, _duplicates),
    "contradictions": _changed(CLOUDS, _contradictions),
    "empty columns": _changed(CLOUDS, _empty_columns),
    "constant columns": _changed(WEIGHTED, _constant_columns),
    "columns of many sizes": _changed(CLOUDS, _columns_of_many_sizes),
    "one class": _changed(WEIGHTED, _one_class),
    "disjoint rows": DISJOINT,
    "one row": ONE_ROW,
    "two rows": Table(np.array([[1.0, 0.5], [0.25, -0.5]]), np.array([1.0, -1.0])),
    "two rows of one class": Table(np.array([[1.0, 0.5], [0.25, -0.5]]), np.array([1.0, 1.0])),
    "one column": _clouds(20, 1),
    "more rows": _clouds(60, 9, density=0.4),
    "no columns": Table(np.zeros((4, 0)), np.array([1.0, -1.0, 1.0, 1.0])),
}


def build(case: Case, table: Table, storage: Callable[[np.ndarray], Any] = PLAIN, **options) -> LinearProblem:
    """The problem of a case on a table, by default with C = 0.7 and the constant feature 1."""
    options = {"C": 0.7, "weights": table.weights, "bias": case.bias, "scale": 1.0} | options
    options = {"penalty": case.penalty} | options
    return linear_problem(as_rows(storage(table.X)), table.labels, case.loss, **options)
