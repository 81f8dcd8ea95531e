"""The margin perceptron with unlearning, real-valued or quantised, one pass after another (L10)."""

import numpy as np


def mpu_twin(X, y, costs, loss, delta, orders, quantised=False):
    """Return alpha and the dual objective W after every visit."""
    target, width, cap = loss
    Z = np.asarray(X, dtype=float) * np.asarray(y, dtype=float)[:, None]
    d, upper = width / costs, cap * costs
    q = (Z * Z).sum(axis=1) + d
    alpha, values = np.zeros(len(Z)), []
    for i in (i for order in orders for i in order):
        e = target - Z[i] @ (alpha @ Z) - d[i] * alpha[i]
        step = delta * costs[i]
        if quantised:
            change = step if e > 0.0 else -step if e < -q[i] * step else 0.0
        else:
            change = e / q[i] if abs(e) > delta * target else 0.0
        alpha[i] = min(max(alpha[i] + change, 0.0), upper[i])
        w = alpha @ Z
        values.append(target * alpha.sum() - 0.5 * (w @ w) - 0.5 * d @ alpha**2)
    return alpha, np.array(values)
