"""How examples lie in memory, and the primitives that every loop is written in. The only place that knows "sparse"."""

from slackwater.rows.blocks import dense_block, products_with_block, sweep
from slackwater.rows.columns import Columns, as_columns
from slackwater.rows.convert import as_matrix, as_rows, take
from slackwater.rows.equal import first_equal
from slackwater.rows.layouts import CSRRows, DenseRows, with_bias
from slackwater.rows.outputs import add_some, dot_each, dot_some, padded
from slackwater.rows.packing import packed
from slackwater.rows.passes import add_in_parts, entries_of_a_row, sqnorms, times, transpose_times
from slackwater.rows.primitives import (
    add,
    add_scaled,
    dot,
    dot_ahead,
    entries,
    prefetch_place,
    prefetch_row,
    sqnorm,
)
from slackwater.rows.stacking import narrowed, stacked
from slackwater.rows.vectors import inner, squared_distance, squared_norm

__all__ = [
    "CSRRows",
    "Columns",
    "DenseRows",
    "add",
    "add_in_parts",
    "add_scaled",
    "add_some",
    "as_columns",
    "as_matrix",
    "as_rows",
    "dense_block",
    "dot",
    "dot_ahead",
    "dot_each",
    "dot_some",
    "entries",
    "entries_of_a_row",
    "first_equal",
    "inner",
    "narrowed",
    "packed",
    "padded",
    "prefetch_place",
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
