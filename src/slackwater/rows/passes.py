"""Passes over all rows, which several threads may share.

A sum over rows falls into as many parts as there are threads, in the rows' order: their number changes results by
rounding only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slackwater.compiled import compiled
from slackwater.rows.primitives import add, dot, sqnorm
from slackwater.threads import in_parts, together


def times(rows, w: np.ndarray, out: np.ndarray, threads: int = 1) -> None:
    """out = X w."""
    in_parts(lambda first, last: _times(rows, w, first, last, out), rows.n_rows, threads, entries_of_a_row(rows))


def entries_of_a_row(rows) -> int:
    """The mean, at least 1: what a visit costs."""
    return max(1, rows.n_entries // max(1, rows.n_rows))


def transpose_times(rows, coefficients: np.ndarray, out: np.ndarray, threads: int = 1) -> None:
    """out += X' coefficients, skipping the rows whose coefficient is zero."""
    add_in_parts(
        lambda first, last, into: _transpose_times(rows, coefficients, first, last, into), rows.n_rows, out, threads
    )


def add_in_parts(add_part: Callable[[int, int, np.ndarray], object], size: int, out: np.ndarray, threads: int) -> None:
    """out += what ``add_part(first, last, into)`` adds over equal parts of range(size), one for each thread."""
    count = max(1, min(threads, size))
    bounds = [size * k // count for k in range(count + 1)]
    parts = [out, *(np.zeros_like(out) for _ in range(count - 1))]
    together(lambda k: add_part(bounds[k], bounds[k + 1], parts[k]), count)
    for part in parts[1:]:
        out += part


def sqnorms(rows, out: np.ndarray, threads: int = 1) -> None:
    """out_i = ||x_i||^2."""
    in_parts(lambda first, last: _sqnorms(rows, first, last, out), rows.n_rows, threads, entries_of_a_row(rows))


@compiled(borrows=True)
def _sqnorms(rows, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = sqnorm(rows, i)


@compiled(borrows=True)
def _times(rows, w, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = dot(rows, i, w)


@compiled(borrows=True)
def _transpose_times(rows, coefficients, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        if coefficients[i] != 0.0:
            add(rows, i, coefficients[i], out)
