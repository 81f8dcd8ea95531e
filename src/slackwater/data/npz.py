"""NumPy archives: rows as ``{train,test}_X`` or ``_indptr, _indices, _data, _shape``, labels as ``_y``."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from slackwater.atomic import atomic_file
from slackwater.data.errors import DataFileError
from slackwater.data.table import Table
from slackwater.data.text import reading_errors
from slackwater.rows import CSRRows, DenseRows, as_rows

__all__ = ["PARTS", "read_npz", "write_npz"]

PARTS = ("train", "test")

_SPARSE = ("indptr", "indices", "data", "shape")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, RuntimeError)


def read_npz(path: str | os.PathLike[str], part: str = "train", dtype: Any = None) -> Table:
    """Read the train or the test part. Values become ``dtype``; None keeps float32 and float64, small integers become
    float32."""
    if part not in PARTS:
        raise ValueError(f"part={part!r}: expected {' or '.join(map(repr, PARTS))}")
    source = os.fspath(path)
    arrays = _arrays(source, part)
    rows = _rows(source, part, arrays, dtype)
    labels, queries = arrays["y"], arrays.get("query_ids")
    for name, column in (("y", labels), ("query_ids", queries)):
        if column is not None and column.shape != (rows.n_rows,):
            raise DataFileError(source, f"{part}_{name} has the shape {column.shape}, but there are {rows.n_rows} rows")
    return Table(rows, labels, queries, source)


def _arrays(source: str, part: str) -> dict[str, np.ndarray]:
    """The arrays of one part by their names without it."""
    with reading_errors(source), open(source, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataFileError(source, "this is a single NumPy array, not an archive of arrays")
            wanted = {name: f"{part}_{name}" for name in _wanted(source, part, archive.files)}
            return {name: archive[key] for name, key in wanted.items()}
        except DataFileError:
            raise
        except _DAMAGE as error:
            if "pickle" in str(error):
                problem = "this is no NumPy archive, or it holds Python objects, which are not read"
            else:
                problem = f"the archive is damaged or cut short ({error})"
            raise DataFileError(source, problem) from error


def _wanted(source: str, part: str, keys: list[str]) -> list[str]:
    """The names to read; an error names those that are missing."""
    here = {key.removeprefix(f"{part}_") for key in keys if key.startswith(f"{part}_")}
    names = ["y", "X"] if "X" in here else ["y", *_SPARSE]
    missing = [f"{part}_{name}" for name in names if name not in here]
    if not here:
        others = [other for other in PARTS if f"{other}_y" in keys]
        known = f"; it has {' and '.join(map(repr, others))}" if others else ""
        raise DataFileError(source, f"there is no {part!r} part{known} (arrays: {', '.join(keys) or 'none'})")
    if missing:
        instead = f", or {part}_X instead of a sparse matrix" if "X" not in here and "indptr" not in here else ""
        raise DataFileError(source, f"{', '.join(missing)} missing{instead} (arrays: {', '.join(keys)})")
    return names + ["query_ids"] * ("query_ids" in here)


def _rows(source: str, part: str, arrays: Mapping[str, np.ndarray], dtype: Any) -> CSRRows | DenseRows:
    dense = arrays.get("X")
    values = arrays["data"] if dense is None else dense
    name = f"{part}_{'data' if dense is None else 'X'}"
    if values.dtype.kind not in "biuf":
        raise DataFileError(source, f"{name} holds {values.dtype}, expected numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataFileError(source, f"{name} holds a value that is not finite")
    if dtype is not None:
        values = values.astype(dtype, copy=False)
    try:
        return as_rows(values if dense is not None else _sparse(arrays, values))
    except ValueError as error:
        raise DataFileError(source, f"the arrays of the {part!r} part do not fit together: {error}") from error


def _sparse(arrays: Mapping[str, np.ndarray], values: np.ndarray) -> sp.csr_array:
    shape = arrays["shape"]
    for name in ("indptr", "indices", "shape"):
        if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
            raise ValueError(f"{name} must be a list of whole numbers")
    if shape.size != 2 or shape.min() < 0:
        raise ValueError(f"shape {shape.tolist()} must be two numbers")
    return sp.csr_array((values, arrays["indices"], arrays["indptr"]), shape=tuple(shape.tolist()))


def write_npz(path: str | os.PathLike[str], train: Table, test: Table | None = None) -> None:
    """Write one part or both, compressed; the file takes its name only when it is complete."""
    arrays: dict[str, Any] = {}
    for part, table in zip(PARTS, (train, test), strict=True):
        if table is not None:
            arrays |= {f"{part}_{name}": array for name, array in _parts(table).items()}
    with atomic_file(path) as file:
        np.savez_compressed(file, **arrays)


def _parts(table: Table) -> dict[str, np.ndarray]:
    rows, labels = table.rows, table.labels
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufUS":
        raise ValueError(f"labels of type {table.labels.dtype} cannot be written: only numbers, booleans and text can")
    arrays = {"y": labels}
    if table.query_ids is not None:
        arrays["query_ids"] = table.query_ids
    if isinstance(rows, DenseRows):
        return arrays | {"X": rows.values}
    start, end = int(rows.indptr[0]), int(rows.indptr[-1])
    shape = np.array([rows.n_rows, rows.n_columns], dtype=np.int64)
    return arrays | {
        "indptr": rows.indptr - start,
        "indices": rows.indices[start:end],
        "data": rows.values[start:end],
        "shape": shape,
    }
