"""The options of ``train`` that choose a kernel, and the settings of the estimator that follow from them."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from slackwater.cli.errors import WrongUsage


class KernelName(StrEnum):
    """The kernels that files can be trained with."""

    rbf = "rbf"
    linear = "linear"
    poly = "poly"
    sigmoid = "sigmoid"
    laplacian = "laplacian"
    chi2 = "chi2"


class Together(StrEnum):
    """What is made of more than two classes."""

    ovr = "ovr"
    ovo = "ovo"
    crammer_singer = "crammer_singer"


def _number_or(*words: str) -> Any:
    """A callback that lets these words and numbers pass."""

    def check(text: str | None) -> str | None:
        if text is None or text in words:
            return text
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0.0 <= number < math.inf:
            raise typer.BadParameter(f"{text!r} is neither {' nor '.join(words)} nor a number of at least 0")
        return text

    return check


def _option(name: str, **more: Any) -> Any:
    return typer.Option(name, rich_help_panel="The kernel", **more)


Kernel = Annotated[
    KernelName | None,
    _option("--kernel", help="Train with this kernel instead of a linear classifier.", show_default=False),
]
Gamma = Annotated[
    str | None,
    _option(
        "--gamma", metavar="NUMBER", callback=_number_or("scale", "auto"), show_default="scale",
        help="Of the kernel: scale is 1 / (columns x variance), auto 1 / columns.",
    ),
]  # fmt: skip
Degree = Annotated[int | None, _option("--degree", min=0, help="Of the polynomial.", show_default="3")]
Coef0 = Annotated[float | None, _option("--coef0", help="Of the polynomial and the sigmoid.", show_default="0")]
CacheMb = Annotated[
    str | None,
    _option(
        "--cache-mb", metavar="NUMBER", callback=_number_or("auto"), show_default="half of the free memory",
        help="Megabytes for kernel values.",
    ),
]  # fmt: skip
Nu = Annotated[
    float | None,
    _option(
        "--nu", min=0.0, help="Of --solver sbp: the slack per example, as its paper has it.",
        show_default="what belongs to --C",
    ),
]  # fmt: skip
MultiClass = Annotated[
    Together | None,
    typer.Option(
        "--multi-class", rich_help_panel="The problem", show_default="ovr; ovo with a kernel",
        help="More than two classes: each against the rest; every pair (kernels); all in one problem (hinge).",
    ),
]  # fmt: skip


class Chosen(NamedTuple):
    """The kernel's options as they were given."""

    kernel: KernelName | None
    gamma: str | None
    degree: int | None
    coef0: float | None
    cache_mb: str | None
    multi_class: Together | None

    @property
    def task(self) -> str:
        """What a solver must treat."""
        together = self.multi_class is Together.crammer_singer
        if self.kernel is not None:
            return "kernel-multiclass" if together else "kernel"
        return "multiclass" if together else "classification"

    def settings(self, validation: float | None, penalty: str) -> dict[str, Any]:
        """The kernel's and what is made of several classes; options that do not go together are refused."""
        if self.kernel is None:
            for option, given in (("--gamma", self.gamma), ("--degree", self.degree), ("--coef0", self.coef0),
                                  ("--cache-mb", self.cache_mb)):  # fmt: skip
                if given is not None:
                    raise WrongUsage(f"{option} needs a --kernel: a linear classifier has none")
            if self.multi_class is Together.ovo:
                raise WrongUsage(
                    "--multi-class ovo needs a --kernel: linear classifiers are trained with ovr or crammer_singer"
                )
            return {"multi_class": (self.multi_class or Together.ovr).value}
        if validation is not None:
            raise WrongUsage("--validation is for linear classifiers: with a --kernel nothing is kept back")
        if penalty != "l2":
            raise WrongUsage(f"--penalty {penalty} is for linear classifiers: with a --kernel it is l2")
        given = {
            "gamma": _number(self.gamma), "degree": self.degree, "coef0": self.coef0,
            "cache_mb": _number(self.cache_mb), "multi_class": self.multi_class and self.multi_class.value,
        }  # fmt: skip
        return {"kernel": self.kernel.value} | {name: value for name, value in given.items() if value is not None}


def nu_setting(nu: float | None, solver: str) -> list[str]:
    """--nu as a setting of the solver that has it."""
    if nu is None:
        return []
    if solver != "sbp":
        raise WrongUsage("--nu is a setting of sbp: it needs --solver sbp")
    return [f"nu={nu!r}"]


def _number(text: str | None) -> Any:
    """The number, the word or None."""
    return text if text is None or text[:1].isalpha() else float(text)


def kernel_text(kernel: Any) -> str:
    """A kernel with the parameters that it looks at."""
    of = {"polynomial": ("gamma", "coef0", "degree"), "sigmoid": ("gamma", "coef0"), "linear": (), "precomputed": ()}
    names = of.get(kernel.name, ("gamma",))
    return " ".join([kernel.name, *(f"{name}={getattr(kernel, name):g}" for name in names)])
