"""Time to (P - P*) / P* <= 1% of regression: ``svr-dcd`` against LIBLINEAR through scikit-learn, no bias, one thread.

    SLACKWATER_DATA=... python benchmarks/regression.py [set ...]

Classification sets turned into regression: the label of a9a, the number of the newsgroup, and the elevation column of
covtype from the others, each target of mean 0 and variance 1; eps = 0.1. Both sides run at the fewest iterations that
reach the goal, as in time_to_one_percent.py; the last column is the time in which ours proves the 1% itself.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.svm import LinearSVR as Liblinear
from time_to_one_percent import GOAL, best_times, fewest

from slackwater import LinearSVR
from slackwater.data import named_set
from slackwater.objective import TUBE_LOSSES, certify, regression_problem, tube_loss
from slackwater.rows import as_rows

EPSILON = 0.1


def labels_of(name: str):
    """Rows in float32, and the labels as numbers."""
    table = named_set(name)
    return table.X.astype(np.float32), table.y.astype(np.float64)


def elevation():
    """The first column of covtype from the others, all x 0.001."""
    X, _ = labels_of("covtype")
    X *= np.float32(1e-3)
    return np.ascontiguousarray(X[:, 1:]), X[:, 0].astype(np.float64)


SETS = {"a9a": lambda: labels_of("a9a"), "20news_bydate": lambda: labels_of("20news_bydate"), "covtype": elevation}


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        f"{'set':14}{'loss':>28}{'C':>5}{'epochs':>8}{'ours ms':>9}{'iters':>7}{'sklearn ms':>12}{'ratio':>7}", end=""
    )
    print(f"{'proven ms':>11}")
    ratios = []
    for name in sys.argv[1:] or SETS:
        X, y = SETS[name]()
        y = (y - y.mean()) / y.std()
        for loss in TUBE_LOSSES:
            for C in (0.1, 1.0):
                ratios.append(compare(name, loss, C, X, y))
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, smallest {min(ratios):.2f}")


def compare(name: str, loss: str, C: float, X, y) -> float:
    """One line of the table; how many times as long scikit-learn takes."""
    common = {"loss": loss, "C": C, "epsilon": EPSILON, "fit_intercept": False, "random_state": 0}
    problem = regression_problem(as_rows(X), y, tube_loss(loss, EPSILON), C)
    optimum = LinearSVR(tol=1e-5, max_time=60, **common).fit(X, y).certificate_.dual
    goal, wide = (1.0 + GOAL) * optimum, X.astype(np.float64)
    ours, theirs = LinearSVR(tol=0.0, **common), Liblinear(tol=1e-12, dual=True, **common)

    def primal(weights: np.ndarray) -> float:
        return certify(problem, weights).certificate.primal

    epochs = fewest(ours, "max_rounds", X, y, primal, goal)
    iterations = fewest(theirs, "max_iter", wide, y, primal, goal)
    a, b, c = best_times([(ours, X), (theirs, wide), (LinearSVR(tol=GOAL, **common), X)], y)
    print(
        f"{name:14}{loss:>28}{C:5g}{epochs:8}{1e3 * a:9.1f}{iterations:7}{1e3 * b:12.1f}{b / a:7.2f}{1e3 * c:11.1f}",
        flush=True,
    )
    return b / a


if __name__ == "__main__":
    main()
