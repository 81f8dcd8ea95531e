"""From arrays and sparse matrices to rows: without a copy where memory allows it, with the reason logged where not."""

from __future__ import annotations

import logging

import numpy as np
import scipy.sparse as sp

from slackwater.compiled import compiled
from slackwater.rows.layouts import CSRRows, DenseRows

log = logging.getLogger("slackwater")

_MAX_COLUMNS = 2**32 - 1
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def as_rows(X, bias: float = 0.0) -> DenseRows | CSRRows:
    """Rows of a 2-d array or a SciPy sparse matrix. float32 and float64 are kept; C order and CSR are not copied."""
    if isinstance(X, DenseRows | CSRRows):
        return X._replace(bias=float(bias))
    if sp.issparse(X):
        return _csr_rows(X, float(bias))
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"expected a table of rows and columns, got an array of {X.ndim} dimension(s)")
    return DenseRows(frozen(_c_ordered(_float(X))), float(bias))


def as_matrix(rows: DenseRows | CSRRows):
    """The stored entries as an array or a SciPy CSR array that shares the rows' memory."""
    if isinstance(rows, DenseRows):
        return rows.values
    matrix = sp.csr_array((rows.n_rows, rows.n_columns), dtype=rows.dtype)
    # Assigned one by one: SciPy's constructor would copy where it wants one integer type for both.
    matrix.data = rows.values
    narrow = rows.n_columns <= np.iinfo(np.int32).max
    matrix.indices = rows.indices.view(np.int32) if narrow else rows.indices.astype(np.int64)
    few = rows.indptr[-1] <= np.iinfo(np.int32).max
    matrix.indptr = rows.indptr.astype(np.int32) if narrow and few else rows.indptr
    return matrix


def take(rows, ids: np.ndarray):
    """The rows ``ids``, copied."""
    if isinstance(rows, DenseRows):
        return rows._replace(values=frozen(rows.values[ids]))
    starts, lengths = rows.indptr[ids], np.diff(rows.indptr)[ids]
    indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    indices, values = np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1], dtype=rows.dtype)
    _gather(rows, starts, indptr, indices, values)
    return rows._replace(indptr=frozen(indptr), indices=frozen(indices), values=frozen(values))


@compiled
def _gather(rows, starts, indptr, indices, values):
    for k in range(np.uint64(starts.size)):
        q = np.uint64(starts[k])
        for p in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            indices[p], values[p] = rows.indices[q], rows.values[q]
            q += np.uint64(1)


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view: one machine-code version serves writable arrays and read-only maps of files alike."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def _float(array: np.ndarray) -> np.ndarray:
    if array.dtype in _FLOATS:
        return array
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: rows are real numbers")
    small = array.dtype.kind in "biuf" and array.dtype.itemsize <= 2
    target = np.float32 if small else np.float64
    log.info("values converted from %s to %s: solvers compute on floating point rows", array.dtype, np.dtype(target))
    return array.astype(target)


def _c_ordered(array: np.ndarray) -> np.ndarray:
    if array.flags.c_contiguous:
        return array
    log.info("dense data copied to C order: solvers read whole rows, which must lie together in memory")
    return np.ascontiguousarray(array)


def _csr_rows(X, bias: float) -> CSRRows:
    if X.format != "csr":
        log.info("sparse data converted from %s to CSR: solvers read whole rows", X.format)
        X = X.tocsr()
    n, d = X.shape
    if d > _MAX_COLUMNS:
        raise ValueError(f"{d} columns; the limit is {_MAX_COLUMNS}, because column numbers take 32 bits")
    indices = _as_uint32(X.indices)
    indptr = np.ascontiguousarray(X.indptr, dtype=np.int64)
    if indptr.size != n + 1 or indptr[0] < 0 or indptr[-1] > min(indices.size, X.data.size):
        raise ValueError("the sparse matrix's indptr does not fit its data")
    values = np.ascontiguousarray(_float(X.data))
    state = inspected(indptr, indices, np.uint32(d))
    if state < 0:
        raise ValueError(f"the sparse matrix names a column outside 0..{d - 1}, or its indptr decreases")
    if state > 0:
        log.info("sparse data copied: column numbers within a row must increase and occur once")
        X = sp.csr_array((values.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        X.sum_duplicates()
        return _csr_rows(X, bias)
    return CSRRows(frozen(indptr), frozen(indices), frozen(values), d, bias)


def _as_uint32(indices: np.ndarray) -> np.ndarray:
    indices = np.ascontiguousarray(indices)
    if indices.dtype.itemsize == 4:
        return indices.view(np.uint32)  # a negative number becomes one that is too large, and is found below
    if indices.size and (indices.min() < 0 or indices.max() > _MAX_COLUMNS):
        raise ValueError("the sparse matrix names a column outside its shape")
    log.info("column numbers converted from %s to uint32", indices.dtype)
    return indices.astype(np.uint32)


@compiled
def inspected(indptr, indices, columns):
    """0 when rows are sorted without repetition, 1 when they are not, -1 when compiled loops would leave the arrays."""
    rows = np.uint64(indptr.size - 1)
    for i in range(rows):
        if indptr[i] > indptr[i + np.uint64(1)]:
            return -1
    highest, falls = np.uint32(0), 0
    start, end = np.uint64(indptr[0]), np.uint64(indptr[rows])
    for p in range(start, end):
        highest = max(highest, indices[p])
    if end > start and highest >= columns:
        return -1
    # All places where column numbers do not increase, less those between two rows: one pass that vectorises.
    for p in range(start + np.uint64(1), end):
        falls += indices[p] <= indices[p - np.uint64(1)]
    for i in range(np.uint64(1), rows):
        p = np.uint64(indptr[i])
        if start < p < np.uint64(indptr[i + np.uint64(1)]):
            falls -= indices[p] <= indices[p - np.uint64(1)]
    return 1 if falls else 0
