"""SVM-SGD with explicit scaling (Bottou's svmsgd), one array of weights after every step; and averages of them."""

import numpy as np


def twin_slope(loss, m):
    """-l'(m); the left derivative at the kink of the hinge."""
    target, width, cap = loss
    r = target - m
    if r < 0.0:
        return 0.0
    return cap if width == 0.0 else min(r / width, cap)


def svm_sgd_twin(X, y, lam, loss, eta, orders, shares, free_bias=None):
    """The weights after every step, one line each, and the slopes of each example summed.

    ``eta(t)`` is the size of step t = 1, 2, ..; with ``free_bias``, a part of it, the last column is not shrunk and
    moved by that part of the step only.
    """
    w, slopes, path = np.zeros(X.shape[1]), np.zeros(len(X)), []
    part, shrunk = np.ones(X.shape[1]), np.ones(X.shape[1])
    if free_bias is not None:
        part[-1], shrunk[-1] = free_bias, 0.0
    for t, i in enumerate((i for order in orders for i in order), start=1):
        a = twin_slope(loss, y[i] * (X[i] @ w))
        w = (1.0 - eta(t) * lam * shrunk) * w + eta(t) * shares[i] * a * y[i] * part * X[i]
        slopes[i] += a
        path.append(w)
    return np.array(path), slopes


def averaged(path, start, weight):
    """abar <- abar + mu (w - abar) after every step, mu = weight(k) in the k-th step after ``start``, 1 before."""
    average = path[0]
    for t, w in enumerate(path, start=1):
        k = t - start
        mu = weight(k) if k > 0 else 1.0
        average = average + mu * (w - average)
    return average
