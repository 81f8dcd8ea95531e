"""Chunking: the problem of the support vectors and the worst violators, over and over.

Problem    max over lower <= beta <= upper (and sum beta = 0 with a free bias) of
           W(beta) = target sum |beta| - beta'K beta/2 - sum d beta^2/2,   v = its derivative (kernel_solver.py).
Update     the chunk: all with beta != 0 and the M others that violate the optimality conditions most, M as many as the
           support vectors but at least ``least``. SMO inside the chunk until a tenth is left of the violation that all
           rows had; then v of all rows is built anew, what came to 0 drops out, and the next chunk is chosen.
State      beta, v, the chunk.
Cost       SMO's in the chunk (see smo.py); the rows of the chunk must fit into memory to be computed once. A round is
           a chunk, or as many steps in it as a round of SMO has.
Certificate  C1: beta with zeros outside of the chunk is a point of the whole dual.

Vapnik. Estimation of Dependences Based on Empirical Data. Springer 1982.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.kernel.active_set import (
    ActiveSetSolver,
    ActiveState,
    climb,
    eased,
    most_violating,
    negligible,
    part_of,
    put_back,
    unshrink,
    violation,
)
from slackwater.solvers.kernel.kernel_solver import DualState

_AHEAD = 256  # rows computed at a time: most of a chunk's are going to be needed


@dataclass
class ChunkState(ActiveState):
    """The point, the chunk as the active rows (empty: choose one), and the violation to solve it to."""

    goal: float = 0.0


@dataclass(frozen=True)
class Chunking(ActiveSetSolver):
    """Chunks of the support vectors and at least ``least`` violators."""

    name: ClassVar[str] = "chunking"
    paper: ClassVar[str] = "Vapnik, 1982"

    least: int = 50

    def __post_init__(self) -> None:
        if self.least < 2:
            raise ValueError(f"least must be at least 2, got {self.least}")

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> ChunkState:
        """No chunk yet; every v is known."""
        return ChunkState.around(point)

    def work(self, problem: KernelProblem, state: ChunkState) -> None:
        """A chunk, or a part of the way in it."""
        pairs = problem.bias == "free"
        if state.active.size == problem.n_rows:
            self._choose(problem, state)
        part = part_of(problem, state)
        steps = climb(problem, part, state.goal, True, _AHEAD)
        put_back(state, part)
        done = state.counters
        done.updates += steps
        done.inner_products += 2 * steps * part.ids.size
        done.epochs += 1
        if violation(part, pairs) <= state.goal:
            unshrink(problem, state)

    def review(self, problem: KernelProblem, state: ChunkState, certificate: Any) -> None:
        """Not there yet; inside a chunk this changes nothing."""
        if state.active.size == problem.n_rows:
            super().review(problem, state, certificate)

    def _choose(self, problem: KernelProblem, state: ChunkState) -> None:
        """The next chunk."""
        whole, pairs = part_of(problem, state), problem.bias == "free"
        state.goal = eased(whole, pairs)
        support = whole.beta != 0.0
        count = max(self.least, int(support.sum()))
        if violation(whole, pairs) > negligible(whole):
            support[most_violating(whole, pairs, ~support, count)] = True
        state.active = np.flatnonzero(support)
