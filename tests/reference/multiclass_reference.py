"""An independent solver of small multiclass problems: an interior point method on the dual, dense NumPy.

min  ||W||^2 / 2 - sum_i beta_i^{y_i},   beta_i^y = C_i [y = y_i] - r_i^y,  r >= 0,  sum_y r_i^y = C_i.
"""

from typing import NamedTuple

import numpy as np


class MulticlassReference(NamedTuple):
    """P*, D*, the weights (a line for each class) and beta."""

    primal: float
    dual: float
    W: np.ndarray
    beta: np.ndarray


def primal_value(X, codes, costs, W) -> float:
    """P(W) by its definition."""
    scores, rows = X @ W.T, np.arange(len(X))
    losses = (scores + 1.0 - scores[rows, codes][:, None] - np.eye(len(W))[codes]).max(axis=1)
    return float(((W**2).sum() / 2.0 + costs @ losses) / costs.sum())


def dual_value(X, codes, costs, beta) -> float:
    """D(beta) by its definition."""
    W = beta.T @ X
    return float((beta[np.arange(len(X)), codes].sum() - (W**2).sum() / 2.0) / costs.sum())


def solve_multiclass(X, codes, k, costs, rounds=200) -> MulticlassReference:
    """Solve to the limits of float64; the constant feature is a column of X."""
    own, n = np.eye(k)[codes], len(X)
    H, A = np.kron(X @ X.T, np.eye(k)), np.kron(np.eye(n), np.ones(k))
    caps = (costs[:, None] * own).ravel()
    linear = own.ravel() - H @ caps
    r, z, v, best = np.repeat(costs / k, k), np.ones(n * k), np.zeros(n), None
    for _ in range(rounds):
        beta = -np.maximum(r.reshape(n, k), 0.0) * (1.0 - own)
        beta *= np.minimum(1.0, costs / np.maximum(-beta.sum(axis=1), 1e-300))[:, None]
        beta -= own * beta.sum(axis=1)[:, None]
        W = beta.T @ X
        point = MulticlassReference(primal_value(X, codes, costs, W), dual_value(X, codes, costs, beta), W, beta)
        if best is None or point.primal - point.dual < best.primal - best.dual:
            best = point
        if best.primal - best.dual <= 1e-14 * best.primal:
            break
        mu = 0.1 * (r @ z) / r.size
        if mu < 1e-18:
            break
        left = np.block([[H + np.diag(z / r), -A.T], [A, np.zeros((n, n))]])
        right = np.concatenate((-(H @ r + linear - A.T @ v) + mu / r, costs - A @ r))
        step = np.linalg.solve(left, right)
        dr, dv = step[: n * k], step[n * k :]
        dz = mu / r - z - z / r * dr
        length = min(1.0, 0.99 * _longest(r, dr), 0.99 * _longest(z, dz))
        r, v, z = r + length * dr, v + length * dv, z + length * dz
        if not (np.isfinite(r).all() and (r > 0).all() and (z > 0).all()):
            break
    return best


def _longest(x, dx):
    """The longest step that keeps x >= 0."""
    falling = dx < 0
    return (-x[falling] / dx[falling]).min(initial=np.inf)
