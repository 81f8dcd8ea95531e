"""SVR-DCD: dual coordinate descent for support vector regression, with shrinking.

Problem    min over w of  ||w||^2/2 + sum_i C_i l(y_i - <w, x_i>),  l(r) = s or s^2,  s = max(0, |r| - eps), by its dual
           min  beta'Q beta/2 - y'beta + eps ||beta||_1 + sum_i d_i beta_i^2/2,  |beta_i| <= U_i,  w = sum_i beta_i x_i.
Given      d_i = width/C_i, U_i = cap C_i, q_i = ||x_i||^2 + d_i; width 0 and cap 1 for s, 1/2 and infinity for s^2.
Update     for i in a random permutation:  g = <w, x_i> - y_i + d_i beta_i,  z = beta_i - g/q_i  (Algorithm 3);
           beta_i <- clip(sign(z) max(0, |z| - eps/q_i), -U_i, U_i), and w follows: the exact minimum, a Newton step
           that stops at zero or goes on beyond it with the other sign of eps.
Sides      beta_i is visited on the side of its sign, or of its residual's where beta_i = 0. There it is a dual variable
           alpha = |beta_i| of classification, with G = d alpha - e and e = +-(y_i - <w, x_i>) - eps.
Shrinking  as in dcd: a beta_i at zero or at the end of its box whose G points into that wall by more than the last
           epoch's largest violation is not visited until the others are done (Algorithm 4).
Inner      one pass over the rows inside their box after each epoch: most of all rows are, unlike in classification.
Model, Free bias   as in dcd, whose loop this is; the multiplier is that of sum beta_i = 0.
State      beta, w, the permutation with the active rows in front, the thresholds of the last pass.
Cost       one inner product a visit, one addition a change; a round is one epoch over the active rows.
Certificate  C1, from beta.

Ho, Lin. Large-scale linear support vector regression. JMLR 13, 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.regression import TUBE_LOSSES, RegressionProblem
from slackwater.rows import add, dot_ahead, sqnorms, transpose_times
from slackwater.solvers.linear.dcd import DCD, DCDState
from slackwater.solvers.linear.dual_coordinates import AVERAGED, STILL, go, look, term

_FLAT = 1e-200  # a curvature


@dataclass(frozen=True)
class SVRDCD(DCD):
    """Dual coordinate descent for regression; the default there."""

    name: ClassVar[str] = "svr-dcd"
    paper: ClassVar[str] = "Ho, Lin, JMLR 13, 2012"
    task: ClassVar[str] = "regression"
    losses: ClassVar[tuple[str, ...]] = tuple(TUBE_LOSSES)

    inner: int = 1

    def start(self, problem: RegressionProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> DCDState:
        """beta = 0, or the given point clipped to the box."""
        tubes = tubes_of(problem, alpha)
        w = np.zeros(problem.n_weights)
        transpose_times(problem.rows, tubes.table[:, 0].copy(), w)
        return self.crew(problem, rng, tubes, w)

    def estimate(self, problem: RegressionProblem, state: DCDState) -> float:
        """The Fenchel-Young terms met during the last epoch, each a share of the gap, against W(beta)."""
        dual = _separable(state.coordinates) - 0.5 * problem.squared_norm(state.w)
        if state.gap == 0.0:  # all that is left of a target may lie within the tube: the bound is 0 then
            return 0.0
        return AVERAGED * state.gap / dual if dual > 0 else math.inf


class Tubes(NamedTuple):
    """The dual coordinates of regression, a line of the table for each: beta_i, y_i, 1 / q_i, C_i."""

    table: np.ndarray
    still: float
    epsilon: float
    width: float
    cap: float


def tubes_of(problem: RegressionProblem, beta: np.ndarray | None) -> Tubes:
    """beta = 0, or the given point clipped to the box, with what its steps need to know."""
    loss, costs = problem.loss, problem.costs
    table = np.zeros((problem.n_rows, 4))
    if beta is not None:
        table[:, 0] = np.clip(beta, -loss.cap * costs, loss.cap * costs)
    table[:, 1], table[:, 3] = problem.targets, costs
    curvature = np.empty(problem.n_rows)
    sqnorms(problem.rows, curvature)
    # A zero row may have no curvature: its step is as long as no box is, and ends there.
    table[:, 2] = 1.0 / np.maximum(curvature + loss.width / costs, _FLAT)
    size = float(np.abs(problem.targets).mean()) or 1.0
    return Tubes(table, STILL * size, *loss)


@compiled(borrows=True)
def _separable(coordinates):
    """The part of W(beta) that falls apart: y'beta - eps ||beta||_1 - sum_i d_i beta_i^2/2."""
    table, total = coordinates.table, 0.0
    for i in range(np.uint64(len(table))):
        beta = table[i, 0]
        rounding_off = 0.5 * coordinates.width / table[i, 3] * beta * beta
        total += table[i, 1] * beta - coordinates.epsilon * abs(beta) - rounding_off
    return total


@look.register(Tubes)
def _look_into_tube(coordinates, rows, i, w, coming):
    table = coordinates.table
    beta, C = table[i, 0], table[i, 3]
    r = table[i, 1] - dot_ahead(rows, i, w, coming)
    side = math.copysign(1.0, beta if beta != 0.0 else r)
    alpha = abs(beta)
    e = side * r - coordinates.epsilon
    G = coordinates.width / C * alpha - e
    PG = G
    if alpha == 0.0:
        PG = min(G, 0.0)
    elif alpha == coordinates.cap * C:
        PG = max(G, 0.0)
    return e, G, PG, side


@term.register(Tubes)
def _tube_term(coordinates, i, e, side):
    C = coordinates.table[i, 3]
    alpha, d = abs(coordinates.table[i, 0]), coordinates.width / C
    s = max(e, -e - 2.0 * coordinates.epsilon)  # the residual may lie on the other side
    best = min(s / d, coordinates.cap * C) if s > 0.0 else 0.0  # the end of the box where d = 0
    return best * s - 0.5 * d * best * best - alpha * e + 0.5 * d * alpha * alpha


@go.register(Tubes)
def _go_through_tube(coordinates, rows, i, G, side, w):
    table = coordinates.table
    beta, upper = table[i, 0], coordinates.cap * table[i, 3]
    here = abs(beta) - G * table[i, 2]
    beyond = here + 2.0 * coordinates.epsilon * table[i, 2]  # past zero the other edge of the tube pulls
    # One of the two parts is zero; a branch in their place makes a visit twice as long.
    new = side * min(max(max(here, 0.0) + min(beyond, 0.0), -upper), upper)
    table[i, 0] = new
    add(rows, i, new - beta, w)
    return 0.0 < abs(new) < upper
