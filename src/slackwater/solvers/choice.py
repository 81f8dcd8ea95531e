"""Which solver ``solver="auto"`` takes, with the reason in words."""

from __future__ import annotations

from slackwater.objective.losses import Loss, loss_name


def choose_linear(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a linear solver for these rows, and why."""
    return "dcd", _fewest_passes(rows, loss_name(loss), bias)


def choose_regression(rows, loss: str, bias: str) -> tuple[str, str]:
    """The name of a linear solver of regression with the loss of this name, and why."""
    return "svr-dcd", _fewest_passes(rows, loss, bias)


def _fewest_passes(rows, loss: str, bias: str) -> str:
    intercept = {"none": "no intercept", "penalised": "a regularised intercept", "free": "a free intercept"}[bias]
    return f"fewest passes over {rows.n_rows:,} rows to a small certified gap, {loss} loss with {intercept}"


def choose_kernel(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a kernel solver for these rows, and why."""
    return "blocked-smo", _in_blocks(rows)


def choose_kernel_regression(rows, loss: str, bias: str) -> tuple[str, str]:
    """The name of a kernel solver of regression for these rows, and why."""
    return "blocked-svr", _in_blocks(rows)


def _in_blocks(rows) -> str:
    return f"kernel rows of {rows.n_rows:,} examples in blocks, each computed once while there is room"
