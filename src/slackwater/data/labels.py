"""Labels of any kind to class numbers, and to the -1 and +1 of binary problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["LabelMap"]

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class LabelMap:
    """The classes in sorted order, and the number of each example's class.

    >>> labels = LabelMap.of(["spam", "ham", "spam"])
    >>> labels.classes.tolist(), labels.codes.tolist(), labels.signs(1).tolist()
    (['ham', 'spam'], [1, 0, 1], [1.0, -1.0, 1.0])
    """

    classes: np.ndarray  # of the labels' own kind
    codes: np.ndarray  # int64

    @classmethod
    def of(cls, y: Any) -> Self:
        """The map of these labels: numbers, strings or booleans, of two classes or more."""
        labels = _checked(y)
        try:
            classes = np.unique(labels)  # without the inverse, which costs a sort
        except TypeError as error:
            kinds = sorted({type(label).__name__ for label in labels.tolist()})
            raise ValueError(f"labels of different kinds cannot be put in order: {', '.join(kinds)}") from error
        if classes.size < 2:
            found = f"one class only, {classes.tolist()[0]!r}" if classes.size else "no labels"
            raise ValueError(f"y holds {found}: a classifier needs examples of at least two classes")
        codes = labels == classes[1] if classes.size == 2 else np.searchsorted(classes, labels)
        return cls(classes, codes.astype(np.int64, copy=False))

    @property
    def n_classes(self) -> int:
        return self.classes.size

    def signs(self, k: int) -> np.ndarray:
        """+1.0 for the examples of class number k and -1.0 for the rest; k = 1 is the one problem of two classes."""
        if not 0 <= k < self.n_classes:
            raise IndexError(f"class number {k}: there are {self.n_classes} classes")
        return np.where(self.codes == k, 1.0, -1.0)

    def encode(self, y: Any) -> np.ndarray:
        """The class numbers of other labels, which must be of the same classes."""
        labels = _checked(y)
        try:
            codes = np.searchsorted(self.classes, labels)
            strange = self.classes[np.minimum(codes, self.n_classes - 1)] != labels
        except (TypeError, np.exceptions.DTypePromotionError):  # strings beside numbers
            codes, strange = np.zeros(labels.size, dtype=np.intp), np.ones(labels.size, dtype=bool)
        if np.any(strange):
            unseen = _some(list(dict.fromkeys(labels[strange].tolist())))
            raise ValueError(f"labels that are none of the classes ({_some(self.classes.tolist())}): {unseen}")
        return codes.astype(np.int64, copy=False)


def _some(labels: list) -> str:
    return ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def _checked(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"labels must be a list with one label per example, got an array of shape {labels.shape}")
    if labels.dtype.kind in "fc" and not np.isfinite(labels).all():
        raise ValueError(f"label {int(np.argmin(np.isfinite(labels)))} is not finite")
    return labels
