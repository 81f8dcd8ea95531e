"""SVM-perf: the one-slack cutting plane method.

Problem    min over w, xi >= 0 of  lambda/2 ||w||^2 + xi  subject to, for all c in {0,1}^n,
           sum_i p_i c_i y_i <w, x_i>  >=  sum_i p_i c_i - xi,      p_i = lambda C_i, 1/n without weights:
           the same optimum as lambda/2 ||w||^2 + sum_i p_i max(0, 1 - y_i <w, x_i>).
Update     (w, xi) <- the optimum over the constraints kept so far;
           c_i <- [y_i <w, x_i> <= 1], the constraint that w violates most, is added (Algorithm 3).
           Its violation is P(w) - D, so the gap at the end is the tolerance of the paper.
Model      the w with the smallest P; P rises and falls from round to round.

Joachims. Training linear SVMs in linear time. KDD 2006; with Finley, Yu, Machine Learning 77, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.objective.problem import LinearProblem
from slackwater.solvers.cuts import Bundle
from slackwater.solvers.linear.cutting_planes import CutsState, CuttingPlanes, at_the_minimum


@dataclass(frozen=True)
class SVMPerf(CuttingPlanes):
    """One-slack cutting planes; ``threads`` share the sweeps, ``cuts`` is the most that are kept."""

    name: ClassVar[str] = "svm-perf"
    paper: ClassVar[str] = "Joachims, KDD 2006; with Finley, Yu, Machine Learning 2009"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C1"

    threads: int = 1
    cuts: int = 2000

    def new_cuts(self, problem: LinearProblem) -> Bundle:
        """All constraints."""
        return Bundle.of(problem, self.cuts)

    def follow(self, problem: LinearProblem, state: CutsState) -> None:
        """The constraint that w violates most."""
        at_the_minimum(problem, state)
