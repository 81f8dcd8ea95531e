"""Files of examples by their names: NumPy archives, and svmlight text for everything else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from slackwater.data.errors import DataFileError, MissingDataFile
from slackwater.data.npz import PARTS, read_npz, write_npz
from slackwater.data.svmlight import read_svmlight
from slackwater.data.svmlight_writing import write_svmlight
from slackwater.data.table import Table
from slackwater.rows import CSRRows, as_rows

__all__ = ["DATA_FOLDER", "named_set", "read", "write"]

#: The environment variable with the folder of ``named_set``.
DATA_FOLDER = "SLACKWATER_DATA"

_PACKED = (".gz", ".bz2", ".xz")
_TABLES = {".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".arff", ".json", ".jsonl", ".xls", ".xlsx"}
_ARRAYS = {".npy", ".mat", ".h5", ".hdf5", ".pkl", ".pickle", ".joblib", ".safetensors"}
_ARCHIVES = {".zip", ".7z", ".tar", ".tgz", ".zst"}
_OTHER_FORMATS = _TABLES | _ARRAYS | _ARCHIVES
_FORMATS = "NumPy archives (.npz) and svmlight text (any other name; .gz, .bz2 and .xz are compressed)"


def read(
    path: str | os.PathLike[str],
    part: str = "train",
    dtype: Any = None,
    n_columns: int | None = None,
    threads: int | None = None,
    base: Literal["auto", 0, 1] = "auto",
) -> Table:
    """Read a file of examples, in the format that its extension tells.

    ``part`` is "train" or "test" in archives; text has only one, "train". ``n_columns`` is how many columns the result
    has, such as those a model was trained on; a file with more is an error. ``dtype`` None keeps what an archive
    holds, and reads text as float32. ``base`` is the number of the first column in text; "auto" means 0 where a column
    0 occurs and 1 elsewhere, so give the ``base`` of the table that a model was trained on to read others for it.
    """
    if part not in PARTS:
        raise ValueError(f"part={part!r}: expected {' or '.join(map(repr, PARTS))}")
    source = os.fspath(path)
    if _extension(path) == ".npz":
        return _with_columns(read_npz(path, part, dtype), n_columns)
    if part != "train":
        raise DataFileError(source, f"svmlight text has no {part!r} part; that is another file")
    return read_svmlight(path, n_columns, np.float32 if dtype is None else dtype, base, threads)


def write(path: str | os.PathLike[str], X: Any, y: Any = None) -> None:
    """Write a table, or rows ``X`` with labels ``y``, in the format that the extension tells.

    The old file stays until the new one is complete.
    """
    if isinstance(X, Table) == (y is not None):
        raise TypeError("write takes a table, or X and y")
    table = X if isinstance(X, Table) else Table(as_rows(X), np.asarray(y))
    if _extension(path) == ".npz":
        write_npz(path, table)
    else:
        write_svmlight(path, table.rows, table.labels, table.query_ids)


def named_set(name: str, part: str = "train", dtype: Any = None) -> Table:
    """Read the archive ``<name>.npz`` of the folder that the environment variable SLACKWATER_DATA names."""
    folder = os.environ.get(DATA_FOLDER)
    if not folder:
        raise MissingDataFile(name, f"the environment variable {DATA_FOLDER} must name the folder of data sets")
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in Path(folder).glob("*.npz"))) or "no data sets"
        raise MissingDataFile(os.fspath(path), f"there is no such file; the folder holds {known}")
    return read(path, part, dtype)


def _extension(path: str | os.PathLike[str]) -> str:
    """The last one in lower case; an error where it is known to be of another format."""
    name = Path(path)
    bare = Path(name.stem) if name.suffix.lower() in _PACKED else name
    extension = bare.suffix.lower()
    if extension in _OTHER_FORMATS or (extension == ".npz" and bare is not name):
        wrong = "".join([extension, name.suffix.lower() if bare is not name else ""])
        raise DataFileError(os.fspath(path), f"{wrong} files are not supported; supported are {_FORMATS}")
    return extension


def _with_columns(table: Table, n_columns: int | None) -> Table:
    if n_columns is None or n_columns == table.n_columns:
        return table
    if table.n_columns > n_columns or not isinstance(table.rows, CSRRows):
        raise DataFileError(table.source, f"there are {table.n_columns} columns, expected {n_columns}")
    return replace(table, rows=table.rows._replace(columns=n_columns))
