"""What a fit will take, before it: passes, seconds and memory from measured constants.

The passes of dcd to a certified gap grow with C ||x||^2, which says how many of a solution's alpha_i lie inside their
box, and with the gap, but hardly with n:

    epochs = BEFORE + SCALE (C mean ||x||^2)^COST (1 / tol)^GAP.

The sweeps of ocas grow less with either: its constants fit 15 runs of ``benchmarks/solver_table.py`` within a factor of
4, on covtype, a9a and mnist.

Fitted to 29 runs of ``benchmarks/forecast_constants.py`` (hinge; w8a, a9a, 20news, mnist, covtype; C 0.1, 1, 10; gaps
of 1% and 0.1%; a thirtieth met its time limit): on these same runs the epochs are right within a factor of 2.2. Seconds
were taken once, on two cores of a busy machine: 25 of 29 are right within a factor of 3, all within 7, the furthest
where shrinking leaves out most rows. No other data, losses or machines were measured; ``start`` is a guess.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from slackwater.solvers.choice import Facts

_MOST_EPOCHS = 1e7  # a forecast beyond says no more than "very long"


class Pace(NamedTuple):
    """How many passes a solver needs and what one costs."""

    before: float
    scale: float
    cost: float
    gap: float
    row: float  # seconds for each row of a pass
    sparse_entry: float  # seconds for each entry
    dense_entry: float
    start: float  # seconds beside the passes: tables, certificates


PACES = {
    "dcd": Pace(2.0, 0.0871, 0.871, 0.471, 74e-9, 5.7e-9, 0.495e-9, 0.005),
    "ocas": Pace(10.0, 6.0, 0.35, 0.2, 5e-9, 0.7e-9, 0.25e-9, 0.005),
}

_BYTES_PER_ROW = 32 + 4 + 4 + 8 + 8 + 24  # the table, two orders, labels, costs, what a certificate holds
_VECTORS = 4  # of weights, float64


class Forecast(NamedTuple):
    """Passes over the data for each output, seconds in all, bytes beside the data; NaN where nothing was measured."""

    epochs: float
    seconds: float
    n_bytes: int


def forecast(solver: str, facts: Facts, threads: int = 1) -> Forecast:
    """The forecast of a fit; a limit of time bounds its seconds, not its passes."""
    at_once = min(threads, facts.n_outputs)
    n_bytes = at_once * (_BYTES_PER_ROW * facts.n_rows + 8 * _VECTORS * (facts.n_columns + 1))
    if solver not in PACES:
        return Forecast(math.nan, math.nan, n_bytes)
    pace = PACES[solver]
    epochs = _epochs(pace, facts)
    entry = pace.sparse_entry if facts.sparse else pace.dense_entry * facts.entry_bytes / 4.0
    one = pace.start + epochs * (facts.n_rows * pace.row + facts.n_entries * entry)
    seconds = one * math.ceil(facts.n_outputs / at_once)
    return Forecast(epochs, seconds if facts.max_time is None else min(seconds, facts.max_time), n_bytes)


def _epochs(pace: Pace, facts: Facts) -> float:
    hardness = max(facts.C * facts.mean_square, 1e-300)
    exponent = pace.cost * math.log(hardness) + pace.gap * math.log(1.0 / max(facts.tol, 1e-12))
    return min(pace.before + pace.scale * math.exp(min(exponent, 700.0)), _MOST_EPOCHS)
