"""One class in plain NumPy: the values of both problems by their definitions, and the optimum by steps on pairs."""

import numpy as np


def one_class_values(K, alpha, rho, weights, nu):
    """Schoelkopf's objective of w/m and rho/m, and its dual at alpha/m."""
    m = nu * weights.sum()
    a, r = alpha / m, rho / m
    f, square = K @ a, a @ K @ a
    return 0.5 * square - r + weights @ np.maximum(0.0, r - f) / m, -0.5 * square


def one_class_twin(K, weights, nu, tolerance=1e-12, most=200_000):
    """alpha: the mass on the first examples, then the most violating pair until none violates."""
    alpha = np.clip(nu * weights.sum() - (np.cumsum(weights) - weights), 0.0, weights)
    f = K @ alpha
    for _ in range(most):
        i = np.argmin(np.where(alpha < weights, f, np.inf))
        j = np.argmax(np.where(alpha > 0.0, f, -np.inf))
        if f[j] - f[i] <= tolerance * np.abs(f).max():
            break
        length = (f[j] - f[i]) / max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-12)
        length = min(length, weights[i] - alpha[i], alpha[j])
        alpha[i] += length
        alpha[j] -= length
        f += length * (K[i] - K[j])
    return alpha
