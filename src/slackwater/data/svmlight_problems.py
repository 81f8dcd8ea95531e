"""What is wrong with a line of svmlight text, in a sentence."""

from __future__ import annotations

import re

import numpy as np

from slackwater.data.errors import DataFileError
from slackwater.data.svmlight_lines import Problem, Rules

__all__ = ["line_error"]

_LONGEST_SHOWN = 30
_INDEX = re.compile(rb"(?<=\s)(\d+):")


def line_error(
    source: str, text: np.ndarray, report: tuple[int, int], rules: Rules, lines_before: int
) -> DataFileError:
    """The error for the problem, and the byte at which it is, that ``report`` names."""
    problem, where = report
    raw = text.tobytes()
    start = raw.rfind(b"\n", 0, where) + 1
    line = raw[start : raw.index(b"\n", where)]
    place = where - start
    if problem == Problem.CHANGED:
        return DataFileError(source, "the file changed while it was read")
    if problem == Problem.REPEATED:
        place = _repetition(line)
    sentence = f"expected {_expected(problem, line, place, rules)}, found {_found(line, place, problem)}"
    return DataFileError(source, sentence, lines_before + raw.count(b"\n", 0, start) + 1, place + 1)


def _expected(problem: int, line: bytes, place: int, rules: Rules) -> str:
    if problem == Problem.LABEL:
        colon = b":" in _token(line, place)
        return "a label before the first column:value" if colon else "a label, a finite number or a word"
    if problem == Problem.QID:
        return "qid:number as in the first example"
    if problem == Problem.ENTRY:
        without = _token(line, place).startswith(b"qid:")
        return "column:value" + (" only, as in the first example" if without else "")
    if problem == Problem.INDEX:
        return f"a column number from {rules.lowest} to {rules.highest}"
    if problem == Problem.RANGE:
        return f"a number in the range of {'float64' if rules.limit == np.inf else 'float32'}"
    return "a number" if problem == Problem.VALUE else "every column once"


def _found(line: bytes, place: int, problem: int) -> str:
    token = _token(line, place)
    if problem in (Problem.INDEX, Problem.REPEATED):
        token = token.partition(b":")[0]
    if token:
        shown = token.decode(errors="backslashreplace")
        text = repr(shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "...")
        return f"{text} again" if problem == Problem.REPEATED else text
    rest = line[place:].partition(b"#")[0]
    return "a blank" if rest.strip() else "the end of the line"


def _token(line: bytes, place: int) -> bytes:
    """What stands there, up to the next blank or comment."""
    words = line[place:].partition(b"#")[0].split(maxsplit=1)
    return words[0] if words and not line[place : place + 1].isspace() else b""


def _repetition(line: bytes) -> int:
    """Where a column number is met again."""
    seen: set[int] = set()
    for match in _INDEX.finditer(line.partition(b"#")[0]):
        if int(match[1]) in seen:
            return match.start()
        seen.add(int(match[1]))
    return 0
