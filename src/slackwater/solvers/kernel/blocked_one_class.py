"""Blocked SMO for one class: the working sets of blocked-smo, its variables bound by the sum they keep.

Problem    max over 0 <= alpha_i <= s_i, sum alpha = m = nu sum s, of  W(alpha) = -alpha'K alpha / 2.
Update     v = -K alpha, the derivative; steps on pairs keep the sum. The rest is blocked-smo.
State      alpha, v, the last working set. The start lays the mass m on the first examples, as LIBSVM does: every
           feasible alpha has nu n variables that are not 0, so their kernel rows are needed in any case.
Cost       that of blocked-smo.
Certificate  C1.

Schoelkopf, Platt, Shawe-Taylor, Smola, Williamson, Neural Computation 13, 2001; Chang, Lin, 2011 (LIBSVM).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.one_class import OneClassProblem, primal_of, put_into_box, subgradient
from slackwater.rows import inner
from slackwater.solvers.contract import Counters
from slackwater.solvers.kernel.blocked_smo import BlockedSMO, BlockedState


@dataclass(frozen=True)
class BlockedOneClass(BlockedSMO):
    """Sequential minimal optimisation of one class on working sets of at most ``size`` variables."""

    name: ClassVar[str] = "blocked-one-class"
    paper: ClassVar[str] = "Schoelkopf et al., Neural Computation 2001; Cotter, Srebro, Keshet, KDD 2011"
    task: ClassVar[str] = "one-class"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    biases: ClassVar[tuple[str, ...]] = ("free",)

    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> BlockedState:
        """The mass on the first examples, or the given point with its sum made m."""
        nothing, gram = np.zeros(problem.n_rows), problem.gram
        point = None if alpha is None else put_into_box(problem, alpha)
        point = subgradient(problem, nothing) if point is None else point
        requests, evaluations = gram.requests, gram.evaluations
        v = -gram.times(point)
        done = Counters(row_requests=gram.requests - requests, kernel_evaluations=gram.evaluations - evaluations)
        return BlockedState(done, point, nothing, problem.costs.copy(), nothing.copy(), v)

    def work(self, problem: Any, state: BlockedState) -> None:
        """One working set."""
        self.work_out(problem, state)

    def model(self, problem: Any, state: BlockedState) -> Expansion:
        """w(alpha), with the best rho."""
        return Expansion(state.beta.copy(), _values(problem, state)[2])

    def estimate(self, problem: Any, state: BlockedState) -> float:
        """The gap itself, up to rounding."""
        primal, dual, _ = _values(problem, state)
        return problem.certificate(max(primal, dual), dual).relative_gap


def _values(problem: OneClassProblem, state: BlockedState) -> tuple[float, float, float]:
    """J with the best bias, W(alpha), and that bias, up to rounding."""
    square = -inner(state.beta, state.v)
    primal, bias = primal_of(problem, square, -state.v)
    return primal, -0.5 * square, bias
