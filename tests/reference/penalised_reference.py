"""An independent solver of small problems with any penalty: an interior point method on the primal, dense NumPy.

    min  sum_j (square (u_j^2 + v_j^2)/2 + absolute (u_j + v_j)) + sum_i (C_i p_i^2 / (2 width) + C_i cap q_i)
    with  y_i (<u - v, x_i> + b) + p_i + q_i >= target,   u, v, p, q >= 0;   w = u - v,

p missing for the hinge (width 0), q where the slope has no cap: the loss is the cheapest way to share a shortfall
between a parabola and a line. The multipliers of the constraints are alpha. Without any parabola this is a linear
program, and the simplex method of SciPy finds its vertex.
"""

import numpy as np
from scipy.optimize import linprog

from reference.qp_reference import Reference, loss_value


def solve_penalised(Z, y, costs, loss, penalty, bias, scale):
    """Z: rows y_i x_i with the constant feature as last column, where it is penalised; a free bias apart."""
    free = bias == "free"
    if free and abs(y.sum()) == len(y):
        return Reference(0.0, 0.0, np.append(0.0 * Z[0, :-1], y[0] * loss[0] / scale), y[0] * loss[0], 0.0 * y)
    best = None
    method = _vertex if loss[1] == 0.0 == penalty[0] else _central_path
    for w, b, alpha in method(Z, y, costs, loss, penalty, free):
        point = _evaluate(Z, y, costs, loss, penalty, (w, b, alpha), bias, scale)
        if best is None:
            best = point
        primal, dual = min(best, point, key=lambda r: r.primal), max(best, point, key=lambda r: r.dual)
        best = Reference(primal.primal, dual.dual, primal.w, primal.b, dual.alpha)
    return best


def penalty_value(penalty, w):
    """Omega(w)."""
    square, absolute = penalty
    return square * (w @ w) / 2.0 + absolute * np.abs(w).sum()


def conjugate_value(penalty, v):
    """Omega*(v); of the pure l1 penalty v must be feasible up to rounding."""
    square, absolute = penalty
    beyond = np.maximum(np.abs(v) - absolute, 0.0)
    if square == 0.0:
        assert beyond.max(initial=0.0) <= 1e-9, "no feasible dual point"
        return 0.0
    return beyond @ beyond / (2.0 * square)


def _evaluate(Z, y, costs, loss, penalty, point, bias, scale):
    target, width, cap = loss
    w, b, alpha = point
    alpha = np.clip(alpha, 0.0, cap * costs)
    if bias == "free":
        plus, minus = alpha[y > 0].sum(), alpha[y < 0].sum()
        alpha = alpha * np.where(y > 0, min(1.0, minus / plus), min(1.0, plus / minus))
    v = Z.T @ alpha
    if penalty[0] == 0.0:
        alpha = alpha * min(1.0, penalty[1] / max(np.abs(v).max(initial=0.0), 1e-300))
        v = Z.T @ alpha
    lam = 1.0 / costs.sum()
    primal = lam * (penalty_value(penalty, w) + costs @ loss_value(loss, Z @ w + y * b))
    dual = lam * (target * alpha.sum() - width * (alpha * alpha / costs).sum() / 2.0 - conjugate_value(penalty, v))
    if bias == "free":
        w = np.append(w[:-1], b / scale)
    return Reference(primal, dual, w, b if bias == "free" else scale * w[-1], alpha)


def _program(Z, costs, loss, penalty):
    """Diagonal Hessian, linear costs, constraint matrix of the program above."""
    (n, d), (square, absolute) = Z.shape, penalty
    _, width, cap = loss
    parts = [(np.full(2 * d, square), np.full(2 * d, absolute), np.hstack((Z, -Z)))]
    if width > 0.0:
        parts.append((costs / width, np.zeros(n), np.eye(n)))
    if np.isfinite(cap):
        parts.append((np.zeros(n), cap * costs, np.eye(n)))
    hessians, linear, matrices = zip(*parts, strict=True)
    return np.concatenate(hessians), np.concatenate(linear), np.hstack(matrices)


def _vertex(Z, y, costs, loss, penalty, free):
    """The linear program's solution."""
    _, c, A = _program(Z, costs, loss, penalty)
    d, bounds = Z.shape[1], [(0.0, None)] * len(c) + [(None, None)]
    A, c = np.column_stack((A, y * free)), np.append(c, 0.0)
    found = linprog(c, A_ub=-A, b_ub=np.full(len(y), -loss[0]), bounds=bounds, method="highs-ds")
    yield found.x[:d] - found.x[d : 2 * d], found.x[-1], -found.ineqlin.marginals


def _central_path(Z, y, costs, loss, penalty, free, rounds=200):
    """Newton steps on  D x + c = A'a + z,  A x + y b - s = target,  y'a = 0,  z x = mu,  a s = mu."""
    D, c, A = _program(Z, costs, loss, penalty)
    n, d = Z.shape
    x, z = np.ones(len(c)), np.ones(len(c))
    a, s, b = np.ones(n), np.ones(n), 0.0
    for _ in range(rounds):
        dual_rest = D * x + c - A.T @ a - z
        primal_rest = A @ x + y * b - s - loss[0]
        mu = (z @ x + a @ s) / (len(c) + n)
        if mu < 1e-17:
            return
        aim = 0.1 * mu
        inverse = 1.0 / (D + z / x)
        pull = -dual_rest + aim / x - z  # dx = inverse (A'da + pull)
        M = (A * inverse) @ A.T + np.diag(s / a)
        unit = 1.0 / np.sqrt(np.diag(M))
        factor = np.linalg.inv(M * unit[:, None] * unit + 1e-15 * np.eye(n))
        right = -primal_rest - A @ (inverse * pull) + aim / a - s
        da, db = _refined(M, factor, unit, right), 0.0
        if free:
            along = _refined(M, factor, unit, y)
            db = (y @ da + y @ a) / (y @ along)
            da = da - db * along
        dx = inverse * (A.T @ da + pull)
        dz, ds = aim / x - z - z / x * dx, aim / a - s - s / a * da
        length = 1.0
        for value, change in ((x, dx), (z, dz), (a, da), (s, ds)):
            falling = change < 0.0
            length = min(length, 0.99 * (-value[falling] / change[falling]).min(initial=np.inf))
        x, z, a, s, b = x + length * dx, z + length * dz, a + length * da, s + length * ds, b + length * db
        if not all(np.isfinite(v).all() and (v > 0.0).all() for v in (x, z, a, s)):
            return
        yield x[:d] - x[d : 2 * d], b, a


def _refined(M, factor, unit, right):
    """M^-1 right."""
    found = unit * (factor @ (unit * right))
    for _ in range(2):
        found = found + unit * (factor @ (unit * (right - M @ found)))
    return found
