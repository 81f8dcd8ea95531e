"""All sparsifiers: those of this package, found by walking its folder, and those of installed entry points."""

from __future__ import annotations

from typing import Any

from slackwater.registries import made, walk
from slackwater.sparsify.contract import Sparsifier, registered

ENTRY_POINT_GROUP = "slackwater.sparsify"


def sparsifier_classes() -> dict[str, type[Sparsifier]]:
    """Every sparsifier by name, sorted."""
    walk(ENTRY_POINT_GROUP)
    return dict(sorted(registered().items()))


def make_sparsifier(name: str, **settings: Any) -> Sparsifier:
    """The sparsifier called ``name`` with these settings."""
    return made(sparsifier_classes(), "method", name, settings)


def sparsifiers() -> list[dict[str, Any]]:
    """A table of the sparsifiers: name, paper, kernels, whether vectors are virtual, settings with their defaults."""
    return [
        {
            "name": name,
            "paper": cls.paper,
            "kernels": list(cls.kernels),
            "virtual": cls.virtual,
            "retrains": cls.retrains,
            "settings": cls().settings(),
        }
        for name, cls in sparsifier_classes().items()
    ]
