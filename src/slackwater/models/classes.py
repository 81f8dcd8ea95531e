"""The classes of a model: from decision values to labels, and into a file and back without pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.models.files import count

#: Labels of these kinds are stored as numbers, those of text as JSON.
_NUMBERS, _TEXT, _OBJECTS = "numbers", "text", "objects"
_NUMBER_KINDS = "biuf"  # of a dtype: booleans, whole and real numbers
_WIDEST = 8  # bytes; a long double has no place in the file format
_MOST_CHARACTERS = 2**26  # of an array of text, where all labels take the width of the widest


def checked_classes(classes: Any, n_outputs: int) -> np.ndarray | None:
    """The classes as an array, one per output; two where there is one output, the second on its positive side."""
    if classes is None:
        return None
    classes = np.asarray(classes)
    expected = 2 if n_outputs == 1 else n_outputs
    if classes.shape != (expected,):
        raise ValueError(f"{n_outputs} output(s) need {expected} classes, got an array of shape {classes.shape}")
    return classes


def labels_of(values: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """The labels that decision values stand for: by sign where they are (n,), by the largest where they are (n, k).

    Without classes these are -1.0 and 1.0, or the number of the output.
    """
    if values.ndim == 1:
        return (np.array([-1.0, 1.0]) if classes is None else classes)[(values > 0.0).astype(np.intp)]
    winners = values.argmax(axis=1)
    return winners if classes is None else classes[winners]


def labels_in_order(classes: np.ndarray | None, n_outputs: int) -> list[Any]:
    """Those that ``labels_of`` gives: for one output below and above 0, for more one for each output."""
    if classes is not None:
        return list(classes)
    return [-1.0, 1.0] if n_outputs == 1 else list(range(n_outputs))


def packed_classes(classes: np.ndarray | None) -> tuple[np.ndarray | None, dict[str, Any] | None]:
    """The classes as a tensor of numbers or None, and the facts that ``unpacked_classes`` needs besides."""
    if classes is None:
        return None, None
    if classes.dtype.kind in _NUMBER_KINDS and classes.dtype.itemsize <= _WIDEST:
        return np.ascontiguousarray(classes, dtype=classes.dtype.newbyteorder("=")), {"stored_as": _NUMBERS}
    labels = classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise TypeError(f"classes of type {classes.dtype} cannot be saved: only numbers, booleans and text can")
    if classes.dtype.kind == "U":
        return None, {"stored_as": _TEXT, "width": classes.dtype.itemsize // np.dtype("U1").itemsize, "values": labels}
    return None, {"stored_as": _OBJECTS, "values": labels}


def unpacked_classes(tensor: np.ndarray | None, facts: dict[str, Any] | None) -> np.ndarray | None:
    """The classes that ``packed_classes`` was given."""
    if facts is None:
        return None
    if facts["stored_as"] == _NUMBERS:
        if tensor is None or tensor.dtype.kind not in _NUMBER_KINDS:
            raise ValueError("the numbers of the classes are missing, or of another type")
        return tensor
    labels = facts["values"]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ValueError("the classes are no list of text")
    if facts["stored_as"] == _TEXT:
        longest = max(map(len, labels), default=0)
        width = count(facts["width"], "the width of the classes")
        if width < longest or width * len(labels) > _MOST_CHARACTERS:
            raise ValueError(f"classes of up to {longest} characters in places of {width}")
        return np.array(labels, dtype=f"U{max(1, width)}")
    if facts["stored_as"] == _OBJECTS:
        return np.array(labels, dtype=object)
    raise ValueError(f"classes stored as {facts['stored_as']!r}")
