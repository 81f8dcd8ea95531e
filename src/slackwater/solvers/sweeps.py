"""Sweeps over the rows, shared by several threads: margins, and sums of chosen rows.

Every thread takes an equal part of the rows, in order, and sums into a vector of its own; the sums are added in the
rows' order, so that the number of threads changes results by rounding only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot, prefetch_row
from slackwater.threads import in_threads

_AHEAD = 8  # rows between asking for one's memory and adding it


def margins_at(problem: LinearProblem, w: np.ndarray, out: np.ndarray, threads: int = 1) -> None:
    """out_i = y_i <w, x_i>."""
    _in_parts(
        lambda _, first, last: _margins(problem.rows, problem.labels, w, first, last, out), problem.n_rows, threads
    )


def add_rows(
    problem: LinearProblem, ids: np.ndarray, coefficients: np.ndarray, out: np.ndarray, threads: int = 1
) -> None:
    """out += sum over s of coefficients_s x_i,  i = ids_s."""
    parts = [out, *(np.zeros_like(out) for _ in range(_parts(ids.size, threads) - 1))]
    _in_parts(lambda k, first, last: _sum(problem.rows, ids, coefficients, first, last, parts[k]), ids.size, threads)
    for part in parts[1:]:
        out += part


def _parts(n: int, threads: int) -> int:
    return max(1, min(threads, n))


def _in_parts(work: Callable[[int, int, int], None], n: int, threads: int) -> None:
    """work(k, first, last) over equal parts of n rows, each in a thread of its own."""
    parts = _parts(n, threads)
    bounds = [n * k // parts for k in range(parts + 1)]
    in_threads(lambda k: work(k, bounds[k], bounds[k + 1]), parts, parts)


@compiled(borrows=True)
def _margins(rows, labels, w, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = labels[i] * dot(rows, i, w)


@compiled(borrows=True)
def _sum(rows, ids, coefficients, first, last, out):
    end = np.uint64(last)
    for s in range(np.uint64(first), end):
        if s + np.uint64(_AHEAD) < end:
            prefetch_row(rows, np.uint64(ids[s + np.uint64(_AHEAD)]))
        add(rows, np.uint64(ids[s]), coefficients[s], out)
