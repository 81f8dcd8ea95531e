"""How examples lie in memory, and the primitives that every loop is written in. The only place that knows "sparse"."""

from slackwater.rows.blocks import dense_block, products_with_block, sweep
from slackwater.rows.convert import as_matrix, as_rows, take
from slackwater.rows.layouts import CSRRows, DenseRows, with_bias
from slackwater.rows.packing import packed
from slackwater.rows.primitives import add, dot, entries, prefetch_row, sqnorm, sqnorms, times, transpose_times
from slackwater.rows.stacking import narrowed, stacked
from slackwater.rows.vectors import squared_distance, squared_norm

__all__ = [
    "CSRRows",
    "DenseRows",
    "add",
    "as_matrix",
    "as_rows",
    "dense_block",
    "dot",
    "entries",
    "narrowed",
    "packed",
    "prefetch_row",
    "products_with_block",
    "sqnorm",
    "sqnorms",
    "squared_distance",
    "squared_norm",
    "stacked",
    "sweep",
    "take",
    "times",
    "transpose_times",
    "with_bias",
]
