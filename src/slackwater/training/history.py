"""The history of a run as data: one record for every certificate on the way."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np


@dataclass(frozen=True)
class Record:
    """Where a run stood after a round. ``primal`` and ``dual`` are of this round's own model and dual point."""

    round: int
    epochs: int
    seconds: float  # inside the solver
    seconds_outside: float  # certificates, holdout, observers
    primal: float
    dual: float
    gap: float  # of the best primal value and the best bound so far
    relative_gap: float
    holdout_error: float  # NaN without a holdout
    updates: int
    inner_products: int
    row_requests: int = 0  # of the kernel matrix, by the solver
    kernel_evaluations: int = 0  # really computed for them


class History(list[Record]):
    """The records in order; ``columns`` gives them as arrays, ready for a data frame."""

    def columns(self) -> dict[str, np.ndarray]:
        """Every field of the records as one array."""
        names = Record.__dataclass_fields__
        lines = [asdict(record) for record in self]
        return {name: np.array([line[name] for line in lines]) for name in names}

    def seconds_to(self, tol: float) -> float:
        """The seconds still to go to this relative gap, if it goes on shrinking at its recent rate; NaN if unknown."""
        return forecast([(r.seconds + r.seconds_outside, r.relative_gap) for r in self], tol)


def forecast(points: list[tuple[float, float]], tol: float) -> float:
    """Seconds from the last (seconds, gap) to ``tol`` at the rate of log gap in the later half; NaN if unknown."""
    points = [(t, math.log(gap)) for t, gap in points if 0.0 < gap < math.inf]
    points = points[len(points) // 2 :] if len(points) > 3 else points
    if tol <= 0.0 or len(points) < 2 or points[-1][0] <= points[0][0]:
        return math.nan
    (start, high), (end, low) = points[0], points[-1]
    rate = (high - low) / (end - start)
    if low <= math.log(tol):
        return 0.0
    return (low - math.log(tol)) / rate if rate > 0.0 else math.nan
