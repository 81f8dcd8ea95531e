"""Error and P against kernel evaluations: the Stochastic Batch Perceptron and the other kernel solvers.

    SLACKWATER_DATA=... python benchmarks/sbp_curves.py curves [--sets a9a ...] [--seconds 60] [--csv curves.csv]
    SLACKWATER_DATA=... python benchmarks/sbp_curves.py libsvm [--sets a9a ...] [--seconds 60] [--csv libsvm.csv]

``curves`` runs the settings without bias of the SBP paper, each solver until its seconds or the passes are over: a pass
is n row requests, which is what the paper charges for n iterations. ``libsvm`` runs SBP in those with a free bias, and
trains scikit-learn's SVC to its default tolerance beside it. Times are those inside the solver, on the wall and of all
threads together, which a busy machine disturbs less: limits are in these. P is summed anew from the model, on a clock
of its own.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.svm import SVC as LibSVM

from slackwater.data import named_set
from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.objective import hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem, kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_matrix, as_rows
from slackwater.solvers.registry import make_solver, solver_classes

SOLVERS = ["sbp", "kernel-pegasos", "kernel-sdca", "smo", "kernel-perceptron", "perceptron", "blocked-smo"]
LIBSVM = "scikit-learn"
PASSES = 10
FIRST, GROWTH = 0.25, 2.0  # seconds of all threads between looks


class Setting(NamedTuple):
    """A row of the paper's table of data sets."""

    sigma2: float
    C: float
    bias: str


class Half(NamedTuple):
    """Rows and labels -1, +1."""

    X: object
    y: np.ndarray


class Point(NamedTuple):
    """A point of a curve."""

    data: str
    solver: str
    seconds: float
    cpu_seconds: float
    passes: float  # row requests / n
    evaluations: int
    support: int
    primal: float
    error: float


WITHOUT_BIAS = {"reuters_moneyfx": Setting(0.5, 1.0, "none"), "a9a": Setting(10, 1.0, "none"),
                "mnist": Setting(25, 1.0, "none")}  # fmt: skip
WITH_BIAS = {"a9a": Setting(100, 100.0, "free"), "mnist": Setting(25, 1000.0, "free")}


def main() -> None:
    options = arguments()
    settings = WITHOUT_BIAS if options.what == "curves" else WITH_BIAS
    points = []
    for name in options.sets or settings:
        train, test = halves(name)
        known = solver_classes("kernel")
        for solver in options.solvers or (SOLVERS if options.what == "curves" else ["sbp", LIBSVM]):
            if solver == LIBSVM:
                points += show([libsvm(name, settings[name], train, test)])
            elif solver in known and settings[name].bias in known[solver].biases:
                points += curve(name, settings[name], solver, (train, test), options)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(Point._fields)
            writer.writerows(points)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["curves", "libsvm"])
    parser.add_argument("--sets", nargs="*", help="the paper's sets if none are named")
    parser.add_argument("--solvers", nargs="*", help="all that are there if none are named")
    parser.add_argument("--seconds", type=float, default=60.0, help="of all threads, for each solver and set")
    parser.add_argument("--draws", type=int, default=None, help="of sbp per level")
    parser.add_argument("--csv", type=Path)
    return parser.parse_args()


def halves(name: str) -> tuple[Half, Half]:
    """Training and test rows; of MNIST 8 against the rest, pixels in [0, 1]."""
    found = []
    for part in ("train", "test"):
        table = named_set(name, part)
        X = table.X.astype(np.float32) * np.float32(1.0 / 255.0 if name == "mnist" else 1.0)
        found.append(Half(X, np.where(table.y == 8 if name == "mnist" else table.y > 0, 1.0, -1.0)))
    return found[0], found[1]


def problem_of(setting: Setting, train: Half) -> KernelProblem:
    points = Points.of(as_rows(train.X), Kernel("rbf", gamma=0.5 / setting.sigma2), np.float32, 0.0)
    return kernel_problem(Gram(points, cache_bytes("auto")), train.y, hinge(), setting.C, None, setting.bias)


def curve(name: str, setting: Setting, solver_name: str, data: tuple[Half, Half], options) -> list[Point]:
    """Train, looking at the model at growing distances."""
    problem, test = problem_of(setting, data[0]), data[1]
    given = {"draws": options.draws} if solver_name == "sbp" and options.draws else {}
    solver, points = make_solver(solver_name, **given), []
    compile_for(solver, setting, data[0])
    wall, cpu, due, over = 0.0, 0.0, FIRST, False
    state = solver.start(problem, np.random.default_rng(0))
    while not over:
        before = time.perf_counter(), time.process_time()
        solver.advance(problem, state)
        wall += time.perf_counter() - before[0]
        cpu += time.process_time() - before[1]
        done = state.counters
        over = cpu > options.seconds or done.row_requests > PASSES * problem.n_rows
        if cpu >= due or over:
            due = GROWTH * cpu
            found = solver.model(problem, state)
            model = KernelModel.from_points(problem.gram.points, found.coefficients, found.bias)
            points += show([
                Point(
                    name, solver_name, wall, cpu, done.row_requests / problem.n_rows, done.kernel_evaluations,
                    model.n_support, primal(problem, found, model), error(model.decision_values(test.X), test.y),
                )
            ])  # fmt: skip
    return points


def compile_for(solver, setting: Setting, train: Half) -> None:
    """A round on a few rows, so that no clock counts the compiler."""
    problem = problem_of(setting, Half(train.X[:2000], train.y[:2000]))
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    solver.model(problem, state)


def primal(problem: KernelProblem, found, model: KernelModel) -> float:
    """P of the model, in blocks of rows: nothing is kept and nothing is counted."""
    scores = model.decision_values(as_matrix(problem.rows))
    square = float(found.coefficients @ (scores - found.bias))
    hinges = np.maximum(0.0, 1.0 - problem.labels * scores)
    return problem.regularisation * (0.5 * square + float(problem.costs @ hinges))


def error(scores: np.ndarray, labels: np.ndarray) -> float:
    """The share of wrong signs."""
    return float(np.mean((scores > 0.0) != (labels > 0.0)))


def libsvm(name: str, setting: Setting, train: Half, test: Half) -> Point:
    """scikit-learn's SVC, with as large a cache as ours."""
    svm = LibSVM(C=setting.C, gamma=0.5 / setting.sigma2, cache_size=cache_bytes("auto") / 2**20)
    before = time.perf_counter(), time.process_time()
    svm.fit(train.X, train.y)
    wall, cpu = time.perf_counter() - before[0], time.process_time() - before[1]
    n = len(train.y)
    wrong = error(svm.decision_function(test.X), test.y)
    return Point(name, LIBSVM, wall, cpu, float(svm.n_iter_[0]) / n, 0, len(svm.support_), np.nan, wrong)


def show(points: list[Point]) -> list[Point]:
    """A line per point."""
    for p in points:
        print(
            f"{p.data:16}{p.solver:16}{p.seconds:8.2f} s{p.cpu_seconds:8.2f} cpu s{p.passes:9.3f} passes"
            f"{p.evaluations:14.3g} evaluations{p.support:7d} vectors   P {p.primal:.5f}   error {100 * p.error:.2f}%",
            flush=True,
        )
    return points


if __name__ == "__main__":
    main()
