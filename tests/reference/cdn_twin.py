"""Coordinate descent with Newton directions and backtracking (Yuan, Chang, Hsieh, Lin 2010), without shrinking."""

import numpy as np

from reference.penalised_reference import penalty_value
from reference.qp_reference import loss_value


def cdn_twin(Z, costs, loss, penalty, orders, sigma=0.01):
    """w after visits in these orders; Z are the rows y_i x_i, no weight is without a penalty."""
    target, width, cap = loss
    square, absolute = penalty
    w = np.zeros(Z.shape[1])

    def J(w):
        return penalty_value(penalty, w) + costs @ loss_value(loss, Z @ w)

    for order in orders:
        for j in order:
            short = target - Z @ w
            g = -(costs * np.minimum(np.maximum(short, 0.0) / width, cap)) @ Z[:, j]
            H = (costs / width * ((short > 0.0) & (short <= cap * width))) @ Z[:, j] ** 2
            q = (costs / width) @ Z[:, j] ** 2
            H = max(H, (1.0 / 64.0 if np.isfinite(cap) else 1e-12) * q) + square
            aim = H * w[j] - (g + square * w[j])
            d = np.sign(aim) * max(abs(aim) - absolute, 0.0) / H - w[j]
            fall = (g + square * w[j]) * d + absolute * (abs(w[j] + d) - abs(w[j]))
            if not fall < 0.0:
                continue
            step, here, moved = 1.0, J(w), w.copy()
            for _ in range(30):
                moved[j] = w[j] + step * d
                if J(moved) - here <= sigma * step * fall + 1e-14 * here:
                    break
                step /= 2.0
            w = moved
    return w
