"""SGD-m: SGD-s that presents each example several times in a row, here one presentation at a time.

With X, y, lam and shares of ``fractions.Fraction`` (arrays of dtype object) the run is exact.
"""

import numpy as np


def presentations(a, z, lam, t, times, share=1):
    """Present z ``times`` times from the state (a, t); return the new a and the number of margin errors."""
    errors = 0
    for _ in range(times):
        if a @ z <= lam * t:
            a = a + share * z
            errors += 1
        t += 1
    return a, errors


def multiplicity(epoch, high=5, period=9, length=5):
    """The schedule of the paper: 5 presentations in the epochs e with 0 < e mod 9 < 5, else 1; epochs count from 1."""
    return high if 0 < epoch % period < length else 1


def sgd_m_twin(X, y, lam, orders, times=multiplicity, shares=None):
    """Return a, counts, T (epochs, multiplicities counted) and the bound M / (nT) - ||a||^2 / (2 lambda n^2 T^2)."""
    n = len(X)
    u = np.ones(n, dtype=int) if shares is None else shares
    Z = X * np.asarray(y)[:, None]
    a, counts, T = Z[0] * 0, np.zeros(n, dtype=int), 0
    t = 0
    for epoch, order in enumerate(orders, start=1):
        for k in order:
            a, errors = presentations(a, Z[k], lam, t, times(epoch), u[k])
            counts[k] += errors
            t += times(epoch)
        T += times(epoch)
    dual = (u * counts).sum() / (n * T) - (a @ a) / (2 * lam * (n * T) ** 2)
    return a, counts, T, dual
