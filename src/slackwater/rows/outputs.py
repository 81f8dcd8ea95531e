"""The primitives of solvers with several outputs: one row against a matrix of weights ``W[j, c]``, class last.

One feature's weights lie together, so an entry of a row meets one line of W; the last line is that of the constant
feature. Sums over all outputs are fastest where W has ``padded(k)`` columns, those beyond k zero. float64 throughout.
"""

from __future__ import annotations

import numpy as np

from slackwater.compiled import by_type, compiled
from slackwater.rows.layouts import CSRRows, DenseRows

_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


def padded(outputs: int) -> int:
    """The next multiple of four."""
    return outputs + -outputs % 4


@by_type
def span(rows, i):
    """The positions of row i's stored entries: the first, and the one after the last."""


@by_type
def column(rows, p):
    """The column of the entry at position p."""


@by_type
def entry(rows, i, p):
    """The entry of row i at position p, float64."""


@span.register(DenseRows)
def _dense_span(rows, i):
    return np.uint64(0), np.uint64(rows.values.shape[1])


@column.register(DenseRows)
def _dense_column(rows, p):
    return p


@entry.register(DenseRows)
def _dense_entry(rows, i, p):
    return np.float64(rows.values[i, p])


@span.register(CSRRows)
def _csr_span(rows, i):
    return np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])


@column.register(CSRRows)
def _csr_column(rows, p):
    return np.uint64(rows.indices[p])


@entry.register(CSRRows)
def _csr_entry(rows, i, p):
    return np.float64(rows.values[p])


@compiled
def dot_each(rows, i, W, out):
    """out_c = <x_i, w_c> for every column c of W; four entries at a time, which spares three loads of out in four."""
    width = np.uint64(W.shape[1])
    last = W[np.uint64(W.shape[0] - 1)]
    for c in range(width):
        out[c] = rows.bias * last[c]
    start, end = span(rows, i)
    fours = start + (end - start) // _FOUR * _FOUR
    for p in range(start, fours, _FOUR):
        q, r, s = p + _ONE, p + _TWO, p + _THREE
        v, line = entry(rows, i, p), W[column(rows, p)]
        v1, line1 = entry(rows, i, q), W[column(rows, q)]
        v2, line2 = entry(rows, i, r), W[column(rows, r)]
        v3, line3 = entry(rows, i, s), W[column(rows, s)]
        for c in range(width):
            out[c] += v * line[c] + v1 * line1[c] + v2 * line2[c] + v3 * line3[c]
    for p in range(fours, end):
        v, line = entry(rows, i, p), W[column(rows, p)]
        for c in range(width):
            out[c] += v * line[c]


@compiled
def dot_some(rows, i, W, which, count, out):
    """out_m = <x_i, w_c> for c = which_m, m < count; two at a time, whose sums stay in registers."""
    count = np.uint64(count)
    start, end = span(rows, i)
    last = W[np.uint64(W.shape[0] - 1)]
    for m in range(np.uint64(0), count, _TWO):
        other = min(m + _ONE, count - _ONE)
        c, c1 = np.uint64(which[m]), np.uint64(which[other])
        total, total1 = rows.bias * last[c], rows.bias * last[c1]
        for p in range(start, end):
            v, j = entry(rows, i, p), column(rows, p)
            total += v * W[j, c]
            total1 += v * W[j, c1]
        out[m], out[other] = total, total1


@compiled
def add_some(rows, i, which, amounts, count, W):
    """w_c += amounts_m x_i for c = which_m, m < count."""
    count = np.uint64(count)
    start, end = span(rows, i)
    for p in range(start, end):
        v, line = entry(rows, i, p), W[column(rows, p)]
        for m in range(count):
            line[which[m]] += v * amounts[m]
    last = W[np.uint64(W.shape[0] - 1)]
    for m in range(count):
        last[which[m]] += rows.bias * amounts[m]
