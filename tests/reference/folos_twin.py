"""FOLOS and the truncated gradient, eagerly: every weight is shrunk at every step (JMLR 10, 2009, both)."""

import numpy as np


def shrink(v, threshold):
    """The soft threshold of every weight."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def slope(loss, m):
    """-l'(m), the left derivative at the kink of the hinge."""
    target, width, cap = loss
    if m > target:
        return 0.0
    return cap if width == 0.0 else min((target - m) / width, cap)


def folos_twin(X, y, shares, loss, penalty, lam, inverse_steps, order):
    """w after one step for each index of ``order``; ``inverse_steps(t)`` is 1 / eta_t."""
    w = np.zeros(X.shape[1])
    for t, i in enumerate(order):
        inverse = inverse_steps(t)
        pull = shares[i] * slope(loss, y[i] * (X[i] @ w)) * y[i] * X[i]
        if inverse == 0.0:  # an infinite step: only the parabola of the penalty stands against it
            w = shrink(pull, lam * penalty.absolute) / (lam * penalty.square)
        else:
            eta = 1.0 / inverse
            w = shrink(w + eta * pull, eta * lam * penalty.absolute) / (1.0 + eta * lam * penalty.square)
    return w


def truncated_twin(X, y, shares, loss, gravity, every, theta, inverse_steps, order):
    """The same with T(w; K eta g, theta) after every K-th step."""
    w = np.zeros(X.shape[1])
    for t, i in enumerate(order):
        eta = 1.0 / inverse_steps(t)
        w = w + eta * shares[i] * slope(loss, y[i] * (X[i] @ w)) * y[i] * X[i]
        if (t + 1) % every == 0:
            w = np.where(np.abs(w) <= theta, shrink(w, every * eta * gravity), w)
    return w
