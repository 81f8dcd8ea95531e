"""SGD-s: every example once per epoch, threshold lambda t (Panagiotakopoulos, Tsampouka 2013)."""

from typing import NamedTuple

import numpy as np


class Epoch(NamedTuple):
    """The state after ``epochs`` epochs: a, counts I_i, mass M = sum u_i I_i, w = a / (lambda t), the bound D."""

    epochs: int
    a: np.ndarray
    counts: np.ndarray
    mass: float
    w: np.ndarray
    dual: float


def sgd_s_twin(X, y, lam, orders, shares=None):
    """One ``Epoch`` per visiting order. ``shares`` u_i weigh the examples, mean 1."""
    n = len(X)
    u = np.ones(n, dtype=int) if shares is None else shares
    Z = X * np.asarray(y)[:, None]
    a, counts, t, history = Z[0] * 0, np.zeros(n, dtype=int), 0, []
    for epochs, order in enumerate(orders, start=1):
        for k in order:
            if a @ Z[k] <= lam * t:
                a = a + u[k] * Z[k]
                counts[k] += 1
            t += 1
        mass = (u * counts).sum()
        dual = mass / t - (a @ a) / (2 * lam * t * t)
        history.append(Epoch(epochs, a, counts.copy(), mass, a / (lam * t), dual))
    return history
