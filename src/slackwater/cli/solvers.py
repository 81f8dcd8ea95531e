"""``slackwater solvers``: what the registry knows of them."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any

import typer

from slackwater.cli.errors import WrongUsage
from slackwater.cli.output import fact, say, say_json, show_table


def solvers(
    name: Annotated[str | None, typer.Argument(help="One solver, with its algorithm.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """List the solvers, or tell all about one: its paper, the algorithm in the paper's symbols, its settings.

    \b
    [bold]Examples[/]
      slackwater solvers
      slackwater solvers dcd
      slackwater train a9a.svm --solver dcd --set shrinking=false
    """
    from slackwater.solvers import registry

    lines = {line["name"]: line for line in registry.solvers()}
    if name is None:
        say_json(list(lines.values())) if json else _list(lines.values())
        return
    if name not in lines:
        raise WrongUsage(f"there is no solver {name!r}; the solvers are {', '.join(lines)}")
    header = inspect.cleandoc(sys.modules[registry.solver_classes()[name].__module__].__doc__ or "")
    if json:
        say_json({**lines[name], "algorithm": header})
    else:
        _tell(lines[name], header)


def _list(lines: Any) -> None:
    rows = [
        (line["name"], ", ".join(line["losses"]), ", ".join(line["biases"]), line["rule"], line["paper"])
        for line in lines
    ]
    show_table(("solver", "losses", "bias", "rule", "paper"), rows, left=5)
    say("`slackwater solvers NAME` shows an algorithm and its settings.")


def _tell(line: dict[str, Any], header: str) -> None:
    say(header)
    say()
    fact("losses", ", ".join(line["losses"]))
    fact("bias", ", ".join(line["biases"]))
    fact("certificate", f"rule {line['rule']}")
    settings = [(key, "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value))
                for key, value in line["settings"].items()]  # fmt: skip
    show_table(("setting", "default"), settings)
    say("Change a setting with --set, as in: "
        f"slackwater train DATA --solver {line['name']} --set {'='.join(settings[0])}")  # fmt: skip
