"""Dual coordinate descent in cyclic order, without shrinking, for every loss (Hsieh et al. 2008)."""

import numpy as np


def dcd_twin(X, y, costs, loss, passes=10_000, tolerance=1e-14, orders=None):
    """Return alpha and w. ``orders`` gives one visiting order per pass and replaces ``passes`` and ``tolerance``."""
    target, width, cap = loss
    Z = np.asarray(X, dtype=float) * np.asarray(y, dtype=float)[:, None]
    shift = width / costs
    curvature = (Z * Z).sum(axis=1) + shift
    alpha, w = np.zeros(len(Z)), np.zeros(Z.shape[1])
    for order in orders if orders is not None else [range(len(Z))] * passes:
        largest = 0.0
        for i in order:
            gradient = Z[i] @ w - target + shift[i] * alpha[i]
            # A zero row under the hinge: the dual is linear in alpha_i, so the box ends it.
            step = -gradient / curvature[i] if curvature[i] > 0 else np.inf
            new = min(max(alpha[i] + step, 0.0), cap * costs[i])
            w = w + (new - alpha[i]) * Z[i]
            largest = max(largest, abs(new - alpha[i]) * max(curvature[i], 1e-300) ** 0.5)
            alpha[i] = new
        if orders is None and largest <= tolerance * max(1.0, abs(w).max(initial=0.0)):
            break
    return alpha, w
