"""Kernel SDCA: dual coordinate ascent in random order over kernel rows.

Problem    max over lower <= beta <= upper of
           W(beta) = target sum |beta| - beta'K beta/2 - sum d beta^2/2,   v = its derivative (kernel_solver.py).
Update     for i in a random permutation, or drawn uniformly: beta_i <- clip(beta_i + v_i/(K_ii + d_i)) to its box, the
           exact maximum over beta_i; if it moved, v <- v - K[:, i] (change of beta_i).
State      beta, v, the order of the epoch and the place in it.
Cost       O(1) a visit, one kernel row and n additions a change. The rows of those coming visits that would move now
           are computed in one block. A round is an epoch, several on tiny data, or what a few hundred new rows allow.
Free bias  the constraint sum beta = 0 by the method of multipliers, as in sdca: slopes are v_i - b with
           b = m + s sum beta, s the mean of K_ii, and m becomes b after every epoch.
Certificate  C1.

Hsieh, Chang, Lin, Keerthi, Sundararajan, ICML 2008; Shalev-Shwartz, Zhang. Stochastic dual coordinate ascent methods
for regularized loss minimization. JMLR 14, 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled, next_below, random_state, shuffle
from slackwater.gram import Kept
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import epochs_per_round
from slackwater.solvers.kernel.active_set import WORK
from slackwater.solvers.kernel.kernel_solver import DualKernelSolver, DualState, values
from slackwater.solvers.kernel.working_set import FLAT

_STILL = 1e-12  # a slope below this is no reason to move


class Box(NamedTuple):
    """The dual point as compiled loops take it."""

    beta: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    bend: np.ndarray  # K_ii + d_i
    v: np.ndarray


@dataclass
class VisitState(DualState):
    """The point, the epoch's order and how far it has come, the multiplier of a free bias."""

    bend: np.ndarray
    order: np.ndarray  # uint32
    random: np.ndarray
    stiffness: float  # s
    place: int = 0
    multiplier: float = 0.0  # m
    balance: float = 0.0  # sum beta

    def box(self) -> Box:
        return Box(self.beta, self.lower, self.upper, self.ridge, self.bend, self.v)


@dataclass(frozen=True)
class KernelSDCA(DualKernelSolver):
    """Stochastic dual coordinate ascent; ``ahead`` rows are computed at a time."""

    name: ClassVar[str] = "kernel-sdca"
    paper: ClassVar[str] = "Hsieh et al., ICML 2008; Shalev-Shwartz, Zhang, JMLR 2013"

    replacement: bool = False
    ahead: int = 256

    def __post_init__(self) -> None:
        if self.ahead < 1:
            raise ValueError(f"ahead must be at least 1, got {self.ahead}")

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> VisitState:
        """Before the first epoch."""
        stiffness = 0.0
        if problem.bias == "free":
            mean = float(problem.gram.diagonal.mean())
            stiffness = mean if mean > 0.0 else 1.0
        n = problem.n_rows
        return VisitState(
            point.counters, point.beta, point.lower, point.upper, point.ridge, point.v,
            problem.gram.diagonal + point.ridge, np.arange(n, dtype=np.uint32), random_state(rng), stiffness, n,
        )  # fmt: skip

    def work(self, problem: KernelProblem, state: VisitState) -> None:
        """Epochs, or parts of one, until enough rows came."""
        gram, n, done = problem.gram, problem.n_rows, state.counters
        left, rows = epochs_per_round(problem), max(1, WORK // n)
        while left > 0 and rows > 0:
            if state.place == n:
                _draw(state.order, state.random, self.replacement)
                state.place, state.balance = 0, float(state.beta.sum())
            place = state.place
            offset = state.multiplier + state.stiffness * state.balance
            state.place, changes = visit_all(
                gram.kept, gram.clock, state.box(), state.order, place, offset, state.stiffness
            )
            state.balance = float(state.beta.sum())
            gram.take(changes)
            done.updates += changes
            done.inner_products += changes * n
            if state.place < n:
                rows -= self._fetch(problem, state)
                continue
            left -= 1
            done.epochs += 1
            state.multiplier += state.stiffness * state.balance
            if changes == 0 and place == 0 and problem.bias != "free" and not self.replacement:
                return

    def estimate(self, problem: KernelProblem, state: VisitState) -> float:
        """The gap itself, up to rounding; what rebalancing a free bias's classes will cost is left out."""
        primal, dual, bias = values(problem, state)
        gap = primal - dual + bias * float(state.beta.sum())
        return max(gap, 0.0) / dual if dual > 0.0 else math.inf

    def _fetch(self, problem: KernelProblem, state: VisitState) -> int:
        """Keep the row of the next visit, and those of the visits after it that would move by what is known now."""
        gram = problem.gram
        coming = state.order[state.place :].astype(np.int64)
        offset = state.multiplier + state.stiffness * state.balance
        slope, beta = state.v[coming] - offset, state.beta[coming]
        moving = ((slope > _STILL) & (beta < state.upper[coming])) | ((slope < -_STILL) & (beta > state.lower[coming]))
        wanted = coming[moving & (gram.kept.slots[coming] < 0)]
        room = max(1, min(self.ahead, gram.capacity // 2))
        wanted = np.concatenate((coming[:1], wanted[: 4 * room]))
        _, first = np.unique(wanted, return_index=True)
        wanted = wanted[np.sort(first)][:room]
        gram.keep(wanted)
        return wanted.size


def _draw(order: np.ndarray, random: np.ndarray, replacement: bool) -> None:
    if replacement:
        _draw_uniformly(order, random)
    else:
        shuffle(order, order.size, random)


@compiled
def _draw_uniformly(order, random):
    for s in range(np.uint64(order.size)):
        order[s] = next_below(random, order.size)


@compiled
def visit_all(kept: Kept, now, box, order, place, offset, stiffness):
    """Visit order[place:] until a row is missing: the place that was come to, and how many moved."""
    beta, lower, upper, ridge, bend, v = box
    changes, n = 0, np.uint64(v.size)
    for s in range(np.uint64(place), np.uint64(order.size)):
        i = np.uint64(order[s])
        slope = v[i] - offset
        curvature = bend[i] + stiffness
        if abs(slope) <= _STILL:
            continue
        wanted = beta[i] + slope / (curvature if curvature > 0.0 else FLAT)
        new = min(max(wanted, lower[i]), upper[i])
        move = new - beta[i]
        if move == 0.0:
            continue
        slot = kept.slots[i]
        if slot < 0:
            return s, changes
        kept.used[slot] = now
        row = kept.values[slot]
        beta[i] = new
        for t in range(n):
            v[t] -= move * row[t]
        v[i] -= move * ridge[i]
        offset += stiffness * move
        changes += 1
    return np.uint64(order.size), changes
