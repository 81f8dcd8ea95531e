"""Newton's method and BFGS on the primal of a smooth loss, with matrices written out."""

import numpy as np

from reference.qp_reference import loss_value


def objective(Z, costs, loss, w):
    """J(w) = ||w||^2 / 2 + sum_i C_i l(<w, z_i>)."""
    return w @ w / 2.0 + costs @ loss_value(loss, Z @ w)


def gradient(Z, costs, loss, w):
    """G = w - sum_i C_i a_i z_i."""
    target, width, cap = loss
    return w - (costs * np.clip((target - Z @ w) / width, 0.0, cap)) @ Z


def newton_direction(Z, costs, loss, w):
    """-H^-1 G,  H = I + sum over the curved i of C_i / width z_i z_i'."""
    target, width, cap = loss
    short = target - Z @ w
    curved = (short > 0.0) & (short < cap * width)
    H = np.eye(len(w)) + (Z[curved] * (costs[curved] / width)[:, None]).T @ Z[curved]
    return -np.linalg.solve(H, gradient(Z, costs, loss, w))


def bfgs_direction(pairs, G):
    """-B G, B the inverse Hessian of BFGS after the pairs (s, y) in turn, begun at <s, y> / <y, y> of the last."""
    unit = np.eye(len(G))
    B = unit * ((pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
    for s, y in pairs:
        V = unit - np.outer(y, s) / (s @ y)
        B = V.T @ B @ V + np.outer(s, s) / (s @ y)
    return -B @ G
