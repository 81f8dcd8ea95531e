"""All solvers: those of this package, found by walking its folders, and those of installed entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import slackwater.solvers as package
from slackwater.solvers.contract import Solver, registered, tasks_of

ENTRY_POINT_GROUP = "slackwater.solvers"


@cache
def _walk() -> None:
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        entry.load()


def solver_classes(task: str | None = None) -> dict[str, type[Solver]]:
    """Every solver class by name, sorted; or those of one task."""
    _walk()
    return {name: cls for name, cls in sorted(registered().items()) if task is None or task in tasks_of(cls)}


def make_solver(name: str, **settings: Any) -> Solver:
    """The solver called ``name`` with these settings."""
    classes = solver_classes()
    if name not in classes:
        raise ValueError(f"solver={name!r} is not known; the solvers are {', '.join(classes)}")
    known = list(inspect.signature(classes[name]).parameters)
    for setting in settings:
        if setting not in known:
            raise ValueError(f"solver {name!r} has no setting {setting!r}; its settings are {', '.join(known)}")
    return classes[name](**settings)


def solvers() -> list[dict[str, Any]]:
    """A table of the solvers: name, task, paper, losses, biases, penalties, rule, settings with their defaults."""
    return [
        {
            "name": name,
            "task": ", ".join(tasks_of(cls)),
            "paper": cls.paper,
            "losses": list(cls.losses),
            "biases": list(cls.biases),
            "penalties": list(cls.penalties),
            "rule": cls.rule,
            "settings": cls().settings(),
        }
        for name, cls in solver_classes().items()
    ]
