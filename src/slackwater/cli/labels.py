"""Labels as text, and as numbers of a model's classes."""

from __future__ import annotations

import numpy as np


def label_texts(labels: np.ndarray) -> np.ndarray:
    """Every label as a person would write it: 1.0 as ``1``."""
    names, places = np.unique(labels, return_inverse=True)
    return np.array([label_text(name) for name in names.tolist()], dtype=object)[places]


def label_text(label: object) -> str:
    """One label as text."""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def class_numbers(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of every label among ``classes``, -1 for a label that is none of them."""
    known = {_key(label): place for place, label in enumerate(classes.tolist())}
    names, places = np.unique(labels, return_inverse=True)
    return np.array([known.get(_key(name), -1) for name in names.tolist()], dtype=np.int64)[places]


def _key(label: object) -> str:
    """Equal for labels that mean the same: a file with one word among its labels holds the others as text, too."""
    try:
        return label_text(float(label))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(label)
