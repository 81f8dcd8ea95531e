"""When the loop draws a certificate: where the solver's estimate promises the gap, on a schedule, and at the end."""

from __future__ import annotations

import math

import pytest

from problems import random_problem
from scripted import Notes, Scripted, Step
from slackwater.objective import hinge
from slackwater.training import Holdout, Limits, run

STAY = (0.25, 0.25)  # where the model and the dual point are, far from the optimum


def looks(step: Step, rounds: int, **limits) -> list[int]:
    """The rounds with a certificate when every round is this step."""
    solver = Scripted([step])
    answer = run(random_problem(3, hinge(), "penalised"), solver, Limits(max_rounds=rounds, **limits))
    assert [record.round for record in answer.history] == solver.looks
    return solver.looks


def gap_of(step: Step) -> float:
    answer = run(random_problem(3, hinge(), "penalised"), Scripted([step]), Limits(max_rounds=1))
    return answer.certificate.relative_gap


def test_without_an_estimate_the_schedule_is_dense():
    assert looks(Step(*STAY), 60) == [8, 10, 13, 17, 22, 28, 35, 44, 55, 60]


def test_with_an_estimate_the_schedule_is_sparse():
    assert looks(Step(*STAY, estimate=5.0), 150) == [8, 32, 128, 150]


def test_the_estimate_calls_for_a_certificate():
    gap = gap_of(Step(*STAY))
    steps = [Step(*STAY, estimate=gap)] * 4 + [Step(1.0, 1.0, estimate=1e-3)]
    solver = Scripted(steps)
    answer = run(random_problem(3, hinge(), "penalised"), solver, Limits(tol=1e-3))
    assert answer.status.converged and solver.looks == [5]


@pytest.mark.parametrize("factor", [0.9, 1.04, 1.06])
def test_beta_says_how_near_to_the_gap_an_estimate_must_be(factor):
    drawn = looks(Step(*STAY, estimate=factor * 1e-3), 7)
    assert drawn[0] == (1 if factor < 1.05 else 7)


def test_a_certificate_teaches_how_far_to_trust_the_estimate():
    gap = gap_of(Step(*STAY))
    # The estimate promises tol, but is a tenth of the truth: the next to be believed is ten times better.
    tol = gap / 10.0
    steps = [Step(*STAY, tol), Step(*STAY, tol), Step(*STAY, tol / 5.0), Step(*STAY, tol / 9.9)]
    solver = Scripted(steps)
    run(random_problem(3, hinge(), "penalised"), solver, Limits(tol=tol, max_rounds=5))
    assert solver.looks[:2] == [1, 4]


def test_an_estimate_above_the_truth_is_corrected_too():
    gap = gap_of(Step(*STAY))
    steps = [Step(*STAY, 10.0 * gap)] * 10 + [Step(0.9, 0.9, 5.0 * gap), Step(1.0, 1.0, gap)]
    solver = Scripted(steps)
    answer = run(random_problem(3, hinge(), "penalised"), solver, Limits(tol=gap / 9.9))
    # Scheduled in round 8, where the gap turns out to be a tenth of the estimate.
    assert solver.looks[:2] == [8, 12] and answer.status.converged


def test_an_estimate_that_is_not_a_number_is_looked_into_at_once():
    assert looks(Step(*STAY, estimate=math.nan), 3) == [1, 2, 3]


@pytest.mark.parametrize(("every", "expected"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6, 7]), (7, [7])])
def test_certify_every(every, expected):
    assert looks(Step(*STAY), 7, certify_every=every) == expected
    assert looks(Step(*STAY, estimate=5.0), 7, certify_every=every) == expected


def test_a_holdout_keeps_the_schedule_dense():
    problem = random_problem(3, hinge(), "penalised")
    solver = Scripted([Step(*STAY, estimate=5.0)])
    run(problem, solver, Limits(max_rounds=20), holdout=Holdout(problem.rows, problem.labels))
    assert solver.looks == [8, 10, 13, 17, 20]


def test_the_solver_is_told_of_certificates_after_which_it_goes_on():
    solver = Scripted([Step(*STAY)])
    run(random_problem(3, hinge(), "penalised"), solver, Limits(max_rounds=12))
    assert solver.looks == [8, 10, 12] and solver.reviews == [8, 10]


def test_an_observer_that_stops_gets_a_last_certificate_once():
    for round_ in (5, 8):
        solver = Scripted([Step(*STAY)])
        run(random_problem(3, hinge(), "penalised"), solver, Limits(tol=0.0), observers=[Notes(stop_at=round_)])
        assert solver.looks == [round_]
