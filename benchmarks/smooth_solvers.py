"""Time to (P - P*) / P* <= 1e-4, squared hinge: ``newton`` and ``lbfgs`` against LIBLINEAR's trust region Newton.

    SLACKWATER_DATA=... python benchmarks/smooth_solvers.py [set ...]

LIBLINEAR is scikit-learn's LinearSVC(loss="squared_hinge", dual=False); no bias, one thread. All run at the fewest
iterations that reach the goal, timed from fit call to fit call, the best of several fits in turn. scikit-learn is given
float64 data, which it needs no copy of, ours float32. Ratios are LIBLINEAR's time over ours.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from linear_sets import problems
from sklearn.svm import LinearSVC as Liblinear
from time_to_one_percent import best_times, fewest

from slackwater import LinearSVC
from slackwater.objective import linear_problem, parse_loss
from slackwater.rows import as_rows

GOAL = 1e-4
COMMON = {"loss": "squared_hinge", "fit_intercept": False, "random_state": 0}
SOLVERS = ("newton", "lbfgs")


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"{'set':14}{'C':>5}{'LIBLINEAR':>18}" + "".join(f"{name:>28}" for name in SOLVERS))
    ratios: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for name, X, y in problems(sys.argv[1:]):
        wide = X.astype(np.float64)
        for C in (0.1, 1.0, 10.0):
            problem = linear_problem(as_rows(X), y, parse_loss("squared_hinge"), C)
            best = LinearSVC(C=C, solver="newton", tol=1e-9, **COMMON).fit(X, y).certificate_.dual
            goal = (1.0 + GOAL) * best
            theirs = Liblinear(C=C, tol=1e-14, dual=False, **COMMON)
            counts = [fewest(theirs, "max_iter", wide, y, problem, goal)]
            ours = [LinearSVC(C=C, solver=solver, tol=0.0, **COMMON) for solver in SOLVERS]
            counts += [fewest(svm, "max_rounds", X, y, problem, goal) for svm in ours]
            their_time, *our_times = best_times([(theirs, wide), *((svm, X) for svm in ours)], y)
            line = f"{name:14}{C:5g}{f'{counts[0]} / {1e3 * their_time:.1f} ms':>18}"
            for solver, count, seconds in zip(SOLVERS, counts[1:], our_times, strict=True):
                ratios[solver].append(their_time / seconds)
                line += f"{f'{count} / {1e3 * seconds:.1f} ms, {their_time / seconds:.2f}x':>28}"
            print(line, flush=True)
    for solver, found in ratios.items():
        print(f"{solver}: geometric mean {np.exp(np.mean(np.log(found))):.2f}, smallest {min(found):.2f}")


if __name__ == "__main__":
    main()
