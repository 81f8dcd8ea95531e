"""Newton's method for the squared hinge over few functions, and the greedy choice of SpSVM, in plain NumPy."""

import numpy as np


def newton_twin(B, R, y, costs, biased, steps=100):
    """u and b of the least u'Ru/2 + sum_i C_i max(0, 1 - y_i (B'u + b))^2."""
    m, F = len(B), np.vstack((B, np.ones(B.shape[1])))[: len(B) + biased]
    ridge = np.zeros((len(F), len(F)))
    ridge[:m, :m] = R
    u = np.zeros(len(F))

    def value(u):
        return 0.5 * u @ ridge @ u + costs @ np.maximum(0.0, 1.0 - y * (u @ F)) ** 2

    for _ in range(steps):
        short = np.maximum(0.0, 1.0 - y * (u @ F))
        gradient = ridge @ u - F @ (2.0 * costs * y * short)
        hessian = ridge + (F * (2.0 * costs * (short > 0.0))) @ F.T
        step, t = np.linalg.lstsq(hessian, gradient, rcond=None)[0], 1.0
        while value(u - t * step) > value(u) and t > 1e-9:
            t /= 2.0
        u = u - t * step
    return u[:m], (u[m] if biased else 0.0)


def spsvm_twin(K, y, costs, bias, count, most, rng):
    """J in the order of choice, with Newton's method after every choice."""
    J, beta, b = [], np.zeros(0), bias
    while len(J) < most:
        outside = np.setdiff1d(np.arange(len(y)), J)
        drawn = outside if outside.size <= count else rng.choice(outside, count, replace=False)
        scores = beta @ K[J] if J else np.zeros(len(y))
        short = np.maximum(0.0, 1.0 - y * (scores + b))
        g = scores[drawn] - K[drawn] @ (2.0 * costs * y * short)
        h = np.diagonal(K)[drawn] + K[drawn] ** 2 @ (2.0 * costs * (short > 0.0))
        J.append(int(drawn[np.argmax(g * g / h)]))
        beta, b = newton_twin(K[J], K[np.ix_(J, J)], y, costs, True)
    return J, beta, b
