"""``LinearSVC(solver="dcd")`` on two threads against one, to the same certified gap.

    SLACKWATER_DATA=... python benchmarks/dcd_threads.py [--repeats 7] [--tol 0.01]

covtype x 0.001 (class 1 against the rest) and the generated set of 200,000 rows, hinge, no intercept, float32. Fits of
both kinds take turns; a line shows the median times from fit call to fit call, the median of the ratios, and how many
visits more the threads need because each lags behind the other.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from linear_sets import problems

from slackwater import LinearSVC
from slackwater.cli.textlike import text_like

COSTS = (0.1, 1.0)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tol", type=float, default=0.01)
    options = parser.parse_args()
    print(f"{'set':12}{'C':>6}{'one, s':>9}{'two, s':>9}{'ratio':>8}{'visits':>8}{'largest gap':>13}")
    for name, X, y in sets():
        for C in COSTS:
            print(f"{name:12}{C:6g}{compared(X, y, C, options)}", flush=True)


def sets():
    """The two sets."""
    rows, labels = text_like()
    yield "generated", sp.csr_array((rows.values, rows.indices.astype(np.int32), rows.indptr)), labels
    yield from problems(["covtype"])


def compared(X, y, C: float, options) -> str:
    """Times on one and on two threads, taking turns."""
    seconds, visits, gaps = np.empty((options.repeats + 1, 2)), np.empty((options.repeats + 1, 2)), []
    for repeat in range(options.repeats + 1):
        for column, threads in enumerate((1, 2)):
            svm = LinearSVC(
                C=C, solver="dcd", tol=options.tol, fit_intercept=False, n_jobs=threads, random_state=repeat
            )
            begin = time.perf_counter()
            svm.fit(X, y)
            seconds[repeat, column] = time.perf_counter() - begin
            visits[repeat, column] = svm.history_[-1].inner_products
            gaps.append(svm.certificate_.relative_gap)
    one, two = np.median(seconds[1:], axis=0)  # the first of each compiles
    ratio = np.median(seconds[1:, 0] / seconds[1:, 1])
    more = np.median(visits[1:, 1] / visits[1:, 0])
    return f"{one:9.3f}{two:9.3f}{ratio:8.2f}{more:8.2f}{max(gaps):13.4f}"


if __name__ == "__main__":
    main()
