"""A model as one header of C99: constant tables and ``static inline`` functions, without heap, stdio or a library.

    void NAME_decision(const float *x, float *out)     NAME_OUTPUTS decision values of a row of NAME_COLUMNS
    int NAME_predict(const float *x)                   the number of its class in NAME_classes; a regression's value
    int NAME_class_of(const float *values)             the class from decision values

Whole numbers (fixed_point.py) bring NAME_quantise and NAME_decision_of besides, for rows that come as whole numbers.
Kernels and their sums are written once (c99_text.py), for floats and for whole numbers.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from slackwater.export.c99_float import KERNELS, Code, float_code
from slackwater.export.c99_tables import Table, Words
from slackwater.export.c99_text import CLASS_OF, PREDICT, PREDICT_VALUE
from slackwater.export.fixed_point import BITS, FixedPoint
from slackwater.export.fixed_point import KERNELS as FIXED_KERNELS
from slackwater.export.plain import ExportError, Plain, plain

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_FLOAT = 4  # bytes

NUMBERS = ("float32", *BITS)


class Header(NamedTuple):
    """The text of a header, the bytes of its tables, and those of the arrays on the stack of NAME_predict."""

    text: str
    flash: int
    ram: int
    fixed: FixedPoint | None


def c99(
    model: Any, name: str, numbers: str = "float32", span: tuple[float, float] | None = None, rows: Any = None
) -> Header:
    """The header of a model; ``span`` or ``rows`` tell the range of data for whole numbers."""
    if not _NAME.fullmatch(name):
        raise ExportError(f"name={name!r}: a letter, then letters, digits and _, as C wants it")
    if numbers not in NUMBERS:
        raise ExportError(f"numbers={numbers!r}: C has {', '.join(NUMBERS)}")
    fixed = None
    if numbers == "float32":
        flat = plain(model, KERNELS, "C in float32")
        code = float_code(flat)
    else:
        flat = plain(model, FIXED_KERNELS, f"C in {numbers}")
        fixed = FixedPoint.of(flat, BITS[numbers], span, rows)
        code = fixed.code()
    tables = [*code.tables, *_classes(flat)]
    flash, ram = sum(table.n_bytes for table in tables), _ram(flat, code)
    facts = [*_head(flat, code, flash, ram), *_guard(flat, flash, ram)]
    parts = ["\n".join(facts), *(table.text("NAME_") for table in code.tables)]
    parts = [part.replace("NAME_", f"{name}_") for part in parts]
    parts += [table.text(f"{name}_") for table in _classes(flat)]
    functions = code.text + CLASS_OF.get(flat.decide, "") + (PREDICT_VALUE if flat.decide == "value" else PREDICT)
    return Header("\n".join([*parts, functions.replace("NAME_", f"{name}_")]) + "#endif\n", flash, ram, fixed)


def _classes(model: Plain) -> list[Table | Words]:
    """What the classes are called: numbers, or texts."""
    labels = model.classes
    if labels.size == 0:
        return []
    says = "what the classes are called"
    if labels.dtype.kind in "OUS":
        return [Words("classes", [str(label) for label in labels.tolist()], says)]
    if labels.dtype.kind == "f" and (labels == np.rint(labels)).all() and np.abs(labels).max() < 2**31:
        labels = labels.astype(np.int64)
    if labels.dtype.kind == "f":
        return [Table("classes", labels.astype(np.float64), says)]
    small = labels.dtype.kind == "b" or (-(2**31) < labels.min() and labels.max() < 2**31)
    return [Table("classes", labels.astype(np.int32 if small else np.int64), says)]


def _ram(model: Plain, code: Code) -> int:
    """Bytes of the arrays on the stack at the deepest place under NAME_predict."""
    deciding = 2 * model.n_classes * _FLOAT if model.decide == "votes" else 0
    return model.n_outputs * _FLOAT + max(code.ram, deciding)


_DECIDES = {
    "sign": "two classes, the second where the decision value is positive",
    "largest": "the class of the largest decision value",
    "votes": "one decision value for each pair of classes, positive for the first; their votes decide",
    "value": "a regression",
}


def _head(model: Plain, code: Code, flash: int, ram: int) -> list[str]:
    """The comment that the header begins with."""
    from slackwater import __version__

    columns = f"{model.n_columns} columns"
    kind = (
        f"linear, {columns}"
        if model.vectors is None
        else f"{model.kernel.name}, {model.n_vectors} vectors of {columns}"
    )
    result = "float NAME_predict(const float *x)    the value" if model.decide == "value" else (
        "int NAME_predict(const float *x)      the number of the class, which NAME_classes calls by its name"
    )  # fmt: skip
    return [
        f"/* NAME_: a support vector machine, written by slackwater {__version__}.",
        "",
        f"   Model  {kind}, {model.n_outputs} output(s): {_DECIDES[model.decide]}",
        f"   Numbers  {code.says}",
        f"   Flash  {flash} bytes: the tables below, without code",
        f"   RAM    {ram} bytes of stack: the arrays of NAME_predict and of what it calls, without single variables",
        "",
        f"   {result}",
        "   void NAME_decision(const float *x, float *out)    NAME_OUTPUTS decision values",
        "",
        "   x has NAME_COLUMNS numbers. No heap, no library; C99 or C++11. */",
    ]


def _guard(model: Plain, flash: int, ram: int) -> list[str]:
    sizes = {"COLUMNS": model.n_columns, "OUTPUTS": model.n_outputs, "CLASSES": model.n_classes}
    sizes |= {"VECTORS": model.n_vectors, "FLASH_BYTES": flash, "RAM_BYTES": ram}
    return [
        "#ifndef SLACKWATER_NAME_H", "#define SLACKWATER_NAME_H", "", "#include <stddef.h>", "#include <stdint.h>", "",
        *(f"#define NAME_{key} {value}" for key, value in sizes.items() if value), "",
    ]  # fmt: skip
