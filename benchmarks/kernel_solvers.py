"""SVC against scikit-learn and scikit-learn-intelex: rbf kernel, free bias, to LIBSVM's tolerance 1e-3.

    SLACKWATER_DATA=... python benchmarks/kernel_solvers.py [--quick] [set ...]

Ours ends at a certified gap, set for each problem so that the dual is as high as LIBSVM's at its tolerance: the duals,
computed anew from the coefficients, are printed. Times run from fit call to fit call, wall clock and CPU, each side in
a process of its own, as idle threads of one would slow the other down; ours and scikit-learn-intelex in turn, the best
of five; scikit-learn, with a cache of 2 GB, once, or with --quick not at all. Each side gets the layout it is
fastest with: ours and scikit-learn the data as they are stored, intelex float32 arrays.

The limit is the time of the kernel values that no method can do without, n for every support vector that differs from
all others, if they cost 2 d operations each at the speed of a large GEMM; sparse rows can do better than that.
"""

from __future__ import annotations

import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from kernel_sets import Problem, problems

from slackwater import SVC
from slackwater.gram import Gram
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

SIDES = ("slackwater", "intelex", "sklearn")
REPEATS = 5
CACHE = {"tol": 1e-3, "cache_size": 2000}


class Fit(NamedTuple):
    """One fit: what it took and where it ended."""

    seconds: float
    cpu: float
    coefficients: np.ndarray
    rows: float  # kernel values computed over n; not known of others


def main() -> None:
    quick, names = "--quick" in sys.argv, [name for name in sys.argv[1:] if not name.startswith("-")]
    speed = gemm_speed()
    print(f"GEMM {speed / 1e9:.0f} Gflop/s; times in seconds, CPU seconds in brackets")
    pools = {side: ProcessPoolExecutor(1, mp_context=get_context("spawn")) for side in SIDES}

    def timed(side: str, name: str) -> Fit:
        return pools[side].submit(fit, side, name).result()

    for problem in problems(names):
        turns = [[timed(side, problem.name) for side in SIDES[:2]] for _ in range(REPEATS)]
        fits = {side: min(turn[k] for turn in turns) for k, side in enumerate(SIDES[:2])}
        if not quick:
            fits["sklearn"] = timed("sklearn", problem.name)
        show(problem, fits, speed)
    for pool in pools.values():
        pool.shutdown()


def fit(side: str, name: str) -> Fit:
    """Fit and take down the result, in a process of this side."""
    warnings.simplefilter("ignore")
    problem, X = data(side, name)
    svm = estimator(side, problem)
    begin, cpu = time.perf_counter(), time.process_time()
    svm.fit(X, problem.y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    beta, coefficients = np.zeros(problem.y.size), svm.dual_coef_
    beta[svm.support_] = (coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients).ravel()
    return Fit(seconds, cpu, beta, getattr(svm, "kernel_evaluations_", np.nan) / problem.y.size)


@lru_cache(maxsize=1)
def data(side: str, name: str) -> tuple[Problem, Any]:
    """The problem, and its rows in the layout of this side."""
    (problem,) = problems([name])
    return problem, problem.dense if side == "intelex" else problem.X


def estimator(side: str, problem: Problem) -> Any:
    """The classifier of a side; only its own process imports it."""
    setting = {"kernel": "rbf", "gamma": problem.gamma, "C": problem.C}
    if side == "slackwater":
        return SVC(**setting, tol=problem.tol)
    if side == "intelex":
        from sklearnex.svm import SVC as Intelex

        return Intelex(**setting, **CACHE)
    from sklearn.svm import SVC as Libsvm

    return Libsvm(**setting, **CACHE)


def show(problem: Problem, fits: dict[str, Fit], speed: float) -> None:
    """A line for each side."""
    n, d = problem.X.shape
    best = fits["slackwater"]
    gram = Gram(Points.of(as_rows(problem.X), Kernel("rbf", gamma=problem.gamma)), 2**30)
    distinct = len(np.unique(problem.dense[np.flatnonzero(best.coefficients)], axis=0))
    limit = distinct * n * 2.0 * d / speed
    print(f"\n{problem.name}: {n} x {d}, gamma {problem.gamma:g}, C {problem.C:g}, our tol {problem.tol:g}")
    for side, found in fits.items():
        beta = found.coefficients
        dual = np.abs(beta).sum() - 0.5 * beta @ gram.times(beta)
        support = np.count_nonzero(beta)
        line = f"  {side:11}{found.seconds:7.2f} ({found.cpu:.2f}) dual {dual:.6f}, {support} support vectors"
        if side == "slackwater":
            line += f" ({distinct} distinct), {found.rows:.0f} rows computed; "
            line += f"limit {limit:.2f}, {found.seconds / limit:.2f} times that"
        else:
            line += f"; {found.seconds / best.seconds:.1f} times ours, {found.cpu / best.cpu:.1f} times the CPU"
        print(line, flush=True)


def gemm_speed() -> float:
    """Operations a second of a large float32 product, the best of five."""
    A = np.ones((4096, 4096), dtype=np.float32)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        A @ A
        times.append(time.perf_counter() - begin)
    return 2.0 * 4096**3 / min(times)


if __name__ == "__main__":
    main()
