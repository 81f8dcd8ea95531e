"""Threads that move different dual variables of one problem: each on its own copy of w, told what the others changed.

Algorithm  PASSCoDe (Hsieh, Yu, Dhillon, ICML 2015) updates one w without locks, which loses additions where rows share
           columns, so that w drifts away from w(alpha). Here a thread adds to its own copy, publishes the sum of its
           changes every few visits, and takes in what the others have published: nothing is lost, nobody waits.
Exactness  At the end of a round w = w at its beginning + the changes of all threads: w(alpha), up to rounding.
Staleness  A thread does not know what the others did since its last exchange. So the order of the changes, and with it
           the last digits, depend on the threads' timing; the certificate does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.rows import entries_of_a_row

_LEAST_ENTRIES = 2**21  # of a thread's rows, below which its passes are too short
_EXCHANGES = 8  # in a pass, at least
_LEAST_VISITS = 96  # between exchanges
_SHARE = 12  # numbers that visits look at, for each number exchanged


class Link(NamedTuple):
    """One thread's end of the exchange, of vectors as long as w."""

    thread: int
    every: int  # visits between exchanges
    visits: np.ndarray  # one number: those since the last exchange
    base: np.ndarray  # w at the round's beginning
    published: np.ndarray  # a line per thread, its changes in this round in float32; only that thread writes it
    heard: np.ndarray  # what of the others' changes is in this thread's w
    news: np.ndarray  # room for what they have published since


def worth_sharing(rows, n_weights: int, threads: int) -> bool:
    """Whether threads over these rows have enough to do between exchanges, and exchanges enough in a pass."""
    visits = rows.n_rows // threads
    return rows.n_entries >= threads * _LEAST_ENTRIES and visits >= _EXCHANGES * _visits_between(rows, n_weights)


def _visits_between(rows, n_weights: int) -> int:
    return max(_LEAST_VISITS, _SHARE * n_weights // entries_of_a_row(rows))


def new_links(rows, n_weights: int, threads: int) -> list[Link]:
    """The ends of an exchange between threads over these rows."""
    every = _visits_between(rows, n_weights)
    base, published = np.zeros(n_weights), np.zeros((threads, n_weights), dtype=np.float32)
    return [
        Link(t, every, np.zeros(1, dtype=np.int64), base, published, np.zeros(n_weights), np.zeros(n_weights))
        for t in range(threads)
    ]


def begin_round(copies: list[tuple[Link, np.ndarray]], w: np.ndarray) -> None:
    """Every thread's copy is w, and nothing has changed."""
    copies[0][0].base[:] = w  # all links have the same, and the same lines of what is published
    for link, copy in copies:
        copy[:] = w
        link.published[link.thread], link.heard[:], link.visits[:] = 0.0, 0.0, 0


def end_round(copies: list[tuple[Link, np.ndarray]], w: np.ndarray) -> None:
    """w with the changes of all threads."""
    for link, copy in copies:
        copy -= link.base
        copy -= link.heard
        w += copy


@compiled(inline=True)
def exchange_when_due(link, w):
    """Before a visit."""
    if link.visits[0] >= link.every:
        exchange(link, w)
        link.visits[0] = 0
    link.visits[0] += 1


@compiled(borrows=True)
def exchange(link, w):
    """Publish what this thread has changed, take in what the others have."""
    me, threads, size = np.uint64(link.thread), np.uint64(len(link.published)), np.uint64(w.size)
    mine, base, heard, news = link.published[me], link.base, link.heard, link.news
    news[:] = 0.0
    for other in range(threads):
        if other != me:
            theirs = link.published[other]
            for j in range(size):
                news[j] += theirs[j]
    for j in range(size):
        mine[j] = w[j] - base[j] - heard[j]
        w[j] += news[j] - heard[j]
        heard[j] = news[j]
