"""SMO step by step on a whole kernel matrix: pairs under a free bias, single coordinates otherwise."""

import numpy as np


def smo_twin(K, y, costs, loss, beta, steps, *, pairs, second_order=True):
    """From ``beta`` on: return beta and the gains of W that the steps promised, one per step."""
    K, y = np.asarray(K, dtype=float), np.asarray(y, dtype=float)
    target, width, cap = loss
    top, ridge = cap * costs, width / costs
    low, high = np.where(y < 0, -top, 0.0), np.where(y > 0, top, 0.0)
    beta, bend, gains = beta.copy(), np.diagonal(K) + ridge, []
    for _ in range(steps):
        v = y * target - K @ beta - ridge * beta
        up, down = beta < high, beta > low
        if not pairs:
            moves = np.clip(v / np.maximum(bend, 1e-12), low - beta, high - beta)
            scores = moves * v - 0.5 * moves**2 * bend if second_order else np.where(moves * v > 0, abs(v), 0.0)
            i = int(np.argmax(scores))
            if scores[i] <= 0.0:
                break
            gains.append(moves[i] * v[i] - 0.5 * moves[i] ** 2 * bend[i])
            beta[i] = np.clip(beta[i] + moves[i], low[i], high[i])
            continue
        i = int(np.argmax(np.where(up, v, -np.inf)))
        curvature = np.maximum(bend[i] + bend - 2 * K[i], 1e-12)
        b = np.where(down, v[i] - v, 0.0)
        scores = np.where(b > 0, b**2 / curvature if second_order else b, 0.0)
        j = int(np.argmax(scores))
        if scores[j] <= 0.0:
            break
        s = min(b[j] / curvature[j], high[i] - beta[i], beta[j] - low[j])
        gains.append(s * b[j] - 0.5 * s * s * curvature[j])
        beta[i], beta[j] = min(beta[i] + s, high[i]), max(beta[j] - s, low[j])
    return beta, np.array(gains)
