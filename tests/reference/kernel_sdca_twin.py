"""Dual coordinate ascent on a whole kernel matrix, in given orders."""

import numpy as np


def kernel_sdca_twin(K, y, costs, loss, orders):
    """Return beta after one epoch per order."""
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    target, width, cap = loss
    alpha = np.zeros(len(y))
    for order in orders:
        for i in order:
            c, d, top = y[i] * (K[i] @ (alpha * y)), width / costs[i], cap * costs[i]
            slope, bend = target - c - d * alpha[i], K[i, i] + d
            step = slope / bend if bend > 0 else np.sign(slope) * np.inf
            if slope != 0.0:
                alpha[i] = min(max(alpha[i] + step, 0.0), top)
    return alpha * y
