"""From a dense kernel predictor to a small one: published algorithms, one per file, and the driver that runs them.

The package has a public function of the same name, ``slackwater.sparsify(model, X, y)``. Importing any file of this
folder makes Python put the folder there; so that both names go on working, the folder answers to a call.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """``slackwater.estimators.sparsify``."""
        return importlib.import_module("slackwater.estimators").sparsify(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
