"""One step of LaRank on a whole kernel matrix, from the definitions."""

import numpy as np


def larank_step(K, codes, costs, beta, i, optimize=False):
    """beta after the step on pattern i, and what the dual gains; both labels from those with beta != 0 if asked."""
    k = beta.shape[1]
    own = np.arange(k) == codes[i]
    g = own - K[i] @ beta
    cap = costs[i] * own
    below = np.flatnonzero(beta[i] < cap)
    other = np.flatnonzero(beta[i] != 0.0) if optimize else np.arange(k)
    if optimize:
        below = np.intersect1d(below, other)
    up, down = below[np.argmax(g[below])], other[np.argmin(g[other])]
    rise = g[up] - g[down]
    s = min(max(rise / (2.0 * K[i, i]), 0.0), cap[up] - beta[i, up])
    after = beta.copy()
    after[i, up] += s
    after[i, down] -= s
    return after, s * rise - s * s * K[i, i]


def dual_of(K, codes, beta):
    """sum_i beta_i^{y_i} - sum_y beta_y'K beta_y / 2."""
    return beta[np.arange(len(codes)), codes].sum() - 0.5 * np.einsum("iy,ij,jy->", beta, K, beta)
