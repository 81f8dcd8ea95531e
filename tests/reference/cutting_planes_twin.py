"""Cutting planes for the hinge: SVM-perf, BMRM and OCAS as their pseudo-codes have them, and their small programs."""

from itertools import combinations

import numpy as np


def simplex_twin(H, b):
    """The best mixture by trying every support: on each, the conditions of first order are linear equations."""
    best, best_value = None, -np.inf
    for size in range(1, len(b) + 1):
        for support in map(list, combinations(range(len(b)), size)):
            equations = np.ones((size + 1, size + 1))
            equations[:size, :size], equations[size, size] = H[np.ix_(support, support)], 0.0
            beta = np.zeros(len(b))
            beta[support] = np.linalg.lstsq(equations, np.append(b[support], 1.0), rcond=1e-12)[0][:size]
            value = b @ beta - beta @ H @ beta / 2.0
            if beta.min() >= -1e-9 and abs(beta.sum() - 1.0) < 1e-9 and value > best_value:
                best, best_value = beta, value
    return best, best_value


def line_search_twin(margins, there, p, A0, B0):
    """L18: the derivative at 0+, then from breakpoint to breakpoint in order."""
    C, B = p * (1.0 - margins), p * (margins - there)
    g, before = B0 + B[(C > 0) | ((C == 0) & (B > 0))].sum(), 0.0
    if g >= 0.0:
        return 0.0
    moving = B != 0.0
    for k, jump in sorted(zip(-C[moving] / B[moving], abs(B[moving]), strict=True)):
        if k > 0.0:
            if g + A0 * (k - before) >= 0.0:
                break
            g, before = g + A0 * (k - before) + jump, k
            if g >= 0.0:
                return k
    return before - g / A0


def cutting_planes_twin(Z, p, lam, rounds, mu=None):
    """(w, P(w), D) of every round; the points of the model's minimum, or those of OCAS where there is a ``mu``.

    Z are the rows times their labels, p the shares of their losses.
    """
    gradients, offsets, c = [np.zeros(Z.shape[1])], [0.0], np.ones(len(Z))
    w, found = np.zeros(Z.shape[1]), []
    for _ in range(rounds):
        gradients.append(-(p * c) @ Z)
        offsets.append(p @ c)
        G, b = np.array(gradients), np.array(offsets)
        beta, D = simplex_twin(G @ G.T / lam, b)
        w_t = -beta @ G / lam
        if mu is None:
            w = w_c = w_t
        else:
            d = w_t - w
            w = w + line_search_twin(Z @ w, Z @ w_t, p, lam * d @ d, lam * w @ d) * d
            w_c = (1.0 - mu) * w + mu * w_t
        found.append((w, lam * w @ w / 2.0 + p @ np.maximum(0.0, 1.0 - Z @ w), D))
        c = (Z @ w_c <= 1.0).astype(float)
    return found
