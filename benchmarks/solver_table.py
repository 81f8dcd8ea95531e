"""Every linear solver of the hinge on five sets: seconds and epochs to 1% above the optimum, to a proven 1%, to 0.1%.

    SLACKWATER_DATA=... python benchmarks/solver_table.py [--sets a9a,w8a] [--solvers dcd,ocas] [--csv FILE]
    SLACKWATER_DATA=... python benchmarks/solver_table.py --read FILE FILE ...    # the last lines for several runs

No bias, one thread, float32 data, C in {0.1, 1, 10}. Each solver is fitted once, certified after every round; seconds
are those inside the solver, without the certificates. ``dcd`` goes first; the others get five times its time, but
at least two and at most twelve seconds; where that was not enough the gap they had proven is shown instead. The last
lines say how far the choice of ``solver="auto"`` lies from the fastest in each row, and check what *SGD revisited*
claims of its competitors, case by case.
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from linear_sets import problems

from slackwater import LinearSVC
from slackwater.solvers.registry import solver_classes

COSTS = (0.1, 1.0, 10.0)
GOALS = ("1% of P*", "gap 1%", "gap 0.1%")
MOST_SECONDS, PATIENCE, LEAST_SECONDS, LONGEST = 60.0, 5.0, 2.0, 12.0
COMMON = {"loss": "hinge", "fit_intercept": False, "random_state": 0}


@dataclass(frozen=True)
class Cell:
    """What one solver reached on one problem: seconds and epochs for each goal, NaN where it did not."""

    set: str
    C: float
    solver: str
    seconds: tuple[float, ...]
    epochs: tuple[float, ...]
    gap: float

    def text(self, goal: int) -> str:
        if math.isnan(self.seconds[goal]):
            return f"({self.gap:.0e})"
        return f"{self.seconds[goal]:.3f}/{self.epochs[goal]:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--solvers", type=lambda text: text.split(","), default=None)
    parser.add_argument("--csv", default=None)
    parser.add_argument("--read", nargs="+", default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = read(options.read) if options.read else table(options)
    if options.csv:
        write(options.csv, cells)
    auto(cells)
    claims(cells)


def table(options) -> list[Cell]:
    """Every solver on every problem, shown row by row."""
    classes = solver_classes("classification")
    known = [name for name, cls in classes.items() if "hinge" in cls.losses and "l2" in cls.penalties]
    names = ["dcd", *(name for name in options.solvers or known if name != "dcd")]
    cells = []
    for problem in problems(options.sets):
        for C in COSTS:
            row = measured(problem, C, names)
            show(row)
            cells += row
    return cells


def measured(problem, C: float, names: list[str]) -> list[Cell]:
    """All solvers on one problem."""
    optimum = LinearSVC(C=C, tol=2e-4, max_time=MOST_SECONDS, **COMMON).fit(problem.X, problem.y).certificate_.dual
    cells: list[Cell] = []
    patience = MOST_SECONDS
    for name in names:
        svm = LinearSVC(C=C, solver=name, tol=1e-3, certify_every=1, **COMMON)
        svm.set_params(max_rounds=2).fit(problem.X, problem.y)  # compiles
        svm.set_params(max_rounds=None, max_time=patience).fit(problem.X, problem.y)
        cells.append(cell(problem.name, C, name, svm, optimum))
        if name == "dcd":
            # Certificates after every round take their time too, about as much as the rounds.
            patience = min(LONGEST, max(LEAST_SECONDS, PATIENCE * 2.0 * svm.history_[-1].seconds))
    return cells


def cell(name: str, C: float, solver: str, svm: LinearSVC, optimum: float) -> Cell:
    """From a history to the first records that reach the goals."""
    history = svm.history_
    best, gaps = np.minimum.accumulate([r.primal for r in history]), [r.relative_gap for r in history]
    reached = (best <= 1.01 * optimum, np.array(gaps) <= 1e-2, np.array(gaps) <= 1e-3)
    seconds, epochs = [], []
    for hits in reached:
        record = history[int(np.argmax(hits))] if hits.any() else None
        seconds.append(record.seconds if record else math.nan)
        epochs.append(record.epochs if record else math.nan)
    return Cell(name, C, solver, tuple(seconds), tuple(epochs), svm.certificate_.relative_gap)


def show(row: list[Cell]) -> None:
    print(f"\n{row[0].set}, C = {row[0].C:g}" + "".join(f"{goal:>18}" for goal in GOALS))
    for one in sorted(row, key=lambda c: (math.isnan(c.seconds[1]), c.seconds[1], c.gap)):
        print(f"{one.solver:>20}" + "".join(f"{one.text(goal):>18}" for goal in range(len(GOALS))), flush=True)


def write(path: str, cells: Iterable[Cell]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["set", "C", "solver", "goal", "seconds", "epochs", "gap"])
        for one in cells:
            for k, goal in enumerate(GOALS):
                table.writerow([one.set, one.C, one.solver, goal, one.seconds[k], one.epochs[k], one.gap])


def read(paths: list[str]) -> list[Cell]:
    """The cells of tables that were written."""
    found: dict[tuple[str, float, str], list[dict]] = {}
    for path in paths:
        with open(path, newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                found.setdefault((line["set"], float(line["C"]), line["solver"]), []).append(line)
    return [
        Cell(
            *key,
            *(tuple(float(line[name]) for line in lines) for name in ("seconds", "epochs")),
            float(lines[0]["gap"]),
        )
        for key, lines in found.items()
    ]


def auto(cells: list[Cell]) -> None:
    """The chosen solver against the fastest, row by row, for the certified goals."""
    print("\nauto against the fastest of the row")
    worst = 1.0
    for problem in problems(sorted({one.set for one in cells})):
        for C in COSTS:
            row = {one.solver: one for one in cells if (one.set, one.C) == (problem.name, C)}
            for goal, tol in ((1, 1e-2), (2, 1e-3)):
                svm = LinearSVC(C=C, tol=tol, max_rounds=1, **COMMON).fit(problem.X, problem.y)
                fastest = min(row.values(), key=lambda one: np.nan_to_num(one.seconds[goal], nan=np.inf))
                ratio = row[svm.solver_].seconds[goal] / fastest.seconds[goal]
                worst = max(worst, ratio) if not math.isnan(ratio) else worst
                print(f"{problem.name:>14} {C:>5g} {GOALS[goal]:>9}: {svm.solver_} {ratio:.2f} x {fastest.solver}")
    print(f"the worst: {worst:.2f}")


#: Slower, faster, at which C: time to 1% of P*. From the paper's account of its tables.
CLAIMS = (
    ("pegasos", "sgd-r", COSTS), ("sgd-r", "sgd-s", COSTS), ("sgd-s", "sgd-m", COSTS),
    ("svm-perf", "sgd-s", (1.0,)), ("svm-perf", "sgd-m", (1.0, 10.0)), ("ocas", "sgd-s", (1.0,)),
    ("ocas", "sgd-m", (1.0,)), ("sgd-s", "dcd", (1.0,)), ("sgd-m", "dcd", (1.0, 10.0)), ("sgd-s", "mpu", (1.0,)),
    ("sgd-m", "mpu", (1.0, 10.0)), ("sgd-m", "ocas", (10.0,)), ("dcd", "sgd-r", (0.1,)), ("dcd", "sgd-s", (0.1,)),
    ("dcd", "sgd-m", (0.1,)), ("ocas", "sgd-s", (0.1,)), ("svm-perf", "pegasos", COSTS), ("ocas", "pegasos", COSTS),
    ("svm-sgd", "sgd-qn", (1.0,)), ("sgd-qn", "sgd-m", (1.0,)), ("dcd", "mpu", (1.0, 10.0)),
)  # fmt: skip


def claims(cells: list[Cell]) -> None:
    """How often, and by what factor, the one is slower than the other, as the paper has it."""
    print("\nclaims of SGD revisited: slower > faster, time to 1% of P*")
    found = {(one.set, one.C, one.solver): one.seconds[0] for one in cells}
    for slower, faster, costs in CLAIMS:
        for C in costs:
            pairs = [
                (found.get((name, C, slower), math.nan), found.get((name, C, faster), math.nan))
                for name in sorted({one.set for one in cells})
            ]
            ratios = [a / b for a, b in pairs if not (math.isnan(a) or math.isnan(b))]
            held = sum((a > b) or (math.isnan(a) and not math.isnan(b)) for a, b in pairs)
            mean = f"{np.exp(np.mean(np.log(ratios))):.2f}" if ratios else "-"
            print(f"{slower:>10} > {faster:<8} C {C:>4g}: on {held} of {len(pairs)} sets, geometric mean {mean}")


if __name__ == "__main__":
    main()
