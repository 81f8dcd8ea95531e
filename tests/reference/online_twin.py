"""Online learners example by example, with explicit coefficients: perceptron, NORMA, Forgetron, budget perceptron."""

import numpy as np


def perceptron_twin(K, y, order):
    """alpha after every example of ``order``, one line each."""
    alpha, lines = np.zeros(len(y)), []
    for t in order:
        if y[t] * (alpha * y @ K[:, t]) <= 0.0:
            alpha[t] += 1.0
        lines.append(alpha.copy())
    return np.array(lines)


def norma_twin(K, y, lam, eta, rho=1.0, tau=np.inf, budget=np.inf, bias=False):
    """Coefficients and the bias after one pass; ``eta`` is a function of the step; every coefficient is scaled."""
    a, b, stored = np.zeros(len(y)), 0.0, []
    for t in range(len(y)):
        wrong = y[t] * (a @ K[:, t] + b) < rho
        a *= 1.0 - eta(t + 1) * lam
        if wrong:
            a[t], b = eta(t + 1) * y[t], b + bias * eta(t + 1) * y[t]
            stored.append(t)
        gone = [s for k, s in enumerate(stored) if s <= t - tau or k < len(stored) - budget]
        a[gone] = 0.0
        stored = [s for s in stored if s not in gone]
    return a, b


def forgetron_twin(K, y, budget, fixed=False):
    """Signed weights after one pass, and of every mistake Q, M and phi (1 where nothing was forgotten)."""
    a, active, Q, M, told = np.zeros(len(y)), [], 0.0, 0, []
    for t in range(len(y)):
        if y[t] * (a @ K[:, t]) > 0.0:
            continue
        M, a[t], phi = M + 1, y[t], 1.0
        active.append(t)
        if len(active) > budget:
            r = active.pop(0)
            sigma, mu = abs(a[r]), y[r] * (a @ K[:, r])
            phis = np.linspace(0.0, 1.0, 1_000_001)
            psi = (sigma * phis) ** 2 + 2.0 * sigma * phis * (1.0 - phis * mu)
            if fixed:
                B = budget + 1.0
                phi = min(B ** (-0.5 / B), 0.25 * np.sqrt(B / np.log(B)) / np.sqrt(a @ K @ a))
            else:
                phi = phis[Q + psi <= 15.0 * M / 32.0].max()
            Q += (sigma * phi) ** 2 + 2.0 * sigma * phi * (1.0 - phi * mu)
            a *= phi
            a[r] = 0.0
        told.append((Q, M, phi))
    return a, told
