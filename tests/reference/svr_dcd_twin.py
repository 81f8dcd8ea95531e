"""Dual coordinate descent for regression in given orders, by a search over the pieces of each parabola."""

import numpy as np


def svr_dcd_twin(X, targets, costs, loss, orders):
    """beta and w after one pass in each order."""
    epsilon, width, cap = loss
    beta, w = np.zeros(len(X)), np.zeros(X.shape[1])
    for order in orders:
        for i in order:
            q, upper = X[i] @ X[i] + width / costs[i], cap * costs[i]
            pull = targets[i] - w @ X[i] + beta[i] * (X[i] @ X[i])  # with beta_i = 0 in place of what it is

            def value(b, q=q, pull=pull):
                return 0.5 * q * b * b - pull * b + epsilon * abs(b)

            ends = [0.0, -upper, upper] if np.isfinite(upper) else [0.0]
            tops = [(pull - epsilon) / q, (pull + epsilon) / q] if q > 0.0 else []
            new = min([*ends, *(b for b in tops if abs(b) <= upper)], key=value)
            w = w + (new - beta[i]) * X[i]
            beta[i] = new
    return beta, w
