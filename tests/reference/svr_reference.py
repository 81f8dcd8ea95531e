"""The optimum of a small regression, through the classification of twice as many examples.

Every example is taken once with the label +1 and once with -1, as (x, +1) with the target y - eps and as (x, -1) with
the target -y - eps: what falls short of either is the part of the residual beyond the tube on its side, and
beta = alpha+ - alpha-.
"""

import numpy as np

from reference.qp_reference import Reference, solve


def tube_loss_value(loss, residuals):
    """The loss by its definition."""
    s = np.maximum(np.abs(residuals) - loss.epsilon, 0.0)
    return s if np.isfinite(loss.cap) else s**2


def solve_regression(X, targets, costs, loss, bias="none", scale=1.0) -> Reference:
    """P*, D*, w*, b* and beta*, to about 1e-9 of P(0)."""
    X, y, costs = (np.asarray(part, dtype=float) for part in (X, targets, costs))
    n = len(y)
    margin = np.concatenate((y - loss.epsilon, -y - loss.epsilon)), loss.width, loss.cap
    both = solve(np.vstack((X, X)), np.repeat([1.0, -1.0], n), np.tile(costs, 2), margin, bias, scale)
    return both._replace(primal=2.0 * both.primal, dual=2.0 * both.dual, alpha=both.alpha[:n] - both.alpha[n:])


def primal_of(X, targets, costs, loss, w, b, squared_norm):
    """P(w) in plain NumPy."""
    return (0.5 * squared_norm + costs @ tube_loss_value(loss, targets - X @ w - b)) / costs.sum()


def dual_of(X, targets, costs, loss, beta, scale=0.0):
    """D(beta) in plain NumPy; ``scale`` is the constant feature where it is regularised."""
    w = np.append(beta @ X, scale * beta.sum())
    quadratic = w @ w + loss.width * (beta @ (beta / costs))
    return (targets @ beta - loss.epsilon * np.abs(beta).sum() - 0.5 * quadratic) / costs.sum()
