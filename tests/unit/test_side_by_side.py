"""Several runs at a time: order of the answers, a shared time limit, one Ctrl-C for all, errors without hanging."""

from __future__ import annotations

import importlib
import signal
import threading
import time

import pytest

from scripted import Clock
from slackwater.estimators.side_by_side import side_by_side
from slackwater.training import Limits

SIDE_BY_SIDE = importlib.import_module("slackwater.estimators.side_by_side")
PATIENCE = 30.0  # seconds after which something hangs


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_answers_keep_the_order_of_their_tasks(threads):
    def task(number):
        def work(limits, stop):
            time.sleep(0.01 * (5 - number))
            return number

        return work

    assert side_by_side([task(number) for number in range(6)], Limits(), threads) == list(range(6))


def test_no_tasks_have_no_answers():
    assert side_by_side([], Limits(), 4) == []


def test_one_thread_is_the_callers_own():
    names = side_by_side([lambda limits, stop: threading.current_thread()] * 3, Limits(), 1)
    assert set(names) == {threading.current_thread()}


def test_no_more_threads_than_asked_for_work_at_once():
    lock, running, most = threading.Lock(), [0], [0]

    def work(limits, stop):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1

    side_by_side([work] * 8, Limits(), 3)
    assert most[0] == 3


# ---------------------------------------------------------------------------------------------------------- time


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock that the time limit is read from."""
    clock = Clock()
    monkeypatch.setattr(SIDE_BY_SIDE, "time", clock.module)
    return clock


def test_without_a_time_limit_tasks_get_the_limits_as_they_are():
    limits = Limits(tol=0.25, max_rounds=7)
    assert side_by_side([lambda given, stop: given] * 3, limits, 2) == [limits] * 3


def test_tasks_share_the_time_evenly_and_inherit_what_others_leave(clock):
    shares = []

    def work(spends):
        def task(limits, stop):
            shares.append(limits.max_time)
            assert (limits.tol, limits.max_rounds) == (0.25, 7)
            clock.pass_seconds(spends)

        return task

    limits = Limits(tol=0.25, max_rounds=7, max_time=12.0)
    side_by_side([work(2.0), work(4.0), work(1.0), work(5.0)], limits, 1)
    assert shares == pytest.approx([12 / 4, 10 / 3, 6 / 2, 5.0])


def test_tasks_that_begin_too_late_still_get_a_positive_limit(clock):
    shares = side_by_side(
        [lambda limits, stop: (clock.pass_seconds(50.0), limits.max_time)[1]] * 3, Limits(max_time=9), 1
    )
    assert shares[0] == 3.0 and 0.0 < shares[1] == shares[2] < 0.01


def test_threads_count_in_the_shares(clock):
    gate = threading.Barrier(2, timeout=PATIENCE)

    def work(limits, stop):
        gate.wait()
        return limits.max_time

    # Two of four begin at once, with two turns to come; of the last two each has one turn.
    assert sorted(side_by_side([work] * 4, Limits(max_time=8.0), 2)) == [4.0, 4.0, 8.0, 8.0]


# -------------------------------------------------------------------------------------------------------- the ends


def wait_for(stop: threading.Event) -> str:
    return "stopped" if stop.wait(PATIENCE) else "forgotten"


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("failing", [0, 1, 3])
def test_an_error_stops_the_others_and_reaches_the_caller(threads, failing):
    ends, others_run = {}, threading.Event()

    def task(number):
        def work(limits, stop):
            if number == failing:
                others_run.wait(1.0)
                raise ZeroDivisionError(f"task {number}")
            others_run.set()
            ends[number] = wait_for(stop)

        return work

    tasks = [task(number) for number in range(4)]
    if threads == 2 and failing == 3:  # it would never begin: the two before it wait for someone to stop them
        tasks = [tasks[0], tasks[3]]
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError, match=f"task {failing}"):
        side_by_side(tasks, Limits(), threads)
    assert time.monotonic() - begin < PATIENCE / 2
    assert set(ends.values()) <= {"stopped"}


def test_an_error_in_one_thread_ends_the_row():
    begun = []

    def fail(limits, stop):
        begun.append(stop)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        side_by_side([fail, fail], Limits(), 1)
    assert len(begun) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_is_heard_by_all(threads):
    def work(limits, stop):
        if threads == 1 and not stop.is_set():
            signal.raise_signal(signal.SIGINT)
        return wait_for(stop)

    if threads > 1:
        threading.Timer(0.2, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    assert side_by_side([work, work, work], Limits(), threads) == ["stopped"] * 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("threads", [1, 2])
def test_a_second_ctrl_c_breaks_off(threads):
    heard = []

    def interrupt():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def stubborn(limits, stop):
        heard.append(wait_for(stop))
        interrupt()  # while its answer is still awaited
        time.sleep(0.05)

    def obedient(limits, stop):
        heard.append(wait_for(stop))

    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        side_by_side([stubborn, obedient], Limits(), threads)
    assert set(heard) == {"stopped"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
