"""Osuna-Girosi: support vector regression on the values of the dense predictor.

Problem    min over wt of  ||wt||^2/2 + sum_i C_i max(0, |<wt, Phi(x_i)> - t_i| - eps),   t_i = f(x_i) - b,
           over all training rows with the teacher's costs C_i; the bias b stays. Dual: over |beta_i| <= C_i
           max  t'beta - eps ||beta||_1 - beta'K beta/2,   wt = sum_i beta_i Phi(x_i).
Update     blocked SMO for regression (blocked_svr.py); eps falls from 2^4 to 2^-16, each started from the last beta.
           eps >= max |t_i| has the answer wt = 0, and wt = w as eps falls to 0.
State      beta.
Cost       that of the regression; the wider the tube, the fewer rows of the kernel matrix.
Certificate  C1 of each regression: sum_i C_i (|e_i| - eps)_+ - beta_i e_i + eps |beta_i|,  e = t - K beta, is its gap.

Osuna, Girosi. Reducing the run-time complexity of support vector machines. ICPR 1998; Advances in Kernel Methods, 1999.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.gram import Gram
from slackwater.objective.kernel_regression import KernelRegressionProblem
from slackwater.objective.problem import Problem
from slackwater.objective.regression import epsilon_insensitive
from slackwater.solvers.contract import Solver
from slackwater.solvers.kernel.blocked_svr import BlockedSVR
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.training import Limits, Run, run

#: The tubes of the published comparison, the widest first: few vectors come before many.
TUBES = tuple(2.0**power for power in range(4, -17, -1))


class Target(NamedTuple):
    """What is imitated: the values without the bias on the rows of a kernel matrix, and the costs of missing them."""

    gram: Gram
    values: np.ndarray
    costs: np.ndarray
    bias: float


@dataclass(frozen=True)
class OsunaGirosi(Sparsifier):
    """Regression on the teacher's values in a tube of half width ``epsilon``; None walks the published 2^4 .. 2^-16.

    ``tol`` is the certified relative gap of each regression.
    """

    name: ClassVar[str] = "osuna-girosi"
    paper: ClassVar[str] = "Osuna, Girosi, ICPR 1998"

    epsilon: float | None = None
    tol: float = 1e-3

    def __post_init__(self) -> None:
        checked_tube(self.epsilon)
        Limits(tol=self.tol)

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor for every tube, the widest first, until they need too many vectors."""
        target = Target(teacher.gram, teacher.values - teacher.bias, teacher.problem.costs, teacher.bias)
        return imitations(target, tubes(self.epsilon), self.tol, most, rng)


def checked_tube(epsilon: float | None) -> None:
    """Raise where the half width of a tube is neither None nor a number of at least 0."""
    if epsilon is not None and not 0.0 <= epsilon < math.inf:
        raise ValueError(f"epsilon must be None or a finite number of at least 0, got {epsilon!r}")


def tubes(epsilon: float | None) -> tuple[float, ...]:
    """This tube alone, or those of the comparison."""
    return TUBES if epsilon is None else (float(epsilon),)


def imitations(
    target: Target, widths: tuple[float, ...], tol: float, most: int, rng: np.random.Generator
) -> Iterator[Small]:
    """The regressions of these tubes, each started from the one before, until one needs more than ``most`` vectors."""
    known: dict[str, Any] = {}
    beta = None
    for epsilon in widths:
        loss = epsilon_insensitive(epsilon)
        problem = KernelRegressionProblem(target.gram, target.values, target.costs, loss, "none", known)
        found = trained(problem, BlockedSVR(), tol, rng, beta)
        model, beta = found.model, found.alpha
        if model.n_support > most:
            return
        yield Small(model.coef[0], target.bias, ids=model.support, certificate=found.certificate)


def trained(
    problem: Problem, solver: Solver, tol: float, rng: np.random.Generator, alpha: np.ndarray | None = None
) -> Run:
    """A run inside a method: one that was interrupted is no answer to go on with."""
    found = run(problem, solver, Limits(tol=tol), rng=rng, alpha=alpha)
    if found.status.code == "interrupted":
        raise KeyboardInterrupt
    return found
