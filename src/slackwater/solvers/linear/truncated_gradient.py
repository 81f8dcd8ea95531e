"""Truncated gradient: stochastic gradient steps, and every K-th of them a pull of the small weights towards zero.

Problem    min over w of  P(w) = g ||w||_1 + (1/n) sum_i u_i l(y_i <w, x_i>),  g = 1 / sum C the papers' gravity,
           u_i = n C_i / sum C.
Update     presented with example i of slope a_i = -l'(m_i) at w:   w <- w + eta_t u_i a_i y_i x_i,
           and after every K-th step  w_j <- T(w_j; K eta_t g, theta):  |w_j| <= theta shrinks by K eta_t g, not past
           zero; a larger weight stays (eq. 6).
Steps      eta_t = eta0 / sqrt(1 + t/n), eta0 the constant step that lowers P most in one pass over a sample.
Lazy       a weight is shrunk when its column is met, by the sum of the thresholds since: one at most theta stays so.
State      w, the sum of the thresholds and that of each column's last visit, the slopes of every example summed.
Cost       one inner product a visit, two additions per nonzero slope; a round is one epoch.
Certificate  C2 over a window of epochs, scaled into the dual set.

K = 1 and theta = inf is FOLOS with the l1 penalty. With theta below the largest weights the way does not lead to the
optimum of P.

Langford, Li, Zhang. Sparse online learning via truncated gradient. JMLR 10, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.objective.problem import LinearProblem
from slackwater.rows import prefetch_row
from slackwater.rows.lazy import shrunk_dot
from slackwater.solvers.linear.descent import Change, score
from slackwater.solvers.linear.lazy_descent import LazyDescent, falling, lazy_step
from slackwater.solvers.steps import Steps, inverse_step


class Truncated(NamedTuple):
    """The step sizes, g, K and theta; ``now`` holds the scale 1, t and the sum of the thresholds."""

    steps: Steps
    gravity: float
    every: int
    cutoff: float


@score.register(Truncated)
def _score(method, rows, i, v, now, coming):
    prefetch_row(rows, coming)
    return shrunk_dot(rows, i, v, now[2], method.cutoff)


@lazy_step(Truncated)
def _step(method, seen, now):
    eta = 1.0 / inverse_step(method.steps, now[1])
    now[1] += 1.0
    if now[1] % method.every == 0.0:
        now[2] += method.every * eta * method.gravity
    return Change(eta * seen.pull, seen.score + eta * seen.pull * seen.q)


@dataclass(frozen=True)
class TruncatedGradient(LazyDescent):
    """Sparse online learning; ``every`` is the paper's K, ``theta`` the size beyond which weights are left alone."""

    name: ClassVar[str] = "truncated-gradient"
    paper: ClassVar[str] = "Langford, Li, Zhang, JMLR 2009"
    penalties: ClassVar[tuple[str, ...]] = ("l1",)

    every: int = 10
    theta: float = math.inf

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every < 1:
            raise ValueError(f"every must be at least 1, got {self.every}")
        if not self.theta > 0.0:
            raise ValueError(f"theta must be positive, got {self.theta}")

    def method(self, problem: LinearProblem, steps: Steps) -> Truncated:
        """The pull of the l1 penalty."""
        return Truncated(steps, problem.regularisation, self.every, self.theta)

    def steps(self, problem: LinearProblem, rng: np.random.Generator) -> Steps:
        """eta0 / sqrt(1 + t/n)."""
        return falling(self.first_step(problem, rng), problem.n_rows)
