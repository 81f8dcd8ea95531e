"""The batch perceptron: the lowest response, eta_t = 1 / (R sqrt t), the unit ball (Cotter et al. 2012, nu = 0)."""

import numpy as np


def batch_perceptron_twin(K, y, steps):
    """alpha after each step."""
    Q = np.asarray(y)[:, None] * K * np.asarray(y)
    reach, alpha, way = np.sqrt(np.diag(K).max()), np.zeros(len(K)), []
    for t in range(1, steps + 1):
        alpha[np.argmin(Q @ alpha)] += 1.0 / (reach * np.sqrt(t))
        alpha /= max(1.0, np.sqrt(alpha @ Q @ alpha))
        way.append(alpha.copy())
    return np.array(way)
