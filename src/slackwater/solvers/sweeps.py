"""Sweeps over the rows, shared by several threads: margins, and sums of chosen rows.

Every thread takes an equal part of the rows, in order, and sums into a vector of its own; the sums are added in the
rows' order, so that the number of threads changes results by rounding only.
"""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, add_in_parts, prefetch_row, times

_AHEAD = 8  # rows between asking for one's memory and adding it


def margins_at(problem: LinearProblem, w: np.ndarray, out: np.ndarray, threads: int = 1) -> None:
    """out_i = y_i <w, x_i>."""
    times(problem.rows, w, out, threads)
    out *= problem.labels


def add_rows(
    problem: LinearProblem, ids: np.ndarray, coefficients: np.ndarray, out: np.ndarray, threads: int = 1
) -> None:
    """out += sum over s of coefficients_s x_i,  i = ids_s."""
    add_in_parts(
        lambda first, last, into: _sum(problem.rows, ids, coefficients, first, last, into), ids.size, out, threads
    )


@compiled(borrows=True)
def _sum(rows, ids, coefficients, first, last, out):
    end = np.uint64(last)
    for s in range(np.uint64(first), end):
        if s + np.uint64(_AHEAD) < end:
            prefetch_row(rows, np.uint64(ids[s + np.uint64(_AHEAD)]))
        add(rows, np.uint64(ids[s]), coefficients[s], out)
