"""Several runs on one copy of the data: threads, a shared time limit, one Ctrl-C for all."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from slackwater.training import Limits, interruptible

Answer = TypeVar("Answer")
Task = Callable[[Limits, threading.Event], Answer]


def side_by_side(tasks: Sequence[Task[Answer]], limits: Limits, threads: int) -> list[Answer]:
    """The answers of all tasks in their order. Each gets an even share of the time that is left when it begins.

    After Ctrl-C the running tasks end with what they have, and those still waiting after their first round.
    """
    stop = threading.Event()
    shares = Shares(limits, len(tasks), threads)

    def work(task: Task[Answer]) -> Answer:
        try:
            return task(shares.next(), stop)
        except BaseException:
            stop.set()  # the others need not go on: the answers are lost
            raise

    with interruptible(stop):
        if threads == 1 or len(tasks) <= 1:
            return [work(task) for task in tasks]
        with ThreadPoolExecutor(min(threads, len(tasks)), thread_name_prefix="slackwater") as pool:
            try:
                return list(pool.map(work, tasks))
            except BaseException:
                stop.set()  # a second Ctrl-C, too
                pool.shutdown(cancel_futures=True)
                raise


class Shares:
    """Deals the time limit out to tasks as they begin."""

    _LEAST = 1e-3  # seconds

    def __init__(self, limits: Limits, tasks: int, threads: int) -> None:
        self.limits, self.waiting, self.threads = limits, tasks, threads
        self.end = None if limits.max_time is None else time.perf_counter() + limits.max_time
        self.lock = threading.Lock()

    def next(self) -> Limits:
        with self.lock:
            turns = -(-self.waiting // self.threads)
            self.waiting -= 1
        if self.end is None:
            return self.limits
        left = max(self.end - time.perf_counter(), self._LEAST)
        return replace(self.limits, max_time=max(left / turns, self._LEAST))
