"""Products of sparse lines with all rows: panels of rows stand beside each other in a table that stays in the cache.

For a panel of LANES rows the table holds x_ij at [j, i]. A line with few nonzeros then costs one multiplication of
whole vectors for each of them, its sums stay in registers, and the values of the rbf kernel follow before anything is
written: kernel values pass through memory once. With many lines at a time filling the table costs nothing.

A table of more columns than the nearest cache holds is gone through in strips of columns, all lines in each strip,
where lines have enough nonzeros in a strip. Of very many columns only those are entered that the panel's rows have.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from slackwater.compiled import LANES, by_type, compiled, exp32, lane_sums
from slackwater.rows import CSRRows, DenseRows
from slackwater.threads import in_parts, thread_count

_STRIP = 200  # columns: 50 kB of the table in float32
_LEAST_IN_STRIP = 12  # nonzeros of a line, on average
_WIDE = 2**11  # columns from which on those of each panel are numbered anew
_FEW_COLUMNS = 128  # that dense rows may have
_ROUND = 512  # lines at a time where there are strips: their sums stay in the cache


class SparseLines(NamedTuple):
    """The nonzeros of a block of lines; those of line k in strip s are bounds[k, s] <= p < bounds[k, s + 1]."""

    bounds: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def some(self, first: int, last: int) -> SparseLines:
        """Some of the lines."""
        return self._replace(bounds=self.bounds[first:last])


def suits_panels(rows: DenseRows | CSRRows) -> bool:
    """Whether panels are faster than a GEMM: sparse rows, or so few columns that a GEMM waits for memory."""
    return isinstance(rows, CSRRows) or rows.n_columns <= _FEW_COLUMNS


def sparse_lines(lines: DenseRows | CSRRows) -> SparseLines:
    """The nonzeros of rows that are the other side."""
    if isinstance(lines, DenseRows):
        indptr = np.zeros(lines.n_rows + 1, dtype=np.int64)
        np.cumsum(np.count_nonzero(lines.values, axis=1), out=indptr[1:])
        indices, values = np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1], dtype=lines.dtype)
        _compress(lines.values, indices, values)
    else:
        indptr, indices, values = lines.indptr, lines.indices, lines.values
    in_line = (indptr[-1] - indptr[0]) / max(1, lines.n_rows)
    strips = int(max(1, min(-(-lines.n_columns // _STRIP), in_line // _LEAST_IN_STRIP)))
    bounds = np.empty((lines.n_rows, strips + 1), dtype=np.int64)
    _find_bounds(indptr, indices, -(-lines.n_columns // strips), bounds)
    return SparseLines(bounds, indices, values)


def products(lines: SparseLines, rows: DenseRows | CSRRows, out: np.ndarray) -> None:
    """out[k, i] = <line k, x_i>."""
    nothing = np.empty(0, dtype=rows.dtype)
    _by_panels(lines, _Others(nothing, nothing, *rows.dtype.type([0.0, 0.0])), rows, out)


def rbf_values(lines: SparseLines, squares, rows: DenseRows | CSRRows, others, gamma: float, out: np.ndarray) -> None:
    """out[k, i] = exp(-gamma ||line k - x_i||^2), float32 values of products in the precision of the rows."""
    _by_panels(lines, _Others(squares, others, *rows.dtype.type([gamma, 0.0])), rows, out)


class _Others(NamedTuple):
    """What the rbf kernel needs besides products; without norms products are wanted."""

    squares: np.ndarray
    row_squares: np.ndarray
    gamma: np.floating
    nought: np.floating  # of the same precision


def _by_panels(lines: SparseLines, others: _Others, rows, out: np.ndarray) -> None:
    wide = isinstance(rows, CSRRows) and rows.n_columns >= _WIDE and lines.bounds.shape[1] == 2
    step = len(out) if lines.bounds.shape[1] == 2 else _ROUND
    per_row = 1.0 + lines.indices.size / max(1, len(lines.bounds)) / 4.0
    for first in range(0, len(out), max(1, step)):
        part = slice(first, first + step)
        some = others if others.squares.size == 0 else others._replace(squares=others.squares[part])
        work = partial(_wide_panels if wide else _panels, lines.some(first, first + step), some, rows, out[part])
        in_parts(work, rows.n_rows, thread_count(None), per_row * len(out[part]))


@compiled
def _compress(dense, indices, values):
    p = np.uint64(0)
    for k in range(np.uint64(dense.shape[0])):
        line = dense[k]
        for j in range(np.uint64(line.size)):
            if line[j] != 0.0:
                indices[p], values[p] = j, line[j]
                p += np.uint64(1)


@compiled
def _find_bounds(indptr, indices, width, bounds):
    strips = np.uint64(bounds.shape[1] - 1)
    for k in range(np.uint64(bounds.shape[0])):
        p, end = np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])
        bounds[k, 0] = p
        for s in range(np.uint64(1), strips):
            while p < end and indices[p] < s * np.uint64(width):
                p += np.uint64(1)
            bounds[k, s] = p
        bounds[k, strips] = end


# --------------------------------------------------------------------------------------------------- the panels


@by_type
def _enter(rows, start, end, table):
    """Put rows start..end into the table."""


@by_type
def _leave(rows, start, end, table):
    """Make the table zero again where the next rows will not write."""


@_enter.register(DenseRows)
def _enter_dense(rows, start, end, table):
    for i in range(start, end):
        row = rows.values[i]
        for j in range(np.uint64(row.size)):
            table[j, i - start] = row[j]


@_leave.register(DenseRows)
def _leave_dense(rows, start, end, table):
    pass


@_enter.register(CSRRows)
def _enter_csr(rows, start, end, table):
    for i in range(start, end):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            table[rows.indices[p], i - start] = rows.values[p]


@_leave.register(CSRRows)
def _leave_csr(rows, start, end, table):
    for i in range(start, end):
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            table[rows.indices[p], i - start] = 0.0


@by_type
def _columns(rows):
    """How many lines a table needs."""


@_columns.register(DenseRows)
def _columns_dense(rows):
    return rows.values.shape[1]


@_columns.register(CSRRows)
def _columns_csr(rows):
    return rows.columns


@compiled
def at_cache_lines(count, like):
    """``count`` lines of zeros that begin where cache lines do: a vector across two of them takes twice as long."""
    lanes = np.int64(LANES)
    flat = np.zeros((np.int64(count) + 1) * lanes, dtype=like.dtype)
    skipped = (-flat.ctypes.data % 64) // like.itemsize
    return flat[skipped : skipped + np.int64(count) * lanes].reshape((np.int64(count), lanes))


@compiled
def _panels(lines, others, rows, out, first, last):
    """Values of all lines with rows first..last."""
    width = np.uint64(LANES)
    strips = np.uint64(lines.bounds.shape[1] - 1)
    table = at_cache_lines(_columns(rows), lines.values)
    sums = at_cache_lines(out.shape[0] if strips > 1 else 1, lines.values)
    row_squares = np.zeros(LANES, dtype=lines.values.dtype)
    for start in range(np.uint64(first), np.uint64(last), width):
        end = min(start + width, np.uint64(last))
        _enter(rows, start, end, table)
        _set_squares(others, start, end, row_squares)
        for s in range(strips):
            for k in range(np.uint64(out.shape[0])):
                line_sums = sums[k if strips > np.uint64(1) else np.uint64(0)]
                p, q = lines.bounds[k, s], lines.bounds[k, s + np.uint64(1)]
                lane_sums(lines.values, lines.indices, p, q, table, line_sums, s > np.uint64(0))
                if s + np.uint64(1) == strips:
                    _write(others, k, line_sums, row_squares, out, start, end)
        _leave(rows, start, end, table)


@compiled
def _wide_panels(lines, others, rows, out, first, last):
    """The same, the columns that a panel's rows have numbered anew for each panel; other columns add nothing."""
    width, begin = np.uint64(LANES), np.uint64(first)
    room = np.uint64(1)
    for start in range(begin, np.uint64(last), width):
        room = max(room, np.uint64(rows.indptr[min(start + width, np.uint64(last))] - rows.indptr[start]))
    table = at_cache_lines(min(room, np.uint64(rows.columns)), lines.values)
    places = np.zeros(rows.columns, dtype=np.uint32)  # in the table, from 1 on
    longest = 1
    for k in range(np.uint64(out.shape[0])):
        longest = max(longest, lines.bounds[k, 1] - lines.bounds[k, 0])
    indices, values = np.empty(longest, dtype=np.uint32), np.empty(longest, dtype=lines.values.dtype)
    sums, row_squares = np.zeros(LANES, dtype=lines.values.dtype), np.zeros(LANES, dtype=out.dtype)
    for start in range(begin, np.uint64(last), width):
        end = min(start + width, np.uint64(last))
        used = np.uint32(0)
        for i in range(start, end):
            for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
                column = rows.indices[p]
                if places[column] == 0:
                    used = np.uint32(used + np.uint32(1))
                    places[column] = used
                table[places[column] - np.uint32(1), i - start] = rows.values[p]
        _set_squares(others, start, end, row_squares)
        for k in range(np.uint64(out.shape[0])):
            count = np.uint64(0)
            for p in range(np.uint64(lines.bounds[k, 0]), np.uint64(lines.bounds[k, 1])):
                place = places[lines.indices[p]]
                indices[count], values[count] = place - np.uint32(1), lines.values[p]  # undone where the place is 0
                count += np.uint64(place != 0)
            lane_sums(values, indices, np.uint64(0), count, table, sums, False)
            _write(others, k, sums, row_squares, out, start, end)
        for p in range(np.uint64(rows.indptr[start]), np.uint64(rows.indptr[end])):
            places[rows.indices[p]] = 0
        table[:used] = 0.0


@compiled(inline=True)
def _set_squares(others, start, end, row_squares):
    if others.row_squares.size > 0:
        for j in range(end - start):
            row_squares[j] = others.row_squares[start + j]


@compiled(inline=True)
def _write(others, k, sums, row_squares, out, start, end):
    line = out[k, start:end]
    if others.squares.size > 0:
        square = others.squares[k]
        for j in range(np.uint64(LANES)):
            apart = max(square + row_squares[j] - sums[j] - sums[j], others.nought)
            sums[j] = exp32(np.float32(-others.gamma * apart))
    for j in range(end - start):
        line[j] = sums[j]
