"""One epoch of ``dcd`` without shrinking against the speed of memory, on a generated set of 200,000 rows.

    python benchmarks/epoch_bandwidth.py

The set is that of the demo's kind: 64 stored entries a row in 50,000 columns, frequent columns first (a Zipf law).
Bytes an epoch must touch: values and indices of every row, its two row pointers, its line of the dual table and its
place in the order. The streaming rate is that of the fastest of several compiled sums over an array that is larger than
the caches, in the same process.
"""

from __future__ import annotations

import time

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective import linear_problem, parse_loss
from slackwater.rows import CSRRows, as_rows, dot, dot_ahead, prefetch_row
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.visits import visited

ROWS, COLUMNS, ENTRIES = 200_000, 50_000, 64


def main() -> None:
    rows, labels = generated(np.random.default_rng(0))
    rate = streaming_rate()
    problem = linear_problem(rows, labels, parse_loss("hinge"), 1.0)
    solver = DCD(shrinking=False, inner=0)
    state = solver.start(problem, np.random.default_rng(0))
    touched = rows.n_entries * 8 + ROWS * (8 + 32 + 4)
    print(
        f"streaming read {rate / 1e9:.1f} GB/s; an epoch touches {touched / 1e6:.0f} MB, {touched / rate * 1e3:.1f} ms"
    )
    weights = np.zeros(problem.n_weights)
    order, table = np.random.default_rng(0).permutation(ROWS).astype(np.uint32), state.table
    for label, work in (
        ("products, rows in order", lambda: products(rows, np.arange(ROWS, dtype=np.uint32), weights, 4)),
        ("products, rows at random", lambda: products(rows, order, weights, 0)),
        ("the same, prefetched", lambda: products(rows, order, weights, 4)),
        ("as solvers visit them", lambda: visits(rows, table, order, weights, state.visits.ahead)),
        ("rows that are in the cache", lambda: products(rows, order % 1000, weights, 0)),
    ):
        report(label, best(work), touched, rate)
    for epoch in range(1, 31):
        seconds = timed(lambda: solver.advance(problem, state))
        if epoch in (1, 2, 5, 10, 20, 30):
            report(f"dcd, epoch {epoch}", seconds, touched, rate)


def generated(rng: np.random.Generator) -> tuple[CSRRows, np.ndarray]:
    """Rows with their labels, from a hidden weight vector and noise."""
    import scipy.sparse as sp

    frequency = 1.0 / (np.arange(COLUMNS) + 10.0)
    draws = rng.choice(COLUMNS, size=(ROWS, ENTRIES), p=frequency / frequency.sum())
    values = rng.random((ROWS, ENTRIES), dtype=np.float32) + np.float32(0.5)
    matrix = sp.csr_array((values.ravel(), draws.ravel().astype(np.int32), np.arange(0, ROWS * ENTRIES + 1, ENTRIES)))
    matrix.sum_duplicates()
    scores = matrix @ rng.normal(size=COLUMNS)
    return as_rows(matrix), np.where(scores + rng.normal(size=ROWS) * scores.std() / 2 > 0.0, 1.0, -1.0)


@compiled(borrows=True)
def visits(rows, table, order, weights, ahead):
    """The same products, asking for rows to come as solvers do."""
    total = 0.0
    count = np.uint64(order.size)
    for s in range(count):
        i, coming = visited(rows, table, order, s, count, np.uint64(ahead))
        total += dot_ahead(rows, i, weights, coming)
    return total


@compiled(borrows=True)
def products(rows, order, weights, ahead):
    """The sum of <x_i, w> over rows in this order: the reading that an epoch cannot do without."""
    total = 0.0
    count = np.uint64(order.size)
    for s in range(count):
        if ahead > 0 and s + np.uint64(ahead) < count:
            prefetch_row(rows, np.uint64(order[s + np.uint64(ahead)]))
        total += dot(rows, np.uint64(order[s]), weights)
    return total


@compiled
def total_of(array):
    """A sum that vectorises."""
    total = np.float32(0.0)
    for i in range(np.uint64(array.size)):
        total += array[i]
    return total


def streaming_rate() -> float:
    """Bytes a second of reading memory in order."""
    array = np.ones(2**27, dtype=np.float32)
    return array.nbytes / best(lambda: total_of(array))


def timed(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def best(work, repeats: int = 7) -> float:
    work()
    return min(timed(work) for _ in range(repeats))


def report(label: str, seconds: float, touched: int, rate: float) -> None:
    print(f"{label:28} {seconds * 1e3:7.1f} ms  {100 * touched / seconds / rate:5.1f}% of streaming", flush=True)


if __name__ == "__main__":
    main()
