"""Threads of our own over functions that run without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

__all__ = ["in_parts", "in_threads", "thread_count", "together"]

Result = TypeVar("Result")

_LEAST = 2**15  # units of work that are worth waking a thread for


def thread_count(threads: int | None) -> int:
    """``threads`` itself, or as many as this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads={threads!r}: expected None or a number from 1 on")
    return threads


def in_threads(function: Callable[[int], Result], count: int, threads: int) -> list[Result]:
    """``[function(0), ..., function(count - 1)]``; the first error in this order is raised and ends the rest."""
    if min(threads, count) <= 1:
        return [function(k) for k in range(count)]
    pool = ThreadPoolExecutor(min(threads, count), thread_name_prefix="slackwater")
    try:
        futures = [pool.submit(function, k) for k in range(count)]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_parts(work: Callable[[int, int], object], size: int, threads: int, cost: float = 1.0) -> None:
    """work(first, last) over equal parts of range(size), ``cost`` units each; the caller's thread takes the first.

    The other threads are kept for the next call: a call costs some ten microseconds. Work must not call this again.
    """
    parts = int(max(1, min(threads, size, size * cost / _LEAST)))
    bounds = [size * k // parts for k in range(parts + 1)]
    rest = [_pool(os.getpid(), threads).submit(work, bounds[k], bounds[k + 1]) for k in range(1, parts)]
    try:
        work(bounds[0], bounds[1])
    finally:
        wait(rest)  # none goes on writing after an error of another
    for done in rest:
        done.result()


def together(work: Callable[[int], object], threads: int) -> None:
    """work(0), .., work(threads - 1) at the same time; like ``in_parts``, but every one has its thread."""

    def one(first: int, last: int) -> None:
        for k in range(first, last):
            work(k)

    in_parts(one, threads, threads, _LEAST)


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One pool a process: a forked child has none of its parent's threads."""
    return ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="slackwater")
