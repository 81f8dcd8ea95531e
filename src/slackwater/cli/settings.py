"""Options of ``train`` from text to what the estimator takes; what cannot be is refused before any file is read."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Literal

import typer

from slackwater.cli.errors import WrongUsage


class Bias(str, Enum):
    """The kinds of intercept."""

    none = "none"
    penalised = "penalised"
    free = "free"

    @property
    def fit_intercept(self) -> bool | Literal["free"]:
        """The estimator's word for it."""
        return "free" if self is Bias.free else self is Bias.penalised


class ClassWeight(str, Enum):
    """The weights of classes."""

    none = "none"
    balanced = "balanced"

    @property
    def wanted(self) -> str | None:
        """The estimator's word for it."""
        return None if self is ClassWeight.none else self.value


def positive(number: float | None) -> float | None:
    """Refuse what is not a positive finite number."""
    if number is not None and not 0.0 < number < math.inf:
        raise typer.BadParameter(f"{number:g} is not a positive number")
    return number


def not_negative(number: float) -> float:
    """Refuse what is not a finite number of at least 0."""
    if not 0.0 <= number < math.inf:
        raise typer.BadParameter(f"{number:g} is not a number of at least 0")
    return number


def share(number: float | None) -> float | None:
    """Refuse what does not lie between 0 and 1."""
    if number is not None and not 0.0 < number < 1.0:
        raise typer.BadParameter(f"{number:g} does not lie between 0 and 1")
    return number


def checked_settings(solver: str, loss: str, pairs: list[str]) -> dict[str, Any]:
    """The solver's settings from ``key=value`` texts, after a look at the names of solver and loss."""
    from slackwater.objective import parse_loss
    from slackwater.solvers.registry import make_solver, solver_classes

    named = dict(_pair(pair) for pair in pairs)
    try:
        parse_loss(loss)
        if solver == "auto":
            if named:
                raise WrongUsage("--set needs a --solver by name: every solver has settings of its own")
            return {}
        make_solver(solver, **{key: None for key in named if key not in _defaults(solver, solver_classes())})
        defaults = _defaults(solver, solver_classes())
        settings = {key: _value(key, text, defaults[key]) for key, text in named.items()}
        make_solver(solver, **settings)
    except (ValueError, TypeError) as error:
        raise WrongUsage(str(error)) from error
    return settings


def _defaults(solver: str, classes: dict[str, Any]) -> dict[str, Any]:
    return classes[solver]().settings() if solver in classes else {}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise WrongUsage(f"--set {text}: a setting is written key=value")
    return key.strip().replace("-", "_"), value.strip()


_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "none": None}


def _value(key: str, text: str, default: Any) -> Any:
    """``text`` as a value of the kind that the setting has."""
    word = text.lower()
    if isinstance(default, bool):
        if isinstance(_WORDS.get(word), bool):
            return _WORDS[word]
        raise WrongUsage(f"--set {key}={text}: true or false was expected")
    if isinstance(default, str):
        return text
    if word in _WORDS:
        return _WORDS[word]
    kinds = (int,) if isinstance(default, int) else (int, float)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    if default is None:
        return text
    raise WrongUsage(f"--set {key}={text}: {'a whole number' if kinds == (int,) else 'a number'} was expected")
