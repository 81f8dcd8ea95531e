"""The same numbers by columns: what a method that moves one weight at a time reads.

A copy is made once. Column j holds ``values[p]`` of example ``indices[p]`` for indptr[j] <= p < indptr[j + 1], zeros
left out, rows rising; the constant feature is the last column, empty where there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.rows.layouts import CSRRows, DenseRows
from slackwater.rows.primitives import csr_prefetch, csr_prefetch_place, prefetch_place, prefetch_row

_BLOCK = 64  # columns of a dense table that are turned at a time: a cache line or two of every row


class Columns(NamedTuple):
    """Compressed sparse columns, one for every weight."""

    indptr: np.ndarray  # (n_weights + 1), int64
    indices: np.ndarray  # uint32
    values: np.ndarray  # of the rows' precision

    @property
    def n_entries(self) -> int:
        return self.values.size


prefetch_row.register(Columns)(csr_prefetch)
prefetch_place.register(Columns)(csr_prefetch_place)


def as_columns(rows: DenseRows | CSRRows, factors: np.ndarray) -> Columns:
    """The columns of ``rows``, row i times ``factors[i]``, -1 or +1: any other number would be rounded."""
    dense = isinstance(rows, DenseRows)
    counts = np.zeros(rows.n_columns + 1, dtype=np.int64)
    if dense:
        for start in range(0, rows.n_columns, _BLOCK):
            counts[start : start + _BLOCK][: rows.n_columns - start] = np.count_nonzero(
                rows.values[:, start : start + _BLOCK], axis=0
            )
    else:
        _count(rows, counts)
    counts[-1] = rows.n_rows if rows.bias else 0
    indptr = np.append(0, np.cumsum(counts))
    columns = Columns(indptr, np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1], dtype=rows.dtype))
    signs, next_ = factors.astype(rows.dtype), indptr[:-1].copy()
    if dense:
        for start in range(0, rows.n_columns, _BLOCK):
            _turn_dense(rows, signs, start, min(start + _BLOCK, rows.n_columns), next_, columns)
    else:
        _turn(rows, signs, next_, columns)
    if rows.bias:
        columns.indices[indptr[-2] :] = np.arange(rows.n_rows, dtype=np.uint32)
        columns.values[indptr[-2] :] = rows.bias * signs
    return columns


@compiled
def _count(rows, counts):
    for p in range(np.uint64(rows.indptr[0]), np.uint64(rows.indptr[rows.indptr.size - 1])):
        counts[rows.indices[p]] += rows.values[p] != 0.0


@compiled
def _turn(rows, factors, next_, columns):
    for i in range(np.uint64(rows.indptr.size - 1)):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            if rows.values[p] != 0.0:
                _put(columns, next_, rows.indices[p], i, factors[i] * rows.values[p])


@compiled
def _turn_dense(rows, factors, start, end, next_, columns):
    for i in range(np.uint64(rows.values.shape[0])):
        for j in range(np.uint64(start), np.uint64(end)):
            if rows.values[i, j] != 0.0:
                _put(columns, next_, j, i, factors[i] * rows.values[i, j])


@compiled(inline=True)
def _put(columns, next_, j, i, value):
    place = next_[j]
    columns.indices[place] = i
    columns.values[place] = value
    next_[j] = place + 1
