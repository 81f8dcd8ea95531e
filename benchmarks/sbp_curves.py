"""Error against kernel evaluations and seconds: the Stochastic Batch Perceptron and the other kernel solvers.

    SLACKWATER_DATA=... python benchmarks/sbp_curves.py curves [--sets a9a ...] [--seconds 20] [--csv curves.csv]
                        [--figure curves.png]
    SLACKWATER_DATA=... python benchmarks/sbp_curves.py libsvm [--sets a9a ...] [--seeds 3] [--csv libsvm.csv]
                        [--figure libsvm.png]

``curves`` runs the settings without bias of the SBP paper, each solver until its seconds or the passes are over. Kernel
values are counted twice: as the paper charges them, n for every iteration (the online perceptron: one for each vector
that it holds), and as they were computed. ``sbp-paper`` is the algorithm to the letter, a draw per level at the paper's
nu; models of SBP are averages, as the paper's. ``libsvm`` trains scikit-learn's SVC to its default tolerance with a
free bias, with the same cache, and SBP for a quarter of the seconds that took, from several seeds. Seconds are those
inside the solver, on the wall and of all threads together, which a busy machine disturbs less: limits are in these.
Test rows decide nothing.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import SVC as LibSVM

from slackwater.data import named_set
from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.objective import hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem, kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.contract import Counters
from slackwater.solvers.online.learner import Arrivals
from slackwater.solvers.registry import make_solver

PAPER = "sbp-paper"
PERCEPTRON = "kernel-perceptron"
LIBSVM = "scikit-learn"
SOLVERS = ["sbp", PAPER, "kernel-pegasos", "kernel-sdca", "smo", PERCEPTRON]
PASSES = 10
FIRST, GROWTH = 0.02, 1.5  # seconds of all threads between looks
BLOCK = 512  # arrivals between looks at the perceptron, at first


class Setting(NamedTuple):
    """A row of the paper's table of data sets."""

    sigma2: float
    C: float
    bias: str
    nu: float

    @property
    def kernel(self) -> Kernel:
        return Kernel("rbf", gamma=0.5 / self.sigma2)


class Half(NamedTuple):
    """Rows and labels -1, +1."""

    X: object
    y: np.ndarray


class Point(NamedTuple):
    """A point of a curve."""

    data: str
    solver: str
    seed: int
    seconds: float
    cpu_seconds: float
    charged: float  # kernel values as the paper counts them
    evaluations: float  # those computed
    support: int
    error: float


WITHOUT_BIAS = {"reuters_moneyfx": Setting(0.5, 1.0, "none", 6.34e-4), "a9a": Setting(10, 1.0, "none", 1.10e-2),
                "mnist": Setting(25, 1.0, "none", 2.21e-4)}  # fmt: skip
WITH_BIAS = {"a9a": Setting(100, 100.0, "free", 5.79e-4), "mnist": Setting(25, 1000.0, "free", 6.42e-11)}


def main() -> None:
    options = arguments()
    curves = options.what == "curves"
    settings = WITHOUT_BIAS if curves else WITH_BIAS
    points: list[Point] = []
    for name in options.sets or settings:
        data = halves(name)
        seconds = options.seconds
        for solver in options.solvers or (SOLVERS if curves else [LIBSVM, "sbp"]):
            if solver == LIBSVM:
                points += show(libsvm(name, settings[name], data, options))
                seconds = 0.25 * points[-1].cpu_seconds
                continue
            compile_for(solver, settings[name], data[0])
            for seed in range(options.seeds):
                run = Run(name, settings[name], solver, seed, seconds, options.cache_mb)
                points += show(perceptron(run, data) if solver == PERCEPTRON else curve(run, data))
        write(points, options.csv)
    if options.figure:
        from sbp_figure import draw

        draw([point._asdict() for point in points], options.figure, "charged" if curves else "cpu_seconds")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["curves", "libsvm"])
    parser.add_argument("--sets", nargs="*", help="the paper's sets if none are named")
    parser.add_argument("--solvers", nargs="*", help="all that are there if none are named")
    parser.add_argument("--seconds", type=float, default=20.0, help="of all threads, for each solver, set and seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--cache-mb", type=float, default=2048.0, help="for kernel rows, of every solver")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--figure", type=Path, help="a picture, PNG or SVG")
    return parser.parse_args()


def write(points: list[Point], path: Path | None) -> None:
    if path is None:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)
        writer.writerows(points)


def halves(name: str) -> tuple[Half, Half]:
    """Training and test rows; of MNIST 8 against the rest, pixels in [0, 1]."""
    found = []
    for part in ("train", "test"):
        table = named_set(name, part)
        X = table.X.astype(np.float32) * np.float32(1.0 / 255.0 if name == "mnist" else 1.0)
        found.append(Half(X, np.where(table.y == 8 if name == "mnist" else table.y > 0, 1.0, -1.0)))
    return found[0], found[1]


class Run(NamedTuple):
    """What is trained on what, and how long."""

    data: str
    setting: Setting
    solver: str
    seed: int
    seconds: float
    cache_mb: float


class Stopwatch:
    """Seconds on the wall and of all threads, while it runs; and when the next look is due."""

    def __init__(self, seconds: float) -> None:
        self.wall = self.cpu = 0.0
        self.seconds, self._due = seconds, FIRST

    def timed(self, work, *arguments: Any) -> Any:
        before = time.perf_counter(), time.process_time()
        answer = work(*arguments)
        self.wall += time.perf_counter() - before[0]
        self.cpu += time.process_time() - before[1]
        return answer

    @property
    def over(self) -> bool:
        return self.cpu >= self.seconds

    def due(self) -> bool:
        if self.cpu < self._due and not self.over:
            return False
        self._due = GROWTH * self.cpu
        return True


def problem_of(setting: Setting, train: Half, cache_mb: float = 64.0) -> KernelProblem:
    points = Points.of(as_rows(train.X), setting.kernel, np.float32, 0.0)
    return kernel_problem(Gram(points, cache_bytes(cache_mb)), train.y, hinge(), setting.C, None, setting.bias)


def solver_of(name: str, setting: Setting) -> Any:
    if name == PAPER:
        return make_solver("sbp", nu=setting.nu, draws=1, steps="paper", output="average")
    return make_solver(name, output="average") if name == "sbp" else make_solver(name)


def iterations(state: Any, n: int) -> float:
    """Steps as the paper counts them: those of Pegasos and SDCA that change nothing are among them."""
    if hasattr(state, "place"):  # SDCA
        return state.counters.epochs * n + state.place % n
    return getattr(state, "t", state.counters.updates)


def curve(run: Run, data: tuple[Half, Half]) -> Iterator[Point]:
    """Train, looking at the model at growing distances."""
    problem, test, watch = problem_of(run.setting, data[0], run.cache_mb), data[1], Stopwatch(run.seconds)
    solver, n = solver_of(run.solver, run.setting), len(data[0].y)
    state, steps = solver.start(problem, np.random.default_rng(run.seed)), 0.0
    while not (watch.over or steps >= PASSES * n):
        watch.timed(solver.advance, problem, state)
        steps = iterations(state, n)
        if watch.due() or steps >= PASSES * n:
            found = watch.timed(solver.model, problem, state)
            model = KernelModel.from_points(problem.gram.points, found.coefficients, found.bias)
            yield point(run, watch, state.counters, steps * n, (model, test))


def perceptron(run: Run, data: tuple[Half, Half]) -> Iterator[Point]:
    """The online perceptron: examples arrive in random order, in every epoch anew."""
    train, test = data
    n, rng = len(train.y), np.random.default_rng(run.seed)
    arrivals = Arrivals(
        run.setting.kernel, as_rows(train.X), train.y[None, :], np.arange(n), run.setting.bias, np.array([-1, 1])
    )
    solver, watch = make_solver(run.solver), Stopwatch(run.seconds)
    state, size = solver.start(arrivals.part(np.empty(0, dtype=np.int64)), rng), BLOCK
    for _ in range(PASSES):
        order, begin = rng.permutation(n), 0
        while begin < n and not watch.over:
            watch.timed(solver.advance, arrivals.part(order[begin : begin + size]), state)
            begin, size = begin + size, int(min(GROWTH * size, n / 4))
            model = solver.model(arrivals, state)
            yield point(run, watch, state.counters, state.counters.kernel_evaluations, (model, test))


def point(run: Run, watch: Stopwatch, done: Counters, charged: float, tried: tuple[KernelModel, Half]) -> Point:
    model, test = tried
    wrong = error(model.decision_values(test.X), test.y)
    facts = watch.wall, watch.cpu, float(charged), float(done.kernel_evaluations), model.n_support
    return Point(run.data, run.solver, run.seed, *facts, wrong)


def compile_for(name: str, setting: Setting, train: Half) -> None:
    """A round on a few rows, so that no clock counts the compiler."""
    some = Half(train.X[:2000], train.y[:2000])
    if name == PERCEPTRON:
        list(perceptron(Run("", setting, name, 0, 0.01, 64.0), (some, some)))
        return
    solver, problem = solver_of(name, setting), problem_of(setting, some)
    state = solver.start(problem, np.random.default_rng(0))
    solver.advance(problem, state)
    solver.model(problem, state)


def error(scores: np.ndarray, labels: np.ndarray) -> float:
    """The share of wrong signs."""
    return float(np.mean((scores > 0.0) != (labels > 0.0)))


def libsvm(name: str, setting: Setting, data: tuple[Half, Half], options) -> list[Point]:
    """scikit-learn's SVC, with as large a cache as ours."""
    train, test = data
    svm, watch = LibSVM(C=setting.C, gamma=0.5 / setting.sigma2, cache_size=options.cache_mb), Stopwatch(0.0)
    watch.timed(svm.fit, train.X, train.y)
    wrong, steps = error(svm.decision_function(test.X), test.y), float(svm.n_iter_[0])
    facts = watch.wall, watch.cpu, 2.0 * steps * len(train.y), np.nan, len(svm.support_)
    return [Point(name, LIBSVM, 0, *facts, wrong)]


def show(points) -> list[Point]:
    """A line per point."""
    shown = []
    for p in points:
        shown.append(p)
        print(
            f"{p.data:16}{p.solver:18}seed {p.seed}{p.seconds:8.2f} s{p.cpu_seconds:8.2f} cpu s"
            f"   charged {p.charged:9.3g}   computed {p.evaluations:9.3g}{p.support:7d} vectors"
            f"   error {100 * p.error:.2f}%",
            flush=True,
        )
    return shown


if __name__ == "__main__":
    main()
