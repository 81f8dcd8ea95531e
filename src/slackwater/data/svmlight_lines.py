"""The compiled loops over the bytes of svmlight text: count, then read lines into arrays that have the right size.

A line is ``label [qid:N] index:value index:value ... [# comment]``. Every loop stops at a line break, and the text
given to ``read_lines`` ends with one and has some readable bytes after it, so that the loops need no other bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.data.decimals import (
    BAD,
    UNDECIDED,
    decimal,
    eight_digits,
    is_digit,
    leading_digits,
    number_of,
)

__all__ = ["Found", "Places", "Problem", "Rules", "Undecided", "count", "read_lines"]

_NEWLINE, _SPACE, _HASH, _COLON, _POINT, _MINUS, _PLUS = 10, 32, 35, 58, 46, 45, 43
_0, _1, _2, _3, _4, _8 = (np.uint64(k) for k in (0, 1, 2, 3, 4, 8))
_STRIPE = np.uint64(128)  # bytes counted in 8-bit counters
_TENS = 10.0 ** np.arange(9)
_WHOLE_TENS = np.uint64(10) ** np.arange(9, dtype=np.uint64)
_TOO_LARGE = np.uint64(1 << 40)


class _Problem(NamedTuple):
    """What stopped the reading of a line."""

    NONE: int = 0
    LABEL: int = 1
    QID: int = 2
    ENTRY: int = 3
    INDEX: int = 4
    VALUE: int = 5
    RANGE: int = 6
    REPEATED: int = 7
    CHANGED: int = 8


class _Found(NamedTuple):
    """The places of ``read_lines``' answers in its report."""

    ROWS: int = 0
    ENTRIES: int = 1
    LOWEST: int = 2
    HIGHEST: int = 3
    UNDECIDED: int = 4
    WORDS: int = 5
    PROBLEM: int = 6
    WHERE: int = 7


Problem, Found = _Problem(), _Found()


class Rules(NamedTuple):
    """What lines may hold."""

    base: int  # the first column's number in the file, 0 or 1
    lowest: int  # allowed number of a column in the file
    highest: int
    limit: float  # values must be below it in size
    with_query: bool


class Places(NamedTuple):
    """Where one piece of the text puts its rows: views that are as long as the piece can need."""

    ends: np.ndarray  # int64: entries before the end of each row, counted from the piece's start
    indices: np.ndarray  # uint32
    values: np.ndarray
    labels: np.ndarray  # float64
    label_starts: np.ndarray  # int64: byte positions
    query_ids: np.ndarray  # int64, or empty


class Undecided(NamedTuple):
    """Numbers that compiled code cannot round for certain, in the order of the text."""

    starts: np.ndarray  # int64: byte positions, filled by ``read_lines``
    values: np.ndarray  # float64: their values, as far as known


# ------------------------------------------------------------------------------------------------------ counting


@compiled(fastmath=None)
def count(text, start, end):
    """Line breaks, colons, and column numbers that read "0" among the bytes from ``start`` on to before ``end``."""
    lines, colons, zeros = _0, _0, _0
    p = np.uint64(start)
    end = np.uint64(end)
    while p + _STRIPE + _2 <= end:
        some_lines, some_colons, some_zeros = np.uint8(0), np.uint8(0), np.uint8(0)
        for k in range(_STRIPE):
            q = p + k
            some_lines = np.uint8(some_lines + np.uint8(text[q] == _NEWLINE))
            some_colons = np.uint8(some_colons + np.uint8(text[q] == _COLON))
            zero = (text[q] <= _SPACE) & (text[q + _1] == 48) & (text[q + _2] == _COLON)
            some_zeros = np.uint8(some_zeros | np.uint8(zero))
        lines += np.uint64(some_lines)
        colons += np.uint64(some_colons)
        zeros += np.uint64(some_zeros)
        p += _STRIPE
    while p < end:
        lines += np.uint64(text[p] == _NEWLINE)
        colons += np.uint64(text[p] == _COLON)
        if p + _2 < end and text[p] <= _SPACE and text[p + _1] == 48 and text[p + _2] == _COLON:
            zeros += _1
        p += _1
    return np.int64(lines), np.int64(colons), np.int64(zeros)


# ------------------------------------------------------------------------------------------------------- tokens


@compiled(fastmath=None)
def _is_blank(byte):
    return byte == 32 or byte == 9 or 11 <= byte <= 13


@compiled(fastmath=None)
def _ends_token(byte):
    return byte == 32 or 9 <= byte <= 13 or byte == _HASH


@compiled(fastmath=None)
def _skip_blanks(text, p):
    while _is_blank(text[p]):
        p += _1
    return p


@compiled(fastmath=None)
def _line_end(text, p):
    while text[p] != _NEWLINE:
        p += _1
    return p


@compiled(fastmath=None)
def _word_end(text, p):
    """Where the word from ``p`` on ends; ``p`` itself when it holds a colon or a control character."""
    start = p
    while not _ends_token(text[p]):
        if text[p] == _COLON or text[p] < _SPACE:
            return start
        p += _1
    return p


@compiled(fastmath=None)
def _whole_number(text, p):
    """The digits from ``p`` on as a number (at most 2^40) and where they end."""
    number = _0
    while is_digit(text[p]):
        number = min(number * np.uint64(10) + np.uint64(text[p]) - np.uint64(48), _TOO_LARGE)
        p += _1
    return number, p


@compiled(fastmath=None)
def _query(text, p):
    """The number of ``qid:N`` at ``p`` and where it ends; ``p`` itself when there is none."""
    q = p + _4
    if text[p] != 113 or text[p + _1] != 105 or text[p + _2] != 100 or text[p + _3] != _COLON:
        return np.int64(0), p
    number, digits = np.int64(0), 0
    while is_digit(text[q]) and digits < 18:
        number = number * np.int64(10) + np.int64(text[q]) - np.int64(48)
        digits += 1
        q += _1
    if digits == 0 or not _ends_token(text[q]):
        return np.int64(0), p
    return number, q


@compiled(fastmath=None)
def _number(text, p, tables, undecided, met):
    """``decimal``, with the answers known by now to what it leaves undecided; and how many of those were met."""
    value, q, state = decimal(text, p, tables)
    if state == UNDECIDED:
        if met < undecided.starts.size:
            undecided.starts[met] = np.int64(p)
        value = undecided.values[met] if met < undecided.values.size else 0.0
        met += 1
    return value, q, state, met


@compiled(fastmath=None)
def _short_number(text, p):
    """A number of up to 7 digits before and after the point, without exponent; where it ends, 0 for other numbers."""
    negative = text[p] == _MINUS
    p += np.uint64(negative)
    word = eight_digits(text, p)
    digits = leading_digits(word)
    short = (digits != _0) & (digits != _8)
    mantissa = number_of(word, digits)
    value = np.float64(mantissa)
    p += digits
    if text[p] == _POINT:
        p += _1
        word = eight_digits(text, p)
        digits = leading_digits(word)
        short &= digits != _8
        mantissa = mantissa * _WHOLE_TENS[digits] + number_of(word, digits)
        value = np.float64(mantissa) / _TENS[digits]
        p += digits
    short &= _ends_token(text[p])
    return -value if negative else value, p if short else _0


# ------------------------------------------------------------------------------------------------ rows and lines


@compiled(fastmath=None)
def _sink(indices, values, start, k, size):
    """Let entry ``start + k`` sink to its place in a heap of ``size`` entries, the largest index on top."""
    index, value = indices[start + k], values[start + k]
    while True:
        child = _2 * k + _1
        if child >= size:
            break
        if child + _1 < size and indices[start + child + _1] > indices[start + child]:
            child += _1
        if indices[start + child] <= index:
            break
        indices[start + k], values[start + k] = indices[start + child], values[start + child]
        k = child
    indices[start + k], values[start + k] = index, value


@compiled(fastmath=None)
def _sort(indices, values, start, end):
    """Sort the entries from ``start`` on by index, in place (heap sort); whether an index occurs twice."""
    size = end - start
    for k in range(size >> _1):
        _sink(indices, values, start, (size >> _1) - _1 - k, size)
    for k in range(_1, size):
        last = end - k
        indices[start], indices[last] = indices[last], indices[start]
        values[start], values[last] = values[last], values[start]
        _sink(indices, values, start, _0, size - k)
    repeated = False
    for p in range(start + _1, end):
        repeated |= indices[p] == indices[p - _1]
    return repeated


@compiled(fastmath=None)
def _label(text, p, tables, undecided, met):
    """The label at ``p``: value, where it ends, undecided numbers met, if it is a word; ends at ``p`` if broken."""
    value, q, state, met_now = _number(text, p, tables, undecided, met)
    if state != BAD and _ends_token(text[q]):
        return value, q, met_now, False
    return np.nan, _word_end(text, p), met, True


@compiled(fastmath=None)
def _entries(text, p, rules, places, entry, tables, undecided, met):
    """Read the entries of one line: where it stopped, entries so far, undecided numbers met, problem, order broken."""
    expected = _0  # no index below this one is in order
    unsorted = False
    problem = Problem.NONE
    base, lowest, highest = np.uint64(rules.base), np.uint64(rules.lowest), np.uint64(rules.highest)
    indices, values = places.indices, places.values
    room = np.uint64(indices.size)
    while True:
        p += np.uint64(text[p] == _SPACE)
        word = eight_digits(text, p)
        digits = leading_digits(word)
        if digits == _0:
            p = _skip_blanks(text, p)
            if text[p] == _HASH:
                p = _line_end(text, p)
            if not is_digit(text[p]):
                problem = Problem.NONE if text[p] == _NEWLINE else Problem.ENTRY
                break
            continue
        index, q = number_of(word, digits), p + digits
        if digits == _8:
            index, q = _whole_number(text, p)
        if text[q] != _COLON:
            problem = Problem.ENTRY
            break
        if index < lowest or index > highest:
            problem = Problem.INDEX
            break
        value, end = _short_number(text, q + _1)
        if end == _0:
            p = q + _1
            value, end, state, met = _number(text, p, tables, undecided, met)
            if state == BAD or not _ends_token(text[end]):
                problem = Problem.VALUE
                break
            if abs(value) >= rules.limit:
                problem = Problem.RANGE
                break
        if entry >= room:
            problem = Problem.CHANGED
            break
        unsorted |= index < expected
        expected = index + _1
        indices[entry] = np.uint32(index - base)
        values[entry] = value
        entry += _1
        p = end
    return p, entry, met, problem, unsorted


@compiled(fastmath=None)
def read_lines(text, start, end, rules, places, tables, undecided, report):
    """Read the lines from ``start`` on to before ``end`` into ``places``; ``report`` as ``Found`` names it."""
    p, end = np.uint64(start), np.uint64(end)
    row, entry, met, words = _0, _0, np.int64(0), np.int64(0)
    lowest, highest = np.int64(2**62), np.int64(-1)
    problem = Problem.NONE
    while p < end:
        p = _skip_blanks(text, p)
        if text[p] == _HASH:
            p = _line_end(text, p)
        if text[p] == _NEWLINE:
            p += _1
            continue
        line = p
        label, q, met, word = _label(text, p, tables, undecided, met)
        if q == p or abs(label) == np.inf:
            problem = Problem.LABEL
            break
        words += word
        p = _skip_blanks(text, q)
        if rules.with_query:
            query, q = _query(text, p)
            if q == p:
                problem = Problem.QID
                break
            p = q
        first = entry
        p, entry, met, problem, unsorted = _entries(text, p, rules, places, entry, tables, undecided, met)
        if problem != Problem.NONE:
            break
        if row >= np.uint64(places.ends.size):
            problem = Problem.CHANGED
            break
        if unsorted and _sort(places.indices, places.values, first, entry):
            p, problem = line, Problem.REPEATED
            break
        if entry > first:
            lowest = min(lowest, np.int64(places.indices[first]))
            highest = max(highest, np.int64(places.indices[entry - _1]))
        places.ends[row] = np.int64(entry)
        places.labels[row] = label
        places.label_starts[row] = np.int64(line)
        if rules.with_query:
            places.query_ids[row] = query
        row += _1
        p += _1
    report[Found.ROWS], report[Found.ENTRIES] = np.int64(row), np.int64(entry)
    report[Found.LOWEST], report[Found.HIGHEST] = lowest, highest
    report[Found.UNDECIDED], report[Found.WORDS] = met, words
    report[Found.PROBLEM], report[Found.WHERE] = problem, np.int64(p)
