"""How the conformance suite runs a solver: round by round, or to the gap that its certificate can reach."""

import math
from functools import cache

import numpy as np
import pytest

from conformance.problems import Case
from problems import dense
from reference.penalised_reference import conjugate_value, penalty_value
from reference.qp_reference import loss_value
from slackwater.objective import LinearProblem, Problem
from slackwater.solvers.contract import Solver
from slackwater.training import Limits, Run, run

#: Relative gaps that a rule's bound reaches within ``ROUNDS`` rounds: averages over epochs come close like 1/T.
REACHED = {"C2": 3e-3}
REACHED_WITHOUT_CURVATURE = {"C2": 2e-2}  # and where the penalty has no parabola like 1/sqrt(T)
EXACT = 1e-7
ROUNDS = 100
ROUNDING = 1e-9


def reach(case: Case) -> float:
    """The certified relative gap to be expected of a solver on a small problem; any where it is no optimiser."""
    reached = REACHED if case.penalty.square else REACHED_WITHOUT_CURVATURE
    return reached.get(case.cls.rule, EXACT) if case.cls.optimises else math.inf


def limits(case: Case) -> Limits:
    """Rounds to reach what is to be expected, or what can be got."""
    return Limits(tol=reach(case) if case.cls.optimises else EXACT, max_rounds=ROUNDS)


def settle(case: Case, problem: LinearProblem, seed=0, alpha=None) -> Run:
    """Train until the gap is as small as it is to be, and insist that it is."""
    run_ = run(problem, case.new(), limits(case), rng=seed, alpha=alpha)
    assert run_.certificate.relative_gap <= reach(case), run_.status
    return run_


def path(case: Case, problem: LinearProblem, rounds: int, seed=0, tol=0.0) -> Run:
    """So many rounds, each certified, if they do not reach the gap ``tol`` before."""
    return run(problem, case.new(), Limits(tol=tol, max_rounds=rounds, certify_every=1), rng=seed)


def weights_on_the_way(case: Case, problem: LinearProblem, rounds: int, seed=0) -> np.ndarray:
    """The weights after every round, one line each."""
    return way_of(case.new(), problem, rounds, seed)


def way_of(solver: Solver, problem: Problem, rounds: int, seed=0) -> np.ndarray:
    """The same of any solver."""
    state = solver.start(problem, np.random.default_rng(seed))
    lines = []
    for _ in range(rounds):
        solver.advance(problem, state)
        lines.append(solver.model(problem, state).weights(problem.rows.bias))
    return np.array(lines)


def close(values, rel: float = ROUNDING):
    """Equal up to rounding, measured by the largest of the values."""
    return pytest.approx(values, rel=rel, abs=rel * np.abs(values).max(initial=0.0))


def agree(*runs: Run) -> bool:
    """Whether one optimum lies between all bounds and all primal values."""
    highest = max(run_.certificate.dual for run_ in runs)
    lowest = min(run_.certificate.primal for run_ in runs)
    return highest <= lowest + ROUNDING * max(lowest, 1e-3)


def primal_by_definition(problem: LinearProblem, weights: np.ndarray) -> float:
    """P(w) in plain NumPy."""
    margins = problem.labels * (dense(problem) @ weights)
    losses = problem.costs @ loss_value(problem.loss, margins)
    return problem.regularisation * (penalty_value(problem.penalty, penalised(problem, weights)) + losses)


def dual_by_definition(problem: LinearProblem, alpha: np.ndarray) -> float:
    """D(alpha) in plain NumPy."""
    w = (alpha * problem.labels) @ dense(problem)
    rounding_off = 0.5 * problem.loss.width * (alpha @ (alpha / problem.costs))
    conjugate = conjugate_value(problem.penalty, penalised(problem, w))
    return problem.regularisation * (problem.loss.target * alpha.sum() - rounding_off - conjugate)


def penalised(problem: LinearProblem, weights: np.ndarray) -> np.ndarray:
    """The weights that the penalty sees."""
    return weights[:-1] if problem.bias == "free" else weights


@cache
def at_zero(loss) -> float:
    """l(0) = P(0)."""
    return float(loss_value(loss, np.float64(0.0)))
