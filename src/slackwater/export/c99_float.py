"""The C of float32 models: tables of floats, sums in ``NAME_real`` (double unless told otherwise), no library at all.

Differences and products of two floats are exact, or nearly so, in double, and exp is a polynomial after its argument
was reduced. What remains is the rounding of the model to float32: coefficients and intercepts stay double where that
could move a decision value by 1e-6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slackwater.export.c99_tables import Table, number, stored, with_entries
from slackwater.export.c99_text import EXP, KERNEL_VALUES, LINEAR, REAL, decision, filled, sums_over_columns
from slackwater.export.plain import ExportError, Plain

KERNELS = ("rbf", "polynomial", "sigmoid", "laplacian", "chi2")
_ALLOWED = 1e-6
_REAL = 8  # bytes of NAME_real
_FINISH = "(float)(sum + (NAME_real)NAME_intercept[c])"


class Code(NamedTuple):
    """Tables, the functions up to NAME_decision, the bytes of arrays on its stack, and what people should know."""

    tables: list[Table]
    text: str
    ram: int
    says: str


def float_code(model: Plain) -> Code:
    """The float32 model in C."""
    intercept = Table("intercept", _short(model.intercept[None], 1.0)[0], "what is added to every output")
    if model.vectors is None:
        rows = stored(float32_table(model.coef), "weights", "the weights of every output")
        loop = sums_over_columns("linear", "weights", rows.sparse)
        text = REAL + loop + filled(LINEAR, name="decision", finish=_FINISH)
        return Code([*rows.tables, intercept], text, 0, "float32")
    rows = stored(with_entries(model.matrix, float32_table), "vectors", "the support vectors")
    coef = _short(np.ascontiguousarray(model.coef.T), _largest_value(model))
    tables = [*rows.tables, Table("coef", coef, "the coefficients of every vector"), intercept, *blocks_table(model)]
    name = model.kernel.name
    text = [
        REAL, "" if name == "polynomial" else EXP, sums_over_columns(name, "vectors", rows.sparse), _kernel(model),
        decision(name, rows.sparse, model.blocks is not None, _FINISH, "decision"),
    ]  # fmt: skip
    kinds = "float32" if coef.dtype == np.float32 else "float32, coefficients float64"
    return Code(tables, "".join(text), model.n_outputs * _REAL, kinds)


def blocks_table(model: Plain) -> list[Table]:
    """How many vectors each class has, where pairs vote."""
    if model.blocks is None:
        return []
    return [Table("blocks", model.blocks.astype(np.uint32), "the vectors of every class")]


def float32_table(values: np.ndarray) -> np.ndarray:
    """As float32, where that can hold them."""
    with np.errstate(over="ignore"):
        short = np.asarray(values, dtype=np.float64).astype(np.float32)
    if not np.isfinite(short).all():
        raise ExportError("a number of the model is too large for float32")
    return short


def _short(values: np.ndarray, factor: float) -> Any:
    """As float32 where all roundings of a column together, times ``factor``, are small enough."""
    with np.errstate(over="ignore", invalid="ignore"):
        short = values.astype(np.float32)
        moved = factor * np.abs(short - values).sum(axis=0).max(initial=0.0)
    return short if moved <= _ALLOWED else values


def _largest_value(model: Plain) -> float:
    """A bound of |K(x_j, x)| for rows no longer than the longest support vector."""
    if model.kernel.name != "polynomial":
        return 1.0
    matrix = model.matrix
    squares = matrix.multiply(matrix).sum(axis=1) if hasattr(matrix, "multiply") else (matrix * matrix).sum(axis=1)
    return (model.kernel.gamma * float(np.max(squares)) + abs(model.kernel.coef0)) ** model.kernel.degree


def _kernel(model: Plain) -> str:
    kernel = model.kernel
    text = KERNEL_VALUES.get(kernel.name, KERNEL_VALUES["exponential"])
    return filled(text, gamma=number(kernel.gamma), coef0=number(kernel.coef0), degree=kernel.degree)
