"""Those who watch a run: what they are told and when, and the progress lines on a terminal and elsewhere."""

from __future__ import annotations

import importlib
import io
import math
import re

import numpy as np
import pytest

from problems import BIASES, optimum, random_problem
from scripted import Clock, Notes, Scripted, Step
from slackwater.objective import Certificate, hinge, parse_loss, parse_penalty, primal_value
from slackwater.solvers.registry import solver_classes
from slackwater.training import Limits, Observer, Progress, ProgressLine, Screen, SoFar, run

OBSERVERS = importlib.import_module("slackwater.training.observers")
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What was written, line by line, without colours and movements of the cursor."""
        return [line.strip() for line in re.split(r"[\r\n]", TERMINAL_CODES.sub("", self.getvalue())) if line.strip()]


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """A terminal of 80 columns."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


def toy(bias="penalised"):
    return random_problem(3, hinge(), bias)


def progress(round=1, seconds=0.0, gap=1.0, estimate=math.inf, **limits) -> Progress:
    """A message to observers after a round, with this certified gap."""
    best = Certificate(1.0 + gap, 1.0, "C1") if math.isfinite(gap) else Certificate(0.75, 0.0, "C1")
    return Progress(round, seconds, estimate, best, None, lambda: None, None, Limits(**limits))


# ------------------------------------------------------------------------------------------------ what they are told


def test_they_are_told_of_the_beginning_every_round_and_the_end():
    notes, limits = Notes(), Limits(max_rounds=9)
    answer = run(toy(), Scripted([Step(0.2, 0.2, 5.0)]), limits, observers=[notes])
    assert notes.begun == [limits] and notes.finished == [answer]
    assert [p.round for p in notes.rounds] == list(range(1, 10)) and {p.limits for p in notes.rounds} == {limits}
    assert [p.record.round for p in notes.rounds if p.record is not None] == [8, 9]
    assert {p.estimate for p in notes.rounds} == {5.0}
    seconds = [p.seconds for p in notes.rounds]
    assert seconds == sorted(seconds) and seconds[0] > 0.0


def test_the_certificate_they_see_is_the_best_so_far():
    notes = Notes()
    steps = [Step(0.5, 0.1), Step(0.2, 0.8), Step(0.9, 0.3)]
    answer = run(toy(), Scripted(steps), Limits(max_rounds=3, certify_every=1), observers=[notes])
    primals = [p.certificate.primal for p in notes.rounds]
    assert primals[1] == primals[0] > primals[2] == answer.certificate.primal
    duals = [p.certificate.dual for p in notes.rounds]
    assert duals[0] < duals[1] == duals[2] == answer.certificate.dual
    np.testing.assert_array_equal(notes.rounds[0].alpha, 0.1 * optimum(toy()).alpha)
    np.testing.assert_array_equal(notes.rounds[2].alpha, answer.alpha)


@pytest.mark.parametrize("bias", BIASES)
def test_the_answer_so_far_is_of_this_round_too(bias):
    problem, seen = toy(bias), []

    class Curious(Observer):
        def after_round(self, progress):
            seen.append((progress.record is None, progress.certificate, progress.so_far()))

    steps = [Step(0.1, 0.1), Step(0.5, 0.2), Step(-3.0, 0.6), Step(0.7, 0.1)]
    run(problem, Scripted(steps), Limits(max_rounds=4), observers=[Curious()])
    assert [uncertified for uncertified, _, _ in seen] == [True, True, True, False]
    for (_, certified, so_far), step in zip(seen, steps, strict=True):
        model, certificate = so_far
        weights = model.weights(problem.rows.bias)
        assert certificate.primal == pytest.approx(primal_value(problem, weights))
        expected = min(primal_value(problem, step.model * optimum(problem).w), primal_value(problem, 0.0 * weights))
        assert certificate.primal == pytest.approx(expected)
        assert certificate.primal <= certified.primal and certificate.dual >= certified.dual
    assert isinstance(seen[0][2], SoFar)


def test_the_latest_model_is_the_solvers_without_a_certificate():
    problem, seen = toy(), []

    class Curious(Observer):
        def after_round(self, progress):
            seen.append(progress.latest().weights(problem.rows.bias))

    solver = Scripted([Step(0.1, 0.1), Step(-3.0, 0.6), Step(0.5, 0.2)])
    run(problem, solver, Limits(max_rounds=3), observers=[Curious()])
    for weights, share in zip(seen, (0.1, -3.0, 0.5), strict=True):
        assert weights == pytest.approx(share * optimum(problem).w)
    assert solver.looks == [3]


@pytest.mark.parametrize("name", sorted(solver_classes("classification")))
def test_asking_for_the_answer_so_far_changes_nothing(name):
    class Curious(Observer):
        def after_round(self, progress):
            progress.so_far()

    solver = solver_classes()[name]()
    loss = parse_loss("hinge" if "hinge" in solver.losses else solver.losses[0])
    penalty = parse_penalty(solver.penalties[0])
    problem = random_problem(5, loss, solver.biases[0], n=300, d=10, penalty=penalty)
    answers = [
        run(problem, solver, Limits(tol=1e-3, max_rounds=30), rng=4, observers=watching)
        for watching in ([], [Curious()])
    ]
    assert answers[0].certificate == answers[1].certificate and answers[0].rounds == answers[1].rounds
    np.testing.assert_array_equal(answers[0].model.coef, answers[1].model.coef)


@pytest.mark.parametrize("moment", ["begin", "after_round", "finish"])
def test_their_errors_reach_the_caller(moment):
    def fail(*arguments):
        raise ZeroDivisionError("the observer's own fault")

    broken, notes = Notes(), Notes()
    setattr(broken, moment, fail)
    with pytest.raises(ZeroDivisionError, match="the observer's own fault"):
        run(toy(), Scripted([Step(0.2, 0.2)]), Limits(max_rounds=2), observers=[notes, broken])
    assert len(notes.rounds) == {"begin": 0, "after_round": 1, "finish": 2}[moment]


def test_all_are_asked_even_if_the_first_wants_to_stop():
    first, second = Notes(stop_at=3), Notes()
    run(toy(), Scripted([Step(0.2, 0.2)]), Limits(tol=0.0), observers=[first, second])
    assert [p.round for p in second.rounds] == [1, 2, 3] and len(second.finished) == 1


# --------------------------------------------------------------------------------------------------- the progress line


class Shown(Screen):
    """A screen that keeps what it is asked to show."""

    def __init__(self):
        super().__init__(io.StringIO())
        self.shown: list[tuple[str, str]] = []

    def show(self, label, text):
        self.shown.append((label, text))


def line_after(*messages: Progress) -> str:
    screen = Shown()
    line = ProgressLine("training", screen)
    for message in messages:
        line.after_round(message)
    return screen.shown[-1][1]


def test_the_line_holds_rounds_seconds_and_the_gap():
    assert line_after(progress(1, 0.25, gap=0.5)) == "1 round, 0.2 s, gap 0.5"
    assert line_after(progress(17, 61.0, gap=0.5, estimate=0.25)) == "17 rounds, 61.0 s, gap 0.5, estimated 0.25"
    assert line_after(progress(17, 61.0, gap=0.5, estimate=0.7)) == "17 rounds, 61.0 s, gap 0.5"


def test_before_there_is_a_bound_the_line_holds_the_primal_value():
    assert line_after(progress(2, 1.0, gap=math.inf)) == "2 rounds, 1.0 s, primal 0.75"
    assert line_after(progress(2, 1.0, gap=math.inf, estimate=3.0)) == "2 rounds, 1.0 s, estimated 3"


def test_the_line_forecasts_the_end():
    messages = [progress(k, 2.0 * k, gap=10.0**-k, tol=1e-6) for k in range(1, 5)]
    assert line_after(*messages).endswith("gap 0.0001, about 4.0 s to gap 1e-06")


def test_the_line_says_when_the_time_limit_will_come_first():
    messages = [progress(k, 2.0 * k, gap=10.0**-k, tol=1e-6, max_time=9.5) for k in range(1, 5)]
    assert line_after(*messages).endswith("gap 0.0001, time limit in 1.5 s")


def test_a_gap_that_does_not_shrink_has_no_forecast():
    assert line_after(*[progress(k, 2.0 * k, gap=0.1) for k in range(1, 9)]) == "8 rounds, 16.0 s, gap 0.1"


def test_the_line_is_not_written_more_often_than_one_reads():
    screen = Shown()
    line = ProgressLine("training", screen)
    for k in range(10_000):
        line.after_round(progress(k, 1e-4 * k, gap=1.0 / (k + 1)))
    assert 8 <= len(screen.shown) <= 12


def test_a_long_run_keeps_few_points_and_still_forecasts_well():
    screen = Shown()
    line = ProgressLine("training", screen)
    for k in range(1, 20_001):
        line.after_round(progress(k, 0.2 * k, gap=10.0 ** (-k / 4000), tol=1e-6))
    assert len(line._path.points) <= 128
    forecast = float(re.search(r"about ([0-9.]+) s", screen.shown[-1][1])[1])
    assert forecast == pytest.approx(800.0, rel=0.01)


# ---------------------------------------------------------------------------------------------------------- the screen


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock of the screen."""
    clock = Clock()
    clock.module.monotonic = clock.module.perf_counter
    monkeypatch.setattr(OBSERVERS, "time", clock.module)
    return clock


def test_elsewhere_than_on_a_terminal_a_line_appears_now_and_then(clock):
    stream = io.StringIO()
    with Screen(stream) as screen:
        for number in range(13):
            screen.show("training", f"text {number}")
            clock.pass_seconds(1.0)
        screen.close("training", "the end")
    assert stream.getvalue() == "training: text 5\ntraining: text 10\ntraining: the end\n"


def test_every_label_has_its_own_pauses(clock):
    stream = io.StringIO()
    with Screen(stream) as screen:
        screen.show("class a", "starting")
        clock.pass_seconds(4.0)
        screen.show("class b", "starting")
        clock.pass_seconds(4.0)
        screen.show("class a", "eight")
        screen.show("class b", "four")
    assert stream.getvalue() == "class a: eight\n"


def test_on_a_terminal_the_line_moves_and_its_last_word_stays(terminal):
    with Screen(terminal) as screen:
        screen.show("training", "starting")
        screen.show("training", "gap 0.5, about 3 s to gap 0.001")
        screen._live.refresh()
        screen.close("training", "gap 0.0009 <= 0.001 after 7 rounds")
    lines = terminal.lines()
    assert any(re.fullmatch(r"\S training: gap 0.5, about 3 s to gap 0.001", line) for line in lines)
    assert lines[-1] == "training: gap 0.0009 <= 0.001 after 7 rounds"


def test_two_runs_have_two_lines(terminal):
    with Screen(terminal) as screen:
        for label in ("class 0", "class 1"):
            screen.show(label, "starting")
        screen._live.refresh()
        before = terminal.lines()[-2:]
        screen.close("class 1", "done")
        screen._live.refresh()
        after = terminal.lines()
    assert [line[2:] for line in before] == ["class 0: starting", "class 1: starting"]
    assert {line[2:] for line in after[after.index("class 1: done") + 1 :]} == {"class 0: starting"}


def test_a_text_too_long_for_the_terminal_is_cut_at_its_end(terminal):
    with Screen(terminal) as screen:
        screen.show("training", "long " * 40)
        screen._live.refresh()
    moving = [line for line in terminal.lines() if "long" in line]
    assert moving and all(len(line) <= 80 and line[2:].startswith("training: long long") for line in moving)


def test_labels_are_text_not_markup(terminal):
    with Screen(terminal) as screen:
        screen.show("class [red]", "starting")
        screen._live.refresh()
        screen.close("class [red]", "[bold]done[/]")
    assert any("class [red]: starting" in line for line in terminal.lines())
    assert terminal.lines()[-1] == "class [red]: [bold]done[/]"


def test_an_error_leaves_the_terminal_as_it_was(terminal):
    with pytest.raises(ZeroDivisionError), Screen(terminal) as screen:
        screen.show("training", "starting")
        raise ZeroDivisionError
    assert terminal.getvalue().rfind("\x1b[?25h") > terminal.getvalue().rfind("\x1b[?25l") >= 0  # the cursor is back


def test_a_run_on_a_terminal(terminal):
    with Screen(terminal) as screen:
        line = ProgressLine("training", screen)
        answer = run(toy(), Scripted([Step(0.3, 0.3)] * 20 + [Step(1.0, 1.0)]), observers=[line])
    assert answer.status.converged and terminal.lines()[-1] == f"training: {answer.status}"
