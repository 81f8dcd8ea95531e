"""Where the constants of ``slackwater.plan`` come from: epochs and seconds of dcd to a gap, and a fit.

    SLACKWATER_DATA=... python benchmarks/forecast_constants.py [set ...]

Hinge, no bias, one thread, float32 data; every line is one certified fit, the second of its kind (the first compiles).
"""

from __future__ import annotations

import sys
import time

import numpy as np
from linear_sets import problems
from scipy.optimize import minimize

from slackwater.objective import linear_problem, parse_loss
from slackwater.rows import as_rows, sqnorms
from slackwater.solvers.registry import make_solver
from slackwater.training import Limits, run

COSTS, TOLS = (0.1, 1.0, 10.0), (0.01, 0.001)
MOST_SECONDS = 40.0


def main() -> None:
    lines = [line for name, X, y in problems(sys.argv[1:]) for line in measured(name, as_rows(X), y)]
    fit(np.array([line for line in lines if line is not None]))


def measured(name: str, rows, y):
    """One line for every C and tolerance: rows, mean squared norm, megabytes, C, tol, epochs, seconds."""
    norms = np.empty(rows.n_rows)
    sqnorms(rows, norms)
    size = 1e-6 * rows.n_entries * (rows.dtype.itemsize + 4 * hasattr(rows, "indices"))
    for C in COSTS:
        problem = linear_problem(rows, y, parse_loss("hinge"), C)
        run(problem, make_solver("dcd"), Limits(max_rounds=1), rng=0)
        for tol in TOLS:
            begin = time.perf_counter()
            answer = run(problem, make_solver("dcd"), Limits(tol=tol, max_time=MOST_SECONDS), rng=0)
            seconds = time.perf_counter() - begin
            print(
                f"{name:14} n {rows.n_rows:7} msq {norms.mean():9.3f} {size:7.1f} MB  C {C:4g} tol {tol:5g}  "
                f"epochs {answer.epochs:5} seconds {seconds:8.4f}  {answer.status.code}",
                flush=True,
            )
            converged = answer.status.converged
            yield (rows.n_rows, norms.mean(), size, C, tol, answer.epochs, seconds) if converged else None


def fit(lines: np.ndarray) -> None:
    """epochs = 2 + scale (C ||x||^2)^cost (1 / tol)^gap, least squares of the logarithms; seconds of each pass."""
    n, msq, size, C, tol, epochs, seconds = lines.T

    def expected(p):
        return 2.0 + np.exp(p[0] + p[1] * np.log(C * msq) + p[2] * np.log(1.0 / tol))

    found = minimize(
        lambda p: np.sum(np.log(expected(p) / epochs) ** 2), [-2.0, 0.7, 0.4], method="Nelder-Mead"
    ).x  # fmt: skip
    wrong = np.exp(np.abs(np.log(expected(found) / epochs)))
    print(f"scale {np.exp(found[0]):.3f} cost {found[1]:.2f} gap {found[2]:.2f}, wrong by at most {wrong.max():.2f}")
    for k in np.argsort(size):
        print(f"n {n[k]:8.0f} {size[k]:7.1f} MB: {1e3 * seconds[k] / epochs[k]:8.3f} ms per epoch")


if __name__ == "__main__":
    main()
