"""Ctrl-C during training: the best model so far comes back, nothing hangs, other people's handlers are left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import slackwater
from problems import random_problem
from scripted import Notes, Scripted, Step
from slackwater import LinearSVC
from slackwater.objective import hinge, primal_value
from slackwater.training import Limits, interruptible, run

NEVER = Limits(tol=0.0)
PATIENCE = 60.0  # seconds after which something hangs


def toy():
    return random_problem(3, hinge(), "penalised")


@pytest.fixture(autouse=True)
def the_handler_stays():
    """Every test ends with the handler that it began with."""
    before = signal.getsignal(signal.SIGINT)
    assert before is signal.default_int_handler
    yield
    after = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert after is before


def interrupting(rounds: set[int]):
    """What a scripted solver does to press Ctrl-C in these rounds."""
    return lambda number: signal.raise_signal(signal.SIGINT) if number in rounds else None


# --------------------------------------------------------------------------------------------------- in this process


def test_the_first_ctrl_c_ends_the_run_after_its_round():
    problem = toy()
    answer = run(problem, Scripted([Step(0.6, 0.6), Step(0.2, 0.2)], each_round=interrupting({4})), NEVER)
    assert (answer.status.code, answer.rounds, answer.history[-1].round) == ("interrupted", 4, 4)
    assert str(answer.status).startswith("interrupted, gap ") and not answer.status.limited
    assert answer.certificate.primal == primal_value(problem, answer.model.weights(problem.rows.bias))


def test_ctrl_c_from_another_thread_of_the_process():
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    solver = Scripted([Step(0.5 - 1e-9 * k, 0.5) for k in range(3)], each_round=lambda number: time.sleep(0.01))
    timer.start()
    answer = run(toy(), solver, Limits(tol=0.0, max_time=PATIENCE))
    assert answer.status.code == "interrupted" and answer.certificate.dual > 0


def test_the_second_ctrl_c_breaks_off_at_once():
    def press_twice(number):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    notes = Notes()
    with pytest.raises(KeyboardInterrupt):
        run(toy(), Scripted([Step(0.5, 0.5)], each_round=press_twice), NEVER, observers=[notes])
    assert notes.rounds == notes.finished == []


def test_an_interrupt_in_the_round_that_converges_changes_nothing():
    answer = run(toy(), Scripted([Step(1.0, 1.0)], each_round=interrupting({1})), Limits(tol=1e-6))
    assert answer.status.code == "converged"


def test_the_handler_is_restored_after_an_error():
    def fail(number):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(toy(), Scripted([Step(0.5, 0.5)], each_round=fail), NEVER)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("foreign", [signal.SIG_IGN, lambda number, frame: None], ids=["ignore", "function"])
def test_a_handler_of_the_caller_is_left_alone(foreign):
    before = signal.signal(signal.SIGINT, foreign)
    try:
        seen = []

        def press(number):
            seen.append(signal.getsignal(signal.SIGINT))
            signal.raise_signal(signal.SIGINT)

        answer = run(toy(), Scripted([Step(0.5, 0.5)], each_round=press), Limits(max_rounds=3))
        assert answer.status.code == "max_rounds" and seen == [foreign] * 3
        assert signal.getsignal(signal.SIGINT) is foreign
    finally:
        signal.signal(signal.SIGINT, before)


def test_runs_inside_an_interruptible_block_share_its_event():
    stop = threading.Event()
    with interruptible(stop):
        inner = run(toy(), Scripted([Step(0.5, 0.5)], each_round=interrupting({2})), NEVER, stop=stop)
        assert stop.is_set() and (inner.status.code, inner.rounds) == ("interrupted", 2)


def test_elsewhere_than_in_the_main_thread_no_handler_is_touched():
    seen = []
    solver = Scripted([Step(0.5, 0.5)], each_round=lambda number: seen.append(signal.getsignal(signal.SIGINT)))
    thread = threading.Thread(target=run, args=(toy(), solver, Limits(max_rounds=2)))
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive() and seen == [signal.default_int_handler] * 2


def test_an_error_in_one_of_many_problems_ends_the_fit(monkeypatch):
    from slackwater.estimators import certified

    true_run, started = certified.run, threading.Event()

    def run_or_fail(problem, *arguments, **options):
        if problem.labels[0] > 0:
            started.wait(PATIENCE)
            raise ZeroDivisionError("a worker's fault")
        started.set()
        return true_run(problem, *arguments, **options)

    monkeypatch.setattr(certified, "run", run_or_fail)
    X, y = np.random.default_rng(0).normal(size=(300, 5)), np.arange(300) % 3
    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="a worker's fault"):
        LinearSVC(n_jobs=3, tol=0.0, C=1e3, max_time=PATIENCE).fit(X, y)
    assert time.monotonic() - begin < PATIENCE / 2


# --------------------------------------------------------------------------------------------- in a process of its own

FITTING = """
import sys, threading, warnings
import numpy as np
from slackwater import LinearSVC
from slackwater.training import Observer
from slackwater.estimators import certified

class Bell(Observer):
    rung = threading.Event()
    def after_round(self, progress):
        if progress.round >= 3 and not self.rung.is_set():
            self.rung.set()
            print("training", flush=True)

true_run = certified.run
certified.run = lambda *a, observers=(), **k: true_run(*a, observers=[*observers, Bell()], **k)
warnings.simplefilter("error")
classes, n_jobs = int(sys.argv[1]), int(sys.argv[2])
draws = np.random.default_rng(0)
X = draws.normal(size=(60_000, 40))
y = draws.integers(classes, size=len(X))
svm = LinearSVC(C=1e4, tol=1e-12, n_jobs=n_jobs, random_state=0).fit(X, y)
assert np.isfinite(svm.coef_).all() and len(svm.predict(X[:5])) == 5
primals = {certificate.primal <= 1.0 for certificate in svm.certificates_}
print(svm.status_.code, *sorted({status.code for status in svm.statuses_}), primals, len(svm.statuses_), flush=True)
"""


def start(*arguments: object) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(Path(slackwater.__file__).parent.parent)}
    return subprocess.Popen(
        [sys.executable, "-c", FITTING, *map(str, arguments)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")
@pytest.mark.parametrize(("classes", "n_jobs"), [(2, 1), (4, 1), (4, 2)])
def test_ctrl_c_during_a_fit_keeps_the_best_model_so_far(classes, n_jobs):
    with start(classes, n_jobs) as process:
        try:
            assert process.stdout.readline().strip() == "training"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, err
    problems = 1 if classes == 2 else classes
    assert out.split("\n")[0] == f"interrupted interrupted {{True}} {problems}"
    assert err == ""
