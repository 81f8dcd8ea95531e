"""Rows of two tables as one table; the part of a wide sparse table that products with some of its rows look at."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from slackwater.rows.blocks import dense_block
from slackwater.rows.convert import as_rows, frozen, take
from slackwater.rows.layouts import CSRRows, DenseRows

_WIDE = 2**12  # columns


def stacked(above: DenseRows | CSRRows, below: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """The rows of both, copied, in the layout and with the constant feature of the first."""
    if isinstance(above, DenseRows):
        lower = below.values if isinstance(below, DenseRows) else dense_block(below, np.arange(below.n_rows))
        return above._replace(values=frozen(np.concatenate((above.values, lower))))
    compressed = as_rows(sp.csr_array(below.values)) if isinstance(below, DenseRows) else below
    tables = [table for table in (above, compressed) if isinstance(table, CSRRows)]
    parts = [(rows, slice(rows.indptr[0], rows.indptr[-1])) for rows in tables]
    upper, lower = (rows.indptr - rows.indptr[0] for rows in tables)
    return above._replace(
        indptr=frozen(np.concatenate((upper, upper[-1] + lower[1:]))),
        indices=frozen(np.concatenate([rows.indices[kept] for rows, kept in parts])),
        values=frozen(np.concatenate([rows.values[kept] for rows, kept in parts])),
    )


def narrowed(rows: DenseRows | CSRRows, ids: np.ndarray) -> DenseRows | CSRRows:
    """Of wide sparse rows the columns in which the rows ``ids`` hold anything: products with these stay what they are.

    Blocks of dense lines are then as wide as that, instead of as wide as the table.
    """
    if not isinstance(rows, CSRRows) or rows.n_columns < _WIDE:
        return rows
    looked_at = np.zeros(rows.n_columns, dtype=bool)
    looked_at[take(rows, ids).indices] = True
    places = np.cumsum(looked_at, dtype=np.uint32) - np.uint32(1)
    kept = looked_at[rows.indices]
    ends = np.append(0, np.cumsum(kept))[rows.indptr]
    return rows._replace(
        indptr=frozen(ends), indices=frozen(places[rows.indices[kept]]), values=frozen(rows.values[kept]),
        columns=int(np.count_nonzero(looked_at)),
    )  # fmt: skip
