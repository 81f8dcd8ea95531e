"""Passes and seconds until each solver has certified a 1% gap itself, beside scikit-learn's SGDClassifier.

    SLACKWATER_DATA=... python benchmarks/certified_table.py [set ...]

Hinge, no bias, one thread, float32 data. SGDClassifier proves nothing: its columns are the fewest epochs, up to
``MOST_EPOCHS``, after which its model is within 1% of the optimum (averaging off, learning rate "optimal"), and the
seconds of that fit. ``cap`` marks runs that did not certify within ``MOST_SECONDS``, with the gap they had proven.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from linear_sets import problems
from sklearn.linear_model import SGDClassifier

from slackwater import LinearSVC
from slackwater.objective import linear_problem, parse_loss, primal_value
from slackwater.rows import as_rows

GOAL = 0.01
SOLVERS = ("dcd", "sgd-s", "sgd-m", "sgd-r", "pegasos")
COSTS = (0.1, 1.0)
MOST_SECONDS, MOST_EPOCHS = 60.0, 256


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{'set':14}{'C':>5}" + "".join(f"{name:>18}" for name in (*SOLVERS, "SGDClassifier")))
    for name, X, y in problems(sys.argv[1:]):
        for C in COSTS:
            cells = [certified(solver, X, y, C) for solver in SOLVERS]
            print(f"{name:14}{C:5g}" + "".join(f"{cell:>18}" for cell in (*cells, uncertified(X, y, C))), flush=True)


def certified(solver: str, X, y, C: float) -> str:
    """Epochs and seconds of a fit that ends with the proof."""
    svm = LinearSVC(C=C, solver=solver, tol=GOAL, fit_intercept=False, random_state=0, max_time=MOST_SECONDS)
    svm.set_params(max_rounds=1).fit(X, y)  # compiles
    begin = time.perf_counter()
    svm.set_params(max_rounds=None).fit(X, y)
    seconds = time.perf_counter() - begin
    if not svm.status_.converged:
        return f"cap {svm.certificate_.relative_gap:.1%}"
    return f"{svm.n_iter_} / {seconds:.3f} s"


def uncertified(X, y, C: float) -> str:
    """Epochs and seconds of the shortest SGDClassifier fit within the goal, by doubling."""
    problem = linear_problem(as_rows(X), y, parse_loss("hinge"), C)
    optimum = LinearSVC(C=C, tol=1e-4, fit_intercept=False, random_state=0, max_time=60).fit(X, y).certificate_.dual
    epochs = 1
    while epochs <= MOST_EPOCHS:
        sgd = SGDClassifier(
            alpha=1.0 / (len(y) * C), fit_intercept=False, tol=None, max_iter=epochs, random_state=0, n_jobs=1
        )
        begin = time.perf_counter()
        sgd.fit(X, y)
        seconds = time.perf_counter() - begin
        if primal_value(problem, np.append(sgd.coef_.ravel(), 0.0)) <= (1.0 + GOAL) * optimum:
            return f"{epochs} / {seconds:.3f} s"
        epochs *= 2
    return f"not in {MOST_EPOCHS}"


if __name__ == "__main__":
    main()
