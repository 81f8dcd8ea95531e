"""All solvers: those of this package, found by walking its folders, and those of installed entry points."""

from __future__ import annotations

from typing import Any

from slackwater.registries import made, walk
from slackwater.solvers.contract import Solver, registered, tasks_of

ENTRY_POINT_GROUP = "slackwater.solvers"


def solver_classes(task: str | None = None) -> dict[str, type[Solver]]:
    """Every solver class by name, sorted; or those of one task."""
    walk(ENTRY_POINT_GROUP)
    return {name: cls for name, cls in sorted(registered().items()) if task is None or task in tasks_of(cls)}


def make_solver(name: str, **settings: Any) -> Solver:
    """The solver called ``name`` with these settings."""
    return made(solver_classes(), "solver", name, settings)


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
