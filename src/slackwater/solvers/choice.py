"""Which solver ``solver="auto"`` takes, with the reason in words."""

from __future__ import annotations

from slackwater.objective.losses import Loss, loss_name
from slackwater.objective.penalties import Penalty, penalty_name


def choose_linear(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a linear solver for these rows, and why."""
    intercept = {"none": "no intercept", "penalised": "a regularised intercept", "free": "a free intercept"}[bias]
    passes = f"fewest passes over {rows.n_rows:,} rows to a small certified gap"
    return "dcd", f"{passes}, {loss_name(loss)} loss with {intercept}"


def choose_penalised(rows, loss: Loss, penalty: Penalty) -> tuple[str, str]:
    """The name of a linear solver where the penalty makes weights zero, and why."""
    words = f"{loss_name(loss)} loss with the {penalty_name(penalty)} penalty"
    if loss.width:
        return "cdn", f"Newton steps weight by weight, which rest while they are zero, {words} on {rows.n_rows:,} rows"
    return "folos", f"the solver of the {words}; with a rounded loss, as squared_hinge, cdn gets much closer"
