"""Which solver ``solver="auto"`` takes, with the reason in words."""

from __future__ import annotations

from slackwater.objective.losses import Loss, loss_name


def choose_linear(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a linear solver for these rows, and why."""
    intercept = {"none": "no", "penalised": "a regularised", "free": "a free"}[bias]
    size = f"{rows.n_rows:,} rows, {rows.n_entries:,} entries"
    return "dcd", (
        f"dual coordinate descent reaches a small certified gap for the {loss_name(loss)} loss in the fewest passes "
        f"over {size} in memory, with {intercept} intercept"
    )
