"""Error against support size, for all sparsifiers: the comparison of Cotter, Shalev-Shwartz and Srebro, figure 7.

    SLACKWATER_DATA=... python benchmarks/sparse_predictors.py curves [--sets a8a ...] [--methods slant ...]
                        [--seconds 120] [--csv sparse.csv] [--figure sparse.png]
    SLACKWATER_DATA=... python benchmarks/sparse_predictors.py figure [--csv sparse.csv] [--figure sparse.svg]
    SLACKWATER_DATA=... python benchmarks/sparse_predictors.py check [--sets ...] [--share 0.05]

``curves`` trains a dense SVM, runs every setting of a method's grid within the seconds, and halves the test set 100
times: for every size the setting is chosen on one half and its error measured on the other, the mean is the curve.
Results are appended to the file, so that sets and methods can be run apart; the last of equals counts. ``check`` holds
steps and vectors of slant against 4 R^2 ||w||^2, and sparsifies to a share of the support vectors.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slackwater.cli.figures import COLOURS, MARKS, finish, save
from slackwater.data import named_set
from slackwater.gram import Gram, cache_bytes
from slackwater.objective import hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows, take
from slackwater.solvers.registry import make_solver
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.demand import Demand
from slackwater.sparsify.driver import Budget, sparsify
from slackwater.sparsify.holdout import Across, Holdout
from slackwater.sparsify.registry import make_sparsifier, sparsifier_classes
from slackwater.sparsify.slant import radius_squared
from slackwater.sparsify.steps import OUTSIDE, PAUSED
from slackwater.training import Limits, run

HALVINGS = 100
AT_ONCE = {"starts": 1, "steps": 0, "descents": 25, "phases": 0}  # the fastest way of reduced-set to one size
MOST = 1000  # vectors
LADDER = {math.ceil(2.0 ** (power / 2.0)) for power in range(40)}  # sizes in the file


class Setting(NamedTuple):
    """A data set's kernel and cost, the class that is told from the rest, the factor of its values, and sizes."""

    gamma: float
    C: float
    positive: float = 1.0
    factor: float = 1.0
    train: int | None = None  # rows, where there is no official test part, or fewer are wanted
    test: int | None = None
    bias: str = "free"
    tol: float = 1e-2


SETTINGS = {
    "a8a": Setting(0.05, 1.0),
    "ijcnn1": Setting(1.0, 10.0),
    "w8a": Setting(0.1, 10.0, train=45_000, test=14_951),
    "covtype": Setting(1e-4, 1e4, positive=2.0, train=50_000, test=20_000, tol=0.1),
    "usps": Setting(1.0 / 128.0, 10.0, positive=8.0),
    "mnist": Setting(0.02, 1.0, positive=8.0, factor=1.0 / 255.0),
}


class Line(NamedTuple):
    """A point of a curve in the file."""

    data: str
    method: str
    support: int  # at most
    error: float  # mean over the halvings
    deviation: float
    dense_support: int
    dense_error: float
    train_seconds: float
    seconds: float  # for all settings
    evaluations: int
    status: str


class Trained(NamedTuple):
    """A dense machine, its test rows, and what it cost."""

    teacher: Teacher
    test: Holdout
    seconds: float
    cpu_seconds: float

    @property
    def error(self) -> float:
        return self.test.error(self.teacher.model.decision_values(self.test.rows))


def main() -> None:
    options = arguments()
    if options.what == "check":
        for name in options.sets:
            check(name, train(name, options.train_seconds), options.share)
        return
    if options.what == "curves":
        for name in options.sets:
            trained = train(name, options.train_seconds)
            for method in options.methods or sparsifier_classes():
                append(options.csv, curve(name, trained, make_sparsifier(method), options))
    lines = read(options.csv)
    show(lines)
    draw(options.figure, lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="curves", choices=["curves", "figure", "check"])
    parser.add_argument("--sets", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--methods", nargs="*", help="all that are there if none are named")
    parser.add_argument("--seconds", type=float, default=120.0, help="for a method on a set")
    parser.add_argument("--train-seconds", type=float, default=600.0, help="for the dense machine")
    parser.add_argument("--max-support", type=int, default=MOST)
    parser.add_argument("--share", type=float, default=0.05, help="of the support vectors, for check")
    parser.add_argument("--csv", type=Path, default=Path("sparse_predictors.csv"))
    parser.add_argument("--figure", type=Path, default=Path("sparse_predictors.png"))
    return parser.parse_args()


# ---------------------------------------------------------------------------------------------------- data, training


def parts(name: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Training and test rows with labels -1 and +1; a seeded split where the set has no test part."""
    setting = SETTINGS[name]
    table = named_set(name, "train")
    X, y = scaled(table, setting)
    if setting.train is None:
        return (X, y), scaled(named_set(name, "test"), setting)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[: setting.train], order[setting.train :][: setting.test]
    return (X[first], y[first]), (X[second], y[second])


def scaled(table, setting: Setting):
    """Values times the factor, in float32."""
    X = table.X.astype(np.float32) * np.float32(setting.factor)
    return X, np.where(table.y == setting.positive, 1.0, -1.0)


def train(name: str, seconds: float) -> Trained:
    """The dense machine."""
    setting = SETTINGS[name]
    (X, y), (X_test, y_test) = parts(name)
    points = Points.of(as_rows(X), Kernel("rbf", gamma=setting.gamma), np.float32)
    problem = kernel_problem(Gram(points, cache_bytes("auto") // 2), y, hinge(), setting.C, None, setting.bias)
    begin, used = time.perf_counter(), time.process_time()
    found = run(problem, make_solver("blocked-smo"), Limits(tol=setting.tol, max_time=seconds), rng=0)
    spent, used = time.perf_counter() - begin, time.process_time() - used
    trained = Trained(
        Teacher(found.model, problem, as_rows(X), trained_here=True), Holdout(as_rows(X_test), y_test), spent, used
    )
    print(
        f"{name}: {len(y):,} rows, {found.model.n_support:,} support vectors, test error {trained.error:.2%}, "
        f"||w||^2 {trained.teacher.squared_norm:.4g}, {spent:.1f} s ({found.status})",
        flush=True,
    )
    return trained


# ----------------------------------------------------------------------------------------------------------- curves


class Recorder(Across):
    """Remembers which test rows every predictor gets wrong."""

    def __init__(self, teacher: Teacher, test: Holdout) -> None:
        super().__init__(teacher, test.rows)
        self.positive, self.sizes, self.wrong = test.labels > 0.0, [], []

    def values(self, small: Small) -> np.ndarray:
        """Decision values; their signs are noted."""
        found = super().values(small)
        self.sizes.append(small.size)
        self.wrong.append((found > 0.0) != self.positive)
        return found


def curve(name: str, trained: Trained, method: Sparsifier, options) -> list[Line]:
    """One method on one set."""
    recorder = Recorder(trained.teacher, trained.test)
    budget = Budget(max_support=options.max_support, max_time=options.seconds)
    try:
        found = sparsify(trained.teacher, method, trained.test, budget, rng=0, across=recorder)
    except ValueError as error:
        print(f"{name:10}{method.name:18}{error}", flush=True)
        return []
    last = max(found.curve, key=lambda point: point.seconds)
    shared = (trained.teacher.model.n_support, trained.error, trained.seconds, last.seconds, last.evaluations)
    sizes, wrong = np.array(recorder.sizes), np.array(recorder.wrong)
    lines = [
        Line(name, method.name, size, *chosen_by_halves(sizes, wrong, size), *shared, found.status.code)
        for size in sorted(set(sizes.tolist()) & LADDER | ({int(sizes.max())} - {0}))
    ]
    best = min(lines, key=lambda line: line.error, default=None)
    if best is not None:
        print(
            f"{name:10}{method.name:18}{best.error:8.2%} with {best.support:5,} vectors   {len(sizes):5,} looked at   "
            f"{last.seconds:7.1f} s   {found.status}", flush=True,
        )  # fmt: skip
    return lines


def chosen_by_halves(sizes: np.ndarray, wrong: np.ndarray, most: int) -> tuple[float, float]:
    """Mean and deviation of the test error of what validation chooses among the predictors of at most that size."""
    allowed = np.flatnonzero(sizes <= most)
    allowed = allowed[np.argsort(sizes[allowed], kind="stable")]  # of equals the smallest
    candidates, rows = wrong[allowed].astype(np.float32), wrong.shape[1]
    rng, half = np.random.default_rng(0), rows // 2
    chooses = np.zeros((rows, HALVINGS), dtype=np.float32)
    for split in range(HALVINGS):
        chooses[rng.permutation(rows)[:half], split] = 1.0
    held = candidates @ chooses
    tested = candidates.sum(axis=1, keepdims=True) - held
    errors = tested[held.argmin(axis=0), np.arange(HALVINGS)] / max(1, rows - half)
    return float(errors.mean()), float(errors.std())


def append(path: Path, lines: list[Line]) -> None:
    """At the end of the file, which begins with the names."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(Line._fields)
        writer.writerows(lines)


def read(path: Path) -> list[Line]:
    """The file's lines; of a method that was run on a set twice the later run."""
    with path.open(newline="", encoding="utf-8") as file:
        raw = list(csv.DictReader(file))
    found: dict[tuple[str, str], list[Line]] = {}
    before = None
    for line in raw:
        key = line["data"], line["method"]
        again = before != key or found[key][-1].support >= int(line["support"])
        found[key] = [] if again else found[key]
        found[key].append(Line(**{name: kind(line[name]) for name, kind in _KINDS.items()}))
        before = key
    return [line for lines in found.values() for line in lines]


_KINDS = {
    "data": str, "method": str, "support": int, "error": float, "deviation": float, "dense_support": int,
    "dense_error": float, "train_seconds": float, "seconds": float, "evaluations": int, "status": str,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------- table, figure


def show(lines: list[Line]) -> None:
    """Errors at doubling sizes."""
    sizes = [2**power for power in range(2, 11)]
    print(f"\n{'set':10}{'method':18}" + "".join(f"{size:>8}" for size in sizes) + f"{'seconds':>10}")
    for data in dict.fromkeys(line.data for line in lines):
        of_set = [line for line in lines if line.data == data]
        print(f"{data:10}{'dense':18}{of_set[0].dense_error:8.2%} with {of_set[0].dense_support:,} vectors, "
              f"{of_set[0].train_seconds:.1f} s")  # fmt: skip
        for method in dict.fromkeys(line.method for line in of_set):
            own = [line for line in of_set if line.method == method]
            cells = ""
            for size in sizes:
                reached = [line.error for line in own if line.support <= size]
                cells += f"{reached[-1]:8.2%}" if reached else f"{'-':>8}"
            print(f"{'':10}{method:18}{cells}{own[-1].seconds:10.1f}")


def draw(path: Path, lines: list[Line]) -> None:
    """A panel for each set, a line for each method."""
    from matplotlib.figure import Figure

    sets, methods = list(dict.fromkeys(x.data for x in lines)), list(dict.fromkeys(x.method for x in lines))
    if not sets:
        return
    columns = min(3, len(sets))
    rows = -(-len(sets) // columns)
    drawing = Figure(figsize=(4.6 * columns, 3.6 * rows + 0.7), layout="constrained")
    panels = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes, name in zip(panels, sets, strict=False):
        of_set = [line for line in lines if line.data == name]
        for place, method in enumerate(methods):
            own = [line for line in of_set if line.method == method]
            axes.plot(
                [x.support for x in own], [100.0 * x.error for x in own], label=method, linewidth=1.4, markersize=3.5,
                marker=MARKS[place % len(MARKS)], color=COLOURS[place % len(COLOURS)],
            )  # fmt: skip
        dense = of_set[0]
        axes.axhline(100.0 * dense.dense_error, color="#555555", linewidth=1.0, linestyle="--")
        worst = sorted(line.error for line in of_set)[int(0.9 * len(of_set))]
        low = min([dense.dense_error, *(line.error for line in of_set)])
        room = 100.0 * (worst - low) + 1e-3
        axes.set_ylim(100.0 * low - 0.08 * room, 100.0 * worst + 0.05 * room)
        finish(axes, f"{name}: {dense.dense_support:,} vectors, {dense.dense_error:.2%}")
        axes.set_ylabel("test error, %")
        axes.get_legend().remove()
    for axes in panels[len(sets) :]:
        axes.set_axis_off()
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    save(drawing, path)
    print(f"\n{path}")


# ----------------------------------------------------------------------------------------------------------- checks


def check(name: str, trained: Trained, share: float) -> None:
    """The bound of slant, and a small machine of that share of the support vectors."""
    teacher = trained.teacher
    bound = 4.0 * radius_squared(teacher) * teacher.squared_norm
    for method in ("slant", "slant-aggressive"):
        course = make_sparsifier(method).course(teacher, Demand.of(teacher))
        begin, ended = time.perf_counter(), PAUSED
        while ended in (OUTSIDE, PAUSED):
            ended, new = course.descend()
            course.admit(new)
        spent = time.perf_counter() - begin
        assert course.size <= course.steps <= bound, (course.size, course.steps, bound)
        values = teacher.gram.times(course.field.beta) + teacher.bias
        print(
            f"{name:10}{method:18}{course.steps:8,} steps, {course.size:6,} vectors <= {bound:12,.0f} = 4 ||w||^2   "
            f"F {Demand.of(teacher).shortfall(values):.3f}   {spent:.2f} s", flush=True,
        )  # fmt: skip
    order = np.random.default_rng(0).permutation(trained.test.labels.size)
    halves = [half_of(trained.test, part) for part in np.array_split(order, 2)]
    for method in (make_sparsifier("slant-aggressive"), make_sparsifier("reduced-set", **AT_ONCE)):
        shrink(name, method, trained, share, halves)


def shrink(name: str, method: Sparsifier, trained: Trained, share: float, halves: list[Holdout]) -> None:
    """A machine of that share of the support vectors: chosen on one half of the test rows, measured on both."""
    teacher, dense = trained.teacher, trained.teacher.model
    most = max(1, int(share * dense.n_support))
    begin, used = time.perf_counter(), time.process_time()
    settings = None if method == make_sparsifier(method.name) else [method]
    found = sparsify(teacher, method, halves[0], Budget(max_support=most), settings=settings, rng=0)
    spent, used = time.perf_counter() - begin, time.process_time() - used
    small = found.small.model(teacher)
    for what, rows in (("other half of the test rows", halves[1]), ("all of them", trained.test)):
        errors = [rows.error(model.decision_values(rows.rows)) for model in (dense, small)]
        print(
            f"{name:10}{method.name:18}{share:.1%} of {dense.n_support:,} vectors: {small.n_support:,}; error on the "
            f"{what} {errors[0]:.2%} -> {errors[1]:.2%} ({100 * (errors[1] - errors[0]):+.2f} points)", flush=True,
        )  # fmt: skip
    print(
        f"{name:10}{method.name:18}{spent:.1f} s, {used:.1f} cpu s; training took {trained.seconds:.1f} s, "
        f"{trained.cpu_seconds:.1f} cpu s", flush=True,
    )  # fmt: skip


def half_of(test: Holdout, ids: np.ndarray) -> Holdout:
    """Some of the test rows."""
    ids = np.sort(ids)
    return Holdout(take(test.rows, ids), test.labels[ids])


if __name__ == "__main__":
    main()
