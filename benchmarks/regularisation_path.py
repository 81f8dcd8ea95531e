"""Epochs and seconds of a regularisation path beside those of single fits to the same gap.

    SLACKWATER_DATA=... python benchmarks/regularisation_path.py [set ...]

Ten costs from 1e-3 to 10, hinge, float32 data, one thread.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from linear_sets import problems

from slackwater import LinearSVC, path

COSTS = np.geomspace(1e-3, 10.0, 10)
TOLS = (1e-2, 1e-3)


def main() -> None:
    print(f"{'set':14}{'tol':>7}{'epochs: fits':>14}{'path':>7}{'':>7}{'seconds: fits':>15}{'path':>8}")
    for name, X, y in problems(sys.argv[1:] or ["a9a", "w8a"]):
        LinearSVC(max_rounds=1, tol=1.0).fit(X, y)  # compiles
        for tol in TOLS:
            begin = time.perf_counter()
            epochs = sum(LinearSVC(C=C, tol=tol, random_state=0).fit(X, y).n_iter_ for C in COSTS)
            cold = time.perf_counter() - begin
            begin = time.perf_counter()
            points = path(X, y, COSTS, tol=tol, random_state=0)
            warm = time.perf_counter() - begin
            followed = int(points.epochs.sum())
            print(
                f"{name:14}{tol:7g}{epochs:14}{followed:7}{epochs / followed:7.1f}"
                f"{cold:15.3f}{warm:8.3f}{cold / warm:7.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
