"""An independent solver of small problems: an interior point method on the dual, dense NumPy.

The relative gap is 1e-12 or less while C ||x||^2 <= 10^4; beyond, it grows in proportion to that number, because w is
then a small difference of large terms alpha_i x_i.

    min  a'(Q + diag(width / C)) a / 2 - target sum a,   0 <= a <= cap C,   and y'a = 0 where the bias is free.

The Lagrange multiplier of y'a = 0 is the bias itself. The target may be one number for every example.
"""

from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    """P*, D*, weights (the last one is the constant feature's, as in the package), the bias b and alpha."""

    primal: float
    dual: float
    w: np.ndarray
    b: float
    alpha: np.ndarray


def loss_value(loss, margins):
    """The loss by the table of its definition: zero, a parabola of this width below the target, a line beyond."""
    target, width, cap = loss
    short = np.maximum(target - margins, 0.0)
    if width == 0.0:
        return cap * short
    rounded = np.minimum(short, cap * width)
    return rounded**2 / (2.0 * width) + (cap * (short - rounded) if np.isfinite(cap) else 0.0)


def solve(X, y, costs, loss, bias="none", scale=1.0):
    """Solve to the limits of float64; ``scale`` is the constant feature."""
    X, y, costs = np.asarray(X, dtype=float), np.asarray(y, dtype=float), np.asarray(costs, dtype=float)
    Z = np.column_stack((X, np.full(len(X), scale if bias == "penalised" else 0.0))) * y[:, None]
    if bias == "free" and abs(y.sum()) == len(y):
        return Reference(0.0, 0.0, np.append(0.0 * X[0], y[0] * loss[0] / scale), y[0] * loss[0], 0.0 * y)
    best = None
    for alpha, b in _central_path(Z, y, costs, loss, bias == "free"):
        point = _evaluate(Z, y, costs, loss, alpha, b, bias, scale)
        if best is None or point.primal - point.dual < best.primal - best.dual:
            best = point
        if point.primal - point.dual <= 1e-15 * abs(point.primal):
            break
    return best


def _evaluate(Z, y, costs, loss, alpha, b, bias, scale):
    target, width, _ = loss
    if bias == "free":
        plus, minus = alpha[y > 0].sum(), alpha[y < 0].sum()
        alpha = alpha * np.where(y > 0, min(1.0, minus / plus), min(1.0, plus / minus))
    lam, w = 1.0 / costs.sum(), Z.T @ alpha
    quadratic = w @ w + width * (alpha * alpha / costs).sum()
    primal = lam * (w @ w / 2.0 + costs @ loss_value(loss, Z @ w + y * b))
    dual = lam * (np.sum(target * alpha) - quadratic / 2.0)
    if bias == "free":
        w[-1] = b / scale
    return Reference(primal, dual, w, b if bias == "free" else scale * w[-1], alpha)


def _central_path(Z, y, costs, loss, free, rounds=120):
    """Newton steps on the conditions  H a - target - z + v + y b = 0,  z a = mu,  v (U - a) = mu,  y'a = 0."""
    target, width, cap = loss
    n = len(y)
    H = Z @ Z.T + np.diag(width / costs)
    capped = np.isfinite(cap)
    U = cap * costs if capped else np.full(n, np.inf)
    size = 1.0 / max(np.trace(H) / n, 1e-300)
    a = np.minimum(0.5 * U, size)
    z, v, b = np.ones(n), np.ones(n) * capped, 0.0
    for _ in range(rounds):
        s = U - a
        ratio = v / s if capped else np.zeros(n)
        mu = 0.1 * (z @ a + (v @ s if capped else 0.0)) / (n * (1 + capped))
        pull = mu / a - (mu / s if capped else 0.0)
        newton = _positive_solver(H + np.diag(z / a + ratio))
        da = newton(target - H @ a - y * b + pull)
        db = 0.0
        if free:
            along = newton(y)
            db = (y @ da + y @ a) / (y @ along)
            da = da - db * along
        dz = mu / a - z - z / a * da
        dv = mu / s - v + ratio * da if capped else np.zeros(n)
        length = min(1.0, 0.995 * _longest(a, da), 0.995 * _longest(z, dz))
        if capped:
            length = min(length, 0.995 * _longest(s, -da), 0.995 * _longest(v, dv))
        a, z, v, b = a + length * da, z + length * dz, v + length * dv, b + length * db
        if not (np.isfinite(a).all() and (a > 0).all() and (a < U).all()):
            return
        yield a, b


def _positive_solver(M):
    """Solutions of M x = r for a positive definite M whose lines may differ by many orders of magnitude."""
    unit = 1.0 / np.sqrt(np.diag(M))
    scaled = M * unit[:, None] * unit
    factor = np.linalg.inv(scaled + 1e-14 * np.eye(len(M)))

    def newton(r):
        x = factor @ (unit * r)
        for _ in range(2):
            x = x + factor @ (unit * r - scaled @ x)
        return unit * x

    return newton


def _longest(x, dx):
    """The longest step that keeps x >= 0."""
    falling = dx < 0
    return (-x[falling] / dx[falling]).min(initial=np.inf)
