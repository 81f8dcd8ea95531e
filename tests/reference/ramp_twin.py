"""The convex-concave procedure for the ramp loss on a whole kernel matrix, its convex problems by coordinate ascent."""

import numpy as np


def ramp_value(K, y, costs, s, signed, b=0.0):
    """J with the hinge cut off at s."""
    margins = y * (K @ signed + b)
    hinge = np.maximum(0.0, 1.0 - margins)
    cut = np.maximum(0.0, s - margins)
    return 0.5 * signed @ K @ signed + costs @ (hinge - cut)


def ramp_twin(K, y, costs, s, sweeps=3000):
    """Return alpha and J after every convex problem; no bias."""
    K, alpha, beta, values = np.asarray(K, dtype=float), np.zeros(len(y)), np.zeros(len(y)), []
    while True:
        alpha = np.clip(alpha, -beta, costs - beta)
        for _ in range(sweeps):
            before = alpha.copy()
            for i in range(len(y)):
                slope = 1.0 - y[i] * (K[i] @ (alpha * y))
                alpha[i] = np.clip(alpha[i] + slope / K[i, i], -beta[i], costs[i] - beta[i])
            if np.abs(alpha - before).max() < 1e-13:
                break
        values.append(ramp_value(K, y, costs, s, alpha * y))
        outliers = costs * (y * (K @ (alpha * y)) < s)
        if np.array_equal(outliers, beta):
            return alpha, values
        beta = outliers
