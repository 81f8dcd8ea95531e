"""How the conformance suite runs a kernel solver: round by round, or to the gap that its certificate can reach."""

import math

from conformance.problems import Case
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.training import Limits, Run, run

#: Relative gaps that a rule's bound reaches within ``ROUNDS`` rounds.
REACHED = {"C1": 1e-7, "C2": 1e-2, "C4": 3e-2, "C5": 3e-2, "C6": 1e-7}
ROUNDS = 300


def reach(case: Case) -> float:
    """The certified relative gap to be expected; any where the solver is no optimiser."""
    return REACHED[case.cls.rule.partition(" ")[0]] if case.cls.optimises else math.inf


def limits(case: Case) -> Limits:
    """Rounds to reach what is to be expected, or what can be got."""
    return Limits(tol=reach(case) if case.cls.optimises else 1e-7, max_rounds=ROUNDS)


def settle(case: Case, problem: KernelProblem, seed=0, alpha=None) -> Run:
    """Train until the gap is as small as it is to be, and insist that it is."""
    found = run(problem, case.new(), limits(case), rng=seed, alpha=alpha)
    assert found.certificate.relative_gap <= reach(case), found.status
    return found


def path(case: Case, problem: KernelProblem, rounds, seed=0) -> Run:
    """So many rounds, each certified."""
    return run(problem, case.new(), Limits(tol=0.0, max_rounds=rounds, certify_every=1), rng=seed)
