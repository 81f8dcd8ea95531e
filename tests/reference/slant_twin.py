"""Problem 4.1 by subgradient steps, as the paper writes them: one at a time, on the whole kernel matrix."""

import numpy as np


def slant(Q, y, margins, b, eta, eps, aggressive=False, learned=False, most=10**6):
    """Coefficients a and the bias after every step, beginning with none; R = 1."""
    A = margins > 0
    h = np.minimum(1, margins) - (0 if learned else y * b)
    a, c, S = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y), dtype=bool)
    path = []
    for _ in range(most):
        r = np.where(A, h - c, -np.inf)
        places = [S, A] if aggressive else [A]
        for among in places:
            inside = np.where(among, r, -np.inf)
            if learned:
                steps = [int(np.argmax(np.where(y == sign, inside, -np.inf))) for sign in (1, -1)]
                F = inside[steps].sum() / 2
            else:
                steps = [int(np.argmax(inside))]
                F = inside[steps[0]]
            if F > eps:
                break
        bias = b
        if learned:
            bias = (r[y == 1].max() - r[y == -1].max()) / 2
        path.append((a.copy(), bias))
        if F <= eps:
            return path
        for i in steps:
            a[i] += eta / len(steps)
            c += eta / len(steps) * Q[:, i]
            S[i] = True
    return path
