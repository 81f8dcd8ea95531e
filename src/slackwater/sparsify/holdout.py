"""Rows kept back to choose on, and their kernel values with training rows: each needed row is computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.gram import add_rows
from slackwater.objective.kernel_points import Points
from slackwater.rows import CSRRows, DenseRows
from slackwater.sparsify.contract import Small, Teacher

_FIRST_ROOM = 64
_BLOCK = 512  # rows computed together
_MOST_KEPT = 2**28  # numbers


@dataclass(frozen=True, eq=False)
class Holdout:
    """Rows, their labels -1 and +1, and what each of them counts."""

    rows: DenseRows | CSRRows
    labels: np.ndarray
    weights: np.ndarray | None = None

    def error(self, values: np.ndarray) -> float:
        """The weighted share of wrong signs."""
        return weighted_error(values, self.labels, self.weights)


def weighted_error(values: np.ndarray, labels: np.ndarray, weights: np.ndarray | None) -> float:
    """The share of wrong signs; 0 counts as negative."""
    return float(np.average((values > 0.0) != (labels > 0.0), weights=weights))


class Across:
    """Kernel values of training rows with other rows, kept while there is room."""

    def __init__(self, teacher: Teacher, rows: DenseRows | CSRRows) -> None:
        points = teacher.gram.points
        self.teacher, self.rows, self.evaluations = teacher, rows, 0
        self._points = None if teacher.precomputed else Points.of(rows, points.kernel, points.dtype, points.shift)
        self._values = np.empty((_FIRST_ROOM, rows.n_rows), dtype=points.dtype)
        self._slots = np.full(points.n_rows, -1, dtype=np.int64)
        self._filled, self._most = 0, max(_BLOCK, _MOST_KEPT // max(1, rows.n_rows))

    def values(self, small: Small) -> np.ndarray:
        """The decision values of a predictor on these rows."""
        if small.ids is None:
            self.evaluations += small.size * self.rows.n_rows
            return small.model(self.teacher).decision_values(self.rows)
        out = np.full(self.rows.n_rows, small.bias)
        for start in range(0, small.size, self._most):
            part = slice(start, start + self._most)
            self._bring(small.ids[part])
            add_rows(self._values, self._slots[small.ids[part]], small.coefficients[part], out)
        return out

    def _bring(self, ids: np.ndarray) -> None:
        """Compute what is missing; where the room is used up all is forgotten first."""
        missing = ids[self._slots[ids] < 0]
        if self._filled + missing.size > self._most:
            self._slots[:], self._filled, missing = -1, 0, ids
        end = self._filled + missing.size
        if end > len(self._values):
            grown = np.empty((min(2 * end, max(end, self._most)), self.rows.n_rows), dtype=self._values.dtype)
            grown[: self._filled] = self._values[: self._filled]
            self._values = grown
        self._slots[missing] = np.arange(self._filled, end)
        for start in range(0, missing.size, _BLOCK):
            part = missing[start : start + _BLOCK]
            self._compute(part, self._values[self._filled + start : self._filled + start + part.size])
        self._filled = end
        self.evaluations += missing.size * self.rows.n_rows

    def _compute(self, ids: np.ndarray, out: np.ndarray) -> None:
        """K(x_i, .) of training rows."""
        if self._points is None:
            assert isinstance(self.rows, DenseRows)
            columns = self.teacher.columns
            out[:] = self.rows.values[:, ids if columns is None else columns[ids]].T
            out += out.dtype.type(self.teacher.gram.points.shift)
        else:
            table = self.teacher.vectors(ids)
            self._points.values(self._points.lines(table, slice(None)), out)
