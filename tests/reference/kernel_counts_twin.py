"""Kernel Pegasos and kernel SGD-s: counts of margin errors, threshold lambda t (Shalev-Shwartz et al. 2011)."""

import numpy as np


def kernel_counts_twin(K, y, lam, orders, shares=None):
    """The counts I after each epoch of visits, the norm of w and the bound of all epochs (whole ones only)."""
    n, y = len(K), np.asarray(y)
    u = np.ones(n) if shares is None else shares
    Q = y[:, None] * K * y
    counts, t, history = np.zeros(n), 0, []
    for order in orders:
        for i in order:
            if Q[i] @ (u * counts) <= lam * t:
                counts[i] += 1
            t += 1
        a = u * counts
        square = a @ Q @ a
        history.append((counts.copy(), np.sqrt(square) / (lam * t), a.sum() / t - square / (2 * lam * t * t)))
    return history
