"""In what order an epoch visits the rows, and how far ahead it asks for their memory.

The order is a uniform permutation, drawn anew for every epoch. (Blocks of neighbouring rows in random order read
memory twice as fast, but cost more epochs than that gains, on shuffled data too.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, prefetch, random_state
from slackwater.rows import prefetch_place

_BYTES_IN_FLIGHT = 4096
_MOST_AHEAD = 12
_PLACES_AHEAD = 16  # visits between asking where a row lies and asking for the row
_HAND = 64  # neighbouring rows that are dealt to one thread together


class Visits(NamedTuple):
    """The rows that take part, in front of ``order``, and what the order is drawn with."""

    order: np.ndarray  # uint32
    random: np.ndarray
    ahead: int  # visits between asking for a row's memory and using it
    thread: int = 0  # which of ``threads`` has these rows
    threads: int = 1


def new_visits(rows, rng: np.random.Generator) -> Visits:
    """All rows, asked for as early as their size lets the memory system keep up."""
    entry_bytes = rows.dtype.itemsize + (4 if hasattr(rows, "indices") else 0)
    row_bytes = max(1, rows.n_entries * entry_bytes // rows.n_rows)
    ahead = min(_MOST_AHEAD, max(2, _BYTES_IN_FLIGHT // row_bytes))
    return Visits(np.arange(rows.n_rows, dtype=np.uint32), random_state(rng), ahead)


def dealt_visits(rows, rng: np.random.Generator, threads: int) -> list[Visits]:
    """The rows dealt to threads, some neighbours at a time: labels that come in order do not part the threads."""
    whole, hands = new_visits(rows, rng), np.arange(rows.n_rows, dtype=np.uint32) // _HAND % threads
    return [
        Visits(np.flatnonzero(hands == t).astype(np.uint32), random_state(rng), whole.ahead, t, threads)
        for t in range(threads)
    ]


@compiled(inline=True)
def visited(rows, table, order, s, count, ahead):
    """The row to visit now, order[s], and the one whose memory ``dot_ahead`` is to ask for meanwhile.

    A row pointer that is not in the cache would stop the loop where it is read: it is asked for earlier still.
    """
    far, near = s + ahead + np.uint64(_PLACES_AHEAD), s + ahead
    if far < count:
        coming = np.uint64(order[far])
        prefetch_place(rows, coming)
        prefetch(table, coming)
    return np.uint64(order[s]), np.uint64(order[near if near < count else s])


@compiled(borrows=True)
def visit_all(visits):
    """Every row takes part (again); how many there are."""
    thread, threads, hand = np.uint64(visits.thread), np.uint64(visits.threads), np.uint64(_HAND)
    for i in range(np.uint64(visits.order.size)):
        visits.order[i] = (i // hand * threads + thread) * hand + i % hand
    return visits.order.size


@compiled(borrows=True)
def draw(order, random):
    """An epoch of independent draws in place of a permutation."""
    for s in range(np.uint64(order.size)):
        order[s] = next_below(random, order.size)
