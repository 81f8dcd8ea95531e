"""FOLOS: forward looking subgradients, also FOBOS: a subgradient step of the loss, then an exact one of the penalty.

Problem    min over w of  P(w) = lambda Omega(w) + (1/n) sum_i u_i l(y_i <w, x_i>),  u_i = n C_i / sum C,
           Omega(w) = sum_j (square w_j^2/2 + absolute |w_j|).
Update     presented with example i of slope a_i = -l'(m_i) at w:   v = w + eta_t u_i a_i y_i x_i,
           w = argmin ||w - v||^2/2 + eta_t lambda Omega(w) = S(v, eta_t lambda absolute) / (1 + eta_t lambda square),
           S the soft threshold (sections 3 and 5); both half steps of the size eta_t.
Steps      l2: eta_t = 1/(lambda t), t = 0, 1, ..; with the hinge this is SGD-s. Elastic net, or a loss whose slope has
           no cap: 1/(lambda square (t0 + t)) with t0 = 1/(lambda square eta0). l1: eta0 / sqrt(1 + t/n). eta0 is the
           constant step that lowers P most in one pass over a sample.
Lazy       a weight is shrunk when its column is met: Theta sums the thresholds, each divided by the scale of w at its
           step; w_j catches up by Theta - Theta_j (section 6). So a step costs what its row has entries.
State      v with w = scale v, Theta and Theta_j, the slopes of every example summed.
Cost       one inner product a visit, one addition per nonzero slope, two of them for the sum behind the bound; a round
           is one epoch.
Certificate  C2 over a window of epochs, the best of its multiples.

``average=False`` returns the last iterate, which has the most weights at zero.

Duchi, Singer. Efficient online and batch learning using forward backward splitting. JMLR 10, 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.objective.penalties import PENALTIES
from slackwater.objective.problem import LinearProblem
from slackwater.rows import prefetch_row
from slackwater.rows.lazy import shrunk_dot
from slackwater.solvers.linear.descent import Change, score
from slackwater.solvers.linear.lazy_descent import LazyDescent, falling, lazy_step
from slackwater.solvers.steps import Steps, inverse_step, reciprocal


class Forward(NamedTuple):
    """lambda square and lambda absolute, with the step sizes; ``now`` holds the scale, t and Theta."""

    steps: Steps
    square: float
    absolute: float
    cutoff: float


@score.register(Forward)
def _score(method, rows, i, v, now, coming):
    prefetch_row(rows, coming)
    return now[0] * shrunk_dot(rows, i, v, now[2], method.cutoff)


@lazy_step(Forward)
def _step(method, seen, now):
    inverse = inverse_step(method.steps, now[1])  # 1 / eta_t, which is 0 for the first step of the l2 penalty
    now[1] += 1.0
    part = 1.0 / (inverse + method.square)
    keep = inverse * part
    if keep > 0.0:  # otherwise w = 0 still
        now[0] *= keep
    amount, threshold = part * seen.pull, part * method.absolute
    now[2] += threshold / now[0]
    return Change(amount / now[0], keep * seen.score + amount * seen.q)


@dataclass(frozen=True)
class FOLOS(LazyDescent):
    """Forward backward splitting with stochastic subgradients."""

    name: ClassVar[str] = "folos"
    paper: ClassVar[str] = "Duchi, Singer, JMLR 2009"
    penalties: ClassVar[tuple[str, ...]] = PENALTIES

    def method(self, problem: LinearProblem, steps: Steps) -> Forward:
        """Every weight is shrunk."""
        lam, penalty = problem.regularisation, problem.penalty
        return Forward(steps, lam * penalty.square, lam * penalty.absolute, math.inf)

    def steps(self, problem: LinearProblem, rng: np.random.Generator) -> Steps:
        """As the penalty is curved or not."""
        curvature = problem.regularisation * problem.penalty.square
        tame = math.isfinite(problem.loss.cap) and not problem.penalty.absolute
        if tame and self.eta0 is None:
            return reciprocal(curvature)
        eta0 = self.first_step(problem, rng)
        return reciprocal(curvature, 1.0 / (curvature * eta0)) if curvature else falling(eta0, problem.n_rows)
