"""Rows to svmlight text: blocks of lines formatted in compiled code, each number by the fewest digits that name it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from slackwater.atomic import atomic_file
from slackwater.compiled import compiled
from slackwater.data.decimals import powers
from slackwater.data.shortest import LONGEST, write_number, write_whole
from slackwater.data.text import packing
from slackwater.rows import CSRRows, DenseRows, as_rows

__all__ = ["svmlight_lines", "write_svmlight"]

_BLOCK_ENTRIES, _BLOCK_ROWS = 2**16, 2**14
_ENTRY_BYTES, _ROW_BYTES = LONGEST + 12, 32  # a blank, a column number and a colon; blanks, qid, the end of the line
_WORD = re.compile(r"[^\s#:\x00-\x1f\x7f]+")
_1 = np.uint64(1)


class _Labels(NamedTuple):
    """The texts of the distinct labels one after the other, and which one each row has."""

    text: np.ndarray  # uint8
    starts: np.ndarray  # int64
    codes: np.ndarray  # int64


class _Block(NamedTuple):
    """Some rows of CSR form."""

    first: int
    last: int
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def write_svmlight(
    path: str | os.PathLike[str],
    X: Any,
    labels: Any,
    query_ids: Any = None,
    base: Literal[0, 1] = 1,
) -> None:
    """Write rows, or an array or sparse matrix, with their labels; .gz, .bz2 and .xz are compressed.

    Numbers read back exactly. Zeros of dense rows are left out, and so is how many columns there are. The file takes
    its name only when it is complete.
    """
    if base not in (0, 1):
        raise ValueError(f"base={base!r}: columns count from 0 or 1")
    rows = as_rows(X)
    texts = _label_texts(np.asarray(labels), rows.n_rows)
    queries = np.empty(0, dtype=np.int64) if query_ids is None else _queries(query_ids, rows.n_rows)
    with atomic_file(path) as file, packing(file, path) as packed:
        for block in _blocks(rows):
            packed.write(_lines(block, texts, queries, base))


def svmlight_lines(X: Any, heads: Sequence[str]) -> Iterator[bytes | memoryview]:
    """The lines of ``write_svmlight`` for rows, each with a text of its own in the place of the label."""
    labels = _labels([head.encode() for head in heads], np.arange(len(heads)))
    for block in _blocks(as_rows(X)):
        yield _lines(block, labels, np.empty(0, dtype=np.int64), 1)


def _label_texts(labels: np.ndarray, n_rows: int) -> _Labels:
    if labels.shape != (n_rows,):
        raise ValueError(f"{n_rows} rows need as many labels, got an array of shape {labels.shape}")
    labels = labels.astype(str) if labels.dtype.kind == "O" else labels
    distinct, codes = np.unique(labels, return_inverse=True)
    return _labels([_label_text(label).encode() for label in distinct.tolist()], codes.astype(np.int64))


def _labels(texts: list[bytes], codes: np.ndarray) -> _Labels:
    starts = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=starts[1:])
    return _Labels(np.frombuffer(b"".join(texts), dtype=np.uint8), starts, codes)


def _label_text(label: Any) -> str:
    if isinstance(label, str):
        if not _WORD.fullmatch(label):
            raise ValueError(f"label {label!r}: in svmlight text a label must be a word without blanks, '#' and ':'")
        return label
    number = float(label)
    if not np.isfinite(number):
        raise ValueError(f"label {label}: labels must be finite")
    return str(int(label)) if number == int(number) and abs(number) < 2**63 else repr(number)


def _queries(query_ids: Any, n_rows: int) -> np.ndarray:
    queries = np.asarray(query_ids)
    if queries.shape != (n_rows,) or queries.dtype.kind not in "iu":
        raise ValueError(f"query_ids must be {n_rows} whole numbers, got {queries.dtype} of shape {queries.shape}")
    if queries.size and not 0 <= queries.min() <= queries.max() < 10**18:
        raise ValueError("query_ids must be from 0 to below 10^18")
    return queries.astype(np.int64)


# ------------------------------------------------------------------------------------------------------- blocks


def _blocks(rows: CSRRows | DenseRows) -> Iterator[_Block]:
    """Some rows at a time, few enough for their text to stay in the cache."""
    if isinstance(rows, DenseRows):
        step = max(1, _BLOCK_ENTRIES // max(1, rows.n_columns))
        for first in range(0, rows.n_rows, step):
            part = sp.csr_array(rows.values[first : first + step])
            last = first + part.shape[0]
            yield _checked(_Block(first, last, part.indptr.astype(np.int64), part.indices.astype(np.uint32), part.data))
        return
    first = 0
    while first < rows.n_rows:
        within = int(np.searchsorted(rows.indptr, rows.indptr[first] + _BLOCK_ENTRIES, side="right")) - 1
        last = min(max(within, first + 1), first + _BLOCK_ROWS, rows.n_rows)
        start, end = int(rows.indptr[first]), int(rows.indptr[last])
        indptr = rows.indptr[first : last + 1] - start
        yield _checked(_Block(first, last, indptr, rows.indices[start:end], rows.values[start:end]))
        first = last


def _checked(block: _Block) -> _Block:
    """The block with its arrays read-only, as compiled code wants them, unless there is what cannot be written."""
    finite = np.isfinite(block.values)
    if not finite.all():
        p = int(np.argmin(finite))
        row = block.first + int(np.searchsorted(block.indptr, p, side="right")) - 1
        place = f"row {row}, column {block.indices[p]}"
        raise ValueError(f"{place}: {block.values[p]} cannot be written, only finite numbers can")
    views = [array.view() for array in block[2:]]
    for view in views:
        view.flags.writeable = False
    return _Block(block.first, block.last, *views)


def _lines(block: _Block, labels: _Labels, queries: np.ndarray, base: int) -> bytes | memoryview:
    longest = int(np.diff(labels.starts).max()) + _ROW_BYTES
    out = np.empty((block.last - block.first) * longest + block.values.size * _ENTRY_BYTES, dtype=np.uint8)
    single = block.values.dtype == np.float32
    with np.errstate(over="ignore"):  # interpreted, unsigned numbers warn when they wrap around
        end = _format(block, labels, queries, base, single, out, powers())
    return out[:end].data if end >= 0 else _formatted_by_python(block, labels, queries, base)


def _formatted_by_python(block: _Block, labels: _Labels, queries: np.ndarray, base: int) -> bytes:
    """The same lines, where numbers occur that the compiled code leaves aside: below 1e-290 or close to the largest."""
    lines = []
    for i in range(block.first, block.last):
        code, entries = labels.codes[i], slice(*block.indptr[i - block.first : i - block.first + 2])
        words = [labels.text[labels.starts[code] : labels.starts[code + 1]].tobytes().decode()]
        words += [f"qid:{queries[i]}"] if queries.size else []
        pairs = zip(block.indices[entries].tolist(), block.values[entries], strict=True)
        words += [f"{column + base}:{value!s}" for column, value in pairs]
        lines.append(" ".join(words) + "\n")
    return "".join(lines).encode()


@compiled(fastmath=None)
def _format(block, labels, queries, base, single, out, tables):
    """The lines of a block; where they end in ``out``, -1 when there is a number that cannot be written here."""
    p, first = np.uint64(0), np.uint64(block.first)
    for i in range(np.uint64(block.last - block.first)):
        code = np.uint64(labels.codes[first + i])
        for q in range(np.uint64(labels.starts[code]), np.uint64(labels.starts[code + _1])):
            out[p] = labels.text[q]
            p += _1
        if queries.size:
            for byte in (32, 113, 105, 100, 58):  # " qid:"
                out[p] = byte
                p += _1
            p = write_whole(np.uint64(queries[first + i]), out, p)
        for q in range(np.uint64(block.indptr[i]), np.uint64(block.indptr[i + _1])):
            out[p] = 32
            end = write_whole(np.uint64(block.indices[q]) + np.uint64(base), out, p + _1)
            out[end] = 58
            p = write_number(block.values[q], single, out, end + _1, tables)
            if p == end + _1:
                return -1
        out[p] = 10
        p += _1
    return np.int64(p)
