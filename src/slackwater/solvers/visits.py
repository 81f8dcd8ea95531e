"""In what order an epoch visits the rows, and how far ahead it asks for their memory.

The order is a uniform permutation, drawn anew for every epoch. (Blocks of neighbouring rows in random order read
memory twice as fast, but cost more epochs than that gains, on shuffled data too.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, random_state

_BYTES_IN_FLIGHT = 4096
_MOST_AHEAD = 12


class Visits(NamedTuple):
    """The rows that take part, in front of ``order``, and what the order is drawn with."""

    order: np.ndarray  # uint32
    random: np.ndarray
    ahead: int  # visits between asking for a row's memory and using it


def new_visits(rows, rng: np.random.Generator) -> Visits:
    """All rows, asked for as early as their size lets the memory system keep up."""
    entry_bytes = rows.dtype.itemsize + (4 if hasattr(rows, "indices") else 0)
    row_bytes = max(1, rows.n_entries * entry_bytes // rows.n_rows)
    ahead = min(_MOST_AHEAD, max(2, _BYTES_IN_FLIGHT // row_bytes))
    return Visits(np.arange(rows.n_rows, dtype=np.uint32), random_state(rng), ahead)


@compiled
def visit_all(visits):
    """Every row takes part (again); how many there are."""
    for i in range(np.uint64(visits.order.size)):
        visits.order[i] = i
    return visits.order.size


@compiled
def draw(order, random):
    """An epoch of independent draws in place of a permutation."""
    for s in range(np.uint64(order.size)):
        order[s] = next_below(random, order.size)
