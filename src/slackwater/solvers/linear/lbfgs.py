"""L-BFGS: limited-memory quasi-Newton steps on the primal.

Update     w <- w + t p with the t that minimises J along p = -B G,  B the inverse Hessian that the latest ``memory``
           pairs s = w' - w, y = G' - G tell of (the paper's two loops, scaled by <s, y> / <y, y> of the latest pair).
State      the pairs besides.
Cost       two passes an iteration: <p, x_i> of all rows, and the gradient. A round is one iteration, up to ten on small
           data. Epochs count passes.

The exact minimum along every line keeps <s, y> > 0, so every pair can be taken.

Liu, Nocedal. On the limited memory BFGS method for large scale optimization. Mathematical Programming 45, 1989.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np

from slackwater.objective.problem import LinearProblem
from slackwater.rows import squared_norm
from slackwater.solvers.contract import epochs_per_round
from slackwater.solvers.smooth import Smooth, SmoothState, add_to, descend, inner, still

_MOST_ITERATIONS = 10


@dataclass
class LBFGSState(SmoothState):
    """The point and the latest pairs, oldest first: s, y, 1 / <s, y>."""

    pairs: list[tuple[np.ndarray, np.ndarray, float]] = field(default_factory=list)


@dataclass(frozen=True)
class LBFGS(Smooth):
    """Limited-memory BFGS with exact line searches."""

    name: ClassVar[str] = "lbfgs"
    paper: ClassVar[str] = "Liu, Nocedal, Mathematical Programming 1989"

    memory: int = 10

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ValueError(f"memory must be at least 1, got {self.memory}")

    def state(self, point: SmoothState) -> LBFGSState:
        """No pairs yet."""
        return LBFGSState(*(getattr(point, part.name) for part in fields(point)))

    def advance(self, problem: LinearProblem, state: LBFGSState) -> None:
        """One iteration, some on small data."""
        for _ in range(min(_MOST_ITERATIONS, epochs_per_round(problem))):
            if still(state):
                return
            w, gradient, moves = state.w.copy(), state.gradient.copy(), state.counters.updates
            descend(problem, state, self.direction(problem, state))
            if state.counters.updates == moves:
                state.pairs.clear()
                continue
            self._learn(state, state.w - w, state.gradient - gradient)

    def direction(self, problem: LinearProblem, state: LBFGSState) -> np.ndarray:
        """-B G by the two loops."""
        p = -state.gradient
        shares = []
        for s, y, rho in reversed(state.pairs):
            share = rho * inner(s, p)
            add_to(p, -share, y)
            shares.append(share)
        if state.pairs:
            _, y, rho = state.pairs[-1]
            p /= rho * squared_norm(y)
        for (s, y, rho), share in zip(state.pairs, reversed(shares), strict=True):
            add_to(p, share - rho * inner(y, p), s)
        return p

    def _learn(self, state: LBFGSState, s: np.ndarray, y: np.ndarray) -> None:
        product = inner(s, y)
        if product > 0.0:
            state.pairs.append((s, y, 1.0 / product))
            del state.pairs[: -self.memory]
