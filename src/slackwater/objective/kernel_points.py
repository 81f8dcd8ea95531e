"""Points: rows made ready for kernel values with blocks of other rows, by one GEMM or by panels (kernel_panels.py).

Values are float32 unless asked for otherwise, from float32 products where that is exact enough: the rbf kernel takes
the difference of numbers as large as ||x||^2, so rows are centred first, and where gamma ||x||^2 is still so large that
float32 would show in the kernel, products are float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slackwater.objective.kernel_panels import products, rbf_values, sparse_lines, suits_panels
from slackwater.objective.kernels import Kernel, check_values, from_differences, from_products
from slackwater.rows import (
    CSRRows,
    DenseRows,
    as_matrix,
    dense_block,
    entries_of_a_row,
    first_equal,
    packed,
    sqnorms,
    take,
    with_bias,
)
from slackwater.threads import in_parts, thread_count

_COARSE = 3e-6  # error of gamma ||x - z||^2 that float32 products may bring in
_FILLED = 0.25  # share of stored entries above which sparse rows are as fast as a dense matrix
_NARROW = 2**22  # entries up to which sparse rows are kept dense whatever they hold
_CORNER = 32  # rows whose square of kernel values is computed for its diagonal, where the kernel is a function


class Lines(NamedTuple):
    """A block of rows on the other side of the kernel, and their squared norms."""

    values: Any  # SparseLines or (b, d); for a precomputed kernel its rows, for a function what it takes
    squares: np.ndarray


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with all that kernel values need; ``centre`` is what was taken from dense rows, 0 or a vector."""

    kernel: Kernel
    rows: DenseRows | CSRRows  # as they are used: without a bias, in the precision of the products
    squares: np.ndarray  # ||x_i||^2 in the same precision
    diagonal: np.ndarray  # K(x_i, x_i), float64
    centre: np.ndarray | float
    dtype: np.dtype  # of the kernel's values
    shift: float = 0.0  # added to every value: the square of the constant feature of a penalised bias

    @classmethod
    def of(cls, rows: DenseRows | CSRRows, kernel: Kernel, dtype: Any = np.float32, shift: float = 0.0) -> Points:
        """Ready for ``kernel``, its values to be of type ``dtype``, with ``shift`` added."""
        points = cls._of(rows, kernel, dtype)
        return replace(points, diagonal=points.diagonal + shift, shift=shift) if shift else points

    @classmethod
    def _of(cls, rows: DenseRows | CSRRows, kernel: Kernel, dtype: Any) -> Points:
        dtype = np.dtype(dtype)
        rows = with_bias(rows, 0.0)
        if kernel.name == "precomputed":
            return _precomputed(rows, kernel, dtype)
        if kernel.name == "callable":
            return _of_function(rows, kernel, dtype)
        rows, centre = _centred(_dense_if_better(rows), kernel)
        squares = _squares(rows)
        coarse = kernel.translates and kernel.gamma * squares.max(initial=0.0) * np.finfo(np.float32).eps > _COARSE
        rows = _in_precision(rows, np.dtype(np.float64) if coarse else dtype)
        return cls(kernel, rows, squares.astype(rows.dtype), kernel.at_itself(squares), centre, dtype)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def by_panels(self) -> bool:
        """Whether products come from panels (kernel_panels.py), not from a GEMM."""
        return self.kernel.of_products and suits_panels(self.rows)

    def given(self, ids: np.ndarray) -> DenseRows | CSRRows:
        """Some rows as they were given, around their own centre again; a precomputed kernel's have nothing to show."""
        if self.kernel.name == "precomputed":
            return DenseRows(np.zeros((ids.size, 0), dtype=self.rows.dtype), 0.0)
        rows = take(self.rows, ids)
        return DenseRows(rows.values + self.centre, 0.0) if isinstance(self.centre, np.ndarray) else rows

    def first_equal(self) -> np.ndarray | None:
        """For every point the first that is equal to it; None where all differ, or where kernels do not tell."""
        if self.kernel.of_products or self.kernel.of_differences:
            return first_equal(self.rows)
        return None

    def lines(self, rows: DenseRows | CSRRows, ids: np.ndarray | slice) -> Lines:
        """Some rows of another table, or of this one as it was given, as the other side of the kernel."""
        if self.kernel.name == "callable":
            return Lines(as_matrix(rows)[ids], np.empty(0))
        check_values(self.kernel, rows)
        ids = np.arange(rows.n_rows)[ids]
        if isinstance(rows, CSRRows) and isinstance(self.rows, CSRRows):
            lines = _in_precision(take(rows, ids), self.rows.dtype)
            return self._lines(lines, _squares(lines).astype(lines.dtype))
        values = dense_block(rows, ids)
        if isinstance(self.centre, np.ndarray):
            values = values - self.centre
        squares = _squares(DenseRows(values, 0.0)).astype(self.rows.dtype)
        return self._lines(DenseRows(values.astype(self.rows.dtype, copy=False), 0.0), squares)

    def own_lines(self, ids: np.ndarray) -> Lines:
        """Rows of these points."""
        if self.kernel.name == "callable":
            return Lines(as_matrix(self.rows)[ids], np.empty(0))
        return self._lines(take(self.rows, ids), self.squares[ids])

    def _lines(self, lines: DenseRows | CSRRows, squares: np.ndarray) -> Lines:
        if self.by_panels:
            return Lines(sparse_lines(lines), squares)
        if isinstance(lines, CSRRows):
            return Lines(dense_block(lines, np.arange(lines.n_rows)), squares)
        return Lines(lines.values, squares)

    def some(self, ids: np.ndarray) -> Points:
        """Some of the points alone; not of a precomputed kernel."""
        return replace(self, rows=take(self.rows, ids), squares=self.squares[ids], diagonal=self.diagonal[ids])

    def square(self, ids: np.ndarray) -> np.ndarray:
        """K between rows of these points."""
        if self.kernel.name == "precomputed":
            return self.rows.values[np.ix_(ids, ids)].astype(self.dtype)
        part = self.some(ids)
        out = part.values(self.own_lines(ids), np.empty((ids.size, ids.size), dtype=self.dtype))
        np.fill_diagonal(out, part.diagonal)
        return out

    def values(self, lines: Lines, out: np.ndarray) -> np.ndarray:
        """out[k, i] = K(line k, point i)."""
        if self.kernel.name == "precomputed":
            out[:] = lines.values
        elif self.kernel.name == "callable":
            out[:] = _checked(self.kernel.function(lines.values, as_matrix(self.rows)), out.shape)  # type: ignore[misc]
        elif self.rows.dtype == out.dtype or self._in_one_pass(out.dtype):
            self._by_products(lines, out)
        else:
            out[:] = self._by_products(lines, np.empty(out.shape, dtype=self.rows.dtype))
        if self.shift:
            out += out.dtype.type(self.shift)
        return out

    def _in_one_pass(self, dtype: np.dtype) -> bool:
        """Whether panels give values, not only products."""
        return self.by_panels and self.kernel.name == "rbf" and dtype == np.float32

    def _by_products(self, lines: Lines, out: np.ndarray) -> np.ndarray:
        kernel, rows = self.kernel, self.rows
        threads, lines_count = thread_count(None), len(out)
        if kernel.of_differences:
            cost = lines_count * entries_of_a_row(rows)
            in_parts(lambda a, b: from_differences(kernel, lines.values, rows, out, a, b), rows.n_rows, threads, cost)
            return out
        if self._in_one_pass(out.dtype):
            rbf_values(lines.values, lines.squares, rows, self.squares, kernel.gamma, out)
            return out
        if self.by_panels:
            products(lines.values, rows, out)
        else:
            np.matmul(lines.values, rows.values.T, out=out)
        in_parts(
            lambda a, b: from_products(kernel, out, lines.squares, self.squares, a, b),
            rows.n_rows,
            threads,
            lines_count,
        )
        return out


# ------------------------------------------------------------------------------------------------- getting ready


def _precomputed(rows: DenseRows | CSRRows, kernel: Kernel, dtype: np.dtype) -> Points:
    if not isinstance(rows, DenseRows) or rows.n_rows != rows.n_columns:
        raise ValueError(
            f"kernel='precomputed' needs the square kernel matrix of the training rows as a dense array, "
            f"got {rows.n_rows} rows of {rows.n_columns} columns"
        )
    diagonal = np.diagonal(rows.values).astype(np.float64)
    return Points(kernel, rows, diagonal.astype(rows.dtype), diagonal, 0.0, dtype)


def _of_function(rows: DenseRows | CSRRows, kernel: Kernel, dtype: np.dtype) -> Points:
    matrix, n = as_matrix(rows), rows.n_rows
    diagonal = np.empty(n)
    for start in range(0, n, _CORNER):
        part = matrix[start : start + _CORNER]
        size = part.shape[0]
        diagonal[start : start + size] = np.diagonal(_checked(kernel.function(part, part), (size, size)))  # type: ignore[misc]
    return Points(kernel, rows, diagonal.astype(rows.dtype), diagonal, 0.0, dtype)


def _checked(values: Any, shape: tuple[int, int]) -> np.ndarray:
    values = np.asarray(values)
    if values.shape != shape:
        raise ValueError(
            f"the kernel function gave an array of shape {values.shape} for {shape[0]} and {shape[1]} rows"
        )
    return values


def _dense_if_better(rows: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """Sparse rows as a dense matrix where that is small, or hardly larger; dense rows of mostly zeros compressed."""
    if isinstance(rows, DenseRows):
        return packed(rows)
    size = rows.n_rows * rows.n_columns
    if size > _NARROW and rows.n_entries < _FILLED * size:
        return rows
    return DenseRows(dense_block(rows, np.arange(rows.n_rows)), 0.0)


def _centred(rows: DenseRows | CSRRows, kernel: Kernel) -> tuple[DenseRows | CSRRows, np.ndarray | float]:
    """Dense rows around their mean, where shifts change nothing and shorter rows make products more exact."""
    if not kernel.translates or not isinstance(rows, DenseRows) or rows.n_rows == 0:
        return rows, 0.0
    mean = rows.values.mean(axis=0, dtype=np.float64)
    longest = _squares(rows).max(initial=0.0)
    if kernel.gamma * longest * np.finfo(np.float32).eps <= 0.1 * _COARSE or mean @ mean < 0.1 * longest:
        return rows, 0.0
    return DenseRows(rows.values - mean.astype(rows.dtype), 0.0), mean.astype(rows.dtype)


def _in_precision(rows: DenseRows | CSRRows, dtype: np.dtype) -> DenseRows | CSRRows:
    return rows if rows.dtype == dtype else rows._replace(values=rows.values.astype(dtype))


def _squares(rows: DenseRows | CSRRows) -> np.ndarray:
    squares = np.empty(rows.n_rows)
    sqnorms(rows, squares)
    return squares
