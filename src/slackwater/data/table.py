"""What a reader returns: rows, labels, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.rows import CSRRows, DenseRows, as_matrix

__all__ = ["Table"]


@dataclass(frozen=True, eq=False)
class Table:
    """Examples with their labels, as a file holds them."""

    rows: CSRRows | DenseRows
    labels: np.ndarray  # numbers, or strings where a label of the file is not a number
    query_ids: np.ndarray | None = None  # int64, for ranking
    source: str = ""
    base: int | None = None  # the number of the first column in the text that was read

    def __post_init__(self) -> None:
        for name, column in (("labels", self.labels), ("query ids", self.query_ids)):
            if column is not None and column.shape != (self.n_rows,):
                raise ValueError(f"{self.source or 'table'}: {self.n_rows} rows but {name} of shape {column.shape}")

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows

    @property
    def n_columns(self) -> int:
        return self.rows.n_columns

    @property
    def X(self) -> Any:
        """The rows as an array or a SciPy CSR array, on the same memory."""
        return as_matrix(self.rows)

    @property
    def y(self) -> np.ndarray:
        """The labels."""
        return self.labels
