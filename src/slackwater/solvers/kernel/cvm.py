"""CVM, the core vector machine: the smallest ball around a few points, to which the furthest of all points is added.

Problem    the squared hinge as the smallest enclosing ball (balls.py).
Update     the furthest point, argmin g, of all points or of a random ``sample`` of them (59 hit the furthest 5% with a
           chance of 95%), joins the core set S where it lies beyond (1 + eps) times the radius; then the ball around S
           is found again: SMO with second-order selection on the simplex over S, from the last p.
State      p, g = Kt p of all points, S and Kt over S.
Cost       a round takes a block of candidates, the furthest points, whose kernel rows are computed together. Each joins
           if it still lies outside: an addition costs (steps of SMO) |S| plus (candidates) |S|; at the end of the round
           g moves by the rows of S, |S| n additions. At most about 2/eps points join, whatever n is.
Certificate  C5; the model is the multiple of the centre with the smallest P.

Tsang, Kwok, Cheung. Core vector machines: fast SVM training on very large data sets. JMLR 6, 2005; Tsang, Kwok, Zurada.
Generalized core vector machines. IEEE Trans. Neural Networks 17(5), 2006, for diagonals that are not constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import total_loss
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Counters
from slackwater.solvers.kernel.balls import Ball, BallState, centre
from slackwater.solvers.kernel.kernel_solver import best_multiple
from slackwater.solvers.kernel.working_set import FLAT

_CANDIDATES = 64  # in a round
_WARM = 1024  # points of a warm start
_EASED, _EXACT = 0.1, 1e-6  # of the violation outside, of q: what SMO leaves
_STEPS = 200  # per member, at most


@dataclass
class CoreState(BallState):
    """The core set and the matrix over it, with room to grow."""

    members: np.ndarray
    K: np.ndarray
    rng: np.random.Generator


@dataclass(frozen=True)
class CVM(Ball):
    """Core vector machine; ``sample`` 0 looks for the furthest of all points."""

    name: ClassVar[str] = "cvm"
    paper: ClassVar[str] = "Tsang, Kwok, Cheung, JMLR 2005; Tsang, Kwok, Zurada, IEEE TNN 2006"

    sample: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sample < 0:
            raise ValueError(f"sample must be at least 0, got {self.sample}")

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> CoreState:
        """A random point, or the largest of alpha."""
        p, g, ridge, eta = centre(problem, rng, alpha, min(_WARM, problem.gram.capacity))
        members = np.flatnonzero(p)
        y = problem.labels[members]
        K = y[:, None] * problem.gram.square(members) * y + np.diag(ridge[members])
        return CoreState(Counters(), p, g, ridge, eta, members, K, rng)

    def work(self, problem: KernelProblem, state: CoreState) -> None:
        """A block of candidates."""
        gram, done, before = problem.gram, state.counters, state.p.copy()
        S = state.members
        core = _Core(state.K, state.p[S].copy(), state.g[S].copy())
        done.inner_products += core.improve(core.square - float(state.g.min()))
        candidates = self._candidates(problem, state, float(core.p @ core.g))
        signed = _signed_values(problem, candidates, np.concatenate((S, candidates)))
        joined: list[int] = []
        while len(joined) < candidates.size:
            inside = np.concatenate((np.arange(S.size), S.size + np.array(joined, dtype=np.int64)))
            g = signed[:, inside] @ core.p
            g[joined] = math.inf
            k = int(np.argmin(g))
            if not self._outside(core.square, g[k], state.eta):
                break
            corner = gram.diagonal[candidates[k]] + state.ridge[candidates[k]]
            core.join(signed[k, inside], corner, g[k])
            joined.append(k)
            done.inner_products += core.improve(core.square - g[k])
        done.updates += len(joined)
        done.epochs += 1
        state.K, state.members = core.K, np.concatenate((S, candidates[joined]))
        state.p[state.members] = core.p
        change = state.p - before
        state.g += problem.labels * gram.times(problem.labels * change) + state.ridge * change

    def estimate(self, problem: KernelProblem, state: CoreState) -> float:
        """The gap itself, up to rounding."""
        lam, square = problem.regularisation, float(state.p @ state.g)
        coefficients = problem.labels * state.p
        scores = problem.labels * (state.g - state.ridge * state.p)
        k = best_multiple(problem, coefficients, scores)
        losses = total_loss(problem.loss, k * scores, problem.labels, problem.costs)
        primal = lam * (0.5 * k * k * float(coefficients @ scores) + losses)
        dual = 0.5 * lam / square if square > 0.0 else 0.0
        return max(primal - dual, 0.0) / dual if dual > 0.0 else math.inf

    def review(self, problem: KernelProblem, state: CoreState, certificate: Any) -> None:
        """Not there yet: g, updated so far by what each round added, is summed from the rows again."""
        signed = problem.labels * state.p
        state.g[:] = problem.labels * problem.gram.times(signed) + state.ridge * state.p

    def _outside(self, square: float, g: Any, eta: float) -> Any:
        return square - 2.0 * g + eta > (1.0 + self.eps) ** 2 * max(eta - square, 0.0)

    def _candidates(self, problem: KernelProblem, state: CoreState, square: float) -> np.ndarray:
        """The furthest points that are not in S: of a sample each, or of all where the samples have none outside."""
        n, count = problem.n_rows, min(_CANDIDATES, problem.gram.capacity)
        g = state.g.copy()
        g[state.members] = math.inf
        outside = self._outside(square, g, state.eta)
        if self.sample:
            drawn = state.rng.integers(n, size=(count, self.sample))
            furthest = np.unique(drawn[np.arange(count), np.argmin(g[drawn], axis=1)])
            if outside[furthest].any():
                return furthest[outside[furthest]]
        furthest = np.argpartition(g, count - 1)[:count] if count < n else np.arange(n)
        return furthest[outside[furthest]]


def _signed_values(problem: KernelProblem, ids: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Q between ``ids`` and ``columns``, float64."""
    kept = problem.gram.keep(ids)
    values = kept.values[np.ix_(kept.slots[ids], columns)].astype(np.float64)
    return problem.labels[ids, None] * values * problem.labels[columns]


class _Core:
    """The small problem over the core set: p, g = K p and q."""

    def __init__(self, K: np.ndarray, p: np.ndarray, g: np.ndarray) -> None:
        self.K, self.p, self.g = K, p, g

    @property
    def square(self) -> float:
        """q."""
        return float(self.p @ self.g)

    def join(self, column: np.ndarray, corner: float, g: float) -> None:
        """One more point, with p = 0."""
        size = self.p.size
        if size == len(self.K):
            wider = np.zeros((2 * size + 16, 2 * size + 16))
            wider[:size, :size] = self.K
            self.K = wider
        self.K[size, :size] = self.K[:size, size] = column
        self.K[size, size] = corner
        self.p, self.g = np.append(self.p, 0.0), np.append(self.g, g)

    def improve(self, violation: float) -> int:
        """SMO to a tenth of the violation outside: inner products of size |S| that it took."""
        tolerance = max(_EASED * violation, _EXACT * self.square)
        return int(_smo(self.K, self.p, self.g, tolerance, _STEPS * self.p.size))


@compiled
def _smo(K, p, g, tolerance, most):
    """Move weight from j to i, by second order, until g differs by no more than ``tolerance``: how often."""
    n = np.uint64(p.size)
    for step in range(most):
        i, highest = np.uint64(0), -math.inf
        for t in range(n):
            if g[t] < g[i]:
                i = t
            if p[t] > 0.0:
                highest = max(highest, g[t])
        if highest - g[i] <= tolerance:
            return step
        j, best, row = i, 0.0, K[i]
        for t in range(n):
            rise = g[t] - g[i]
            if p[t] > 0.0 and rise > 0.0:
                gain = rise * rise / max(row[i] + K[t, t] - 2.0 * row[t], FLAT)
                if gain > best:
                    j, best = t, gain
        if j == i:
            return step
        other = K[j]
        length = (g[j] - g[i]) / max(row[i] + other[j] - 2.0 * row[j], FLAT)
        if length >= p[j]:
            length = p[j]
            p[j] = 0.0
        else:
            p[j] -= length
        p[i] += length
        for t in range(n):
            g[t] += length * (row[t] - other[t])
    return most
