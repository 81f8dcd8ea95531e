"""The Stochastic Batch Perceptron in NumPy, with sorted levels, and the level by a linear program."""

import numpy as np
from scipy.optimize import linprog


def level_by_program(responses, labels, weights, volume, free):
    """max gamma  over gamma, b, xi >= 0  with  c_i + y_i b + xi_i >= gamma,  sum u_i xi_i <= V."""
    n = len(responses)
    rows = np.column_stack((np.ones(n), -labels if free else np.zeros(n), -np.eye(n)))
    rows = np.vstack((rows, np.concatenate(([0.0, 0.0], weights))))
    found = linprog(
        np.eye(1, n + 2)[0] * -1.0, A_ub=rows, b_ub=np.append(responses, volume),
        bounds=[(None, None), (None, None)] + [(0.0, None)] * n,
    )  # fmt: skip
    return -found.fun


def wet(responses, labels, volume, free):
    """p* and gamma by sorting, all weights one."""
    p, groups = np.zeros(len(responses)), [labels > 0.0, labels < 0.0] if free else [labels != 0.0]
    order = [np.flatnonzero(group)[np.argsort(responses[group], kind="stable")] for group in groups]
    m = min(len(ids) for ids in order)
    sums = sum(np.cumsum(responses[ids[:m]]) for ids in order)
    levels = (sums + volume) / (len(groups) * np.arange(1, m + 1))
    K = int(np.argmin(levels)) + 1
    for ids in order:
        p[ids[:K]] = 1.0 / (len(groups) * K)
    return p, levels[K - 1]


def sbp_twin(Q, labels, nu, draw, steps, free=False):
    """alpha and c = Q alpha after so many steps; ``draw(p)`` names the next example."""
    n, R = len(Q), np.sqrt(Q.diagonal().max())
    alpha, c, N = np.zeros(n), np.zeros(n), 0.0
    for t in range(1, steps + 1):
        p, _ = wet(c, labels, n * nu, free)
        j, eta = draw(p), 1.0 / (R * np.sqrt(t))
        N += 2.0 * eta * c[j] + eta * eta * Q[j, j]
        alpha[j] += eta
        c = c + eta * Q[:, j]
        if N > 1.0:
            alpha, c, N = alpha / np.sqrt(N), c / np.sqrt(N), 1.0
    return alpha, c
