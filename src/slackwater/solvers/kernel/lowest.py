"""Steps that each take the kernel row of the smallest of n numbers and add a multiple of it to all of them.

The next one is found while the row is added. Rows are fetched ahead: those of the smallest numbers come next.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import compiled

AHEAD = 128  # rows computed together
_STRIP = 1024  # numbers looked at together


def rows_ahead(numbers: np.ndarray, slots: np.ndarray, capacity: int, lowest: int) -> np.ndarray:
    """The missing rows of the smallest numbers, that of ``lowest`` among them."""
    missing, count = np.flatnonzero(slots < 0), min(AHEAD, capacity)
    if missing.size > count:
        missing = missing[np.argpartition(numbers[missing], count - 1)[:count]]
    return np.union1d(missing[missing != lowest][: count - 1], [lowest])


@compiled
def add_row(row, labels, step, numbers):
    """numbers_i += step y_i row_i; where the smallest is then, the first of equals."""
    n, strip = np.uint64(numbers.size), np.uint64(_STRIP)
    best, where = math.inf, np.uint64(0)
    for start in range(np.uint64(0), n, strip):
        end = min(start + strip, n)
        low = math.inf
        for i in range(start, end):
            numbers[i] += step * labels[i] * row[i]
            low = min(low, numbers[i])
        if low < best:
            best, where = low, start
    for i in range(where, min(where + strip, n)):
        if numbers[i] == best:
            return np.int64(i)
    return np.int64(where)
