"""Threads of our own over functions that run without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_threads", "thread_count"]

Result = TypeVar("Result")


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
