"""The small quadratic programs of the bundle methods: ``simplex_qp`` against daqp on those that real runs pose.

    SLACKWATER_DATA=... python benchmarks/small_programs.py [set ...]

Runs to a 1% gap are recorded, up to ``PROGRAMS`` programs of each, evenly spread. Ours begins from the last round's
answer, as in the run; daqp has its default settings, which regularise a singular H. "short" is the largest relative
amount by which daqp's value falls short of ours, "over" the largest by which it exceeds it.
"""

from __future__ import annotations

import sys
import time

import daqp
import numpy as np
from linear_sets import problems

from slackwater.objective import linear_problem, parse_loss
from slackwater.rows import as_rows
from slackwater.solvers import cuts
from slackwater.solvers.linear.bmrm import BMRM
from slackwater.solvers.linear.ocas import OCAS
from slackwater.solvers.linear.svm_perf import SVMPerf
from slackwater.solvers.small_qp import simplex_qp
from slackwater.training import Limits, run

PROGRAMS = 40
COLUMNS = ("ours us", "daqp us", "ratio", "short", "over")
CASES = ((OCAS(), "hinge", 1.0), (OCAS(), "hinge", 10.0), (SVMPerf(), "hinge", 1.0), (BMRM(), "squared_hinge", 1.0))


def main() -> None:
    ratios = []
    print(
        f"{'set':12}{'solver':10}{'C':>5}{'most':>6}{'ours us':>9}{'daqp us':>9}{'ratio':>7}{'short':>10}{'over':>10}"
    )
    for name, X, y in problems(sys.argv[1:] or ["a9a", "w8a", "covtype"]):
        for solver, loss, C in CASES:
            programs = recorded(linear_problem(as_rows(X), y, parse_loss(loss), C), solver)
            times = np.array([[best(ours, *program), best(theirs, *program)] for program in programs]).sum(axis=0)
            excess = [relative_excess(*program) for program in programs]
            ratios.append(times[1] / times[0])
            ours_us, theirs_us = 1e6 * times / len(programs)
            print(
                f"{name:12}{solver.name:10}{C:5g}{max(b.size for _, b, _ in programs):6}{ours_us:9.1f}{theirs_us:9.1f}"
                f"{ratios[-1]:9.1f}{max(0.0, *excess):9.0e}{max(0.0, -min(excess)):9.0e}",
                flush=True,
            )
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.1f}, smallest {min(ratios):.1f}")


def recorded(problem, solver) -> list:
    """Some of the programs of one run."""
    found = []

    def record(H, b, beta):
        found.append((H.copy(), b.copy(), beta.copy()))
        return simplex_qp(H, b, beta)

    try:
        cuts.simplex_qp = record
        run(problem, solver, Limits(tol=0.01, max_time=30.0))
    finally:
        cuts.simplex_qp = simplex_qp
    return found[:: max(1, len(found) // PROGRAMS)]


def ours(H, b, beta) -> np.ndarray:
    beta = beta.copy()
    simplex_qp(H, b, beta)
    return beta


def theirs(H, b, beta) -> np.ndarray:
    n, equality = b.size, 5
    senses = np.zeros(n + 1, dtype=np.int32)
    senses[-1] = equality
    x = daqp.solve(H, -b, np.ones((1, n)), np.append(np.full(n, 1e30), 1.0), np.append(np.zeros(n), 1.0), senses)[0]
    x = np.maximum(x, 0.0)
    return x / x.sum()


def relative_excess(H, b, beta) -> float:
    mine, other = (x @ b - 0.5 * x @ H @ x for x in (ours(H, b, beta), theirs(H, b, beta)))
    return (mine - other) / abs(mine)


def best(solve, *program, repeats: int = 5) -> float:
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        solve(*program)
        taken.append(time.perf_counter() - begin)
    return min(taken)


if __name__ == "__main__":
    main()
