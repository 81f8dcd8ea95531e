"""Which solver ``solver="auto"`` takes, with the reason in words, from a few facts of the problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slackwater.objective.losses import Loss, loss_name
from slackwater.objective.penalties import Penalty, penalty_name
from slackwater.rows import CSRRows, DenseRows, sqnorms, take

_SAMPLE = 1000  # rows whose norms are looked at

_STRONG = 8.0  # C mean ||x||^2 times the share of entries that are not zero
_LARGE = 2**18  # entries: small data are solved at once in any case

_INTERCEPTS = {"none": "no intercept", "penalised": "a regularised intercept", "free": "a free intercept"}


class Facts(NamedTuple):
    """What the choice of a solver and its forecast depend on."""

    n_rows: int
    n_columns: int
    n_entries: int  # stored: all of them in dense rows
    sparse: bool
    entry_bytes: int  # of a value
    mean_square: float  # of ||x||^2, from a sample
    C: float
    loss: Loss
    bias: str  # none, penalised, free
    tol: float
    max_time: float | None
    n_outputs: int  # problems: one for two classes, one per class for more


def facts_of(
    rows: DenseRows | CSRRows, *, C: float, loss: Loss, bias: str, tol: float, max_time: float | None = None,
    n_outputs: int = 1,
) -> Facts:  # fmt: skip
    """The facts of these rows and parameters."""
    sample = take(rows, np.arange(0, rows.n_rows, -(-rows.n_rows // _SAMPLE)))
    norms = np.empty(sample.n_rows)
    sqnorms(sample, norms)
    return Facts(
        rows.n_rows, rows.n_columns, rows.n_entries, isinstance(rows, CSRRows), rows.dtype.itemsize,
        float(norms.mean()), float(C), loss, bias, float(tol), max_time, n_outputs,
    )  # fmt: skip


def choose_linear(facts: Facts) -> tuple[str, str]:
    """The name of a linear solver, and why.

    Rules from ``benchmarks/solver_table.py``. Where C ||x||^2 is large most alpha_i of filled rows lie inside the box,
    and coordinate descent takes many epochs; cutting planes need hardly more sweeps than before. On covtype at C = 10
    they are twenty times as fast, on a9a twice; where rows have few of many columns they are slower at every C.
    """
    pull = facts.C * facts.mean_square * facts.n_entries / max(1, facts.n_rows * facts.n_columns)
    if pull >= _STRONG and facts.n_entries >= _LARGE and facts.bias != "free" and loss_name(facts.loss) == "hinge":
        sweeps = f"few sweeps over {facts.n_rows:,} rows, whose {facts.n_columns:,} columns are well filled"
        return "ocas", f"{sweeps}, at a large C, hinge loss with {_INTERCEPTS[facts.bias]}"
    return "dcd", _fewest_passes(facts.n_rows, loss_name(facts.loss), facts.bias)


def choose_regression(rows: DenseRows | CSRRows, loss: str, bias: str) -> tuple[str, str]:
    """The name of a linear solver of regression with the loss of this name, and why."""
    return "svr-dcd", _fewest_passes(rows.n_rows, loss, bias)


def _fewest_passes(n_rows: int, loss: str, bias: str) -> str:
    return f"fewest passes over {n_rows:,} rows to a small certified gap, {loss} loss with {_INTERCEPTS[bias]}"


def choose_multiclass(rows: DenseRows | CSRRows, n_classes: int, bias: str) -> tuple[str, str]:
    """The name of a solver for the problem of all classes, and why."""
    passes = f"fewest passes over {rows.n_rows:,} rows to a small certified gap"
    return "crammer-singer", f"{passes}, {n_classes} classes in one problem with {_INTERCEPTS[bias]}"


def choose_penalised(rows, loss: Loss, penalty: Penalty) -> tuple[str, str]:
    """The name of a linear solver where the penalty makes weights zero, and why."""
    words = f"{loss_name(loss)} loss with the {penalty_name(penalty)} penalty"
    if loss.width:
        return "cdn", f"Newton steps weight by weight, which rest while they are zero, {words} on {rows.n_rows:,} rows"
    return "folos", f"the solver of the {words}; with a rounded loss, as squared_hinge, cdn gets much closer"


def choose_kernel(rows, loss: Loss, bias: str) -> tuple[str, str]:
    """The name of a kernel solver for these rows, and why."""
    return "blocked-smo", _in_blocks(rows)


def choose_kernel_multiclass(rows, n_classes: int, bias: str) -> tuple[str, str]:
    """The name of a kernel solver for the problem of all classes, and why."""
    return "larank", f"{_in_blocks(rows)}, {n_classes} classes in one problem with {_INTERCEPTS[bias]}"


def choose_kernel_regression(rows, loss: str, bias: str) -> tuple[str, str]:
    """The name of a kernel solver of regression for these rows, and why."""
    return "blocked-svr", _in_blocks(rows)


def choose_one_class(rows) -> tuple[str, str]:
    """The name of a kernel solver of one class for these rows, and why."""
    return "blocked-one-class", _in_blocks(rows)


def _in_blocks(rows) -> str:
    return f"kernel rows of {rows.n_rows:,} examples in blocks, each computed once while there is room"
