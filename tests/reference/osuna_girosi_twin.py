"""Osuna-Girosi by coordinate steps with a soft threshold on a whole kernel matrix."""

import numpy as np


def osuna_girosi_twin(K, values, costs, epsilon, sweeps=3000):
    """beta of max t'beta - eps ||beta||_1 - beta'K beta/2 over |beta_i| <= C_i."""
    beta, scores = np.zeros(len(values)), np.zeros(len(values))
    for _ in range(sweeps):
        before = beta.copy()
        for i, bend in enumerate(np.diagonal(K)):
            free = beta[i] + (values[i] - scores[i]) / bend
            soft = np.sign(free) * max(abs(free) - epsilon / bend, 0.0)
            new = np.clip(soft, -costs[i], costs[i])
            scores += (new - beta[i]) * K[i]
            beta[i] = new
        if np.abs(beta - before).max() < 1e-12:
            break
    return beta


def gap_of(K, values, costs, epsilon, beta):
    """sum_i C_i (|e_i| - eps)_+ - beta_i e_i + eps |beta_i|,  e = t - K beta."""
    e = values - K @ beta
    return (costs * np.maximum(np.abs(e) - epsilon, 0.0) - beta * e + epsilon * np.abs(beta)).sum()
