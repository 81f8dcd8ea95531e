"""Core vectors one at a time, and the ball of fixed radius, on a dense matrix (Tsang et al. 2005, 2007)."""

import numpy as np


def simplex_minimum(K):
    """argmin p'Kp over the simplex, by steps on pairs of coordinates, to the last digits."""
    p = np.full(len(K), 1.0 / len(K))
    for _ in range(200_000):
        g = K @ p
        i, j = np.argmin(g), np.argmax(np.where(p > 0.0, g, -np.inf))
        if g[j] - g[i] <= 1e-12 * (p @ g):
            break
        step = min((g[j] - g[i]) / max(K[i, i] + K[j, j] - 2.0 * K[i, j], 1e-300), p[j])
        p[i], p[j] = p[i] + step, p[j] - step
    return p


def cvm_twin(K, first, additions, eps=1e-6):
    """The core set in the order in which the furthest points join, and p."""
    members, p, top = [first], np.eye(len(K))[first], np.diag(K).max()
    for _ in range(additions):
        g = K @ p
        q = p @ g
        k = int(np.argmin(g))
        if k in members or q - 2.0 * g[k] + top <= (1.0 + eps) ** 2 * (top - q):
            break
        members.append(k)
        p = np.zeros(len(K))
        p[members] = simplex_minimum(K[np.ix_(members, members)])
    return members, p


def bvm_twin(K, first, steps, eps):
    """p after each step of the ball with the radius of that around the origin."""
    p, top, way = np.eye(len(K))[first], np.diag(K).max(), []
    for _ in range(steps):
        g = K @ p
        k = int(np.argmin(g))
        distance = np.sqrt(p @ g - 2.0 * g[k] + top)
        if distance <= (1.0 + eps) * np.sqrt(top):
            break
        share = np.sqrt(top) / distance
        p = share * p
        p[k] += 1.0 - share
        way.append(p)
    return way
