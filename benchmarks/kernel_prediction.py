"""Prediction of a kernel model on MNIST, 8 against the rest: ours, scikit-learn and scikit-learn-intelex.

    SLACKWATER_DATA=... python benchmarks/kernel_prediction.py [--quick]

All predict the same 10,000 rows with models of the same problem, ours and intelex in turn, the best of five;
scikit-learn, whose fit takes minutes, predicts 1,000 of them once. With --quick it is left out.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from kernel_sets import problems
from sklearn.svm import SVC as Libsvm
from sklearnex.svm import SVC as Intelex

from slackwater import SVC

ROWS, FEW, REPEATS = 10_000, 1_000, 5


def main() -> None:
    (problem,) = problems(["mnist"])
    X, y = problem.dense, problem.y
    setting = {"kernel": "rbf", "gamma": problem.gamma, "C": problem.C}
    ours = SVC(**setting, tol=problem.tol).fit(X, y)
    intelex = Intelex(**setting, tol=1e-3, cache_size=2000).fit(X, y)
    pairs = [(timed(ours, X[:ROWS]), timed(intelex, X[:ROWS])) for _ in range(REPEATS)]
    mine, theirs = (min(pair[side] for pair in pairs) for side in (0, 1))
    same = np.mean(ours.predict(X[:ROWS]) == intelex.predict(X[:ROWS]))
    print(f"{ROWS} rows, {ours.support_.size} and {intelex.support_.size} support vectors, {100 * same:.2f}% alike")
    print(f"slackwater {mine:.3f} s, intelex {theirs:.3f} s: {theirs / mine:.2f} times ours", flush=True)
    if "--quick" not in sys.argv:
        libsvm = timed(Libsvm(**setting, tol=1e-3, cache_size=2000).fit(X, y), X[:FEW]) * ROWS / FEW
        print(f"scikit-learn {libsvm:.1f} s for as many rows, from {FEW}: {libsvm / mine:.0f} times ours")


def timed(svm, X: np.ndarray) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    svm.predict(X)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
