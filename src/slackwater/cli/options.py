"""The options of ``train``: what each is called, what it accepts, and what the help says of it."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


class Bias(StrEnum):
    """The kinds of intercept."""

    none = "none"
    penalised = "penalised"
    free = "free"

    @property
    def fit_intercept(self) -> bool | Literal["free"]:
        """The estimator's word for it."""
        return "free" if self is Bias.free else self is Bias.penalised

    @property
    def of_kernels(self) -> Literal[False] | str:
        """The word of the estimators with kernels."""
        return False if self is Bias.none else self.value


class Penalty(StrEnum):
    """The penalties of the weights."""

    l2 = "l2"
    l1 = "l1"
    elasticnet = "elasticnet"


class Base(StrEnum):
    """The number of the first column."""

    auto = "auto"
    zero = "0"
    one = "1"

    @property
    def number(self) -> Literal["auto", 0, 1]:
        """The reader's word for it."""
        return "auto" if self is Base.auto else 0 if self is Base.zero else 1


class Weights(StrEnum):
    """The weights of classes."""

    none = "none"
    balanced = "balanced"

    @property
    def class_weight(self) -> str | None:
        """The estimator's word for it."""
        return None if self is Weights.none else self.value


def _positive(number: float | None) -> float | None:
    if number is not None and not 0.0 < number < math.inf:
        raise typer.BadParameter(f"{number:g} is not a positive number")
    return number


def _not_negative(number: float) -> float:
    if not 0.0 <= number < math.inf:
        raise typer.BadParameter(f"{number:g} is not a number of at least 0")
    return number


def _share(number: float | None) -> float | None:
    if number is not None and not 0.0 < number < 1.0:
        raise typer.BadParameter(f"{number:g} does not lie between 0 and 1")
    return number


def _threads(number: int) -> int:
    if number < 1 and number != -1:
        raise typer.BadParameter(f"{number} is not a number of threads; -1 takes all cores")
    return number


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **more)


_FILES, _PROBLEM, _SOLVER, _END = "Files and output", "The problem", "The solver", "When to stop"

Output = Annotated[
    Path | None, _option(_FILES, "-o", "--output", help="The model's file.", show_default="name of DATA, .model")
]
Test = Annotated[str | None, _option(_FILES, "--test", help="Examples to measure the error on.", show_default=False)]
Columns = Annotated[
    int | None,
    _option(_FILES, "--columns", min=1, help="Columns, where the data do not show the last ones.", show_default=False),
]
FirstColumn = Annotated[
    Base, _option(_FILES, "--base", help="What columns count from in text; auto: from 0 where a column 0 occurs.")
]
Json = Annotated[bool, _option(_FILES, "--json", help="Print JSON instead.")]
Quiet = Annotated[bool, _option(_FILES, "-q", "--quiet", help="Print the certificate and the status only.")]

Cost = Annotated[float, _option(_PROBLEM, "-C", "--C", help="Cost of errors.", callback=_positive)]
LossName = Annotated[
    str,
    _option(
        _PROBLEM, "--loss", metavar="NAME",
        help="hinge, squared_hinge, smoothed_hinge or huber; the last two also with a width: huber:0.25.",
    ),
]  # fmt: skip
PenaltyName = Annotated[
    Penalty, _option(_PROBLEM, "--penalty", help="Of the weights; l1 and elasticnet leave weights at zero.")
]
L1Ratio = Annotated[
    float, _option(_PROBLEM, "--l1-ratio", min=0.0, max=1.0, help="The share of |w| in the elasticnet penalty.")
]
_INTERCEPT = "The intercept: penalised as in LIBLINEAR, free as in LIBSVM, or none."
BiasKind = Annotated[Bias, _option(_PROBLEM, "--bias", help=_INTERCEPT)]
BiasOrUsual = Annotated[
    Bias | None, _option(_PROBLEM, "--bias", help=_INTERCEPT, show_default="penalised; free with a kernel")
]
ClassWeight = Annotated[
    Weights, _option(_PROBLEM, "--class-weight", help="balanced gives rare classes the weight of frequent ones.")
]

SolverName = Annotated[str, _option(_SOLVER, "--solver", metavar="NAME", help="One of `slackwater solvers`, or auto.")]
Settings = Annotated[
    list[str] | None,
    _option(
        _SOLVER, "--set", metavar="KEY=VALUE", help="A setting of the solver; may be repeated.", show_default=False
    ),
]
Seed = Annotated[
    int, _option(_SOLVER, "--seed", min=0, max=2**32 - 1, metavar="N", help="Of the order in which rows are visited.")
]
Jobs = Annotated[
    int, _option(_SOLVER, "--jobs", callback=_threads, help="Threads for the classes; -1 takes all cores.")
]

Tolerance = Annotated[float, _option(_END, "--tol", callback=_not_negative, help="Certified relative gap to reach.")]
MaxTime = Annotated[
    float | None,
    _option(_END, "--max-time", callback=_positive, help="Seconds of training.", show_default="no limit"),
]
MaxRounds = Annotated[
    int | None, _option(_END, "--max-rounds", min=1, help="Rounds for each class.", show_default="no limit")
]
Validation = Annotated[
    float | None,
    _option(
        _END, "--validation", callback=_share, show_default=False,
        help="Share of the rows to keep back; stop when their error falls no more.",
    ),
]  # fmt: skip
