"""The heads of LIBSVM's and LIBLINEAR's model files: lines of a name and its values, before the numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from slackwater.models import ModelFileError
from slackwater.models.files import MissingModelFile

_LONGEST_SHOWN = 30
_REAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")


class Line(NamedTuple):
    """The values of one name, and the number of their line."""

    words: list[str]
    number: int


@dataclass(frozen=True)
class Head:
    """The lines of a head by their names; ``rest`` is what follows, ``n_lines`` the lines before it."""

    path: Path
    lines: dict[str, Line]
    rest: bytes
    n_lines: int

    @classmethod
    def of(cls, path: str | os.PathLike[str], names: tuple[str, ...], last: str) -> Head:
        """Read a file whose head has these names and ends with the line ``last``."""
        path, number, start = Path(path), 0, 0
        lines: dict[str, Line] = {}
        data = content(path)
        while start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            words, number = data[start:end].decode("utf-8", "backslashreplace").split(), number + 1
            start = end
            if words == [last]:
                return cls(path, lines, data[start:], number)
            if not words:
                continue
            if words[0] not in names:
                wrong(path, number, f"expected one of {', '.join(names)} or {last}, found {brief(words[0])}")
            if words[0] in lines:
                wrong(path, number, f"{words[0]} is there for the second time")
            lines[words[0]] = Line(words[1:], number)
        raise ModelFileError(f"{path} is cut short: there is no line {last!r}")

    def word(self, name: str, known: tuple[str, ...]) -> str:
        """One of these words."""
        (word,) = self._words(name, 1)
        if word not in known:
            self.wrong(name, f"expected one of {', '.join(known)}, found {brief(word)}")
        return word

    def whole(self, name: str, least: int, most: int = 2**31 - 1) -> int:
        """A whole number in this range."""
        (value,) = self.wholes(name, 1)
        if not least <= value <= most:
            self.wrong(name, f"{name} must be from {least} to {most}, found {value}")
        return value

    def wholes(self, name: str, count: int) -> list[int]:
        """So many whole numbers."""
        return [int(word) for word in self._matching(name, count, _WHOLE, "a whole number")]

    def reals(self, name: str, count: int) -> np.ndarray:
        """So many finite numbers."""
        values = [float(word) for word in self._matching(name, count, _REAL, "a number")]
        if not all(map(math.isfinite, values)):
            self.wrong(name, "a number is too large for float64")
        return np.array(values)

    def real(self, name: str) -> float:
        """One finite number."""
        return float(self.reals(name, 1)[0])

    def wrong(self, name: str, problem: str) -> NoReturn:
        """Raise for the line of a name."""
        wrong(self.path, self.lines[name].number, problem)

    def _matching(self, name: str, count: int, pattern: re.Pattern[str], kind: str) -> list[str]:
        words = self._words(name, count)
        for word in words:
            if not pattern.fullmatch(word):
                self.wrong(name, f"expected {kind} after {name}, found {brief(word)}")
        return words

    def _words(self, name: str, count: int) -> list[str]:
        if name not in self.lines:
            raise ModelFileError(f"{self.path}: there is no line {name!r} before line {self.n_lines}")
        words = self.lines[name].words
        if len(words) != count:
            self.wrong(name, f"expected {count} value(s) after {name}, found {len(words)}")
        return words


def content(path: Path) -> bytes:
    """The bytes of a file."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise MissingModelFile(f"there is no file {path}") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error


def wrong(path: Path, line: int, problem: str) -> NoReturn:
    """Raise for a line."""
    raise ModelFileError(f"{path}, line {line}: {problem}")


def brief(word: str) -> str:
    """A word of a file, for a sentence."""
    return repr(word if len(word) <= _LONGEST_SHOWN else f"{word[:_LONGEST_SHOWN]}...")


def is_real(word: bytes) -> bool:
    """Whether it is a finite number."""
    return _REAL.fullmatch(word.decode("ascii", "replace")) is not None and math.isfinite(float(word))


def check_lines(path: Path, lines: list[bytes], first: int, check: Callable[[bytes], Any]) -> None:
    """Raise for the first line that ``check`` has a complaint about."""
    for number, line in enumerate(lines, first):
        complaint = check(line)
        if complaint:
            wrong(path, number, complaint)
