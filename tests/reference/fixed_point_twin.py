"""The rbf fixed point from one start, in plain NumPy."""

import numpy as np


def fixed_point_twin(S, theta, gamma, z, steps):
    """z <- sum theta K s / sum theta K for as long as |sum theta K| rises."""

    def pulls(z):
        return theta * np.exp(-gamma * ((S - z) ** 2).sum(axis=1))

    best = 0.0
    ahead = z
    for _ in range(steps + 1):
        pull = pulls(ahead)
        if not abs(pull.sum()) > best * (1.0 + 1e-7):
            break
        z, best = ahead, abs(pull.sum())
        ahead = pull @ S / pull.sum()
    return z
