"""Dual block descent for Crammer and Singer's problem, in given orders, without shrinking (Keerthi et al. 2008)."""

import numpy as np


def best_room(bumps, volume):
    """The depths of a volume of water over bumps, by sorting them."""
    ascending = np.sort(bumps)
    levels = (volume + np.cumsum(ascending)) / np.arange(1, len(bumps) + 1)
    level = levels[np.flatnonzero(levels > ascending)[-1]]
    return np.maximum(level - bumps, 0.0)


def crammer_singer_twin(X, codes, k, costs, orders):
    """Return beta and W, a line for each class; ``orders`` gives one visiting order per pass."""
    X = np.asarray(X, dtype=float)
    beta, W, q = np.zeros((len(X), k)), np.zeros((k, X.shape[1])), (X * X).sum(axis=1)
    for order in orders:
        for i in order:
            own = np.arange(k) == codes[i]
            if q[i] == 0.0:  # a row of zeros: all room with one of the others
                beta[i] = costs[i] * own - costs[i] * (np.arange(k) == np.flatnonzero(~own)[0])
                continue
            g, room = own - W @ X[i], costs[i] * own - beta[i]
            new = costs[i] * own - best_room(g - q[i] * room, q[i] * costs[i]) / q[i]
            W += np.outer(new - beta[i], X[i])
            beta[i] = new
    return beta, W
