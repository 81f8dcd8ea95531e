"""Products of all rows with a block of rows: what a kernel solver asks for, as one GEMM or one sparse sweep."""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled
from slackwater.rows.layouts import CSRRows, DenseRows


def dense_block(rows: DenseRows | CSRRows, ids: np.ndarray) -> np.ndarray:
    """The rows ``ids`` as a dense matrix of the data's own precision, without the constant feature."""
    if isinstance(rows, DenseRows):
        return rows.values[ids]
    block = np.zeros((len(ids), rows.n_columns), dtype=rows.dtype)
    _scatter(rows, np.asarray(ids, dtype=np.int64), block)
    return block


def products_with_block(rows: DenseRows | CSRRows, ids: np.ndarray) -> np.ndarray:
    """<x_i, x_j> for every j in ``ids`` (lines of the result) and every row i, the constant feature included."""
    block = dense_block(rows, ids)
    if isinstance(rows, DenseRows):
        products = block @ rows.values.T
    else:
        products = np.empty((rows.n_rows, len(ids)), dtype=rows.dtype)
        sweep(rows, np.ascontiguousarray(block.T), products)
        products = np.ascontiguousarray(products.T)
    if rows.bias:
        products += products.dtype.type(rows.bias**2)
    return products


@compiled
def _scatter(rows, ids, block):
    for k in range(np.uint64(ids.size)):
        i = np.uint64(ids[k])
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            block[k, rows.indices[p]] = rows.values[p]


@compiled
def sweep(rows, transposed, out):
    """out = X transposed, by sparse rows; the inner loop runs over the block and vectorises."""
    width = np.uint64(transposed.shape[1])
    for i in range(np.uint64(rows.indptr.size - 1)):
        line = out[i]
        for k in range(width):
            line[k] = 0.0
        for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
            value, other = rows.values[p], transposed[rows.indices[p]]
            for k in range(width):
                line[k] += value * other[k]
