"""The error of every reader: which file, which line and column, what was expected and what was found."""

from __future__ import annotations

__all__ = ["DataFileError", "MissingDataFile"]


class DataFileError(ValueError):
    """A data file that cannot be read; the message is one sentence, ``line`` and ``column`` count from 1."""

    def __init__(self, source: str, problem: str, line: int | None = None, column: int | None = None) -> None:
        place = source if line is None else f"{source}, line {line}"
        if column is not None:
            place += f", column {column}"
        super().__init__(f"{place}: {problem}")
        self.source, self.problem, self.line, self.column = source, problem, line, column

    def __reduce__(self) -> tuple:
        return type(self), (self.source, self.problem, self.line, self.column)


class MissingDataFile(DataFileError, FileNotFoundError):
    """There is no file of that name."""
