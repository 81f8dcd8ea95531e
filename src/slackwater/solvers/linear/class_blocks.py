"""What solvers of Crammer and Singer's dual share: the room below the caps, the weights, the gradient, the gap.

    max  sum_i beta_i^{y_i} - sum_y ||w_y||^2/2,   beta_i^y <= C_i [y = y_i],  sum_y beta_i^y = 0,
    w_y = sum_i beta_i^y x_i.

Kept are not the beta but the room r_i^y = C_i [y = y_i] - beta_i^y >= 0 that their caps leave (class_room.py).
g_i^y = [y = y_i] - <w_y, x_i> is the gradient. Of an example's classes the active ones stand in front of its line of
``which``; the others have no room and are left alone. W[j, y] has the class last. Besides the weights this takes
12 n k bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled, prefetch
from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import BoxPoint
from slackwater.objective.multiclass import MulticlassProblem
from slackwater.rows import add_some, dot_each, dot_some, padded, prefetch_row, sqnorms, squared_norm
from slackwater.solvers.class_room import coefficients_of, room_of
from slackwater.solvers.contract import State
from slackwater.solvers.visits import Visits, visited


class Blocks(NamedTuple):
    """Examples as compiled code sees them: a block of coordinates each."""

    room: np.ndarray  # (n, k)
    which: np.ndarray  # (n, k) uint32, the classes in an order of each example's own
    counts: np.ndarray  # (n) uint32, how many of them are active
    codes: np.ndarray
    costs: np.ndarray
    q: np.ndarray  # ||x_i||^2
    W: np.ndarray  # (d + 1, padded k)
    scores: np.ndarray  # room for one example's: by class,
    g: np.ndarray  # by place in its line of which,
    height: np.ndarray  # and for the step
    moved: np.ndarray


@dataclass
class BlockState(State):
    """The blocks, the order of visits, the dual value as the steps add it up, the gap terms met."""

    blocks: Blocks
    visits: Visits
    dual: float
    gap: float

    @property
    def relative_gap(self) -> float:
        """As met on the way, with whatever has been left alone left out."""
        return self.gap / self.dual if self.dual > 0.0 else math.inf


def new_blocks(problem: MulticlassProblem, beta: np.ndarray | None) -> Blocks:
    """beta = 0, or the given coefficients clipped and scaled to be feasible."""
    n, k = problem.dual_shape
    room = room_of(beta, problem.codes, problem.costs, k)
    q = np.empty(n)
    sqnorms(problem.rows, q)
    width = padded(k)
    W = np.zeros((problem.weights_shape[1], width))
    blocks = Blocks(
        room, np.empty((n, k), dtype=np.uint32), np.empty(n, dtype=np.uint32), problem.codes, problem.costs, q, W,
        np.empty(width), np.empty(k), np.empty(k), np.empty(k, dtype=np.uint32),
    )  # fmt: skip
    activate_all(blocks)
    if beta is not None:
        _sum_weights(problem.rows, blocks)
    return blocks


def dual_of(problem: MulticlassProblem, blocks: Blocks) -> float:
    """The dual objective, on the scale of J."""
    own = blocks.room[np.arange(problem.n_rows), problem.codes]
    return float((problem.costs - own).sum()) - 0.5 * float(squared_norm(blocks.W.ravel()))


def beta_of(problem: MulticlassProblem, blocks: Blocks) -> BoxPoint:
    """The coefficients."""
    return BoxPoint(coefficients_of(blocks.room, problem.codes, problem.costs))


def model_of(problem: MulticlassProblem, W: np.ndarray) -> LinearModel:
    """One output for each class."""
    return LinearModel.from_weights(W.T[: problem.n_classes], problem.rows.bias)


@compiled(borrows=True)
def activate_all(blocks):
    """Every class of every example is active (again)."""
    n, k = blocks.which.shape
    for i in range(np.uint64(n)):
        blocks.counts[i] = k
        for m in range(np.uint64(k)):
            blocks.which[i, m] = m


@compiled(inline=True)
def visited_block(rows, blocks, order, s, count, ahead):
    """The block to visit now, order[s]; the memory of those to come is asked for."""
    i, coming = visited(rows, blocks.room, order, s, count, ahead)
    prefetch_row(rows, coming)
    prefetch(blocks.which, coming)
    return i


@compiled(inline=True)
def see(rows, blocks, i):
    """Fill ``g`` for the active classes of example i: the lowest, the highest of those with room, the gap term.

    r_i^y (g_i^y - min g) summed is the example's share of J(W) - D(beta), as C_i (g_i^{y_i} - min g) is its loss.
    """
    which, room, g, own = blocks.which, blocks.room, blocks.g, blocks.codes[i]
    count = np.uint64(blocks.counts[i])
    if 6 * count > blocks.W.shape[1]:
        dot_each(rows, i, blocks.W, blocks.scores)
        for m in range(count):
            g[m] = blocks.scores[which[i, m]]
    else:
        dot_some(rows, i, blocks.W, which[i], count, g)
    lowest, highest = math.inf, -math.inf
    for m in range(count):
        y = which[i, m]
        g[m] = (1.0 if y == own else 0.0) - g[m]
        lowest = min(lowest, g[m])
        if room[i, y] > 0.0:
            highest = max(highest, g[m])
    gap = 0.0
    for m in range(count):
        gap += room[i, which[i, m]] * (g[m] - lowest)
    return lowest, highest, gap


@compiled(inline=True)
def leave_alone(blocks, i, highest):
    """Classes without room and a gradient above ``highest`` are active no longer; how many still are."""
    which, room, g = blocks.which, blocks.room, blocks.g
    count = np.uint64(blocks.counts[i])
    m = np.uint64(0)
    while m < count:
        y = which[i, m]
        if room[i, y] > 0.0 or g[m] <= highest:
            m += np.uint64(1)
            continue
        count -= np.uint64(1)
        which[i, m], which[i, count] = which[i, count], y
        g[m] = g[count]
    blocks.counts[i] = count
    return count


@compiled(borrows=True)
def _sum_weights(rows, blocks):
    """W of the room."""
    room, which, amounts = blocks.room, blocks.moved, blocks.g
    for i in range(np.uint64(blocks.codes.size)):
        own, count = np.uint64(blocks.codes[i]), np.uint64(0)
        for y in range(np.uint64(room.shape[1])):
            beta = (blocks.costs[i] if y == own else 0.0) - room[i, y]
            if beta != 0.0:
                which[count], amounts[count] = y, beta
                count += np.uint64(1)
        if count:
            add_some(rows, i, which, amounts, count, blocks.W)
