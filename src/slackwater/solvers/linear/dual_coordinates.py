"""What solvers of the dual share that move one alpha_i at a time: the table of the coordinates and the steps.

    max  k sum alpha - alpha'Q alpha/2 - sum_i d_i alpha_i^2/2,  0 <= alpha_i <= U_i,  w = sum_i alpha_i y_i x_i,

with k the loss's target, d_i = width / C_i, U_i = cap C_i, q_i = ||x_i||^2 + d_i. At a visit,

    e = k - y_i <w, x_i>,  G = d_i alpha_i - e  the gradient of what is minimised, PG  what of G the box lets through.

The numbers of an example lie on one line of the table: alpha_i, y_i U_i, 1 / q_i, d_i.

The loop of ``dcd`` is written in ``look``, ``term`` and ``go``, chosen by the kind of coordinates at compile time:
``Margins`` are those of classification.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.compiled import by_type, compiled
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot_ahead, sqnorms

STILL = 1e-12  # a projected gradient below this is no reason to move
AVERAGED = 0.6  # the gap of the averaged weights, as a part of that of w
_FOLLOWED, _LEAST_NEW = 6.0, 0.3  # the average follows w for about as many rounds, then takes in this share of it


def dual_table(problem: LinearProblem, alpha: np.ndarray | None) -> np.ndarray:
    """alpha = 0, or the given point clipped to the box, with what its steps need to know."""
    n, loss = problem.n_rows, problem.loss
    table = np.zeros((n, 4))
    upper = loss.cap * problem.costs
    if alpha is not None:
        table[:, 0] = np.clip(alpha, 0.0, upper)
    table[:, 1] = problem.labels * upper
    table[:, 3] = loss.width / problem.costs
    curvature = np.empty(n)
    sqnorms(problem.rows, curvature, problem.threads)
    curvature += table[:, 3]
    # A zero row under the hinge has no curvature: an infinite step takes its alpha to the end of the box.
    with np.errstate(divide="ignore"):
        np.divide(1.0, curvature, out=table[:, 2])
    return table


def weights_of(problem: LinearProblem, table: np.ndarray) -> np.ndarray:
    """w(alpha)."""
    return problem.sum_of_rows(table[:, 0] * problem.labels) if table[:, 0].any() else np.zeros(problem.n_weights)


def dual_value(problem: LinearProblem, table: np.ndarray, w: np.ndarray) -> float:
    """The dual objective W(alpha), with w(alpha) as it is kept."""
    return _separable(table, problem.loss.target) - 0.5 * problem.squared_norm(w)


@compiled(borrows=True)
def _separable(table, k):
    """The part of W(alpha) that falls apart: k sum alpha - sum_i d_i alpha_i^2/2."""
    total = 0.0
    for i in range(np.uint64(len(table))):
        alpha, d = table[i, 0], table[i, 3]
        total += k * alpha - 0.5 * d * alpha * alpha
    return total


def average_in(average: np.ndarray, w: np.ndarray, rounds: float) -> None:
    """w of the ``rounds``-th round joins the average of the latest ones."""
    average += max(_LEAST_NEW, _FOLLOWED / (_FOLLOWED + rounds - 1.0)) * (w - average)


def estimated_gap(problem: LinearProblem, table: np.ndarray, w: np.ndarray, gap: float) -> float:
    """The relative gap of the averaged weights, from the Fenchel-Young terms met: it is smaller than that of w."""
    dual = dual_value(problem, table, w)
    return AVERAGED * gap / dual if dual > 0 else math.inf


@compiled(inline=True)
def visit(rows, k, table, i, w, coming):
    """e, G and PG of example i, while row ``coming`` is asked for."""
    alpha, upper, d = table[i, 0], table[i, 1], table[i, 3]
    e = k - math.copysign(1.0, upper) * dot_ahead(rows, i, w, coming)  # how far the margin falls short of the target
    G = d * alpha - e
    PG = G
    if alpha == 0.0:
        PG = min(G, 0.0)
    elif alpha == abs(upper):
        PG = max(G, 0.0)
    return e, G, PG


@compiled(inline=True)
def gap_term(table, i, e):
    """The share of example i in the gap J(w) - W(alpha): its Fenchel-Young term."""
    alpha, d = table[i, 0], table[i, 3]
    best = min(max(e / d, 0.0), abs(table[i, 1]))  # an end of the box for the hinge, where d = 0
    return best * e - 0.5 * d * best * best - alpha * e + 0.5 * d * alpha * alpha


@compiled(inline=True)
def move(rows, table, i, change, w):
    """alpha_i <- clip(alpha_i + change, 0, U_i), and w follows."""
    alpha, upper = table[i, 0], table[i, 1]
    new = min(max(alpha + change, 0.0), abs(upper))
    table[i, 0] = new
    add(rows, i, math.copysign(1.0, upper) * (new - alpha), w)


class Margins(NamedTuple):
    """The dual coordinates of a margin loss."""

    table: np.ndarray
    still: float  # projected gradients below it move nothing
    target: float


@by_type
def look(coordinates, rows, i, w, coming):
    """Of example i: e, G and PG, and its side, +1 or -1, that they are measured on; row ``coming`` is asked for."""


@by_type
def term(coordinates, i, e, side):
    """The share of example i in the gap J(w) - W(alpha): its Fenchel-Young term."""


@by_type
def go(coordinates, rows, i, G, side, w):
    """Example i to the best point of its box, and w follows; whether that lies inside, off every wall."""


@look.register(Margins)
def _look_at_margin(coordinates, rows, i, w, coming):
    e, G, PG = visit(rows, coordinates.target, coordinates.table, i, w, coming)
    return e, G, PG, 0.0


@term.register(Margins)
def _margin_term(coordinates, i, e, side):
    return gap_term(coordinates.table, i, e)


@go.register(Margins)
def _go_along_margin(coordinates, rows, i, G, side, w):
    table = coordinates.table
    move(rows, table, i, -G * table[i, 2], w)
    return 0.0 < table[i, 0] < abs(table[i, 1])


@compiled(inline=True)
def follow_multiplier(w, centre):
    """After an epoch a free bias moves by its own dual residual, the multiplier of sum alpha_i y_i = 0.

    ``centre``, the value the constant feature's weight was held at, becomes what it is now.
    """
    bias = np.uint64(w.size - 1)
    moved = w[bias]
    w[bias] += moved - centre
    return moved
