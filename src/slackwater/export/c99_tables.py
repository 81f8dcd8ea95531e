"""Constant tables of C: their text, their bytes, and rows stored densely or sparsely, whichever is smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

_TYPES = {
    np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(np.int8): "int8_t",
    np.dtype(np.uint8): "uint8_t", np.dtype(np.int16): "int16_t", np.dtype(np.uint16): "uint16_t",
    np.dtype(np.int32): "int32_t", np.dtype(np.uint32): "uint32_t", np.dtype(np.int64): "int64_t",
}  # fmt: skip
_WIDTH = 110
_POINTER = 4  # bytes, on the machines that flash is counted for


@dataclass(frozen=True, eq=False)
class Table:
    """A constant array; ``name`` comes after the prefix of the header."""

    name: str
    values: np.ndarray
    says: str

    @property
    def n_bytes(self) -> int:
        """What it takes in flash."""
        return self.values.nbytes

    def text(self, prefix: str) -> str:
        """Its definition in C."""
        kind = _TYPES[self.values.dtype]
        return _definition(f"{kind} {prefix}{self.name}", self.values.size, numbers(self.values.reshape(-1)), self.says)


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as an array of pointers: the bytes of all texts with their ends, and the pointers of a 32-bit machine."""

    name: str
    words: list[str]
    says: str

    @property
    def n_bytes(self) -> int:
        """What they take in flash."""
        return sum(len(word.encode()) + 1 + _POINTER for word in self.words)

    def text(self, prefix: str) -> str:
        """Their definition in C."""
        words = (f'"{escaped(word)}"' for word in self.words)
        return _definition(f"char *const {prefix}{self.name}", len(self.words), words, self.says)


def _definition(what: str, size: int, texts: Any, says: str) -> str:
    return f"/* {says} */\nstatic const {what}[{size}] = {{\n{chr(10).join(_lines(texts))}\n}};\n"


def _lines(texts: Any) -> Iterator[str]:
    line = "   "
    for text in texts:
        if len(line) + len(text) + 2 > _WIDTH and line.strip():
            yield line
            line = "   "
        line += f" {text},"
    yield line.rstrip(",")


def numbers(values: np.ndarray) -> list[str]:
    """Constants of C that are these numbers exactly."""
    if values.dtype.kind in "iu":
        return [str(value) for value in values.tolist()]
    ending = "f" if values.dtype == np.float32 else ""
    return [f"{value!s}{ending}" for value in map(values.dtype.type, values)]


def number(value: float, dtype: Any = np.float64) -> str:
    """One constant of C."""
    return numbers(np.array([value], dtype=dtype))[0]


def escaped(word: str) -> str:
    """A text between the quotes of C; no trigraphs, nothing that a compiler's alphabet might lack."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in word.encode()
    )
    if "\0" in word:
        raise ValueError(f"the class {word!r} holds a zero byte, where a text of C ends")
    return plain


class Stored(NamedTuple):
    """Rows as tables: all entries, or entries, columns and starts."""

    tables: list[Table]
    sparse: bool


def with_entries(matrix: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """An array or a sparse matrix with a function that keeps 0 applied to its entries."""
    if not sp.issparse(matrix):
        return function(matrix)
    rows = sp.csr_array(matrix)
    return sp.csr_array((function(rows.data), rows.indices, rows.indptr), shape=rows.shape)


def stored(matrix: Any, name: str, says: str) -> Stored:
    """An array or a sparse matrix as tables, in the form that takes fewer bytes."""
    rows = sp.csr_array(matrix, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    starts, columns = rows.indptr.astype(_smallest(rows.nnz)), rows.indices.astype(_smallest(rows.shape[1] - 1))
    packed = rows.data.nbytes + starts.nbytes + columns.nbytes
    if 0 < rows.nnz and packed < rows.shape[0] * rows.shape[1] * rows.data.itemsize:
        return Stored([
            Table(name, rows.data, f"{says}: the entries that are not 0"),
            Table(f"{name}_columns", columns, "their columns"),
            Table(f"{name}_starts", starts, "where each line of them begins, and where the last ends"),
        ], True)  # fmt: skip
    return Stored([Table(name, rows.toarray(), says)], False)


def _smallest(most: int) -> np.dtype:
    """The shortest unsigned type that holds this number."""
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(kind).max))
