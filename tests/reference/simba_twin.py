"""SIMBA: one round on rows of length at most 1, given the random numbers that draw (Hazan, Koren, Srebro 2011)."""

import numpy as np


def knapsack_twin(ratios, shares, volume):
    """The xi in [0, 2] with sum u_i xi_i <= volume and the largest p'xi, p_i = u_i ratio_i; ties share alike."""
    xi, left = np.zeros(len(ratios)), volume
    for level in np.unique(ratios)[::-1]:
        on = ratios == level
        part = min(1.0, left / (2.0 * shares[on].sum()))
        xi[on] = 2.0 * part
        left -= 2.0 * part * shares[on].sum()
    return xi


def simba_twin(Z, shares, place, steps, volume, v, ratios, draws):
    """The means of w and p, and v and p / u at the end."""
    eta, means_w, means_p = np.sqrt(np.log(len(Z)) / steps), [], []
    for _ in range(steps):
        p = shares * ratios / (shares @ ratios)
        xi = knapsack_twin(ratios, shares, volume)
        v = v + Z[np.argmax(np.cumsum(p) > next(draws))] / np.sqrt(2.0 * steps)
        square = v @ v
        w = v / max(1.0, np.sqrt(square))
        j = place[np.argmax(np.cumsum(v[place] ** 2) > square * next(draws))]
        g = np.clip(Z[:, j] * (w @ w) / w[j] + xi, -1.0 / eta, 1.0 / eta)
        ratios = ratios * (1.0 - eta * g + eta**2 * g**2) / ratios.max()
        means_w.append(w)
        means_p.append(p)
    return np.mean(means_w, axis=0), np.mean(means_p, axis=0), v, ratios
