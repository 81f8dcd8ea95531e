"""The l1 penalty with the squared hinge, no bias: ``cdn`` against LIBLINEAR's -s 5 through scikit-learn, C = 1.

    SLACKWATER_DATA=... python benchmarks/l1_penalty.py [set ...]

LIBLINEAR is run at several tolerances; ours for the fewest rounds that reach the same primal value. Times are the best
of several fits in turn; the last column is the certified relative gap of ours, which LIBLINEAR has none of.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial

import numpy as np
from linear_sets import problems
from sklearn.svm import LinearSVC as Liblinear

from slackwater.objective import l1, linear_problem, primal_value, squared_hinge
from slackwater.rows import as_rows
from slackwater.solvers.linear.cdn import CDN
from slackwater.training import Limits, run

TOLERANCES = (1.0, 0.1, 0.01)
REPEATS = 5
MOST_ROUNDS = 300


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        f"{'set':14}{'tol':>6}{'J':>14}{'iters':>7}{'sklearn ms':>12}{'rounds':>8}{'ours ms':>9}{'ratio':>7}{'gap':>9}"
    )
    for name, X, y in problems(sys.argv[1:] or ["a9a", "20news_bydate"]):
        wide = X.astype(np.float64)
        problem = linear_problem(as_rows(X), y, squared_hinge(), 1.0, penalty=l1())
        for tol in TOLERANCES:
            peer = Liblinear(penalty="l1", dual=False, fit_intercept=False, tol=tol, random_state=0).fit(wide, y)
            goal = primal_value(problem, np.append(peer.coef_.ravel(), 0.0))
            rounds = rounds_to(problem, goal)
            theirs, ours = best_times([partial(peer.fit, wide, y), partial(trained, problem, rounds)])
            gap = trained(problem, rounds).certificate.relative_gap
            print(
                f"{name:14}{tol:6g}{goal / problem.regularisation:14.6g}{int(np.max(peer.n_iter_)):7}"
                f"{1e3 * theirs:12.1f}{rounds:8}{1e3 * ours:9.1f}{theirs / ours:7.2f}{gap:9.2g}",
                flush=True,
            )


def trained(problem, rounds: int):
    """So many rounds and one certificate."""
    return run(problem, CDN(), Limits(tol=0.0, max_rounds=rounds, certify_every=rounds), rng=0)


def rounds_to(problem, goal: float) -> int:
    """The first round whose primal value is no larger."""
    solver = CDN()
    state = solver.start(problem, np.random.default_rng(0))
    for number in range(1, MOST_ROUNDS + 1):
        solver.advance(problem, state)
        if primal_value(problem, state.w) <= goal:
            return number
    return MOST_ROUNDS


def best_times(fits) -> list[float]:
    """The shortest time of each, taken in turn."""
    times = [[] for _ in fits]
    for _ in range(REPEATS):
        for fit, taken in zip(fits, times, strict=True):
            begin = time.perf_counter()
            fit()
            taken.append(time.perf_counter() - begin)
    return [min(taken) for taken in times]


if __name__ == "__main__":
    main()
