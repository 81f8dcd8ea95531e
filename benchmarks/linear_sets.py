"""The five linear benchmark problems, read from the folder that SLACKWATER_DATA names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from slackwater.data import named_set


class Problem(NamedTuple):
    """One binary problem; X is float32."""

    name: str
    X: object
    y: np.ndarray


_POSITIVE = {
    "w8a": lambda y: y > 0,
    "a9a": lambda y: y > 0,
    "20news_bydate": lambda y: y < 10,
    "mnist": lambda y: y == 8,
    "covtype": lambda y: y == 1,
}
_SCALE = {"mnist": 1.0 / 255.0, "covtype": 1e-3}


def problems(names: list[str] | None = None) -> Iterator[Problem]:
    """w8a, a9a, 20news_bydate (classes below 10), mnist (8), covtype x 0.001 (1), each against the rest."""
    for name in names or list(_POSITIVE):
        table = named_set(name)
        X = table.X * np.float32(_SCALE[name]) if name in _SCALE else table.X
        yield Problem(name, X.astype(np.float32, copy=False), np.where(_POSITIVE[name](table.y), 1.0, -1.0))
