"""The weights of examples, from those of rows and of classes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from slackwater.data.labels import LabelMap


def example_weights(X, y, labels: LabelMap, sample_weight, class_weight) -> np.ndarray | None:
    """Weights of rows times weights of their classes; None where all are 1."""
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if class_weight is None:
        return weights
    options: dict[str, Any] = {"classes": labels.classes, "y": y}
    if "sample_weight" in inspect.signature(compute_class_weight).parameters:
        options["sample_weight"] = weights
    if weights is not None and isinstance(class_weight, str):
        empty = np.flatnonzero(np.bincount(labels.codes, weights) == 0.0)
        if empty.size:
            label = labels.classes[empty[0]]
            raise ValueError(f"class_weight='balanced': all rows of class {label} have the weight 0")
    of_class = compute_class_weight(class_weight, **options)[labels.codes]
    return of_class if weights is None else weights * of_class
