"""The layouts: NamedTuples of arrays that go into compiled code as they are.

Every row ends with one constant feature of value ``bias`` (0 for none), which is never stored: weight vectors have
``n_columns + 1`` entries and the primitives treat the last one apart. So no solver's text speaks of the bias, and no
data are copied to append a column. Arrays are read-only views; a solver cannot write into the caller's data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class DenseRows(NamedTuple):
    """Rows of a C-ordered matrix."""

    values: np.ndarray  # (n, d), float32 or float64
    bias: float

    @property
    def n_rows(self) -> int:
        return self.values.shape[0]

    @property
    def n_columns(self) -> int:
        return self.values.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def n_entries(self) -> int:
        return self.values.size


class CSRRows(NamedTuple):
    """Compressed sparse rows: row i holds ``values[p]`` in column ``indices[p]`` for indptr[i] <= p < indptr[i + 1]."""

    indptr: np.ndarray  # (n + 1), int64
    indices: np.ndarray  # uint32
    values: np.ndarray  # float32 or float64
    columns: int
    bias: float

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    @property
    def n_columns(self) -> int:
        return self.columns

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def n_entries(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])


def with_bias(rows, bias: float):
    """The same rows, ending with the constant feature ``bias``."""
    return rows._replace(bias=float(bias))
