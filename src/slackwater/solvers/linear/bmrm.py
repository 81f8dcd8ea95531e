"""BMRM: the bundle method for regularised risk minimisation.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + R(w),  R(w) = sum_i p_i l(y_i <w, x_i>) >= 0,  p_i = lambda C_i.
Update     at w_t the subgradient g of R and the offset b = R(w_t) - <g, w_t> give the cut R >= <g, .> + b;
           w_{t+1} <- argmin of  lambda/2 ||w||^2 + max over the cuts and 0 of <g_j, w> + b_j, in one of three ways:
           "qp"                  its dual, a quadratic program on the simplex (Algorithm 1);
           "dual-line-search"    one aggregate cut; the dual along the line to the new one, in O(n + d) memory
                                 (Algorithm 3): w = -g~/lambda,  (g~, b~) <- (1 - eta)(g~, b~) + eta (g, b);
           "primal-line-search"  as "qp", then the best point w_b between the last one and w_t, and the cut there. At
                                 a corner of P it is the cut on the side of w_t: the limit mu -> 0 of OCAS.
Model      the point with the smallest P, which rises and falls but for the primal line search.

Smola, Vishwanathan, Le. Bundle methods for machine learning. NIPS 2007; Teo, Vishwanathan, Smola, Le. Bundle methods
for regularized risk minimization. JMLR 11, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from slackwater.objective.problem import LinearProblem
from slackwater.solvers.cuts import Aggregate, Bundle
from slackwater.solvers.linear.cutting_planes import CutsState, CuttingPlanes, along_the_line, at_the_minimum

VARIANTS = ("qp", "dual-line-search", "primal-line-search")
_ASIDE = 1e-8  # a step that small decides which side of a corner is cut, and changes nothing else


@dataclass(frozen=True)
class BMRM(CuttingPlanes):
    """Bundle method for every loss; ``variant`` is qp, dual-line-search or primal-line-search."""

    name: ClassVar[str] = "bmrm"
    paper: ClassVar[str] = "Smola, Vishwanathan, Le, NIPS 2007; Teo, Vishwanathan, Smola, Le, JMLR 2010"
    rule: ClassVar[str] = "C1"

    variant: str = "qp"
    threads: int = 1
    cuts: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in VARIANTS:
            raise ValueError(f"variant={self.variant!r} is not known; the variants are {', '.join(VARIANTS)}")

    def new_cuts(self, problem: LinearProblem) -> Bundle | Aggregate:
        """All cuts, or their mixture."""
        return Aggregate.of(problem) if self.variant == "dual-line-search" else Bundle.of(problem, self.cuts)

    def follow(self, problem: LinearProblem, state: CutsState) -> None:
        """The cut at the model's minimum, or at the best point on the way there."""
        if self.variant == "primal-line-search":
            along_the_line(problem, state, _ASIDE)
        else:
            at_the_minimum(problem, state)
