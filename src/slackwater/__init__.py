"""Slackwater: large-scale support vector machines, every fit with a certificate.

Names are imported when first used, so that ``import slackwater`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slackwater.data import read, write
    from slackwater.estimators import (
        SVC,
        SVR,
        LinearSVC,
        LinearSVCCV,
        LinearSVR,
        OneClassSVM,
        OnlineSVC,
        SparseSVC,
        path,
        plan,
        sparsify,
    )
    from slackwater.export import export, import_model
    from slackwater.models import KernelModel, LinearModel, load, save
    from slackwater.solvers.registry import solvers

__version__ = "0.1.0"

_HOMES = {
    "KernelModel": "slackwater.models",
    "LinearModel": "slackwater.models",
    "LinearSVC": "slackwater.estimators",
    "LinearSVCCV": "slackwater.estimators",
    "LinearSVR": "slackwater.estimators",
    "OneClassSVM": "slackwater.estimators",
    "OnlineSVC": "slackwater.estimators",
    "SVC": "slackwater.estimators",
    "SVR": "slackwater.estimators",
    "export": "slackwater.export",
    "import_model": "slackwater.export",
    "SparseSVC": "slackwater.estimators",
    "load": "slackwater.models",
    "path": "slackwater.estimators",
    "plan": "slackwater.estimators",
    "read": "slackwater.data",
    "save": "slackwater.models",
    "solvers": "slackwater.solvers.registry",
    "sparsify": "slackwater.sparsify",
    "write": "slackwater.data",
}

__all__ = [
    "SVC",
    "SVR",
    "KernelModel",
    "LinearModel",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "OneClassSVM",
    "OnlineSVC",
    "SparseSVC",
    "__version__",
    "export",
    "import_model",
    "load",
    "path",
    "plan",
    "read",
    "save",
    "solvers",
    "sparsify",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if name == "sparsify" else getattr(home, name)  # a folder that answers to a call


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
