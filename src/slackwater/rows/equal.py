"""Rows that occur more than once."""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled
from slackwater.rows.layouts import CSRRows, DenseRows

_SEED, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # Fowler, Noll, Vo


def first_equal(rows: DenseRows | CSRRows) -> np.ndarray | None:
    """For every row the number of the first row equal to it; None where no row occurs twice."""
    bits = rows.values.view(np.uint32 if rows.dtype.itemsize == 4 else np.uint64)
    if isinstance(rows, CSRRows):
        indptr, indices, bits = rows.indptr, rows.indices, bits
    else:
        indptr = np.arange(rows.n_rows + 1, dtype=np.int64) * rows.n_columns
        indices, bits = np.empty(0, dtype=np.uint32), bits.reshape(-1)
    marks, first = np.empty(rows.n_rows, dtype=np.uint64), np.arange(rows.n_rows)
    _mark(indptr, indices, bits, marks)
    order = np.argsort(marks, kind="stable")
    if not (marks[order[1:]] == marks[order[:-1]]).any():
        return None
    _join(indptr, indices, bits, marks, order, first)
    return None if (first == np.arange(rows.n_rows)).all() else first


@compiled
def _mark(indptr, indices, bits, marks):
    """A number for each row that equal rows share, and others hardly ever."""
    sparse = indices.size > 0
    for i in range(np.uint64(marks.size)):
        mark = _SEED
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            mark = (mark ^ np.uint64(bits[p])) * _PRIME
            if sparse:
                mark = (mark ^ np.uint64(indices[p])) * _PRIME
            mark ^= mark >> np.uint64(29)
        marks[i] = mark


@compiled
def _join(indptr, indices, bits, marks, order, first):
    """Rows of one mark stand beside each other in ``order``: each is compared with the first of them."""
    head = order[0]
    for k in range(np.uint64(1), np.uint64(order.size)):
        i = order[k]
        if marks[i] != marks[head]:
            head = i
            continue
        size, p, q = indptr[i + 1] - indptr[i], indptr[i], indptr[head]
        same = size == indptr[head + 1] - indptr[head]
        for t in range(size if same else 0):
            same = same and bits[p + t] == bits[q + t] and (indices.size == 0 or indices[p + t] == indices[q + t])
        if same:
            first[i] = head
