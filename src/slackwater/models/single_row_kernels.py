"""Kernel values of one row: the vectors made ready, and one pass over them.

Support vectors lie in float32 row after row, each from a cache line's beginning on, so that a pass is as fast as memory
gives them; vectors so long that gamma ||x||^2 would show their rounding stay in float64. The rbf kernel sums
(x_j - z_j)^2 itself, which loses nothing where the difference of squared norms would. Sparse vectors that would be
large as a matrix lie by columns: a pass reads only the columns that the row has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slackwater.compiled import LANES, compiled, exp32
from slackwater.models.single_row import products, row_of
from slackwater.objective.kernel_panels import at_cache_lines
from slackwater.objective.kernels import Kernel
from slackwater.rows import Columns, CSRRows, DenseRows, as_columns, dense_block

_COARSE = 3e-6  # error of an exponent that rows in float32 may bring in
_MATRIX = 2**22  # entries up to which sparse vectors become a matrix whatever they hold
_FILLED = 0.25  # share of stored entries above which they become one anyway
_POLYNOMIAL, _SIGMOID, _RBF, _LAPLACIAN, _CHI2 = range(5)
_KINDS = {"polynomial": _POLYNOMIAL, "sigmoid": _SIGMOID, "rbf": _RBF, "laplacian": _LAPLACIAN, "chi2": _CHI2}
_STEP = 32  # the numbers of a row are a multiple of it: what a loop leaves over takes as long as a whole round
_PARAMETERS = 4  # kind, gamma, coef0, degree


class Sums(NamedTuple):
    """What becomes of kernel values: group g, vectors places[g, 0] to places[g, 1], adds line c to places[g, 2 + c]."""

    parameters: np.ndarray  # kind, gamma, coef0, degree; then what every output begins with
    coef: np.ndarray  # (lines, m)
    places: np.ndarray  # (groups, 2 + lines), int64

    @classmethod
    def of(cls, kernel: Kernel, coef: np.ndarray, places: np.ndarray, offsets: np.ndarray) -> Sums:
        """The numbers of a kernel model."""
        own = [_KINDS[kernel.name], kernel.gamma, kernel.coef0, kernel.degree]
        return cls(np.concatenate((own, offsets)), np.array(coef, dtype=np.float64, order="C"), places)


@dataclass(frozen=True, eq=False)
class MatrixValues:
    """Of vectors in a matrix."""

    vectors: np.ndarray  # (m, d and zeros up to a multiple of _STEP), at cache lines
    columns: int
    sums: Sums

    @classmethod
    def of(cls, matrix: np.ndarray, sums: Sums) -> MatrixValues:
        """From vectors wherever they lie."""
        n, d = matrix.shape
        width = d + -d % _STEP
        vectors = at_cache_lines(-(-n * width // LANES), matrix).reshape(-1)[: n * width].reshape(n, width)
        vectors[:, :d] = matrix
        return cls(vectors, d, sums)

    def __reduce__(self) -> Any:
        return MatrixValues.of, (self.vectors[:, : self.columns], self.sums)  # pickle knows nothing of cache lines

    def dense(self, x: Any) -> np.ndarray:
        """Of an array."""
        vectors, sums = self.vectors, self.sums
        out = np.empty(sums.parameters.size - _PARAMETERS)
        _by_rows(row_of(x, self.columns), vectors, *sums, out)
        return out

    def sparse(self, indices: Any, values: Any) -> np.ndarray:
        """Of the entries of a row."""
        x = np.zeros(self.columns)
        x[indices] = values
        return self.dense(x)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Of sparse vectors, by columns: kernels follow from sums over the columns that row and vector both have."""

    vectors: Columns
    alone: np.ndarray  # (m,): what a vector's own entries add to its distance
    sums: Sums

    @property
    def columns(self) -> int:
        return self.vectors.indptr.size - 2

    def dense(self, x: Any) -> np.ndarray:
        """Of an array."""
        x = row_of(x, self.columns)
        indices = np.flatnonzero(x)
        return self.sparse(indices, x[indices])

    def sparse(self, indices: Any, values: Any) -> np.ndarray:
        """Of the entries of a row."""
        vectors, sums = self.vectors, self.sums
        out = np.empty(sums.parameters.size - _PARAMETERS)
        indices = np.array(indices, dtype=np.int64)
        _by_columns(indices, row_of(values, indices.size), *vectors, self.alone, *sums, out)
        return out


def kernel_values(kernel: Kernel, vectors: DenseRows | CSRRows, sums: Sums) -> MatrixValues | ColumnValues:
    """Made ready from the vectors of a model."""
    size = vectors.n_rows * vectors.n_columns
    if isinstance(vectors, CSRRows) and size > _MATRIX and vectors.n_entries < _FILLED * size:
        columns = as_columns(vectors._replace(bias=0.0), np.ones(vectors.n_rows))
        alone = np.zeros(vectors.n_rows)
        if kernel.name in ("rbf", "laplacian", "chi2"):
            _own_sums(*columns, _KINDS[kernel.name], alone)
        return ColumnValues(columns, alone, sums)
    matrix = np.array(dense_block(vectors, np.arange(vectors.n_rows)))
    squares = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    coarse = kernel.gamma * squares.max(initial=0.0) * np.finfo(np.float32).eps > _COARSE
    return MatrixValues.of(matrix.astype(np.float64 if coarse else np.float32, copy=False), sums)


@compiled
def _by_rows(x, vectors, parameters, coef, places, out):
    found = np.empty(vectors.shape[0], dtype=vectors.dtype)
    row = at_cache_lines(1 + vectors.shape[1] // np.int64(LANES), vectors).reshape(-1)[: vectors.shape[1]]
    for j in range(np.uint64(x.size)):
        row[j] = x[j]
    kind = parameters[0]
    if kind < _RBF:
        products(row, vectors, found)
    elif kind == _RBF:
        _squares(row, vectors, found)
    elif kind == _LAPLACIAN:
        _absolutes(row, vectors, found)
    else:
        _quotients(row, vectors, found)
    _finish(found, parameters, coef, places, out)


@compiled
def _squares(x, rows, out):
    for i in range(np.uint64(out.size)):
        row, total = rows[i], x.dtype.type(0.0)
        for j in range(np.uint64(row.size)):
            apart = row[j] - x[j]
            total += apart * apart
        out[i] = total


@compiled
def _absolutes(x, rows, out):
    for i in range(np.uint64(out.size)):
        row, total = rows[i], x.dtype.type(0.0)
        for j in range(np.uint64(row.size)):
            total += abs(row[j] - x[j])
        out[i] = total


@compiled
def _quotients(x, rows, out):
    nought = x.dtype.type(0.0)
    for i in range(np.uint64(out.size)):
        row, total = rows[i], nought
        for j in range(np.uint64(row.size)):
            both, apart = row[j] + x[j], row[j] - x[j]
            total += apart * apart / both if both > nought else nought
        out[i] = total


@compiled(inline=True)
def _term(kind, a, b):
    """What entries a and b in one column add to a product, or to a distance beyond what each adds alone."""
    if kind < _RBF:
        return a * b
    if kind == _RBF:
        return -2.0 * a * b
    if kind == _LAPLACIAN:
        return abs(a - b) - abs(a) - abs(b)
    return (a - b) * (a - b) / (a + b) - a - b if a + b > 0.0 else 0.0


@compiled(inline=True)
def _alone(kind, a):
    """What an entry adds to a distance on its own."""
    if kind < _RBF:
        return 0.0
    return a * a if kind == _RBF else abs(a)


@compiled
def _own_sums(indptr, indices, values, kind, alone):
    for p in range(np.uint64(values.size)):
        alone[indices[p]] += _alone(kind, np.float64(values[p]))


@compiled
def _by_columns(columns, values, indptr, indices, entries, alone, parameters, coef, places, out):
    kind, own = parameters[0], 0.0
    found = alone.copy()
    for q in range(np.uint64(columns.size)):
        j, a = np.uint64(columns[q]), values[q]
        if j >= np.uint64(indptr.size - 2):
            raise IndexError("a row has a column that the model was not fitted on")
        own += _alone(kind, a)
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + np.uint64(1)])):
            found[indices[p]] += _term(kind, a, np.float64(entries[p]))
    found += own
    _finish(found, parameters, coef, places, out)


@compiled
def _finish(found, parameters, coef, places, out):
    """From products or distances to kernel values to decision values."""
    values = np.empty(found.size)
    kind, gamma, coef0, degree = parameters[0], parameters[1], parameters[2], np.int64(parameters[3])
    nought, one, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    if kind >= _RBF:
        narrow = np.float32(gamma)
        for i in range(np.uint64(found.size)):
            values[i] = exp32(-narrow * max(np.float32(found[i]), nought))
    elif kind == _SIGMOID:  # tanh t = 1 - 2 / (exp 2t + 1)
        for i in range(np.uint64(found.size)):
            values[i] = one - two / (exp32(np.float32(2.0 * (gamma * found[i] + coef0))) + one)
    else:
        for i in range(np.uint64(found.size)):
            base, power = gamma * found[i] + coef0, 1.0
            for _ in range(degree):
                power *= base
            values[i] = power
    for c in range(np.uint64(out.size)):
        out[c] = parameters[np.uint64(_PARAMETERS) + c]
    for g in range(np.uint64(places.shape[0])):
        for c in range(np.uint64(coef.shape[0])):
            line, total = coef[c], 0.0
            for i in range(np.uint64(places[g, 0]), np.uint64(places[g, 1])):
                total += line[i] * values[i]
            out[places[g, np.uint64(2) + c]] += total
