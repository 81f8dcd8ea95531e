"""OCAS: the optimised cutting plane algorithm.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + sum_i p_i max(0, 1 - y_i <w, x_i>),  p_i = lambda C_i.
Update     w_t <- the minimum of the regulariser and the cuts;  k <- argmin_{k >= 0} P(w_b + k (w_t - w_b)), exactly;
           w_b <- w_b + k (w_t - w_b), its margins by the same rule;
           the next cut is the one at w_c = (1 - mu) w_b + mu w_t:  c_i = [y_i <w_c, x_i> <= 1]  (Algorithm 2).
           P(w_b) falls and D rises in every round. mu = 1 without the search is SVM-perf.
Model      w_b.

Franc, Sonnenburg. Optimized cutting plane algorithm for support vector machines. ICML 2008; JMLR 10, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.objective.problem import LinearProblem
from slackwater.solvers.cuts import Bundle
from slackwater.solvers.linear.cutting_planes import CutsState, CuttingPlanes, along_the_line


@dataclass(frozen=True)
class OCAS(CuttingPlanes):
    """Cutting planes with an exact line search; ``mu`` is the papers', ``buffer`` the most cuts that are kept."""

    name: ClassVar[str] = "ocas"
    paper: ClassVar[str] = "Franc, Sonnenburg, ICML 2008; JMLR 2009"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    rule: ClassVar[str] = "C1"

    mu: float = 0.1
    buffer: int = 2000
    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.mu <= 1.0:
            raise ValueError(f"mu must lie in (0, 1], got {self.mu}")

    def new_cuts(self, problem: LinearProblem) -> Bundle:
        """The papers' buffer."""
        return Bundle.of(problem, self.buffer)

    def follow(self, problem: LinearProblem, state: CutsState) -> None:
        """The line search, and the cut a little beyond its end."""
        along_the_line(problem, state, self.mu)
