"""Kernel problems and runs on them, for the tests of single kernel solvers."""

import numpy as np

import golden
from conformance.kernel_problems import build, whole
from conformance.problems import Case, Table
from problems import random_table
from slackwater.objective import certify, hinge
from slackwater.objective.kernels import Kernel
from slackwater.solvers.registry import solver_classes


def clouds(n, d=4, seed=5, weighted=True) -> Table:
    """Two overlapping clouds of rows that share no value."""
    rng = np.random.default_rng(seed)
    X, labels = random_table(rng, n, d, density=1.0)
    return Table(X, labels, rng.uniform(0.3, 3.0, n) if weighted else None)


def case_of(name, loss, bias, **changed) -> Case:
    return Case(name, solver_classes("kernel")[name], loss, bias, tuple(changed.items()))


def problem_of(table, loss, bias, kernel=None, **options):
    """A problem on a table, by default with a Gaussian kernel."""
    return build(case_of("blocked-smo", loss, bias), table, kernel or Kernel("rbf", gamma=0.3), **options)


def golden_problem():
    """The reference machine of ``golden.SVM`` over the linear kernel."""
    table = Table(np.array(golden.SVM.z), np.ones(4))
    return problem_of(table, hinge(), "none", Kernel("linear"), C=golden.SVM.C)


def derivative(problem, beta) -> np.ndarray:
    """v from its definition."""
    loss = problem.loss
    return problem.labels * loss.target - whole(problem) @ beta - loss.width / problem.costs * beta


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(0.0)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


def train(problem, solver, gap=1e-9, rounds=200, seed=0):
    """Rounds until the certified gap is that small: the state, the certificates on the way."""
    state, found = solver.start(problem, np.random.default_rng(seed)), []
    for _ in range(rounds):
        solver.advance(problem, state)
        found.append(certificate(problem, solver, state))
        if found[-1].relative_gap <= gap:
            break
        solver.review(problem, state, found[-1])
    return state, found
