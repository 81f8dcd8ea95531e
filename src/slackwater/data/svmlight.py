"""svmlight text to rows: one pass that counts, one that fills arrays of the right size, both over threads.

The pieces of the text, and so the result, do not depend on the number of threads.
"""

from __future__ import annotations

import os
import re
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np

from slackwater.data.decimals import powers
from slackwater.data.errors import DataFileError
from slackwater.data.svmlight_lines import Found, Places, Problem, Rules, Undecided, count, read_lines
from slackwater.data.svmlight_problems import line_error
from slackwater.data.table import Table
from slackwater.data.text import MARGIN, PIECE, Text, open_text, text_in_memory
from slackwater.rows import CSRRows
from slackwater.threads import in_threads, thread_count

__all__ = ["read_svmlight", "svmlight_table"]

_MOST_COLUMNS = 2**32 - 1
_NEVER_ROUNDED = {np.dtype(np.float32): float(2**128 - 2**103), np.dtype(np.float64): np.inf}
_FIRST_EXAMPLE = re.compile(rb"^[ \t\r\f\v]*[^\s#]+[ \t\r\f\v]*(qid:)?", re.MULTILINE)
_COLUMN_ZERO = re.compile(rb"^[^#\n]*[ \t\r\f\v]0:", re.MULTILINE)
_NUMBER = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(rb"[^\s#]+")


def read_svmlight(
    path: str | os.PathLike[str],
    n_columns: int | None = None,
    dtype: Any = np.float32,
    base: Literal["auto", 0, 1] = "auto",
    threads: int | None = None,
) -> Table:
    """Read lines of ``label [qid:N] column:value ... [# comment]`` from a plain, .gz, .bz2 or .xz file.

    Columns count from ``base``; "auto" means 0 where a column 0 occurs and 1 elsewhere. ``n_columns`` is the highest
    number of columns that is allowed, and the number of columns of the result; None takes the highest that occurs.
    Labels are numbers, or strings where one of them is not a number. A DataFileError names the line and column of
    what cannot be read.
    """
    dtype = np.dtype(dtype)
    if dtype not in _NEVER_ROUNDED:
        raise ValueError(f"dtype={dtype}: values are read as float32 or float64")
    if base not in ("auto", 0, 1):
        raise ValueError(f"base={base!r}: columns count from 0 or 1, or 'auto'")
    if n_columns is not None and not 1 <= n_columns <= _MOST_COLUMNS:
        raise ValueError(f"n_columns={n_columns!r}: expected a number from 1 to {_MOST_COLUMNS}")
    return _read(open_text(path, PIECE), n_columns, dtype, base, thread_count(threads))


def svmlight_table(source: str, text: bytes, n_columns: int | None = None) -> Table:
    """What ``read_svmlight`` reads, float64, from a text that is in memory; ``source`` is its name in errors."""
    return _read(text_in_memory(source, text), n_columns, np.dtype(np.float64), "auto", thread_count(None))


def _read(text: Text, n_columns: int | None, dtype: np.dtype, base: Literal["auto", 0, 1], threads: int) -> Table:
    counts = in_threads(lambda k: _count(text, k), len(text), threads)
    with_query = _first_has_query(text)
    if base == "auto":
        base = 0 if _has_column_zero(text, counts) else 1
    highest = (n_columns or _MOST_COLUMNS) - 1 + base
    rules = Rules(base, base, highest, _NEVER_ROUNDED[dtype], with_query)
    reading = _Reading(text, rules, counts, _allocate(counts, dtype, with_query))
    reports = in_threads(reading.piece, len(text), threads)
    words = reading.words(reports) if any(report[Found.WORDS] for report in reports) else None
    reading.close_gaps(reports)
    places = reading.places
    if words is not None and not places.indices.size:
        raise DataFileError(text.source, "there are words, but no column:value anywhere: this is no svmlight file")
    n_columns = int(n_columns or 1 + max(report[Found.HIGHEST] for report in reports))
    for column in places:
        column.flags.writeable = False
    rows = CSRRows(places.ends, places.indices, places.values, n_columns, 0.0)
    labels = places.labels if words is None else words
    return Table(rows, labels, places.query_ids if with_query else None, text.source, base)


# ------------------------------------------------------------------------------------------------- the first pass


class _Counts(NamedTuple):
    """Of one piece: upper bounds of its rows and entries, and how often "0:" occurs."""

    lines: int
    colons: int
    zeros: int


def _count(text: Text, k: int) -> _Counts:
    piece = text.piece(k)
    with np.errstate(over="ignore"):
        return _Counts(*map(int, count(piece, 0, piece.size - MARGIN)))


def _first_has_query(text: Text) -> bool:
    for k in range(len(text)):
        found = _FIRST_EXAMPLE.search(_bytes(text.piece(k)))
        if found:
            return found[1] is not None
    raise DataFileError(text.source, "the file holds no examples")


def _has_column_zero(text: Text, counts: list[_Counts]) -> bool:
    """Whether a line has a column 0; one in a comment does not count."""
    return any(_COLUMN_ZERO.search(_bytes(text.piece(k))) for k, found in enumerate(counts) if found.zeros)


def _bytes(piece: np.ndarray) -> bytes:
    return piece[: piece.size - MARGIN].tobytes()


# ------------------------------------------------------------------------------------------------ the second pass


def _allocate(counts: list[_Counts], dtype: np.dtype, with_query: bool) -> Places:
    """Room for every line and colon; ``ends`` is a row pointer. Memory that is not written to is not taken either."""
    rows, entries = sum(c.lines for c in counts), sum(c.colons for c in counts)
    return Places(
        ends=np.empty(rows + 1, dtype=np.int64),
        indices=np.empty(entries, dtype=np.uint32),
        values=np.empty(entries, dtype=dtype),
        labels=np.empty(rows, dtype=np.float64),
        label_starts=np.empty(rows, dtype=np.int64),
        query_ids=np.empty(rows if with_query else 0, dtype=np.int64),
    )


class _Reading:
    """All pieces of one text, and where they are read to."""

    def __init__(self, text: Text, rules: Rules, counts: list[_Counts], places: Places) -> None:
        self.text, self.rules, self.counts, self.places = text, rules, counts, places
        self.row_starts = [0, *accumulate(c.lines for c in counts)]
        self.entry_starts = [0, *accumulate(c.colons for c in counts)]

    def piece(self, k: int) -> np.ndarray:
        """Read piece ``k`` to its places; the report of ``read_lines``."""
        text, places = self.text.piece(k), self._places(k)
        nothing = np.empty(0)
        undecided = Undecided(nothing.astype(np.int64), nothing)
        report = self._lines(text, places, undecided)
        if report[Found.UNDECIDED]:  # rare: once more to learn where they are, and again with their values
            undecided = Undecided(np.empty(report[Found.UNDECIDED], dtype=np.int64), nothing)
            self._lines(text, places, undecided)
            report = self._lines(text, places, undecided._replace(values=_values_at(text, undecided.starts)))
        if report[Found.PROBLEM] != Problem.NONE:
            where = int(report[Found.PROBLEM]), int(report[Found.WHERE])
            raise line_error(self.text.source, text, where, self.rules, self.row_starts[k])
        return report

    def _lines(self, text: np.ndarray, places: Places, undecided: Undecided) -> np.ndarray:
        report = np.zeros(len(Found), dtype=np.int64)
        with np.errstate(over="ignore"):  # interpreted, unsigned numbers warn when they wrap around
            read_lines(text, 0, text.size - MARGIN, self.rules, places, powers(), undecided, report)
        return report

    def _places(self, k: int) -> Places:
        rows = slice(self.row_starts[k], self.row_starts[k + 1])
        entries = slice(self.entry_starts[k], self.entry_starts[k + 1])
        all_places = self.places
        return Places(
            all_places.ends[1:][rows],
            all_places.indices[entries],
            all_places.values[entries],
            all_places.labels[rows],
            all_places.label_starts[rows],
            all_places.query_ids[rows],
        )

    def words(self, reports: list[np.ndarray]) -> np.ndarray:
        """The labels as the file spells them."""
        known: dict[bytes, str] = {}
        words: list[str] = []
        for k, report in enumerate(reports):
            raw, first = _bytes(self.text.piece(k)), self.row_starts[k]
            for start in self.places.label_starts[first : first + report[Found.ROWS]].tolist():
                word = _token(_WORD, raw, start)
                if word not in known:
                    known[word] = self._decoded(word, k, raw, start)
                words.append(known[word])
        return np.array(words)

    def _decoded(self, word: bytes, k: int, raw: bytes, start: int) -> str:
        try:
            return word.decode()
        except UnicodeDecodeError as error:
            shown, line = word.decode(errors="backslashreplace"), self.row_starts[k] + raw.count(b"\n", 0, start) + 1
            column = start - raw.rfind(b"\n", 0, start)
            problem = f"expected a label in UTF-8, found '{shown}'"
            raise DataFileError(self.text.source, problem, line, column) from error

    def close_gaps(self, reports: list[np.ndarray]) -> None:
        """Move rows and entries together, where comments, blank lines or query ids have left room between pieces."""
        places = self.places
        places.ends[0] = row = entry = 0
        for k, report in enumerate(reports):
            old_row, rows = self.row_starts[k], int(report[Found.ROWS])
            old_entry, entries = self.entry_starts[k], int(report[Found.ENTRIES])
            places.ends[1 + row : 1 + row + rows] = places.ends[1 + old_row : 1 + old_row + rows] + entry
            for column in (places.labels, places.query_ids) if row < old_row else ():
                column[row : row + rows] = column[old_row : old_row + rows]
            for column in (places.indices, places.values) if entry < old_entry else ():
                column[entry : entry + entries] = column[old_entry : old_entry + entries]
            row, entry = row + rows, entry + entries
        for column, size in zip(places, (row + 1, entry, entry, row, row, row), strict=True):
            column.resize(min(size, column.size), refcheck=False)


def _token(pattern: re.Pattern[bytes], raw: bytes, start: int) -> bytes:
    found = pattern.match(raw, start)
    return found[0] if found else b""


def _values_at(text: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Python's reading of the numbers at these places."""
    raw = _bytes(text)
    return np.array([float(_token(_NUMBER, raw, start)) for start in starts.tolist()])
