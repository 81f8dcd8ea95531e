"""Forest, the largest set of the SBP paper: test error against time under a time limit, through SVC.

    SLACKWATER_DATA=... python benchmarks/forest.py [--seconds 1800] [--solver auto] [--rows 522910] [--csv forest.csv]

Covertype as it is (unscaled), class 2 against the rest, rbf kernel with sigma^2 = 5000, C = 10000, free bias; a random
522,910 rows train, the other 58,102 test. The paper: LIBSVM 1.8% in 35 hours, SBP 1.6% in a quarter of that. An
observer takes the solver's model at the marks, without a certificate; models are tried on the test rows when training
is over, so that the clock is training's alone.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slackwater import SVC
from slackwater.data import named_set
from slackwater.training import Observer

TRAIN, SIGMA2, C, POSITIVE = 522_910, 5000.0, 10_000.0, 2
MARKS = (60.0, 300.0, 900.0)


class Marks(Observer):
    """Keeps the model at the first round after each mark."""

    def __init__(self, marks: list[float]) -> None:
        self.left, self.seen = list(marks), []

    def after_round(self, progress: Any) -> None:
        if self.left and progress.seconds >= self.left[0]:
            self.left = [mark for mark in self.left if mark > progress.seconds]
            self.seen.append((progress.seconds, progress.round, progress.latest()))


class WatchedSVC(SVC):
    """SVC with an observer beside those that it has."""

    def watched_by(self, observer: Observer) -> WatchedSVC:
        self._observer = observer
        return self

    def _watchers(self, *arguments: Any) -> list[list[Observer]]:
        return [[*watching, self._observer] for watching in super()._watchers(*arguments)]


def main() -> None:
    options = arguments()
    X, y, X_test, y_test = split(options.rows, options.seed)
    marks = Marks([mark for mark in options.marks if mark < options.seconds])
    settings = {name: float(value) for name, value in (pair.split("=") for pair in options.set)}
    settings = {name: int(value) if value.is_integer() else value for name, value in settings.items()}
    svm = WatchedSVC(
        C=C, gamma=0.5 / SIGMA2, solver=options.solver, solver_options=settings or None, tol=0.01,
        max_time=options.seconds, cache_mb=options.cache_mb, random_state=options.seed, verbose=1,
    ).watched_by(marks)  # fmt: skip
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm.fit(X, y)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{svm.solver_}: {svm.solver_reason_}; {svm.status_}; {svm.certificate_}")
    print(f"{seconds:.1f} s in all, {svm.kernel_evaluations_:.4g} kernel values, peak memory {peak:.2f} GB", flush=True)
    lines = []
    for at, rounds, model in [*marks.seen, (seconds, svm.n_iter_, svm.model_)]:
        wrong = float(np.mean((model.decision_values(X_test) > 0.0) != (y_test > 0.0)))
        lines.append((options.solver, len(y), at, rounds, model.n_support, wrong, peak))
        print(f"{at:8.1f} s  round {rounds:6d}  {model.n_support:7d} vectors  error {100 * wrong:.2f}%", flush=True)
    if options.csv:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("solver", "rows", "seconds", "round", "vectors", "error", "peak_gb"))
            writer.writerows(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--marks", type=float, nargs="*", default=MARKS, help="seconds at which models are taken")
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the solver, name=number")
    parser.add_argument("--rows", type=int, default=TRAIN, help="training rows, the first of the random order")
    parser.add_argument("--cache-mb", type=float, default=6144.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path)
    return parser.parse_args()


def split(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a seeded order: the test rows are the same however many train."""
    table = named_set("covtype")
    order = np.random.default_rng(seed).permutation(len(table.y))
    X, y = np.asarray(table.X, dtype=np.float32), np.where(table.y == POSITIVE, 1, -1)
    train, test = order[: min(rows, TRAIN)], order[TRAIN:]
    return X[train], y[train], X[test], y[test]


if __name__ == "__main__":
    main()
