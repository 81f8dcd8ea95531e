"""Prediction of one row at a time by an rbf model of 200 vectors: compiled, as a table of one row, and scikit-learn's.

    python benchmarks/single_row.py

The labels of the 200 training rows are drawn, so that nearly all rows become vectors. The ways take turns; a line says
the best time of each, and how many times that of ``compile()``'s label it is. Rows are dense except in the last line,
where four fifths of 784 pixels are zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from sklearn.svm import SVC as Libsvm

from slackwater import SVC

VECTORS, TURNS = 200, 100
SPAN = 1e-3  # seconds of a turn, the same for all: on a busy machine longer ones are interrupted more often


def main() -> None:
    print(f"{'columns':>14}{'compiled':>12}{'decision':>12}{'one row':>22}{'scikit-learn':>22}{'its decision':>22}")
    for columns, filled in ((20, 1.0), (100, 1.0), (784, 1.0), (784, 0.2)):
        ways = predictions(columns, filled)
        best = [min(times) for times in zip(*([seconds(way) for way in ways] for _ in range(TURNS)), strict=True)]
        own = best[0]
        shown = [f"{1e6 * each:.1f} us" for each in best[:2]]
        shown += [f"{1e6 * each:.0f} us ({each / own:.1f} times)" for each in best[2:]]
        name = f"{columns}" if filled == 1.0 else f"{columns}, pixels"
        print(f"{name:>14}" + "".join(f"{text:>{12 if k < 2 else 22}}" for k, text in enumerate(shown)), flush=True)


def predictions(columns: int, filled: float) -> list[Callable[[], object]]:
    """What is timed; all of them agree on the row."""
    draws = np.random.default_rng(0)
    X = draws.normal(size=(VECTORS + 1, columns))
    if filled < 1.0:
        X = np.abs(X) * (draws.random(X.shape) < filled)
    y = np.where(draws.random(VECTORS) < 0.5, -1, 1)
    setting = {"gamma": 1.0 / columns / X.var(), "C": 1e4}
    ours, theirs = SVC(**setting, tol=1e-3).fit(X[:-1], y), Libsvm(**setting, tol=1e-6).fit(X[:-1], y)
    predictor, row, table = ours.compile(), X[-1], X[-1:]
    values = predictor.decision(row), ours.decision_function(table)[0], theirs.decision_function(table)[0]
    assert np.ptp(values) < 0.02 * max(1.0, abs(values[1])), values
    return [
        lambda: predictor(row), lambda: predictor.decision(row), lambda: ours.predict(table),
        lambda: theirs.predict(table), lambda: theirs.decision_function(table),
    ]  # fmt: skip


def seconds(way: Callable[[], object]) -> float:
    """Of one call, on average over a turn."""
    begin, calls = time.perf_counter(), 0
    while calls % 5 or not calls or time.perf_counter() - begin < SPAN:
        way()
        calls += 1
    return (time.perf_counter() - begin) / calls


if __name__ == "__main__":
    main()
