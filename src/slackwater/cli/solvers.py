"""``slackwater solvers``: what the registry knows of them."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any

import typer

from slackwater.cli.errors import WrongUsage
from slackwater.cli.output import fact, say, say_json, show_table

#: The tasks of the command, with the options that ask for them.
_TRAINED = {"classification": "", "multiclass": "--multi-class crammer_singer ", "kernel": "--kernel rbf "}


def solvers(
    name: Annotated[str | None, typer.Argument(help="One solver, with its algorithm.", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the list for a document.")] = False,
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
        show = say_json if json else _list_in_markdown if markdown else _list
        show(list(lines.values()))
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
        (line["name"], line["task"], ", ".join(line["losses"]), ", ".join(line["biases"]), line["rule"], line["paper"])
        for line in lines
    ]
    show_table(("solver", "task", "losses", "bias", "rule", "paper"), rows, text=("task", "losses", "bias", "paper"))
    say("`slackwater solvers NAME` shows an algorithm and its settings.")


def _list_in_markdown(lines: Any) -> None:
    print("| solver | task | paper | losses | intercept | certificate |\n| --- | --- | --- | --- | --- | --- |")
    for line in lines:
        losses, biases = ", ".join(line["losses"]), ", ".join(line["biases"])
        print(f"| `{line['name']}` | {line['task']} | {line['paper']} | {losses} | {biases} | {line['rule']} |")


def _tell(line: dict[str, Any], header: str) -> None:
    say(header)
    say()
    fact("task", line["task"])
    fact("losses", ", ".join(line["losses"]))
    fact("penalties", ", ".join(line["penalties"]))
    fact("bias", ", ".join(line["biases"]))
    fact("certificate", f"rule {line['rule']}")
    settings = [(key, _setting_text(value)) for key, value in line["settings"].items()]
    if not settings:
        fact("settings", "none")
        return
    show_table(("setting", "default"), settings)
    first = line["task"].partition(",")[0]
    if first not in _TRAINED:
        return
    solver = f"{_TRAINED[first]}--solver {line['name']}"
    say(f"Change a setting with --set: slackwater train DATA {solver} --set {'='.join(settings[0])}")


def _setting_text(value: Any) -> str:
    """As --set reads it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
