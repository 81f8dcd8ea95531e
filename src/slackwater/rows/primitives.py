"""The primitives of every inner loop, chosen by layout at compile time. Sums are float64 whatever the data are."""

from __future__ import annotations

import numpy as np

from slackwater.compiled import by_type, compiled, prefetch
from slackwater.rows.layouts import CSRRows, DenseRows

# A cache line holds 16 indices or float32 values, 8 float64 values; steps are constants, as a division by the array's
# item size costs more than asking for some lines twice.
_IN_LINE, _HALF_LINE = np.uint64(16), np.uint64(8)
_LINE_START = ~np.uint64(15)
_PREFETCHED = np.uint64(256)  # entries: the hardware's own prefetcher follows a longer row


@by_type
def dot(rows, i, w):
    """<x_i, w>, the constant feature included."""


@by_type
def dot_ahead(rows, i, w, coming):
    """The same; meanwhile row ``coming``, of a visit some way ahead, is asked for line by line.

    A core has few places for lines that are on their way: asked for all at once, those of a row stop the loop.
    """


@by_type
def add(rows, i, scale, w):
    """w += scale x_i."""


@by_type
def add_scaled(rows, i, scale, sizes, w):
    """w_j += scale sizes_j x_ij: each coordinate has a step of its own."""


@by_type
def sqnorm(rows, i):
    """||x_i||^2, the constant feature included."""


@by_type
def entries(rows, i):
    """How many stored entries row i has: the cost of one inner product."""


@by_type
def prefetch_place(rows, i):
    """Ask for the number that says where row i lies, well before ``prefetch_row`` looks at it."""


@by_type
def prefetch_row(rows, i):
    """Ask for row i's cache lines, some visits before it is needed."""


@by_type
def count_rows(rows):
    """How many rows there are."""


@by_type
def count_columns(rows):
    """How many columns there are, the constant feature not counted."""


# ------------------------------------------------------------------------------------------------------ dense


@dot.register(DenseRows)
def _dense_dot(rows, i, w):
    row = rows.values[i]
    d = np.uint64(row.size)
    total = 0.0
    for j in range(d):
        total += row[j] * w[j]
    return total + rows.bias * w[d]


@dot_ahead.register(DenseRows)
def _dense_dot_ahead(rows, i, w, coming):
    prefetch_row(rows, coming)
    return dot(rows, i, w)


@add.register(DenseRows)
def _dense_add(rows, i, scale, w):
    row, scale = rows.values[i], np.float64(scale)  # interpreted, a Python number would be rounded to float32
    d = np.uint64(row.size)
    for j in range(d):
        w[j] += scale * row[j]
    w[d] += scale * rows.bias


@add_scaled.register(DenseRows)
def _dense_add_scaled(rows, i, scale, sizes, w):
    row, scale = rows.values[i], np.float64(scale)
    d = np.uint64(row.size)
    for j in range(d):
        w[j] += scale * sizes[j] * row[j]
    w[d] += scale * sizes[d] * rows.bias


@sqnorm.register(DenseRows)
def _dense_sqnorm(rows, i):
    row = rows.values[i]
    total = 0.0
    for j in range(np.uint64(row.size)):
        value = np.float64(row[j])
        total += value * value
    return total + rows.bias * rows.bias


@entries.register(DenseRows)
def _dense_entries(rows, i):
    return rows.values.shape[1]


@prefetch_place.register(DenseRows)
def _dense_prefetch_place(rows, i):
    pass


@prefetch_row.register(DenseRows)
def _dense_prefetch(rows, i):
    row = rows.values[i]
    end = np.uint64(min(row.size, _PREFETCHED))
    for j in range(np.uint64(0), end, _IN_LINE):
        prefetch(row, j)
        prefetch(row, j + _HALF_LINE)
    prefetch(row, np.int64(end) - 1)  # rows do not begin at line boundaries: the last line is one more


@count_rows.register(DenseRows)
def _dense_count_rows(rows):
    return rows.values.shape[0]


@count_columns.register(DenseRows)
def _dense_count_columns(rows):
    return rows.values.shape[1]


# ----------------------------------------------------------------------------------------------------- sparse


@dot.register(CSRRows)
def _csr_dot(rows, i, w):
    total = 0.0
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        total += rows.values[p] * w[rows.indices[p]]
    return total + rows.bias * w[np.uint64(rows.columns)]


@dot_ahead.register(CSRRows)
def _csr_dot_ahead(rows, i, w, coming):
    p, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    q, last = np.uint64(rows.indptr[coming]), np.uint64(rows.indptr[coming + np.uint64(1)])
    q, last = q & _LINE_START, min(last, q + _PREFETCHED)
    total = 0.0
    while p + _IN_LINE <= end:
        if q < last:
            _prefetch_line(rows, q)
            q += _IN_LINE
        for k in range(_IN_LINE):
            total += rows.values[p + k] * w[rows.indices[p + k]]
        p += _IN_LINE
    while q < last:
        _prefetch_line(rows, q)
        q += _IN_LINE
    while p < end:
        total += rows.values[p] * w[rows.indices[p]]
        p += np.uint64(1)
    return total + rows.bias * w[np.uint64(rows.columns)]


@add.register(CSRRows)
def _csr_add(rows, i, scale, w):
    scale = np.float64(scale)
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        w[rows.indices[p]] += scale * rows.values[p]
    w[np.uint64(rows.columns)] += scale * rows.bias


@add_scaled.register(CSRRows)
def _csr_add_scaled(rows, i, scale, sizes, w):
    scale = np.float64(scale)
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        j = rows.indices[p]
        w[j] += scale * sizes[j] * rows.values[p]
    d = np.uint64(rows.columns)
    w[d] += scale * sizes[d] * rows.bias


@sqnorm.register(CSRRows)
def _csr_sqnorm(rows, i):
    total = 0.0
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        value = np.float64(rows.values[p])
        total += value * value
    return total + rows.bias * rows.bias


@entries.register(CSRRows)
def _csr_entries(rows, i):
    return rows.indptr[i + np.uint64(1)] - rows.indptr[i]


@prefetch_place.register(CSRRows)
def csr_prefetch_place(rows, i):
    prefetch(rows.indptr, i)


@prefetch_row.register(CSRRows)
def csr_prefetch(rows, i):
    start, end = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])
    for p in range(start & _LINE_START, min(end, start + _PREFETCHED), _IN_LINE):
        _prefetch_line(rows, p)


@compiled(inline=True)
def _prefetch_line(rows, p):
    """Ask for a line of indices from p on, and for the values that belong to it."""
    prefetch(rows.indices, p)
    prefetch(rows.values, p)
    if rows.values.itemsize > 4:
        prefetch(rows.values, p + _HALF_LINE)


@count_rows.register(CSRRows)
def _csr_count_rows(rows):
    return rows.indptr.size - 1


@count_columns.register(CSRRows)
def _csr_count_columns(rows):
    return rows.columns
