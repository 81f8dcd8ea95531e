"""Large kernel problems begin on growing shares of their rows: the same optimum, honest clocks, budgets and weights."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kernel_runs import clouds, problem_of
from slackwater import SVC
from slackwater.gram import Gram
from slackwater.objective import certify, hinge, squared_hinge
from slackwater.objective.certificate import BoxPoint
from slackwater.solvers.registry import make_solver
from slackwater.training import Limits, Observer, growing, run
from slackwater.training.growing import Growing, grows

SOLVER = make_solver("blocked-smo", size=64)


@pytest.fixture
def small(monkeypatch):
    """Problems of a few hundred rows are large ones."""
    monkeypatch.setattr(growing, "LARGE", 200)
    monkeypatch.setattr(growing, "_LEAST", 20)


class Watching(Observer):
    """Remembers what it is told, and stops after so many rounds."""

    def __init__(self, rounds=None):
        self.rounds, self.seen = rounds, []

    def after_round(self, progress):
        self.seen.append(progress)
        self.latest = progress.latest()
        self.so_far = progress.so_far() if self.rounds is not None else None
        return self.rounds is not None and len(self.seen) >= self.rounds


def problem(loss=None, bias="free", n=600, C=10.0):
    return problem_of(clouds(n), loss or hinge(), bias, C=C)


def stages(problem, seed=0, limits=None, halted=lambda growing: False):
    """Growing to the end, and the rows of every stage."""
    seen, grown = [], Growing(problem, SOLVER, np.random.default_rng(seed), limits or Limits())

    def watch(growing):
        if not seen or seen[-1].size != growing.ids.size:
            seen.append(growing.ids)
        return halted(growing)

    return grown, grown.train(lambda: 0.0, watch), seen


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("loss", [hinge(), squared_hinge()])
def test_the_optimum_is_that_of_a_cold_start(small, monkeypatch, loss, bias):
    limits = Limits(tol=1e-6, max_time=600.0)
    begun = run(problem(loss, bias, n=300, C=1.0), SOLVER, limits, rng=0)
    monkeypatch.setattr(growing, "LARGE", 10**9)
    cold = run(problem(loss, bias, n=300, C=1.0), SOLVER, limits, rng=0)
    assert begun.status.converged and cold.status.converged
    assert begun.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-6)
    assert begun.certificate.dual == pytest.approx(cold.certificate.dual, rel=1e-6)


def test_shares_are_nested_and_have_the_classes_in_equal_parts(small):
    whole = problem()
    _, alpha, seen = stages(whole)
    assert [ids.size for ids in seen] == pytest.approx([20, 80, 300], rel=0.1)
    for smaller, larger in pairwise(seen):
        assert np.isin(smaller, larger).all()
    share = np.mean(whole.labels > 0.0)
    assert np.mean(whole.labels[seen[-1]] > 0.0) == pytest.approx(share, abs=0.01)
    assert not alpha[np.setdiff1d(np.arange(600), seen[-1])].any()


def test_a_rare_class_is_in_every_stage(small):
    table = clouds(600)
    table.labels[:] = -1.0
    table.labels[17] = 1.0
    whole = problem_of(table, hinge(), "free", C=10.0)
    _, alpha, seen = stages(whole)
    assert all(17 in ids for ids in seen)
    assert alpha[17] > 0.0


def test_every_row_keeps_its_own_cost(small):
    whole = problem()
    assert np.ptp(whole.costs) > 1.0
    _, alpha, _ = stages(whole)
    assert (alpha >= 0.0).all() and (alpha <= whole.costs).all()
    full = alpha == whole.costs
    assert full.any() and np.unique(whole.costs[full]).size > 10
    assert abs(alpha @ whole.labels) <= 1e-9 * alpha.sum()


def test_the_last_point_is_optimal_for_its_share_up_to_what_a_stage_leaves(small):
    whole = problem()
    _, alpha, seen = stages(whole)
    ids = seen[-1]
    part = replace(whole, gram=whole.gram.some(ids), labels=whole.labels[ids], costs=whole.costs[ids], known={})
    found = certify(part, np.append(alpha[ids] * whole.labels[ids], 0.0), BoxPoint(alpha[ids])).certificate
    assert found.relative_gap <= 0.1 + 1e-6


def test_the_start_is_certified_for_all_rows_at_no_further_kernel_value(small):
    whole, watching = problem(), Watching()
    whole = replace(whole, gram=Gram(whole.gram.points, 0))  # hardly a row is kept
    stop = threading.Event()
    stop.set()
    answer = run(whole, SOLVER, Limits(max_time=600.0), rng=0, stop=stop, observers=[watching])
    assert answer.status.code == "interrupted" and len(answer.history) == 1
    record = answer.history[0]
    assert record.kernel_evaluations == whole.gram.evaluations
    weights = np.append(answer.alpha * whole.labels, 0.0)
    again = certify(problem(), weights, BoxPoint(answer.alpha)).certificate
    assert answer.certificate.primal == pytest.approx(again.primal, rel=1e-6)
    assert answer.certificate.dual == pytest.approx(again.dual, rel=1e-6)


def test_the_same_seed_gives_the_same_model(small):
    limits = Limits(tol=0.01, max_time=600.0)
    first, second, other = (run(problem(), SOLVER, limits, rng=seed).alpha for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_rounds_seconds_and_work_of_the_stages_are_counted(small):
    whole, watching = problem(), Watching()
    answer = run(whole, SOLVER, Limits(tol=1e-3, max_time=600.0), rng=0, observers=[watching])
    assert [progress.round for progress in watching.seen] == sorted({progress.round for progress in watching.seen})
    assert answer.rounds == len(watching.seen) == watching.seen[-1].round
    assert answer.history[0].round > 1 and answer.history[0].seconds > 0.0
    assert answer.history[-1].updates > answer.history[0].updates > 0
    assert answer.history[-1].kernel_evaluations <= whole.gram.evaluations


def test_observers_see_the_model_of_a_stage_and_can_stop_there(small):
    watching = Watching(rounds=2)
    answer = run(problem(), SOLVER, Limits(tol=1e-6, max_time=600.0), rng=0, observers=[watching])
    assert len(watching.seen) == 2 and answer.status.code == "interrupted"
    assert watching.latest.support.size
    assert watching.so_far.certificate.primal >= answer.certificate.primal >= answer.certificate.dual


def test_a_given_point_and_budgets_of_work_leave_the_stages_out():
    whole = problem_of(clouds(30), hinge(), "free")
    large = growing.LARGE
    try:
        growing.LARGE = 10
        assert grows(whole, SOLVER, Limits(max_time=1.0))
        assert not grows(whole, SOLVER, Limits(max_time=1.0, max_rounds=3))
        assert not grows(whole, SOLVER, Limits(max_time=1.0, max_kernel_evaluations=3))
        assert not grows(whole, make_solver("smo"), Limits(max_time=1.0))
        assert not grows(whole, SOLVER, Limits())
    finally:
        growing.LARGE = large
    assert not grows(whole, SOLVER, Limits(max_time=1.0))


def test_a_warm_start_goes_on_where_it_was(small):
    first = run(problem(), SOLVER, Limits(tol=1e-4), rng=0)
    watching = Watching()
    again = run(problem(), SOLVER, Limits(tol=1e-3), rng=0, alpha=first.alpha, observers=[watching])
    assert again.rounds == 1 and again.certificate.dual >= first.certificate.dual * (1.0 - 1e-9)


def test_without_time_for_more_a_stage_is_the_last(small):
    _, alpha, seen = stages(problem(), limits=Limits(max_time=1e-9))
    assert len(seen) == 1 and alpha.any()
    assert not alpha[np.setdiff1d(np.arange(600), seen[0])].any()


def test_an_unfinished_stage_leaves_the_point_of_the_one_before(small, monkeypatch):
    monkeypatch.setattr(growing, "_UNFINISHED", 0.0)
    _, first, _ = stages(problem(), halted=lambda growing: True)
    assert first.any()  # the first stage's is better than none
    _, alpha, seen = stages(problem(), halted=lambda growing: growing.ids.size > 30)
    assert len(seen) == 2
    assert not alpha[np.setdiff1d(np.arange(600), seen[0])].any()


def test_a_time_limit_ends_with_the_certified_model_of_all_rows(small):
    answer = run(problem(), SOLVER, Limits(tol=1e-9, max_time=1e-6), rng=0)
    assert answer.status.code == "max_time"
    assert 0.0 < answer.certificate.dual < answer.certificate.primal < np.inf


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_svc_with_weights_and_several_classes(small, monkeypatch, multi_class):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(720, 3)), rng.integers(0, 3, 720)
    weights = rng.choice([0.0, 1.0, 2.0], 720)
    settings = {"tol": 1e-6, "multi_class": multi_class, "random_state": 0}
    begun = SVC(**settings).fit(X, y, weights)
    monkeypatch.setattr(growing, "LARGE", 10**9)
    cold = SVC(**settings).fit(X, y, weights)
    for one, other in zip(begun.certificates_, cold.certificates_, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=3e-6)
