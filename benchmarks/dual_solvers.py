"""Seconds inside the solver until the certified gap is 1% and 0.1%: solvers of the dual beside each other.

    SLACKWATER_DATA=... python benchmarks/dual_solvers.py [--solvers dcd,mpu] [set ...]

Hinge, no bias, one thread, float32 data. Every round is certified outside the clock; runs of the solvers take turns
and the shortest time counts. After the milliseconds: rounds, and inner products plus additions as multiples of n.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np
from linear_sets import problems

from slackwater.objective import certify, linear_problem, parse_loss
from slackwater.rows import as_rows
from slackwater.solvers.contract import Solver
from slackwater.solvers.registry import make_solver

SETS = ("a9a", "20news_bydate", "covtype", "w8a")
COSTS = (1.0, 10.0)
GAPS = (1e-2, 1e-3)
MOST_SECONDS = 20.0


class Reached(NamedTuple):
    """When a gap was certified."""

    seconds: float
    rounds: int
    work: float  # inner products and additions per example


NEVER = Reached(np.inf, 0, np.inf)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--solvers", default="dcd,mpu,sdca", help="names, with settings as name:setting=value:...")
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    names = chosen.solvers.split(",")
    print(f"{'set':14}{'C':>4}{'gap':>7}" + "".join(f"{name:>26}" for name in names))
    for name, X, y in problems(chosen.sets):
        rows = as_rows(X)
        for C in COSTS:
            problem = linear_problem(rows, y, parse_loss("hinge"), C)
            found = [[way(problem, solver_of(text), seed) for text in names] for seed in range(chosen.repeats)]
            for k, gap in enumerate(GAPS):
                best = [min(turn[j][k] for turn in found) for j in range(len(names))]
                print(f"{name:14}{C:4g}{gap:7.1%}" + "".join(f"{cell(b):>26}" for b in best), flush=True)


def cell(found: Reached) -> str:
    """Milliseconds, rounds, work."""
    return f"{1e3 * found.seconds:.1f} ({found.rounds}; {found.work:.1f})" if found.rounds else "-"


def solver_of(text: str) -> Solver:
    """The solver that ``name:setting=value`` describes."""
    name, *settings = text.split(":")
    pairs = (setting.split("=") for setting in settings)
    return make_solver(name, **{setting: eval(value, {}) for setting, value in pairs})


def way(problem, solver: Solver, seed: int) -> list[Reached]:
    """When each gap is certified."""
    state, inside = None, 0.0
    begin = time.perf_counter()
    state = solver.start(problem, np.random.default_rng(seed))
    inside = time.perf_counter() - begin
    found, best, rounds = [NEVER for _ in GAPS], None, 0
    while found[-1] is NEVER and inside < MOST_SECONDS:
        begin = time.perf_counter()
        solver.advance(problem, state)
        inside += time.perf_counter() - begin
        rounds += 1
        weights = solver.model(problem, state).weights(0.0)
        certificate = certify(problem, weights, solver.dual_point(problem, state)).certificate
        best = certificate if best is None else best.better(certificate)
        work = (state.counters.inner_products + state.counters.updates) / problem.n_rows
        for k, gap in enumerate(GAPS):
            if found[k] is NEVER and best.relative_gap <= gap:
                found[k] = Reached(inside, rounds, work)
    return found


if __name__ == "__main__":
    main()
