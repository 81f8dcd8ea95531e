"""``plan``: which solver a fit would take, why, and what it will cost, before it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs

from slackwater.estimators.linear_svc import LinearSVC
from slackwater.rows import CSRRows, DenseRows
from slackwater.solvers.choice import Facts
from slackwater.solvers.forecast import forecast
from slackwater.training.stopping import counted, seconds_text


@dataclass(frozen=True)
class Plan:
    """The answer of ``plan``: solver, reason in words, the forecast. ``str()`` tells it.

    ``epochs`` are passes over the data for each output, ``seconds`` of the whole fit, ``n_bytes`` of memory beside the
    data; epochs and seconds are NaN for a solver that nothing was measured of.
    """

    solver: str
    reason: str
    epochs: float
    seconds: float
    n_bytes: int
    facts: Facts

    @property
    def known(self) -> bool:
        """Whether there is a forecast of the time."""
        return not math.isnan(self.seconds)

    @property
    def forecast(self) -> str:
        """The forecast as a sentence."""
        memory = f"{self.n_bytes / 1e6:.3g} MB of memory beside the data"
        if not self.known:
            return f"unknown seconds, {memory}"
        outputs = f" for each of {self.facts.n_outputs} classes" if self.facts.n_outputs > 1 else ""
        limit = ", the limit" if self.facts.max_time is not None and self.seconds >= self.facts.max_time else ""
        epochs = counted(max(1, round(self.epochs)), "epoch")
        return f"about {seconds_text(self.seconds)}{limit} ({epochs}{outputs} to a gap of {self.facts.tol:g}), {memory}"

    def __str__(self) -> str:
        facts, width = self.facts, "solver       "
        kind = "sparse" if facts.sparse else "dense"
        filled = facts.n_entries / max(1, facts.n_rows * facts.n_columns)
        return "\n".join([
            f"data         {facts.n_rows:,} rows, {facts.n_columns:,} columns, {kind}, {100.0 * filled:.3g}% stored",
            f"{width}{self.solver}: {self.reason}",
            f"forecast     {self.forecast}",
        ])  # fmt: skip


def plan(
    X,
    y,
    *,
    C=1.0,
    loss="hinge",
    solver="auto",
    tol=1e-3,
    max_time=None,
    fit_intercept=True,
    intercept_scaling=1.0,
    n_jobs=None,
) -> Plan:
    """Which solver ``LinearSVC`` would take for these data, why, and what the fit will cost.

    The forecast comes from measurements on one machine: expect it to be right within a factor of three mostly.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slackwater import plan
    >>> plan(*load_digits(return_X_y=True), C=0.01).solver
    'dcd'
    """
    svm = LinearSVC(
        C=C, loss=loss, solver=solver, tol=tol, max_time=max_time, fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling, n_jobs=n_jobs,
    )  # fmt: skip
    svm._check_parameters()
    svm._limits()
    examples = svm._examples(X, y, None)
    facts = svm._choice_facts(examples)
    svm._solver(examples)
    expected = forecast(svm.solver_, facts, effective_n_jobs(n_jobs))
    n_bytes = expected.n_bytes + _copied(examples.rows, examples.X)
    return Plan(svm.solver_, svm.solver_reason_, expected.epochs, expected.seconds, n_bytes, facts)


def _copied(rows: DenseRows | CSRRows, X) -> int:
    """Bytes of rows that are not the caller's own."""
    values = X if isinstance(X, np.ndarray) else X.data
    if np.may_share_memory(rows.values, values):
        return 0
    return sum(part.nbytes for part in rows if isinstance(part, np.ndarray))
