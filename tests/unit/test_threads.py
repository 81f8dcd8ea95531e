"""Threads of our own: parts that cover everything once, the first error, one pool."""

import threading
from itertools import pairwise

import numpy as np
import pytest

from slackwater import threads
from slackwater.threads import in_parts, in_threads, thread_count

pytestmark = pytest.mark.interpreted


def parts(size: int, count: int, cost: float = 1e9) -> list[tuple[int, int]]:
    """What ``in_parts`` hands out, in order."""
    found, lock = [], threading.Lock()

    def work(first, last):
        with lock:
            found.append((first, last))

    in_parts(work, size, count, cost)
    return sorted(found)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_parts_cover_the_range_once(size, count):
    found = parts(size, count)
    assert len(found) == min(size, count)
    assert found[0][0] == 0 and found[-1][1] == size
    assert all(one[1] == other[0] for one, other in pairwise(found))
    lengths = [last - first for first, last in found]
    assert max(lengths) - min(lengths) <= 1


def test_nothing_is_one_empty_part():
    assert parts(0, 4) == [(0, 0)]


def test_little_work_stays_in_one_thread():
    least = threads._LEAST
    assert len(parts(least - 1, 4, 1.0)) == 1
    assert len(parts(2 * least, 4, 1.0)) == 2
    assert len(parts(100, 4, least / 25)) == 4
    assert len(parts(100, 4, least / 50)) == 2


def test_the_first_part_is_the_callers():
    names = {}
    in_parts(lambda a, b: names.setdefault(a, threading.current_thread()), 10, 2, 1e9)
    assert names[0] is threading.current_thread() and names[5] is not names[0]


def test_threads_are_kept_for_the_next_call():
    seen = set()
    for _ in range(5):
        in_parts(lambda a, b: seen.add(threading.get_ident()), 10, 2, 1e9)
    assert len(seen) == 2


def test_all_work_is_done_when_it_returns():
    out = np.zeros(100_000)

    def work(first, last):
        out[first:last] += 1.0

    for _ in range(20):
        in_parts(work, out.size, 3, 10.0)
    assert (out == 20.0).all()


@pytest.mark.parametrize("place", [0, 5])
def test_errors_come_back(place):
    def work(first, last):
        if first == place:
            raise ZeroDivisionError(f"in {first}")

    with pytest.raises(ZeroDivisionError, match=f"in {place}"):
        in_parts(work, 10, 2, 1e9)
    assert len(parts(10, 2)) == 2


def test_an_error_of_the_caller_waits_for_the_others():
    """They write into arrays that the caller goes on with."""
    done = threading.Event()

    def work(first, last):
        if first == 0:
            raise ZeroDivisionError
        threading.Event().wait(0.05)
        done.set()

    with pytest.raises(ZeroDivisionError):
        in_parts(work, 10, 2, 1e9)
    assert done.is_set()


def test_answers_in_their_order():
    assert in_threads(lambda k: k * k, 20, 4) == [k * k for k in range(20)]
    assert in_threads(lambda k: k, 0, 4) == []

    def fail(k):
        if k % 3 == 2:
            raise ValueError(f"number {k}")
        return k

    with pytest.raises(ValueError, match="number 2"):
        in_threads(fail, 9, 3)


def test_numbers_of_threads():
    assert thread_count(3) == 3 and thread_count(None) >= 1
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="expected None or a number from 1 on"):
            thread_count(wrong)
