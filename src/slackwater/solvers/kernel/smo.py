"""SMO: sequential minimal optimisation, the two variables that gain most a step; one variable without a free bias.

Problem    max over lower <= beta <= upper (and sum beta = 0 with a free bias) of
           W(beta) = target sum |beta| - beta'K beta/2 - sum d beta^2/2,   v = its derivative (kernel_solver.py).
Update     i = argmax v over those that may go up; b_t = v_i - v_t, a_t = K_ii + K_tt - 2 K_it + d_i + d_t,
           j = argmax b_t^2/a_t over those that may go down with b_t > 0 (WSS2 of Fan, Chen, Lin), or by first order
           j = argmin v (Keerthi et al.); beta_i += s, beta_j -= s, s = b_j/a_j as far as both boxes let it.
           Without a free bias: move_i = clip(v_i/(K_ii + d_i)) to the box; the i with the largest exact gain
           move_i v_i - move_i^2 (K_ii + d_i)/2, or with the largest violation.
Shrinking  every min(n, 1000) steps those leave that sit at an end of their box with v beyond the extremes. When a tenth
           is left of the violation that all rows had, their v is built anew from rows of free variables and of those
           that came to the far end or left it, and all take part again.
State      beta, v, the active rows, the sum of the rows at the far end of their box.
Cost       two kernel rows (one) and O(active rows) a step. Rows are computed in blocks, with those of the worst
           violators; a round is a few hundred steps on 30,000 rows.
Certificate  C1.

Platt, in Advances in Kernel Methods, 1998; Keerthi, Shevade, Bhattacharyya, Murthy, Neural Computation 13, 2001; Fan,
Chen, Lin, JMLR 6, 2005; shrinking: Joachims, in Advances in Kernel Methods, 1998; Chang, Lin, LIBSVM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.kernel.active_set import (
    ActiveSetSolver,
    ActiveState,
    climb,
    eased,
    leave,
    part_of,
    put_back,
    settled,
)
from slackwater.solvers.kernel.kernel_solver import DualState

_STEPS_TO_SHRINK = 1000


@dataclass
class SMOState(ActiveState):
    """The point, its active rows, and the steps since rows last left."""

    steps: int = 0


@dataclass(frozen=True)
class SMO(ActiveSetSolver):
    """Sequential minimal optimisation; ``ahead`` rows are computed at a time."""

    name: ClassVar[str] = "smo"
    paper: ClassVar[str] = "Platt, 1998; Fan, Chen, Lin, JMLR 2005"

    second_order: bool = True
    shrinking: bool = True
    ahead: int = 64

    def __post_init__(self) -> None:
        if self.ahead < 2:
            raise ValueError(f"ahead must be at least 2, got {self.ahead}")

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> SMOState:
        """All rows active."""
        return SMOState.around(point)

    def work(self, problem: KernelProblem, state: SMOState) -> None:
        """Some hundred steps."""
        part = part_of(problem, state)
        steps = climb(problem, part, eased(part, problem.bias == "free"), self.second_order, self.ahead)
        put_back(state, part)
        state.counters.updates += steps
        state.counters.inner_products += 2 * steps * part.ids.size
        state.counters.epochs += 1
        state.steps += steps
        if self.shrinking:
            pairs, due = problem.bias == "free", state.steps >= min(problem.n_rows, _STEPS_TO_SHRINK)
            going = settled(part, pairs) if due else np.zeros(part.ids.size, dtype=bool)
            came_back = leave(problem, state, part, going)
            state.steps = _STEPS_TO_SHRINK if came_back else state.steps * (not due)
