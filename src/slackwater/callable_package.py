"""Packages that have the name of their main function.

Importing any file of such a folder makes Python put the folder where the function is looked up. So that
``from slackwater import export`` gives something to call in every order of imports, the folder answers to a call.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def answer_calls(package: str, home: str, function: str) -> None:
    """Calling ``package`` is calling ``function`` of the module ``home``."""

    class Callable(ModuleType):
        def __call__(self, *arguments: Any, **named: Any) -> Any:
            return getattr(importlib.import_module(home), function)(*arguments, **named)

    sys.modules[package].__class__ = Callable
