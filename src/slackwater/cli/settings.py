"""``--set key=value``: a solver's settings from text; what cannot be is refused before any file is read."""

from __future__ import annotations

from typing import Any

from slackwater.cli.errors import WrongUsage


def checked_settings(
    solver: str, loss: str, bias: str, pairs: list[str], task: str = "classification"
) -> dict[str, Any]:
    """The solver's settings from ``key=value`` texts, after a look at whether it exists and can do what is wanted."""
    from slackwater.objective import loss_family, parse_loss
    from slackwater.solvers.contract import require
    from slackwater.solvers.registry import make_solver

    named = dict(_pair(pair) for pair in pairs)
    try:
        family = loss_family(parse_loss(loss))
        if solver == "auto":
            if named:
                raise WrongUsage("--set needs a --solver by name: every solver has settings of its own")
            return {}
        defaults = _defaults(solver, list(named))
        settings = {key: _value(key, text, defaults[key]) for key, text in named.items()}
        chosen = make_solver(solver, **settings)
        require(chosen, "task", task, "task")
        require(chosen, "losses", family, "loss")
        require(chosen, "biases", bias, "bias")
    except (ValueError, TypeError) as error:
        raise WrongUsage(str(error)) from error
    return settings


def method_settings(method: str, pairs: list[str]) -> dict[str, Any]:
    """The settings of a sparsifier from ``key=value`` texts, after a look at whether it exists and takes them."""
    from slackwater.sparsify.registry import make_sparsifier

    try:
        named = dict(_pair(pair) for pair in pairs)
        defaults = make_sparsifier(method).settings()
        settings = {key: _value(key, text, defaults[key]) if key in defaults else text for key, text in named.items()}
        make_sparsifier(method, **settings)
    except (ValueError, TypeError) as error:
        raise WrongUsage(str(error)) from error
    return settings


def check_penalty(solver: str, penalty: str, l1_ratio: float) -> None:
    """Refuse a solver that does not treat the penalty."""
    from slackwater.objective import parse_penalty, penalty_family
    from slackwater.solvers.contract import UnsupportedError, require
    from slackwater.solvers.registry import make_solver

    if solver == "auto":
        return
    try:
        require(make_solver(solver), "penalties", penalty_family(parse_penalty(penalty, l1_ratio)), "penalty")
    except UnsupportedError as error:
        raise WrongUsage(str(error)) from error


def _defaults(solver: str, wanted: list[str]) -> dict[str, Any]:
    """The solver's settings as they are without ``--set``; an unknown solver or setting raises."""
    from slackwater.solvers.registry import make_solver

    known = make_solver(solver).settings()
    for name in wanted:
        if name not in known:
            make_solver(solver, **{name: None})
    return known


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
