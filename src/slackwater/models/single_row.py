"""Predictors of one row at a time: everything that prediction needs is made ready once, a call checks lengths only.

Calls share nothing that they write to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slackwater.compiled import compiled


class Values(Protocol):
    """Decision values of one row, dense or as the columns and values of its entries."""

    @property
    def columns(self) -> int: ...

    def dense(self, x: Any) -> np.ndarray: ...

    def sparse(self, indices: Any, values: Any) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class RowPredictor:
    """``predictor(x)`` is the label of the row ``x``, of a regression its value; ``predictor.decision(x)`` is f(x).

    A row is an array of one dimension, or ``(indices, values)`` with every column once. It may be called from several
    threads at a time, and pickled.
    """

    values: Values
    labels: list[Any] | None  # below and above 0, or one for each output; None for a regression
    classes: int = 0  # of a model of pairs, whose votes decide
    as_votes: bool = False  # whether ``decision`` counts them

    def __post_init__(self) -> None:
        self(np.zeros(self.values.columns))  # the machine code is there before the first row comes

    def __reduce__(self) -> Any:
        return RowPredictor, (self.values, self.labels, self.classes, self.as_votes)

    def __call__(self, x: Any) -> Any:
        """The label of a row, or its value."""
        found = self._found(x)
        if self.labels is None:
            return found if found.size > 1 else found.item()
        if self.classes:
            found = _votes_of(found, self.classes)
        elif found.size == 1:
            return self.labels[found.item() > 0.0]
        return self.labels[found.argmax()]

    def decision(self, x: Any) -> Any:
        """f(x): a float for one output, an array for more."""
        found = self._found(x)
        if self.as_votes:
            return _votes_of(found, self.classes)
        return found if found.size > 1 else found.item()

    def _found(self, x: Any) -> np.ndarray:
        return self.values.sparse(*x) if type(x) is tuple else self.values.dense(x)


def _votes_of(values: np.ndarray, classes: int) -> np.ndarray:
    total = np.zeros((1, classes))
    count_votes(values.reshape(1, -1), total)
    return total[0]


@compiled
def count_votes(values, total):
    """The votes of all pairs (a, b), positive for a, of every row; confidences, squeezed below 1/3, break ties."""
    sums = np.zeros(total.shape[1])
    for i in range(np.uint64(total.shape[0])):
        line, votes = values[i], total[i]
        sums[:] = 0.0
        pair = np.uint64(0)
        for a in range(np.uint64(sums.size)):
            for b in range(a + np.uint64(1), np.uint64(sums.size)):
                votes[a if line[pair] > 0.0 else b] += 1.0
                sums[a] += line[pair]
                sums[b] -= line[pair]
                pair += np.uint64(1)
        for a in range(np.uint64(sums.size)):
            votes[a] += sums[a] / (3.0 * (abs(sums[a]) + 1.0))


# --------------------------------------------------------------------------------------------------------- linear


@dataclass(frozen=True, eq=False)
class LinearValues:
    """<coef_c, x> + offset_c."""

    coef: np.ndarray  # (k, d)
    offsets: np.ndarray  # (k,)

    @property
    def columns(self) -> int:
        return self.coef.shape[1]

    def dense(self, x: Any) -> np.ndarray:
        """Of an array."""
        x, out = row_of(x, self.columns), np.empty(self.offsets.size)
        products(x, self.coef, out)
        out += self.offsets
        return out

    def sparse(self, indices: Any, values: Any) -> np.ndarray:
        """Of the entries of a row."""
        return self.coef[:, indices] @ values + self.offsets


def row_of(x: Any, columns: int) -> np.ndarray:
    """A float64 copy, whose type compiled code knows, whatever memory the row came in."""
    x = np.array(x, dtype=np.float64)
    if x.shape != (columns,):
        raise ValueError(f"the row has the shape {x.shape}, but the model was fitted on {columns} columns")
    return x


@compiled
def products(x, rows, out):
    for i in range(np.uint64(out.size)):
        row, total = rows[i], x.dtype.type(0.0)
        for j in range(np.uint64(row.size)):
            total += row[j] * x[j]
        out[i] = total
