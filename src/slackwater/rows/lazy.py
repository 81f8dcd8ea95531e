"""Shrinking that waits: a soft threshold of all weights at every step, done to a weight when its column is met again.

A vector ``v`` of 2 m numbers holds m weights and behind them the sum of thresholds up to which each has been shrunk.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import by_type, compiled
from slackwater.rows.layouts import CSRRows, DenseRows


@compiled(inline=True)
def _caught_up(weight, threshold, cutoff):
    """The weight after thresholds that come to ``threshold``; one beyond the cutoff is left as it is."""
    size = abs(weight)  # without a branch: signs are anything but predictable
    return math.copysign(size if size > cutoff else max(size - threshold, 0.0), weight)


@compiled(inline=True)
def _catch_up(v, m, j, total, cutoff):
    v[j], v[m + j] = _caught_up(v[j], total - v[m + j], cutoff), total
    return v[j]  # interpreted, a Python number would be rounded to float32


@by_type
def shrunk_dot(rows, i, v, total, cutoff):
    """<x_i, w>, the constant feature included; the weights of row i are shrunk up to ``total`` first."""


@shrunk_dot.register(DenseRows)
def _dense(rows, i, v, total, cutoff):
    row, m = rows.values[i], np.uint64(v.size // 2)
    d = np.uint64(row.size)
    product = 0.0
    for j in range(d):
        product += row[j] * _catch_up(v, m, j, total, cutoff)
    return product + rows.bias * _catch_up(v, m, d, total, cutoff)


@shrunk_dot.register(CSRRows)
def _csr(rows, i, v, total, cutoff):
    m = np.uint64(v.size // 2)
    product = 0.0
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        product += rows.values[p] * _catch_up(v, m, np.uint64(rows.indices[p]), total, cutoff)
    return product + rows.bias * _catch_up(v, m, np.uint64(rows.columns), total, cutoff)


@compiled
def shrink_all(v, total, cutoff):
    """Every weight is shrunk up to ``total``, and the sums begin at zero again."""
    m = np.uint64(v.size // 2)
    for j in range(m):
        v[j] = _caught_up(v[j], total - v[m + j], cutoff)
        v[m + j] = 0.0
