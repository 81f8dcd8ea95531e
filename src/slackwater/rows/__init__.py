"""How examples lie in memory, and the primitives that every loop is written in. The only place that knows "sparse"."""

from slackwater.rows.blocks import dense_block, products_with_block
from slackwater.rows.convert import as_rows, take
from slackwater.rows.layouts import CSRRows, DenseRows, with_bias
from slackwater.rows.primitives import add, dot, entries, prefetch_row, sqnorm, sqnorms, times, transpose_times

__all__ = [
    "CSRRows",
    "DenseRows",
    "add",
    "as_rows",
    "dense_block",
    "dot",
    "entries",
    "prefetch_row",
    "products_with_block",
    "sqnorm",
    "sqnorms",
    "take",
    "times",
    "transpose_times",
    "with_bias",
]
