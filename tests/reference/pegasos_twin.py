"""Pegasos: subgradient steps 1 / (lambda t) on batches, with the projection onto the ball 1 / sqrt(lambda)."""

import numpy as np


def pegasos_twin(X, y, lam, batches, project=True, shares=None):
    """w after one step per batch (a sequence of row numbers, repetitions allowed) and the counts of margin errors.

    With batches of k examples the t-th step is 1 / (lambda t), divided by k; a shorter one moves the clock k t less.
    """
    u = np.ones(len(X)) if shares is None else shares
    Z = np.asarray(X, dtype=float) * np.asarray(y)[:, None]
    w, counts = np.zeros(Z.shape[1]), np.zeros(len(Z))
    presented = 0
    for batch in batches:
        presented += len(batch)
        violators = [i for i in batch if w @ Z[i] <= 1.0]
        w = (1.0 - len(batch) / presented) * w
        for i in violators:
            w = w + u[i] * Z[i] / (lam * presented)
            counts[i] += 1
        length = np.sqrt(w @ w)
        if project and length > 1.0 / np.sqrt(lam):
            w = w / (length * np.sqrt(lam))
    return w, counts
