"""Rows of the kernel matrix, computed in blocks when they are asked for and kept while there is room.

A row alone costs as much memory traffic as a block of hundreds, so callers ask for many at once; a row that is kept is
never computed again. Which rows are kept stands in arrays that compiled loops read, so that a solver can walk from row
to row without the interpreter and stop where one is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.kernel_points import Points
from slackwater.threads import in_parts, thread_count

_BLOCK = 512  # rows computed at a time
_LEAST_ROWS = 64  # kept however little memory there is
_STRIP = 2048  # columns of a sum of rows at a time: they stay in the cache
_SHORT = 2048  # columns of a row from which numbers are fetched, not computed again
_ROOM = 2**24  # numbers in a block that is computed and not kept


class Kept(NamedTuple):
    """The rows in memory: row i of the matrix is ``values[slots[i]]`` where slots[i] >= 0.

    Equal points have equal rows, and share a slot.
    """

    values: np.ndarray  # (capacity, n)
    slots: np.ndarray  # (n,), int64
    used: np.ndarray  # (capacity,), int64: when the row was last asked for
    owners: np.ndarray  # (capacity,), int64: which row it is, the first of equal ones; -1 for none


class Gram:
    """The kernel matrix of ``points`` by rows, at most ``room`` bytes of them in memory.

    ``requests`` counts the rows asked for, ``evaluations`` the kernel values really computed.
    """

    def __init__(self, points: Points, room: int) -> None:
        n = points.n_rows
        capacity = int(min(n, max(_LEAST_ROWS, room // max(1, n * points.dtype.itemsize))))
        self.points = points
        self.kept = Kept(
            np.empty((capacity, n), dtype=points.dtype),
            np.full(n, -1, dtype=np.int64),
            np.zeros(capacity, dtype=np.int64),
            np.full(capacity, -1, dtype=np.int64),
        )
        self._first = points.first_equal()
        self._slots = self.kept.slots if self._first is None else self.kept.slots.copy()  # of the first of equal rows
        self.requests = 0
        self.evaluations = 0
        self._filled = 0  # slots taken so far
        self._clock = 0

    def some(self, ids: np.ndarray) -> Gram:
        """The kernel matrix of some of the points, with as much room."""
        return Gram(self.points.some(ids), self.kept.values.nbytes)

    @property
    def n_rows(self) -> int:
        return self.points.n_rows

    @property
    def capacity(self) -> int:
        """How many rows can be kept."""
        return len(self.kept.values)

    @property
    def whole(self) -> bool:
        """Whether there is room for all rows."""
        return self.capacity == self.n_rows

    @property
    def diagonal(self) -> np.ndarray:
        """K_ii in float64."""
        return self.points.diagonal

    @property
    def clock(self) -> int:
        """Now, as ``Kept.used`` counts it: what compiled loops note of the rows they take."""
        return self._clock

    def take(self, count: int) -> None:
        """Count rows that a compiled loop took out of ``kept`` by itself."""
        self.requests += int(count)

    def keep(self, ids: np.ndarray) -> Kept:
        """See to it that the rows ``ids`` are in memory: no more than ``capacity``; one named twice is brought once."""
        kept, ids = self.kept, np.asarray(ids, dtype=np.int64)
        if ids.size > self.capacity:
            raise ValueError(f"{ids.size} rows were asked for, but there is room for {self.capacity}")
        self.requests += ids.size
        self._clock += 1
        slots = kept.slots[ids]
        present = slots >= 0
        kept.used[slots[present]] = self._clock
        missing = ids[~present] if self._first is None else self._first[ids[~present]]
        if missing.size > 1:
            missing = np.unique(missing)
        for start in range(0, missing.size, _BLOCK):
            self._bring(missing[start : start + _BLOCK])
        return kept

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """The rows ``ids`` as one array, a copy."""
        self.keep(ids)
        return self.kept.values[self.kept.slots[ids]]

    def square(self, ids: np.ndarray) -> np.ndarray:
        """K between ``ids``, float64."""
        self.keep(ids)
        out = np.empty((ids.size, ids.size))
        _square(self.kept.values, self.kept.slots[ids], np.asarray(ids, dtype=np.int64), out)
        return out

    def between(self, ids: np.ndarray) -> np.ndarray:
        """K between ``ids`` in the precision of the rows, of which none is kept for it.

        Numbers scattered over long rows are slower to fetch than to compute again, and differ by rounding from those.
        """
        if self.n_rows <= _SHORT:
            return self.square(ids)
        self.evaluations += ids.size**2
        return self.points.square(ids)

    def times(self, coefficients: np.ndarray) -> np.ndarray:
        """K times a vector, in float64; only the rows of its nonzeros are looked at."""
        out = np.zeros(self.n_rows)
        if self._first is not None:
            coefficients = np.bincount(self._first, weights=coefficients, minlength=self.n_rows)
        ids = np.flatnonzero(coefficients)
        if np.count_nonzero(self.kept.slots[ids] < 0) <= self.capacity - self._filled:
            self.keep(ids)
        else:
            self.requests += ids.size
        present = ids[self.kept.slots[ids] >= 0]
        self.add(present, coefficients[present], out)
        for missing in _pieces(ids[self.kept.slots[ids] < 0], max(1, min(_BLOCK, _ROOM // max(1, self.n_rows)))):
            block = self._computed(missing, np.empty((missing.size, self.n_rows), dtype=self.points.dtype))
            add_rows(block, np.arange(missing.size), coefficients[missing], out)
        return out

    def add(self, ids: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """out += sum_k coefficients_k K[ids_k], float64, for rows that are kept."""
        slots, coefficients = self.kept.slots[ids], np.asarray(coefficients, dtype=np.float64)
        if self._first is not None:
            slots, places = np.unique(slots, return_inverse=True)
            coefficients = np.bincount(places, weights=coefficients, minlength=slots.size)
        add_rows(self.kept.values, slots, coefficients, out)

    def _bring(self, ids: np.ndarray) -> None:
        """Compute rows into free slots, or into those asked for longest ago."""
        kept = self.kept
        fresh = min(ids.size, self.capacity - self._filled)
        slots = np.arange(self._filled, self._filled + fresh)
        if fresh == ids.size:
            self._computed(ids, kept.values[slots[0] : slots[-1] + 1])
        else:
            kept.used[slots] = self._clock  # taken: not among the oldest
            block = self._computed(ids, np.empty((ids.size, self.n_rows), dtype=self.points.dtype))
            oldest = np.argpartition(kept.used, ids.size - fresh - 1)[: ids.size - fresh]
            self._slots[kept.owners[oldest]] = -1
            slots = np.concatenate((slots, oldest))
            kept.values[slots] = block
        self._slots[ids], kept.owners[slots], kept.used[slots] = slots, ids, self._clock
        self._filled += fresh
        if self._first is not None:
            np.take(self._slots, self._first, out=kept.slots)

    def _computed(self, ids: np.ndarray, out: np.ndarray) -> np.ndarray:
        """The rows ``ids``, with the diagonal as it is known exactly."""
        self.points.values(self.points.own_lines(ids), out)
        out[np.arange(ids.size), ids] = self.diagonal[ids]
        self.evaluations += ids.size * self.n_rows
        return out


def _pieces(ids: np.ndarray, size: int) -> list[np.ndarray]:
    return [ids[start : start + size] for start in range(0, ids.size, size)]


def add_rows(values: np.ndarray, slots: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    """out += sum_k coefficients_k values[slots_k], in float64 and by all threads."""
    if slots.size:
        in_parts(lambda a, b: _add(values, slots, coefficients, out, a, b), out.size, thread_count(None), slots.size)


@compiled
def _add(values, slots, coefficients, out, first, last):
    """out += sum_k coefficients_k values[slots_k] in columns first..last, four rows at a time."""
    count = np.uint64(slots.size)
    for start in range(np.uint64(first), np.uint64(last), np.uint64(_STRIP)):
        end = min(start + np.uint64(_STRIP), np.uint64(last))
        k = np.uint64(0)
        while k + np.uint64(4) <= count:
            a, b = values[slots[k]], values[slots[k + np.uint64(1)]]
            c, d = values[slots[k + np.uint64(2)]], values[slots[k + np.uint64(3)]]
            p, q = coefficients[k], coefficients[k + np.uint64(1)]
            r, s = coefficients[k + np.uint64(2)], coefficients[k + np.uint64(3)]
            for i in range(start, end):
                out[i] += (p * a[i] + q * b[i]) + (r * c[i] + s * d[i])
            k += np.uint64(4)
        while k < count:
            a, p = values[slots[k]], coefficients[k]
            for i in range(start, end):
                out[i] += p * a[i]
            k += np.uint64(1)


@compiled
def _square(values, slots, ids, out):
    for a in range(np.uint64(ids.size)):
        row = values[slots[a]]
        for b in range(np.uint64(ids.size)):
            out[a, b] = row[ids[b]]
