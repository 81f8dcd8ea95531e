"""Sums over weight vectors, without the threads of a BLAS: waking them costs more than they gain here."""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled


@compiled(borrows=True)
def squared_norm(x):
    """||x||^2."""
    total = 0.0
    for j in range(np.uint64(x.size)):
        total += x[j] * x[j]
    return total


@compiled(borrows=True)
def squared_distance(x, y):
    """||x - y||^2, without a temporary array."""
    total = 0.0
    for j in range(np.uint64(x.size)):
        change = x[j] - y[j]
        total += change * change
    return total


@compiled(borrows=True)
def inner(x, y):
    """<x, y>."""
    total = 0.0
    for j in range(np.uint64(x.size)):
        total += x[j] * y[j]
    return total
