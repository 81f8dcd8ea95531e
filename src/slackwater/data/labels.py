"""Labels of any kind: their classes in order, and the codes that solvers compute with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LabelMap:
    """``classes`` in increasing order; ``codes[i]`` is the number of row i's class."""

    classes: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, y) -> LabelMap:
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        return cls(classes, codes)

    def signs(self, positive: int) -> np.ndarray:
        return np.where(self.codes == positive, 1.0, -1.0)
