"""svmlight text read by scikit-learn and by slackwater, on one thread and on two, in one run.

    python benchmarks/svmlight_reading.py [--megabytes 150] [--check]

The file is generated: 64 entries of six digits per row. scikit-learn reads it once, slackwater takes the best of three.
``--check`` ends with status 1 when slackwater is below 8 times scikit-learn's speed on one thread or 14 times on two.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

from slackwater.data import read_svmlight, write_svmlight
from slackwater.rows import CSRRows

COLUMNS, ENTRIES = 50_000, 64
BYTES_PER_ROW = 935  # of text
REPEATS = 3
WANTED = {1: 8.0, 2: 14.0}


class Reading(NamedTuple):
    """One reader's time."""

    name: str
    seconds: float
    wanted: float | None  # times as fast as the first reader


def generate(path: Path, n_rows: int) -> None:
    """Rows with increasing columns and values of six digits, and labels -1 and +1."""
    rng = np.random.default_rng(7)
    steps = rng.integers(1, 2 * (COLUMNS // ENTRIES) - 1, size=(n_rows, ENTRIES))
    indices = np.minimum(np.cumsum(steps, axis=1), COLUMNS - ENTRIES + np.arange(ENTRIES)) - 1
    values = np.round(rng.random(n_rows * ENTRIES), 6).astype(np.float32)
    indptr = np.arange(n_rows + 1, dtype=np.int64) * ENTRIES
    rows = CSRRows(indptr, indices.ravel().astype(np.uint32), values, COLUMNS, 0.0)
    write_svmlight(path, rows, rng.choice([-1, 1], n_rows))


def best_of(repeats: int, read: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest time and the last result."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = read()
        times.append(time.perf_counter() - begin)
    return min(times), result


def measure(path: Path) -> list[Reading]:
    """All readers on one file; their results must be equal."""
    read_svmlight(path, threads=2)  # compile, and bring the file into memory for everyone
    seconds, (X, y) = best_of(1, lambda: load_svmlight_file(os.fspath(path), dtype=np.float32))
    readings = [Reading("scikit-learn", seconds, None)]
    for threads, wanted in WANTED.items():
        seconds, table = best_of(REPEATS, lambda threads=threads: read_svmlight(path, threads=threads))
        if not (np.array_equal(table.y, y) and np.array_equal(table.X.data, X.data)):
            raise SystemExit("the readers disagree")
        if not (np.array_equal(table.X.indices, X.indices) and np.array_equal(table.X.indptr, X.indptr)):
            raise SystemExit("the readers disagree")
        readings.append(Reading(f"slackwater, {threads} thread{'s' * (threads > 1)}", seconds, wanted))
    return readings


def show(readings: list[Reading], n_bytes: int) -> bool:
    """Print the table; whether every reader is as fast as wanted."""
    print(f"{'reader':<24}{'seconds':>9}{'MB/s':>9}{'ratio':>8}{'wanted':>8}")
    enough = True
    for name, seconds, wanted in readings:
        ratio = readings[0].seconds / seconds
        enough &= wanted is None or ratio >= wanted
        target = "" if wanted is None else f"{wanted:.0f}"
        print(f"{name:<24}{seconds:>9.3f}{n_bytes / seconds / 1e6:>9.0f}{ratio:>8.1f}{target:>8}")
    return enough


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=150, help="size of the text (150)")
    parser.add_argument("--check", action="store_true", help="status 1 when a ratio is below the wanted one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slackwater-") as folder:
        path = Path(folder) / "generated.svm"
        generate(path, max(1, int(options.megabytes * 1e6 / BYTES_PER_ROW)))
        n_bytes = path.stat().st_size
        print(f"{n_bytes / 1e6:.0f} MB of svmlight text, {os.cpu_count()} cores")
        enough = show(measure(path), n_bytes)
    return 0 if enough or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
