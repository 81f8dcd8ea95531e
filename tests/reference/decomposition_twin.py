"""Decomposition step by step: Zoutendijk's working sets, each solved by pairs or singles to rounding error."""

import numpy as np


def working_set(v, beta, low, high, q, pairs):
    """The q variables of the steepest feasible direction."""
    up, down = np.where(beta < high, v, -np.inf), np.where(beta > low, -v, -np.inf)
    if not pairs:
        wish = np.maximum(up, down)
        return [i for i in np.argsort(-wish, kind="stable")[:q] if wish[i] > 0]
    first = [i for i in np.argsort(-up, kind="stable")[: q // 2] if up[i] > -np.inf]
    rest = [i for i in np.argsort(-down, kind="stable") if down[i] > -np.inf and i not in first]
    return first + rest[: q // 2]


def solve_set(K, v, ridge, beta, low, high, pairs, steps=20_000):
    """beta at the maximum of the concave quadratic with slope v at ``beta``."""
    beta, v, bend = beta.copy(), v.copy(), np.diagonal(K) + ridge
    for _ in range(steps):
        if pairs:
            i = int(np.argmax(np.where(beta < high, v, -np.inf)))
            b = np.where(beta > low, v[i] - v, 0.0)
            curvature = np.maximum(bend[i] + bend - 2 * K[i], 1e-12)
            j = int(np.argmax(np.where(b > 0, b * b / curvature, 0.0)))
            if b[j] <= 1e-14:
                break
            moves = {i: min(b[j] / curvature[j], high[i] - beta[i], beta[j] - low[j])}
            moves[j] = -moves[i]
        else:
            step = np.clip(v / np.maximum(bend, 1e-12), low - beta, high - beta)
            i = int(np.argmax(step * v - 0.5 * step**2 * bend))
            if abs(step[i]) * bend[i] <= 1e-14:
                break
            moves = {i: step[i]}
        for k, s in moves.items():
            beta[k] = np.clip(beta[k] + s, low[k], high[k])
            v -= s * K[k]
            v[k] -= s * ridge[k]
    return beta
