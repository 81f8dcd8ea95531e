"""Newton: truncated Newton steps on the primal, each equation solved by conjugate gradients.

Update     H p = -G  by conjugate gradients until the residual is min(0.1, sqrt ||G||) of G, ||G|| on the scale where
           ||G||^2 / 2 is the relative gap;  w <- w + t p with the t that minimises J along p.
           H = I + sum over the curved i of (C_i / width) x_i x_i',  curved: those with 0 < target - m_i < cap width,
           for the squared hinge all that fall short of the margin.
Cost       one product H v visits the curved rows only, one inner product and one addition each; a round is one Newton
           step, its gradient and its line two more passes. Epochs count passes.

Chapelle. Training a support vector machine in the primal. Neural Computation 19(5), 2007; the finite Newton method of
Keerthi, DeCoste, JMLR 6, 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot, prefetch_row, squared_norm
from slackwater.solvers.smooth import Smooth, SmoothState, add_to, inner, regularised

_LOOSEST = 0.1
_AHEAD = 8  # rows between asking for one's memory and using it


@dataclass(frozen=True)
class Newton(Smooth):
    """Newton's method with conjugate gradients; at most ``most_products`` products with the Hessian a step."""

    name: ClassVar[str] = "newton"
    paper: ClassVar[str] = "Chapelle, Neural Computation 2007; Keerthi, DeCoste, JMLR 2005"

    most_products: int = 200

    def __post_init__(self) -> None:
        if self.most_products < 1:
            raise ValueError(f"most_products must be at least 1, got {self.most_products}")

    def direction(self, problem: LinearProblem, state: SmoothState) -> np.ndarray:
        """The Newton direction, as exact as the gap deserves."""
        loss = problem.loss
        short = loss.target - state.margins
        curved = np.flatnonzero((short > 0.0) & (short < loss.cap * loss.width))
        curvature = problem.costs[curved] / loss.width
        relative = math.sqrt(state.squared / (2.0 * state.value))
        tolerance = min(_LOOSEST, math.sqrt(relative))
        p = np.zeros_like(state.w)
        r = -state.gradient
        d, product = r.copy(), np.empty_like(r)
        square, enough = state.squared, tolerance**2 * state.squared
        for _ in range(self.most_products):
            product[:] = regularised(problem, d)
            _curve(problem.rows, curved, curvature, d, product)
            state.counters.epochs += 1
            state.counters.inner_products += curved.size
            bend = inner(d, product)
            if not bend > 0.0:
                break
            step = square / bend
            add_to(p, step, d)
            add_to(r, -step, product)
            before, square = square, squared_norm(r)
            if square <= enough:
                break
            d *= square / before
            d += r
        return p


@compiled(borrows=True)
def _curve(rows, curved, curvature, v, out):
    """out += sum over the curved rows of curvature_i x_i <x_i, v>."""
    count = np.uint64(curved.size)
    for s in range(count):
        if s + np.uint64(_AHEAD) < count:
            prefetch_row(rows, np.uint64(curved[s + np.uint64(_AHEAD)]))
        i = np.uint64(curved[s])
        add(rows, i, curvature[s] * dot(rows, i, v), out)
