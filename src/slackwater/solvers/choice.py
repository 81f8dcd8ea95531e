"""Which solver ``solver="auto"`` takes, with the reason in words."""

from __future__ import annotations

from slackwater.objective.losses import Loss, loss_name

_INTERCEPTS = {"none": "no intercept", "penalised": "a regularised intercept", "free": "a free intercept"}


def choose_linear(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a linear solver for these rows, and why."""
    passes = f"fewest passes over {rows.n_rows:,} rows to a small certified gap"
    return "dcd", f"{passes}, {loss_name(loss)} loss with {_INTERCEPTS[bias]}"


def choose_multiclass(rows, n_classes: int, bias: str) -> tuple[str, str]:
    """The name of a solver for the problem of all classes, and why."""
    passes = f"fewest passes over {rows.n_rows:,} rows to a small certified gap"
    return "crammer-singer", f"{passes}, {n_classes} classes in one problem with {_INTERCEPTS[bias]}"
