"""The four kernel benchmark problems, read from the folder that SLACKWATER_DATA names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from slackwater.data import named_set


class Problem(NamedTuple):
    """One binary problem with its rbf kernel exp(-gamma ||x - z||^2); X is float32, dense or CSR as it is stored."""

    name: str
    X: object
    y: np.ndarray
    gamma: float
    C: float
    tol: float  # the certified gap at which our dual is as high as LIBSVM's at its tolerance 1e-3

    @property
    def dense(self) -> np.ndarray:
        """X as a C-ordered array."""
        X = self.X.toarray() if hasattr(self.X, "toarray") else self.X
        return np.ascontiguousarray(X, dtype=np.float32)


_SETTINGS = {  # name: (set, gamma, C, tol)
    "adult": ("a9a", 0.05, 1.0, 1e-5),
    "mnist": ("mnist", 0.02, 1000.0, 0.15),
    "ijcnn1": ("ijcnn1", 2.0, 32.0, 1e-4),
    "moneyfx": ("reuters_moneyfx", 1.0, 1.0, 2.9e-4),
}


def problems(names: list[str] | None = None) -> Iterator[Problem]:
    """Adult, MNIST (8 against the rest, pixels / 255), ijcnn1 and Reuters money-fx."""
    for name in names or list(_SETTINGS):
        source, gamma, C, tol = _SETTINGS[name]
        table = named_set(source)
        X = table.X * np.float32(1.0 / 255.0) if name == "mnist" else table.X
        positive = table.y == 8 if name == "mnist" else table.y > 0
        yield Problem(name, X.astype(np.float32, copy=False), np.where(positive, 1.0, -1.0), gamma, C, tol)
