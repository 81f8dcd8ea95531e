"""What the commands do with files: read examples with the time it took, check an output before the work begins."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.cli.errors import WrongUsage
from slackwater.cli.output import count, seconds

if TYPE_CHECKING:
    from slackwater.data import Table

_DATA_ENDINGS = {
    ".bz2", ".csv", ".dat", ".data", ".gz", ".libsvm", ".npz", ".parquet", ".svm", ".svmlight", ".train", ".txt", ".xz",
}  # fmt: skip


_WORTH_A_SPEED = 10_000_000  # bytes; with less it is start-up that takes the time


@dataclass(frozen=True)
class Reading:
    """A table, and what reading it took."""

    table: Table
    seconds: float
    n_bytes: int  # of the file, 0 where unknown

    @property
    def facts(self) -> dict[str, object]:
        """For JSON."""
        table = self.table
        return {
            "source": table.source,
            "rows": table.n_rows,
            "columns": table.n_columns,
            "entries": table.rows.n_entries,
            "values": str(table.rows.dtype),
            "read_seconds": self.seconds,
            "bytes": self.n_bytes,
        }

    def __str__(self) -> str:
        table = self.table
        speed = f", {self.n_bytes / self.seconds / 1e6:.0f} MB/s" if self.n_bytes >= _WORTH_A_SPEED else ""
        shape = f"{count(table.n_rows, 'row')}, {count(table.n_columns, 'column')}"
        entries = count(table.rows.n_entries, "entry", "entries")
        return f"{shape}, {entries}; read in {seconds(self.seconds)}{speed}"


class Part(StrEnum):
    """The parts of an archive; text has one."""

    train = "train"
    test = "test"


def read_table(path: str, n_columns: int | None = None, part: Part = Part.train, base: Any = "auto") -> Reading:
    """Read examples: ``part`` of an archive, all of a text, its columns counted from ``base``. None is an error."""
    from slackwater.data import DataFileError, read

    begin = time.perf_counter()
    in_parts = Path(path).suffix.lower() == ".npz"
    table = read(path, part=part.value if in_parts else Part.train.value, n_columns=n_columns, base=base)
    duration = time.perf_counter() - begin
    if table.n_rows == 0:
        raise DataFileError(path, "there are no examples in it")
    n_bytes = os.path.getsize(path) if os.path.isfile(path) else 0
    return Reading(table, duration, n_bytes)


def base_of(machine: Any) -> Any:
    """From what number columns were counted in the text that a model was trained on."""
    trained = machine.meta.get("trained")
    base = trained.get("base") if isinstance(trained, dict) else None
    return "auto" if base is None else base


def default_model(data: str) -> Path:
    """The model's file in the current folder: the name of the data, ``.model`` instead of its endings."""
    name = Path(data).name
    while Path(name).suffix.lower() in _DATA_ENDINGS and Path(name).stem:
        name = Path(name).stem
    return Path(f"{name}.model")


def check_output(path: Path, *inputs: str | None) -> None:
    """Raise before the work begins when ``path`` cannot be written afterwards, or is one of the inputs."""
    for source in inputs:
        if source is not None and path.exists() and os.path.exists(source) and path.samefile(source):
            raise WrongUsage(f"{path} is the input, which the output would replace; choose another name with -o")
    if path.is_dir():
        raise IsADirectoryError(None, "is a folder, not a file to write to", str(path))
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(None, f"cannot be written, there is no folder {folder}", str(path))
    if path.exists() and not path.is_file():  # a device or a pipe
        return
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(error.errno, f"cannot be written: {error.strerror}", str(path)) from error
