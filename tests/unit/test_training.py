"""The one training loop: how runs end, which model they return, and when certificates are drawn."""

from __future__ import annotations

import importlib
import math
import threading

import numpy as np
import pytest

from problems import BIASES, optimum, random_problem
from reference.qp_reference import loss_value
from scripted import Clock, Notes, Scripted, Step
from slackwater.objective import hinge, linear_problem, lower_bound, primal_value, squared_hinge
from slackwater.objective.certificate import BoxPoint
from slackwater.rows import as_matrix, as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.training import ADVICE, Holdout, Limits, run

LOOP = importlib.import_module("slackwater.training.run")  # the package's own ``run`` is the function
NEVER = Limits(tol=0.0)

#: Steps that end before the optimum, at a quarter of the way.
QUARTER = (Step(0.1, 0.1), Step(0.25, 0.25))


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The clock of the loop."""
    clock = Clock()
    monkeypatch.setattr(LOOP, "time", clock.module)
    return clock


def toy(bias="penalised"):
    return random_problem(3, hinge(), bias)


def primal_at(problem, share: float) -> float:
    """P on the way from zero to the optimum."""
    return primal_value(problem, share * optimum(problem).w)


def dual_at(problem, share: float) -> float:
    """D on the way from zero to the optimum."""
    return lower_bound(problem, BoxPoint(share * optimum(problem).alpha))


def objective(problem, model) -> float:
    """P of a model as it stands, its own intercept included."""
    margins = problem.labels * model.decision_values(as_matrix(problem.rows))
    losses = problem.costs @ loss_value(problem.loss, margins)
    return problem.regularisation * (0.5 * problem.squared_norm(model.weights(problem.rows.bias)) + losses)


def honest(problem, answer) -> bool:
    """The certificate is the returned model's and holds: P of the model, D of the dual point, D <= P* <= P."""
    certificate = answer.certificate
    assert certificate.primal == pytest.approx(objective(problem, answer.model), rel=1e-12)
    bound = 0.0 if answer.alpha is None else lower_bound(problem, BoxPoint(answer.alpha))
    assert certificate.dual == pytest.approx(bound, rel=1e-12, abs=1e-15)
    best = optimum(problem).primal
    return certificate.dual <= best * (1 + 1e-12) and best <= certificate.primal * (1 + 1e-12)


# ------------------------------------------------------------------------------------------------- how runs end


@pytest.mark.interpreted
@pytest.mark.parametrize("bias", BIASES)
def test_a_run_ends_when_the_certified_gap_is_reached(bias):
    problem = toy(bias)
    answer = run(problem, Scripted([Step(0.5, 0.5), Step(1.0, 1.0, 0.0)]), Limits(tol=1e-6))
    assert answer.status.code == "converged" and answer.status.converged and not answer.status.limited
    assert answer.certificate.relative_gap <= 1e-6 and answer.rounds == answer.epochs == 2
    assert str(answer.status) == f"gap {answer.certificate.relative_gap:.2g} <= 1e-06 after 2 rounds"
    assert honest(problem, answer)


def test_an_estimate_alone_never_ends_a_run():
    answer = run(toy(), Scripted([Step(0.1, 0.1, 0.0)]), Limits(tol=1e-3, max_rounds=20))
    assert answer.status.code == "max_rounds"
    assert answer.certificate.relative_gap > 1e-3


def test_the_limit_of_rounds():
    problem = toy()
    answer = run(problem, Scripted(QUARTER), Limits(max_rounds=5))
    assert (answer.status.code, answer.rounds, answer.history[-1].round) == ("max_rounds", 5, 5)
    assert str(answer.status).startswith("limit of 5 rounds, gap ")
    assert answer.status.limited and honest(problem, answer)
    assert answer.certificate.primal == pytest.approx(primal_at(problem, 0.25))


def test_the_gap_goes_before_a_limit_that_is_met_in_the_same_round():
    answer = run(toy(), Scripted([Step(1.0, 1.0)]), Limits(tol=1e-6, max_rounds=1))
    assert answer.status.code == "converged"


def test_the_limit_of_kernel_evaluations():
    problem = toy()
    answer = run(problem, Scripted(QUARTER, kernel_evaluations=30), Limits(max_kernel_evaluations=100))
    assert (answer.status.code, answer.rounds) == ("max_kernel_evaluations", 4)
    assert "100 kernel evaluations" in str(answer.status) and honest(problem, answer)


@pytest.mark.parametrize("certificate", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("uneven", [False, True])
def test_the_time_limit_is_kept_up_to_what_nobody_can_foresee(clock, certificate, uneven):
    problem, draws = toy(), np.random.default_rng(4)
    lengths = [1.0 + 2.0 * uneven * draws.random() for _ in range(100)]

    class Slow(Scripted):
        def model(self, problem, state):
            clock.pass_seconds(certificate)
            return super().model(problem, state)

    solver = Slow(QUARTER, each_round=lambda number: clock.pass_seconds(lengths[number]))
    begin = clock.now
    answer = run(problem, solver, Limits(max_time=20.0))
    taken = clock.now - begin
    assert answer.status.code == "max_time" and honest(problem, answer)
    surprise = max(lengths) - min(lengths)  # a round that takes longer than the last one
    assert 20.0 - 2.0 * (3.0 + certificate) <= taken <= 20.0 + surprise + 2.0 * certificate
    assert f"time limit of 20 s after {answer.rounds} rounds, gap" in str(answer.status)
    assert answer.history[-1].seconds == pytest.approx(sum(lengths[1 : answer.rounds + 1]))


def test_under_a_time_limit_scheduled_certificates_take_a_tenth_of_it_at_most(clock):
    class Slow(Scripted):
        def model(self, problem, state):
            clock.pass_seconds(5.0)
            return super().model(problem, state)

    solver, begin, at = Slow(QUARTER, each_round=lambda number: clock.pass_seconds(1.0)), clock.now, []
    notes = Notes()
    run(toy(), solver, Limits(max_time=200.0), observers=[notes])
    at = [p.seconds for p in notes.rounds if p.record is not None]
    assert len(at) >= 3 and at[1] >= 50.0
    assert clock.now - begin <= 200.0
    unlimited = Slow(QUARTER, each_round=lambda number: clock.pass_seconds(1.0))
    run(toy(), unlimited, Limits(max_rounds=20))
    assert unlimited.looks[:3] == [8, 10, 13]


def test_the_time_limit_counts_on_certificates_that_become_more_work(clock):
    class Growing(Scripted):
        def model(self, problem, state):
            clock.pass_seconds(0.2 * state.counters.epochs)
            return super().model(problem, state)

        def certificate_values(self, problem, state):
            return 0.2 * state.counters.epochs

    solver, begin = Growing(QUARTER, 1, lambda number: clock.pass_seconds(1.0)), clock.now
    run(toy(), solver, Limits(max_time=100.0))
    assert 95.0 <= clock.now - begin <= 100.0


def test_a_time_limit_shorter_than_a_round_allows_one_round(clock):
    solver = Scripted(QUARTER, each_round=lambda number: clock.pass_seconds(5.0))
    answer = run(toy(), solver, Limits(max_time=1e-3))
    assert (answer.status.code, answer.rounds, len(answer.history)) == ("max_time", 1, 1)


def test_a_holdout_whose_error_stops_falling_ends_the_run_with_its_best_model():
    problem = toy()
    better_then_worse = [Step(s, s) for s in (0.2, 0.9, -0.5, 1.0, -0.6, -0.7, -0.8, -0.9)]
    holdout = Holdout(problem.rows, problem.labels)
    limits = Limits(tol=0.0, patience=4, certify_every=1)
    answer = run(problem, Scripted(better_then_worse), limits, holdout=holdout)
    errors = [record.holdout_error for record in answer.history]
    assert answer.status.code == "holdout" and not answer.status.limited
    best = int(np.argmin(errors))
    assert len(errors) == best + 1 + 4 and f"error than {errors[best]:.4g} in 4 looks" in str(answer.status)
    assert holdout.error(answer.model.weights(problem.rows.bias)) == errors[best]
    assert answer.certificate.primal == answer.history[best].primal and honest(problem, answer)


def test_without_patience_a_holdout_is_only_watched():
    problem = toy()
    limits = Limits(tol=0.0, max_rounds=6, certify_every=1)
    answer = run(problem, Scripted(QUARTER), limits, holdout=Holdout(problem.rows, problem.labels))
    assert answer.status.code == "max_rounds"
    assert all(0.0 <= record.holdout_error < 1.0 for record in answer.history)


def test_an_event_from_another_thread_interrupts():
    problem, stop = toy(), threading.Event()
    solver = Scripted(QUARTER, each_round=lambda number: stop.set() if number == 3 else None)
    answer = run(problem, solver, NEVER, stop=stop)
    assert (answer.status.code, answer.rounds, answer.history[-1].round) == ("interrupted", 3, 3)
    assert not answer.status.limited and honest(problem, answer)


@pytest.mark.parametrize("certify_every", [None, 1])
def test_an_observer_interrupts(certify_every):
    problem, notes = toy(), Notes(stop_at=5)
    answer = run(problem, Scripted(QUARTER), Limits(tol=0.0, certify_every=certify_every), observers=[notes])
    assert (answer.status.code, answer.rounds, answer.history[-1].round) == ("interrupted", 5, 5)
    assert str(answer.status).startswith("stopped by an observer, gap ") and honest(problem, answer)
    assert len({record.round for record in answer.history}) == len(answer.history)


@pytest.mark.parametrize("broken", [math.nan, math.inf])
@pytest.mark.parametrize("estimate", [math.nan, math.inf])
def test_a_model_that_is_not_finite_ends_the_run_with_the_best_one_before(broken, estimate):
    problem = toy()
    answer = run(problem, Scripted([*QUARTER, Step(broken, broken, estimate)]), Limits(tol=1e-6, certify_every=1))
    assert (answer.status.code, answer.rounds) == ("diverged", 3)
    assert "stopped being finite in round 3" in str(answer.status) and answer.status.limited
    assert np.isfinite(answer.model.coef).all() and np.isfinite(answer.alpha).all()
    assert answer.certificate.primal == pytest.approx(primal_at(problem, 0.25)) and honest(problem, answer)


def test_a_model_that_was_never_finite_leaves_the_zero_model():
    problem = toy("none")
    answer = run(problem, Scripted([Step(math.nan, math.nan, math.nan)]))
    assert (answer.status.code, answer.rounds) == ("diverged", 1)
    assert not answer.model.coef.any() and answer.certificate.primal == 1.0 and honest(problem, answer)


def test_a_run_in_which_nothing_moves_is_stalled():
    problem = toy()
    answer = run(problem, Scripted([Step(0.5, 0.5), Step(0.5, 0.5, moves=False)]), NEVER)
    assert answer.status.code == "stalled" and "nothing moves any more" in str(answer.status)
    assert len(answer.history) <= 3 and honest(problem, answer)


def test_a_gap_that_shrinks_is_no_stall_although_no_weight_is_updated():
    steps = [Step(0.5, 0.5)] + [Step(1 - 0.5**k, 1 - 0.5**k, moves=False) for k in range(2, 30)]
    answer = run(toy(), Scripted(steps), Limits(tol=1e-6, certify_every=1))
    assert answer.status.converged


def test_a_run_at_the_limit_of_float64_is_stalled():
    answer = run(toy(), Scripted([Step(1.0 + 1e-13, 1.0)]), Limits(tol=0.0, certify_every=1))
    assert answer.status.code == "stalled" and "at the limit of float64 after 2 rounds" in str(answer.status)
    assert 0.0 < answer.certificate.relative_gap <= 1e-12


def test_no_gap_at_all_can_be_asked_for():
    answer = run(toy(), DCD(), Limits(tol=0.0), rng=1)
    assert answer.status.code in ("stalled", "converged") and answer.certificate.relative_gap <= 1e-12


def test_a_run_whose_gap_stops_shrinking_is_stalled():
    problem = toy()
    answer = run(problem, Scripted(QUARTER), NEVER)
    assert answer.status.code == "stalled" and "no smaller gap in the last" in str(answer.status)
    assert 200 <= answer.rounds <= 1000 and honest(problem, answer)


def test_slow_progress_is_no_stall():
    problem = toy()
    steps = [Step(1 - 0.5 / number, 1 - 0.5 / number) for number in range(1, 1001)]
    answer = run(problem, Scripted(steps), Limits(tol=0.0, max_rounds=1000))
    assert answer.status.code == "max_rounds"


def test_only_early_ends_come_with_advice():
    assert set(ADVICE) == {"max_time", "max_rounds", "max_kernel_evaluations", "stalled", "diverged"}


# --------------------------------------------------------------------------------------- what the answer is made of


@pytest.mark.interpreted
@pytest.mark.parametrize("bias", BIASES)
def test_the_best_model_is_kept_when_later_ones_are_worse(bias):
    problem = toy(bias)
    answer = run(problem, Scripted([Step(0.8, 0.3), Step(-2.0, 0.1)]), Limits(max_rounds=4, certify_every=1))
    assert answer.certificate.primal == pytest.approx(primal_at(problem, 0.8))
    assert answer.history[-1].primal == pytest.approx(primal_at(problem, -2.0))
    assert honest(problem, answer)


def test_bound_and_model_may_come_from_different_rounds():
    problem = toy()
    steps = [Step(0.1, 0.9), Step(0.9, 0.1), Step(0.2, 0.2)]
    answer = run(problem, Scripted(steps), Limits(max_rounds=6, certify_every=1))
    assert answer.certificate.primal == pytest.approx(primal_at(problem, 0.9))
    assert answer.certificate.dual == pytest.approx(dual_at(problem, 0.9)) and honest(problem, answer)
    np.testing.assert_array_equal(answer.alpha, 0.9 * optimum(problem).alpha)


@pytest.mark.parametrize("bias", BIASES)
def test_the_zero_model_is_the_first_best(bias):
    problem = toy(bias)
    answer = run(problem, Scripted([Step(-5.0, -1.0)]), Limits(max_rounds=2))
    assert answer.certificate.primal == pytest.approx(primal_at(problem, 0.0))
    assert answer.certificate.dual == 0.0 and answer.alpha is None and honest(problem, answer)
    assert str(answer.status).startswith("limit of 2 rounds, absolute gap ")
    assert answer.certificate.rule == ("C1+C7" if bias == "free" else "C1")


def test_a_solver_that_goes_on_cannot_change_the_answer():
    problem = toy()
    states = []

    class Careless(DCD):
        def advance(self, problem, state):
            states.append(state)
            super().advance(problem, state)

    answer = run(problem, Careless(), Limits(tol=1e-3), rng=0)
    before = answer.model.coef.copy(), answer.alpha.copy()
    states[0].average[:], states[0].w[:], states[0].table[:] = 7.0, 7.0, 7.0
    np.testing.assert_array_equal(answer.model.coef, before[0])
    np.testing.assert_array_equal(answer.alpha, before[1])


@pytest.mark.parametrize("solver", [DCD(), SGDS()], ids=lambda solver: solver.name)
def test_the_same_seed_gives_the_same_run_however_long_it_takes(solver, clock):
    problem, draws = random_problem(5, hinge(), "penalised", n=200, d=10), np.random.default_rng()
    answers = []
    for unit in (0.0, 1.0, 50.0):
        watch = Notes()
        watch.after_round = lambda progress, unit=unit: clock.pass_seconds(unit * draws.random())
        answers.append(run(problem, solver, Limits(tol=1e-4, max_rounds=300), rng=8, observers=[watch]))
    first = answers[0]
    for other in answers[1:]:
        assert (other.rounds, other.certificate, other.status) == (first.rounds, first.certificate, first.status)
        np.testing.assert_array_equal(other.model.coef, first.model.coef)
        assert [record.round for record in other.history] == [record.round for record in first.history]


def test_a_dual_point_warm_starts():
    problem = random_problem(5, squared_hinge(), "penalised", n=200, d=10)
    cold = run(problem, DCD(), Limits(tol=1e-8, certify_every=1), rng=0)
    warm = run(problem, DCD(), Limits(tol=1e-8, certify_every=1), rng=0, alpha=cold.alpha)
    assert warm.status.converged and warm.rounds == 1 <= cold.rounds
    assert warm.history[-1].updates < cold.history[-1].updates


def test_what_a_solver_cannot_do_is_said_before_the_first_round():
    notes = Notes()
    with pytest.raises(UnsupportedError, match=r"'sgd-s' does not treat loss 'squared_hinge'; solvers that can: .*dcd"):
        run(random_problem(3, squared_hinge()), SGDS(), observers=[notes])
    assert notes.begun == []


@pytest.mark.parametrize("rows", [1, 2])
def test_the_smallest_problems(rows):
    X = np.array([[1.0, 2.0], [-1.0, 0.5]])[:rows]
    problem = linear_problem(as_rows(X), np.array([1.0, -1.0])[:rows], hinge(), bias="penalised")
    answer = run(problem, DCD(), Limits(tol=1e-9), rng=0)
    assert answer.status.converged and answer.certificate.relative_gap <= 1e-9
