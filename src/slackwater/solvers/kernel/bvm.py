"""BVM, the simpler core vector machine: a ball of fixed radius moves until no point is left outside.

Problem    the squared hinge as an enclosing ball (balls.py), with the radius r = sqrt(eta), that of a ball around the
           origin: the published schedule of radii is not at hand. The ball found belongs to about half the largest
           margin, so that the gap stays large, however few the errors.
Update     k = the furthest point, argmin g.  Where its distance d exceeds (1 + eps) r:
           p <- (r/d) p + (1 - r/d) e_k, which moves the centre straight towards it until it lies on the ball.
State      p and g = Kt p.
Cost       n additions a step and a kernel row where it is not kept; rows of the furthest points are computed together.
Certificate  C5; the model is the multiple of the centre with the smallest P.

Tsang, Kocsor, Kwok. Simpler core vector machines with enclosing balls. ICML 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Counters
from slackwater.solvers.kernel.balls import Ball, BallState, centre
from slackwater.solvers.kernel.lowest import add_row, rows_ahead

_WORK, _EPOCHS, _FETCHES = 2**27, 50, 16  # additions, n steps and blocks of rows in a round, at most
_SMALLEST_SCALE = 1e-9


@dataclass(frozen=True)
class BVM(Ball):
    """Enclosing ball of fixed radius."""

    name: ClassVar[str] = "bvm"
    paper: ClassVar[str] = "Tsang, Kocsor, Kwok, ICML 2007"
    optimises: ClassVar[bool] = False

    eps: float = 1e-3

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> BallState:
        """The centre at a random point, or in the direction of alpha."""
        return BallState(Counters(), *centre(problem, rng, alpha, problem.n_rows))

    def work(self, problem: KernelProblem, state: BallState) -> None:
        """Some steps."""
        gram, done, n = problem.gram, state.counters, problem.n_rows
        left = max(1, min(_EPOCHS * n, _WORK // n))
        furthest = int(np.argmin(state.g))
        kept = gram.keep(np.array([furthest]))
        for _ in range(_FETCHES):
            taken, furthest = _steps(
                kept, problem.labels, gram.diagonal, state.ridge, state.p, state.g, state.eta, self.eps, left, furthest
            )
            done.updates += taken
            done.inner_products += taken * n
            left -= taken
            if left == 0 or kept.slots[furthest] >= 0:
                break
            kept = gram.keep(rows_ahead(state.g, kept.slots, gram.capacity, furthest))
        done.epochs = done.updates // n


@compiled
def _steps(kept, labels, diagonal, ridge, p, g, eta, eps, most, k):
    """At most so many steps, from the furthest point k on; how many, and the furthest point then."""
    n, scale, q, taken = np.uint64(p.size), 1.0, 0.0, 0
    for i in range(n):
        q += p[i] * g[i]
    while taken < most:
        lowest = scale * g[k]
        square = q - 2.0 * lowest + eta
        slot = kept.slots[k]
        if slot < 0 or not square > (1.0 + eps) ** 2 * eta:
            break
        keep = math.sqrt(eta / square)
        q = keep * (keep * q + 2.0 * (1.0 - keep) * lowest) + (1.0 - keep) ** 2 * (diagonal[k] + ridge[k])
        scale *= keep
        step = (1.0 - keep) / scale
        p[k] += step
        g[k] += step * ridge[k]
        k = add_row(kept.values[np.uint64(slot)], labels, step * labels[k], g)
        taken += 1
        if scale < _SMALLEST_SCALE:
            for i in range(n):
                p[i] *= scale
                g[i] *= scale
            scale = 1.0
    for i in range(n):
        p[i] *= scale
        g[i] *= scale
    return taken, k
