"""The perceptron and the margin perceptron as written down, with every iterate kept."""

import numpy as np


def perceptron_twin(X, y, shares, orders):
    """Return the a after every visit, one line each, and the mistakes of each example."""
    a, counts, path = np.zeros(X.shape[1]), np.zeros(len(X)), []
    for order in orders:
        for i in order:
            if y[i] * (X[i] @ a) <= 0.0:
                a = a + shares[i] * y[i] * X[i]
                counts[i] += 1.0
            path.append(a)
    return np.array(path), counts


def margin_perceptron_twin(X, y, ridge, b, orders):
    """The plain rule on the longer rows [x_i, sqrt(d_i) e_i]: return all their weights and the updates."""
    longer = np.hstack([X * y[:, None], np.diag(np.sqrt(ridge))])
    a, counts = np.zeros(longer.shape[1]), np.zeros(len(X))
    for order in orders:
        for i in order:
            if longer[i] @ a <= b:
                a, counts[i] = a + longer[i], counts[i] + 1.0
    return a, counts
