"""What registries share: classes register by being defined, folders are walked, other packages join by entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def register(registered: dict[str, type], cls: type, what: str) -> None:
    """Enter a class under its ``name``; one without is a base of others. Two of one name are refused."""
    name = cls.__dict__.get("name")
    if name is None:
        return
    other = registered.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(f"two {what}s are called {name!r}: {other.__module__} and {cls.__module__}")
    registered[name] = cls


@cache
def walk(package: str) -> None:
    """Import every module of ``package``, and what others have installed under its name; once."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        importlib.import_module(module.name)
    for entry in entry_points(group=package):
        entry.load()


def made(classes: Mapping[str, type[Kind]], what: str, name: str, settings: Mapping[str, Any]) -> Kind:
    """One of the classes with these settings; ``what`` is also the parameter that names it."""
    if name not in classes:
        raise ValueError(f"{what}={name!r} is not known; the {what}s are {', '.join(classes)}")
    known = list(inspect.signature(classes[name]).parameters)
    for setting in settings:
        if setting not in known:
            raise ValueError(f"{what} {name!r} has no setting {setting!r}; its settings are {', '.join(known)}")
    return classes[name](**settings)
