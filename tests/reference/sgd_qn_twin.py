"""SGD-QN, corrected (Bordes, Bottou, Gallinari 2009; Erratum 2010), with dense rows and explicit h."""

import numpy as np

from reference.svm_sgd_twin import twin_slope


def sgd_qn_twin(X, y, lam, loss, orders, shares, t0, skip, caps):
    """w, h, the slopes of each example summed, and every r that was used, one line each."""
    w, h, slopes, used = np.zeros(X.shape[1]), np.full(X.shape[1], lam * t0), np.zeros(len(X)), []
    before, due, last, left = w, False, 0, skip
    for t, i in enumerate((i for order in orders for i in order), start=1):
        a = twin_slope(loss, y[i] * (X[i] @ w))
        pull = shares[i] * a * y[i]
        if due:
            due = False
            change = pull - shares[i] * twin_slope(loss, y[i] * (X[i] @ before)) * y[i]
            if change != 0.0:
                r = np.full(w.size, lam)
                moved = before - w
                pulled = X[i] != 0.0
                with np.errstate(divide="ignore", invalid="ignore"):
                    r[pulled] = np.where(moved == 0.0, np.inf, lam + change * X[i] / moved)[pulled]
                r = np.clip(r, caps[0] * lam, caps[1] * lam)
                h, last = h + (t - last) * r, t
                used.append(r)
        left -= 1
        if left <= 0:
            before, due, left = w, True, skip
            w = w * np.maximum(0.0, 1.0 - skip * lam / h)
        w = w + pull * X[i] / h
        slopes[i] += a
    return w, h, slopes, np.array(used)
