"""Rows of two tables as one table."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from slackwater.rows.blocks import dense_block
from slackwater.rows.convert import as_rows, frozen
from slackwater.rows.layouts import CSRRows, DenseRows


def stacked(above: DenseRows | CSRRows, below: DenseRows | CSRRows) -> DenseRows | CSRRows:
    """The rows of both, copied, in the layout and with the constant feature of the first."""
    if isinstance(above, DenseRows):
        lower = below.values if isinstance(below, DenseRows) else dense_block(below, np.arange(below.n_rows))
        return above._replace(values=frozen(np.concatenate((above.values, lower))))
    if isinstance(below, DenseRows):
        below = as_rows(sp.csr_array(below.values))
    parts = [(rows, slice(rows.indptr[0], rows.indptr[-1])) for rows in (above, below)]
    upper, lower = (rows.indptr - rows.indptr[0] for rows in (above, below))
    return above._replace(
        indptr=frozen(np.concatenate((upper, upper[-1] + lower[1:]))),
        indices=frozen(np.concatenate([rows.indices[kept] for rows, kept in parts])),
        values=frozen(np.concatenate([rows.values[kept] for rows, kept in parts])),
    )
