"""One entry for all formats: ``export`` writes a model, ``import_model`` reads what others wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slackwater.atomic import atomic_file
from slackwater.export import c99 as c99_header
from slackwater.export import json_file, liblinear, libsvm, onnx_graph
from slackwater.export.plain import ExportError, model_of
from slackwater.models import KernelModel, LinearModel, ModelFileError
from slackwater.models.files import MissingModelFile
from slackwater.rows import as_rows

FORMATS = ("c99", "onnx", "json", "libsvm", "liblinear")
_ENDINGS = {
    ".h": "c99", ".hpp": "c99", ".onnx": "onnx", ".json": "json", ".libsvm": "libsvm", ".liblinear": "liblinear",
}  # fmt: skip
_START = 64  # bytes that tell what a file is


@dataclass(frozen=True)
class Exported:
    """What was written; for C the bytes of its tables and of its arrays on the stack."""

    path: Path
    format: str
    n_bytes: int
    flash: int | None = None
    ram: int | None = None
    error: float | None = None  # of whole numbers: the largest difference of a decision value on the rows measured
    measured: int = 0  # these rows

    def __str__(self) -> str:
        parts = [f"{self.path}: {self.format}, {self.n_bytes:,} bytes"]
        if self.flash is not None:
            parts.append(f"flash {self.flash:,} bytes, RAM {self.ram:,} bytes")
        if self.error is not None:
            parts.append(f"decision values within {self.error:.2g} on {self.measured:,} rows")
        return "; ".join(parts)


def export(
    model: Any,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    numbers: str | None = None,
    name: str | None = None,
    X: Any = None,
    span: tuple[float, float] | None = None,
) -> Exported:
    """Write a model for another home: a fitted estimator, a model, or the path of a model's file.

    ``format`` None goes by the ending of ``path``: "c99" (.h), "onnx" (.onnx), "json" (.json), "libsvm" (.libsvm),
    "liblinear" (.liblinear); .model means LIBSVM's format for a kernel model and LIBLINEAR's for a linear one.

    ``numbers``: C has "float32" (the default), "int16" and "int8"; ONNX "float64" (the default) and "float32"; the
    other formats hold the very numbers of the model. Whole numbers need the range of the data, from ``span`` (lowest,
    highest), from rows ``X``, or else from the support vectors; on ``X``, or on the vectors, their error is measured.
    ``name`` is the prefix of a header's functions, and the name of an ONNX graph; None makes one of the file's name.
    The file is written whole or not at all.
    """
    found, path = model_of(model), Path(path)
    kind = _format(path, format, found)
    name = _identifier(path) if name is None else name
    if kind != "c99" and (X is not None or span is not None):
        raise ExportError(f"X and span are for the whole numbers of c99; {kind} has no use for them")
    if kind not in ("c99", "onnx") and numbers is not None:
        raise ExportError(f"{kind} holds the very numbers of the model; numbers= is for c99 and onnx")
    if kind == "c99":
        return _export_c99(found, path, numbers or "float32", name, None if X is None else as_rows(X), span)
    content = _WRITERS[kind](found, numbers, name)
    return Exported(path, kind, _write(path, content))


_WRITERS: dict[str, Callable[[LinearModel | KernelModel, str | None, str], bytes]] = {
    "onnx": lambda model, numbers, name: onnx_graph.onnx_bytes(model, numbers or "float64", name),
    "json": lambda model, numbers, name: json_file.json_text(model).encode(),
    "libsvm": lambda model, numbers, name: libsvm.libsvm_bytes(model),
    "liblinear": lambda model, numbers, name: liblinear.liblinear_bytes(model),
}


def _export_c99(
    model: LinearModel | KernelModel, path: Path, numbers: str, name: str, rows: Any, span: tuple[float, float] | None
) -> Exported:
    if rows is not None and rows.n_columns != model.n_columns:
        raise ValueError(f"X has {rows.n_columns} columns, but the model was fitted on {model.n_columns}")
    header = c99_header.c99(model, name, numbers, span, rows)
    error, measured = None, 0
    if header.fixed is not None:
        rows = header.fixed.model.vectors if rows is None else rows
        if rows is not None and rows.n_rows:
            wide = rows._replace(values=rows.values.astype(np.float64))
            exact = model.decision_values(wide).reshape(rows.n_rows, -1)
            error, measured = float(np.abs(header.fixed.values(wide) - exact).max()), rows.n_rows
    return Exported(path, "c99", _write(path, header.text.encode()), header.flash, header.ram, error, measured)


def _format(path: Path, format: str | None, model: LinearModel | KernelModel) -> str:
    if format is None:
        ending = path.suffix.lower()
        format = ("liblinear" if isinstance(model, LinearModel) else "libsvm") if ending == ".model" else (
            _ENDINGS.get(ending)
        )  # fmt: skip
        if format is None:
            known = ", ".join(f"{key} ({value})" for key, value in _ENDINGS.items() if key != ".hpp")
            raise ExportError(f"the ending of {path} names no format; say format=, or end it with {known}")
    if format not in FORMATS:
        raise ExportError(f"format={format!r} is not known; the formats are {', '.join(FORMATS)}")
    return format


def _identifier(path: Path) -> str:
    """A name for C from that of the file."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", path.name.partition(".")[0]).strip("_")
    return words if words[:1].isalpha() else f"model_{words}".rstrip("_")


def _write(path: Path, content: bytes) -> int:
    with atomic_file(path) as file:
        file.write(content)
    return len(content)


# ------------------------------------------------------------------------------------------------------ reading


def import_model(path: str | os.PathLike[str], n_columns: int | None = None) -> LinearModel | KernelModel:
    """The model in a file of LIBSVM or LIBLINEAR, or one that was exported as JSON; its beginning tells which.

    LIBSVM's files do not say how many columns there are: ``n_columns``, or the last one that a support vector has.
    """
    kind = kind_of(path)
    if kind is None:
        raise ModelFileError(f"{os.fspath(path)} is not a model of LIBSVM or LIBLINEAR, nor one in JSON")
    if kind == "libsvm":
        return libsvm.from_libsvm(path, n_columns)
    model = json_file.from_json(path) if kind == "json" else liblinear.from_liblinear(path)
    if n_columns not in (None, model.n_columns):
        raise ModelFileError(f"{os.fspath(path)} holds a model of {model.n_columns} columns, not of {n_columns}")
    return model


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """ "libsvm", "liblinear" or "json" where a file begins as such a model does, else None."""
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
    except FileNotFoundError as error:
        raise MissingModelFile(f"there is no file {os.fspath(path)}") from error
    except OSError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    if start.lstrip().startswith(b"{"):
        return "json"
    return next((kind for kind, known in _TEXTS.items() if known.looks_like(start)), None)


_TEXTS = {"libsvm": libsvm, "liblinear": liblinear}
