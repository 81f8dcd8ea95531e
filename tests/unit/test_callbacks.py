"""scikit-learn's callbacks: what they see of a fit, that they can end it, and that they change nothing else."""

from __future__ import annotations

import copy
import importlib
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slackwater import SVC, LinearSVC

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


def clouds(classes: int, n: int = 300):
    draws = np.random.default_rng(classes)
    centres = 1.5 * draws.normal(size=(classes, 6))
    y = np.arange(n) % classes
    return centres[y] + draws.normal(size=(n, 6)), np.array(["ash", "beech", "cedar", "dogwood"])[y]


class Recorder:
    """Writes down every task that begins or ends, and looks at the estimator in the making."""

    def __init__(self, stop_after: int | None = None, look: bool = True) -> None:
        self.events: list[tuple[str, str, int]] = []
        self.stop_after, self.look = stop_after, look
        self.fitted: list = []
        self.data: list = []

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("begin", context.task_name, context.task_id))
        self.data.append((X, y, metadata))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name, context.task_id))
        self.data.append((X, y, metadata))
        if context.task_name == "round":
            self.fitted.append(fitted_estimator)
            return self.stop_after is not None and context.task_id + 1 >= self.stop_after
        return None


class Blind(Recorder):
    """Wants to see nothing."""

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))


def fit(recorder, classes=2, **settings):
    settings = {"random_state": 0, "tol": 1e-4} | settings
    return LinearSVC(**settings).set_callbacks(recorder).fit(*clouds(classes))


# ------------------------------------------------------------------------------------------------- what they see


def test_a_fit_of_two_classes_is_one_problem_of_rounds():
    recorder = Recorder()
    svm = fit(recorder)
    rounds = svm.history_[-1].round
    expected = [("setup", "fit", 0), ("begin", "fit", 0), ("begin", "problem", 0)]
    for number in range(rounds):
        expected += [("begin", "round", number), ("end", "round", number)]
    expected += [("end", "problem", 0), ("end", "fit", 0), ("teardown", "fit", 0)]
    assert recorder.events == expected and rounds >= 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_of_more_classes_is_one_problem_for_each(n_jobs):
    recorder = Recorder()
    svm = fit(recorder, classes=4, n_jobs=n_jobs)
    problems = [event for event in recorder.events if event[1] == "problem"]
    assert sorted(problems) == sorted((kind, "problem", k) for kind in ("begin", "end") for k in range(4))
    ended = sum(event[:2] == ("end", "round") for event in recorder.events)
    assert ended == sum(history[-1].round for history in svm.histories_)
    assert recorder.events[:2] == [("setup", "fit", 0), ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), ("teardown", "fit", 0)]


@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_given_the_data(weighted):
    X, y = clouds(2)
    weights = np.linspace(0.5, 2.0, len(y)) if weighted else None
    recorder = Recorder()
    LinearSVC(random_state=0).set_callbacks(recorder).fit(X, y, sample_weight=weights)
    assert len(recorder.data) >= 6
    for seen_X, seen_y, metadata in recorder.data:
        np.testing.assert_array_equal(seen_X, X)
        np.testing.assert_array_equal(seen_y, y)
        assert metadata == (None if weights is None else {"sample_weight": weights})


@pytest.mark.parametrize("classes", [2, 4])
def test_the_estimator_in_the_making_predicts(classes):
    recorder, (X, y) = Recorder(), clouds(classes)
    svm = fit(recorder, classes)
    assert len(recorder.fitted) == sum(history[-1].round for history in svm.histories_)
    for early in recorder.fitted:
        assert early is not svm and set(early.predict(X)) <= set(y)
        assert early.coef_.shape == svm.coef_.shape and early.intercept_.shape == svm.intercept_.shape
        assert early.certificate_.dual <= early.certificate_.primal
    last = recorder.fitted[-1]
    np.testing.assert_array_equal(last.coef_, svm.coef_)
    np.testing.assert_array_equal(last.predict(X), svm.predict(X))
    assert last.certificate_ == svm.certificate_


def test_the_estimator_in_the_making_is_what_stopping_there_would_give():
    recorder = Recorder(stop_after=3)
    fit(recorder, tol=0.0)
    for round_, early in enumerate(recorder.fitted, start=1):
        with pytest.warns(match="limit of"):
            stopped = LinearSVC(random_state=0, tol=0.0, max_rounds=round_).fit(*clouds(2))
        np.testing.assert_array_equal(early.coef_, stopped.coef_)
        assert early.certificate_ == stopped.certificate_


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 4])
def test_a_kernel_estimator_in_the_making(classes, multi_class):
    """Its support vectors so far; problems that have not begun vote for nobody."""
    recorder, (X, y) = Recorder(), clouds(classes)
    settings = {"multi_class": multi_class, "gamma": 0.1, "tol": 1e-6, "solver_options": {"size": 32}}
    svm = SVC(**settings).set_callbacks(recorder).fit(X, y)
    problems = {2: 1, 4: 6 if multi_class == "ovo" else 4}[classes]
    assert sum(event[:2] == ("begin", "problem") for event in recorder.events) == problems
    assert len(recorder.fitted) == sum(history[-1].round for history in svm.histories_) > problems
    for early in recorder.fitted[:: max(1, len(recorder.fitted) // 5)]:
        assert set(early.predict(X)) <= set(y) and early.n_support_.sum() == early.support_.size
        assert early.decision_function(X).shape == svm.decision_function(X).shape
        assert early.certificate_.dual <= early.certificate_.primal
    last = recorder.fitted[-1]
    np.testing.assert_array_equal(last.dual_coef_, svm.dual_coef_)
    np.testing.assert_array_equal(last.decision_function(X), svm.decision_function(X))
    assert last.certificate_ == svm.certificate_
    alone = SVC(**settings).fit(X, y)
    np.testing.assert_array_equal(alone.dual_coef_, svm.dual_coef_)
    assert alone.kernel_evaluations_ == svm.kernel_evaluations_


def test_a_kernel_estimator_can_be_ended():
    svm = SVC(tol=1e-9, solver_options={"size": 8}).set_callbacks(Recorder(stop_after=2, look=False)).fit(*clouds(4))
    assert {status.code for status in svm.statuses_} == {"interrupted"}
    assert [history[-1].round for history in svm.histories_] == [2] * 6


# ------------------------------------------------------------------------------------------------- what they can do


def test_one_that_answers_true_ends_the_fit():
    recorder = Recorder(stop_after=2)
    svm = fit(recorder, tol=0.0)
    assert svm.status_.code == "interrupted" and "stopped by an observer" in str(svm.status_)
    assert svm.history_[-1].round == 2 and ("end", "fit", 0) in recorder.events
    np.testing.assert_array_equal(recorder.fitted[-1].coef_, svm.coef_)


def test_each_problem_is_ended_by_itself():
    svm = fit(Recorder(stop_after=1), classes=4, tol=0.0)
    assert {status.code for status in svm.statuses_} == {"interrupted"}
    assert [history[-1].round for history in svm.histories_] == [1] * 4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_one_ends_the_fit_and_is_followed_by_its_teardown(n_jobs):
    class Broken(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise ZeroDivisionError("the callback's own fault")

    broken = Broken()
    with pytest.raises(ZeroDivisionError, match="the callback's own fault"):
        fit(broken, classes=4, n_jobs=n_jobs)
    assert broken.events[-1] == ("teardown", "fit", 0) and ("end", "fit", 0) not in broken.events


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", [Recorder, Blind])
def test_being_watched_changes_nothing(classes, kind):
    watched, alone = fit(kind(), classes), LinearSVC(random_state=0, tol=1e-4).fit(*clouds(classes))
    np.testing.assert_array_equal(watched.coef_, alone.coef_)
    assert watched.certificates_ == alone.certificates_ and watched.n_iter_ == alone.n_iter_
    assert [len(history) for history in watched.histories_] == [len(history) for history in alone.histories_]
    assert vars(watched).keys() - vars(alone).keys() == {"_skl_callbacks"}


def test_who_wants_no_estimator_pays_for_none(monkeypatch):
    loop = importlib.import_module("slackwater.training.run")
    calls = []
    true_certify = loop.certify
    monkeypatch.setattr(loop, "certify", lambda *arguments: (calls.append(1), true_certify(*arguments))[1])
    counts = []
    for watcher in (None, Blind(), Recorder()):
        calls.clear()
        svm = LinearSVC(random_state=0, tol=1e-4)
        (svm.set_callbacks(watcher) if watcher else svm).fit(*clouds(2))
        counts.append(len(calls))
    assert counts[0] == counts[1] <= counts[2] and svm.history_[-1].round > len(svm.history_)


def test_without_callbacks_no_task_is_made(monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("nobody has asked to be called back")

    monkeypatch.setattr(LinearSVC, "_init_callback_context", fail)
    svm = LinearSVC(random_state=0).fit(*clouds(2))
    assert svm.status_.converged


def test_an_estimator_with_callbacks_is_copied_like_any_other():
    svm = fit(Blind())
    for other in (copy.deepcopy(svm), pickle.loads(pickle.dumps(svm))):
        np.testing.assert_array_equal(other.coef_, svm.coef_)
    assert clone(svm).get_params() == svm.get_params()


# ------------------------------------------------------------------------------------------ those of scikit-learn


@pytest.mark.parametrize("classes", [2, 4])
def test_the_progress_bar(classes, capsys):
    svm = fit(callback.ProgressBar(), classes)
    assert svm.status_.converged
    shown = capsys.readouterr().out
    assert "LinearSVC - fit" in shown and shown.count("LinearSVC - problem #") >= (1 if classes == 2 else 4)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_scoring_monitor(classes):
    X, y = clouds(classes)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    svm = LinearSVC(random_state=0, tol=1e-4).set_callbacks(monitor).fit(X, y)
    lines = monitor.get_logs().data
    rounds = [line for line in lines if line["task_name"] == "round"]
    assert len(rounds) == sum(history[-1].round for history in svm.histories_)
    assert all(0.0 <= line["accuracy"] <= 1.0 for line in lines)
    assert rounds[-1]["accuracy"] == svm.score(X, y)
    assert [line["accuracy"] for line in lines if line["task_name"] == "fit"] == [svm.score(X, y)]


def test_the_scoring_monitor_with_weights():
    X, y = clouds(2)
    weights = np.where(y == "ash", 1.0, 3.0)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    svm = LinearSVC(random_state=0).set_callbacks(monitor).fit(X, y, sample_weight=weights)
    assert monitor.get_logs().data[-1]["accuracy"] == pytest.approx(svm.score(X, y, sample_weight=weights))


def test_in_a_pipeline(capsys):
    X, y = clouds(2)
    bar = callback.ProgressBar()
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).set_callbacks(bar).fit(X, y)
    assert pipeline[-1].status_.converged
    assert "Pipeline - fit-final-estimator | LinearSVC - fit" in capsys.readouterr().out
    assert not hasattr(pipeline[-1], "_skl_callbacks")


def test_in_a_grid_search(capsys):
    X, y = clouds(3)
    monitor = callback.ScoringMonitor(scoring="accuracy")
    svm = LinearSVC(random_state=0).set_callbacks(monitor)
    search = GridSearchCV(svm, {"C": [0.1, 1.0]}, cv=2).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "GridSearchCV" in capsys.readouterr().out
    assert search.best_estimator_.status_.converged
    names = {line["estimator_name"] for line in monitor.get_logs().data}
    assert names == {"LinearSVC"}
