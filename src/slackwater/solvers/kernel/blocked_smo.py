"""Blocked SMO: working sets of hundreds of variables, kernel rows in one block for those that move.

Problem    max over lower <= beta <= upper (and sum beta = 0 with a free bias) of
           W(beta) = target sum |beta| - beta'K beta/2 - sum d beta^2/2,   v = its derivative (kernel_solver.py).
Update     the working set B takes the variables that violate the optimality conditions most, in equal shares those
           with the largest v that may go up and those with the smallest that may go down; half of the last set stays.
           SMO with second-order selection inside B until its violation is a twentieth of what it was;
           v <- v - K[:, B] (change of beta_B): one pass over the rows of those that moved.
State      beta, v, the last working set.
Cost       |B|^2 kernel values; rows, in one block, for those that moved and are not kept; |B| n additions; a round is
           one working set. A member that stays at 0 costs no row: working sets can be large.
Certificate  C1.

The idea: Cotter, Srebro, Keshet, KDD 2011 (GTSVM); Wen, Shi, Li, He, Chen, JMLR 19, 2018 (ThunderSVM).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.kernel.kernel_solver import DualKernelSolver, DualState
from slackwater.solvers.kernel.working_set import improve_pairs, improve_singles

_EASED = 0.05  # of its violation is left when a working set is done
_LONG = 2**30  # entries of the rows of a working set, beyond which it is made smaller
_LEAST = 256
_TINY, _EXACT = 256, 1e-11  # so few rows are brought to rounding error at once
_STEPS = 100  # at most, per member
_TURNS = 100  # at most, of one working set, where it is the whole problem: to rounding error at once


@dataclass
class BlockedState(DualState):
    """The point and the members of the last working set, longest there first."""

    members: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class BlockedSMO(DualKernelSolver):
    """Sequential minimal optimisation on working sets of at most ``size`` variables."""

    name: ClassVar[str] = "blocked-smo"
    paper: ClassVar[str] = "Cotter, Srebro, Keshet, KDD 2011; Wen, Shi, Li, He, Chen, JMLR 2018"
    grows: ClassVar[bool] = True

    size: int = 2048

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ValueError(f"size must be at least 2, got {self.size}")

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> BlockedState:
        """An empty working set."""
        return BlockedState(point.counters, point.beta, point.lower, point.upper, point.ridge, point.v)

    def work(self, problem: KernelProblem, state: BlockedState) -> None:
        """One working set."""
        gram = problem.gram
        B = state.members = self._members(problem, state)
        if B.size == 0:
            return
        K = gram.between(B)
        beta, v = state.beta[B], state.v[B]
        box = state.lower[B], state.upper[B]
        improve = improve_pairs if problem.bias == "free" else improve_singles
        eased = _EXACT if problem.n_rows <= _TINY else _EASED
        tolerance = eased * _violation(beta, *box, v, problem.bias == "free")
        steps = improve(K, state.ridge[B], beta, *box, v, tolerance, _STEPS * B.size)
        change = beta - state.beta[B]
        moved = np.flatnonzero(change)
        state.beta[B] = beta
        gram.keep(B[moved])
        gram.add(B[moved], -change[moved], state.v)
        state.v[B[moved]] -= state.ridge[B[moved]] * change[moved]
        done = state.counters
        done.epochs += 1
        done.updates += int(steps)
        done.inner_products += problem.n_rows

    def work_out(self, problem: Any, state: BlockedState) -> None:
        """One working set; one that is the whole of a tiny problem again, until nothing moves."""
        for _ in range(_TURNS if problem.n_rows <= _TINY else 1):
            updates = state.counters.updates
            BlockedSMO.work(self, problem, state)
            if state.counters.updates == updates:
                break

    def _members(self, problem: KernelProblem, state: BlockedState) -> np.ndarray:
        """The next working set; all of a tiny problem."""
        longest = max(_LEAST, _LONG // problem.n_rows)
        size = int(min(self.size, longest, problem.n_rows, problem.gram.capacity))
        staying = state.members[-(size // 2) :] if state.members.size else state.members
        up, down = state.beta < state.upper, state.beta > state.lower
        if problem.bias == "free":
            highest = state.v[up].max(initial=-np.inf)
            lowest = state.v[down].min(initial=np.inf)
            violation = np.maximum(np.where(up, state.v - lowest, 0.0), np.where(down, highest - state.v, 0.0))
            sides = np.where(up, state.v, -np.inf), np.where(down, -state.v, -np.inf)
        else:
            violation = np.maximum(np.where(up, state.v, 0.0), np.where(down, -state.v, 0.0))
            sides = (violation,)
        if violation.max(initial=0.0) <= 0.0:
            return np.empty(0, dtype=np.int64)
        if problem.n_rows <= min(_TINY, size):
            return np.arange(problem.n_rows)
        violation[staying] = 0.0
        wanted = (size - staying.size) // len(sides)
        fresh = np.unique(np.concatenate([_largest(side, violation, wanted) for side in sides]))
        return np.concatenate((staying, fresh))


def _largest(values: np.ndarray, violation: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` largest values among those that violate anything."""
    candidates = np.flatnonzero((violation > 0.0) & (values > -np.inf))
    if candidates.size <= count:
        return candidates
    return candidates[np.argpartition(-values[candidates], count - 1)[:count]]


def _violation(beta, lower, upper, v, pairs: bool) -> float:
    highest, lowest = v[beta < upper].max(initial=-np.inf), v[beta > lower].min(initial=np.inf)
    return max(highest - lowest, 0.0) if pairs else max(highest, -lowest, 0.0)
