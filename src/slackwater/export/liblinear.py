"""LIBLINEAR's model files, out and in: two classes, each class against the rest, regression.

A file has one line of weights for every column, and one more for a constant column ``bias`` where that is not negative;
f(x) = <w, x> + w_last bias. Of two classes, f is positive for the first label: the second of ours.
"""

from __future__ import annotations

import os
from typing import NoReturn

import numpy as np

from slackwater.export.plain import ExportError, Plain, plain, whole_labels
from slackwater.export.svm_text import Head, brief, check_lines, is_real, wrong
from slackwater.models import KernelModel, LinearModel, LinearRegressionModel

_CLASSIFIERS = (
    "L2R_LR", "L2R_L2LOSS_SVC_DUAL", "L2R_L2LOSS_SVC", "L2R_L1LOSS_SVC_DUAL", "MCSVM_CS", "L1R_L2LOSS_SVC", "L1R_LR",
    "L2R_LR_DUAL",
)  # fmt: skip
_REGRESSIONS = ("L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL")
_NAMES = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")
_MOST_CLASSES = 2**20


# ------------------------------------------------------------------------------------------------------ writing


def liblinear_bytes(model: LinearModel | KernelModel) -> bytes:
    """The file's content."""
    flat = plain(model.folded() if isinstance(model, LinearModel) else model, (), "LIBLINEAR's format")
    if flat.decide == "votes":
        raise ExportError("LIBLINEAR's format has no pairs of classes: train with multi_class='ovr', or use libsvm")
    head = [f"solver_type {_solver(model, flat)}", f"nr_class {2 if flat.n_outputs == 1 else flat.n_outputs}"]
    if flat.decide != "value":
        labels = whole_labels(flat.classes, "LIBLINEAR")
        head.append(f"label {' '.join(map(str, labels[::-1] if flat.decide == 'sign' else labels))}")
    biased = bool(flat.intercept.any())
    weights = np.vstack([flat.coef.T, flat.intercept]) if biased else flat.coef.T
    head += [f"nr_feature {flat.n_columns}", f"bias {1 if biased else -1}", "w"]
    lines = [" ".join(map(repr, line)) for line in weights.tolist()]
    return ("\n".join([*head, *lines]) + "\n").encode()


def _solver(model: LinearModel | KernelModel, flat: Plain) -> str:
    """A solver of LIBLINEAR for the same problem, as far as it has one."""
    if flat.decide == "value":
        return "L2R_L2LOSS_SVR"
    return "L2R_L1LOSS_SVC_DUAL" if model.meta.get("loss", "hinge") == "hinge" else "L2R_L2LOSS_SVC"


# ------------------------------------------------------------------------------------------------------ reading


def from_liblinear(path: str | os.PathLike[str]) -> LinearModel:
    """The model in a file of LIBLINEAR."""
    head = Head.of(path, _NAMES, "w")
    solver = head.word("solver_type", (*_CLASSIFIERS, *_REGRESSIONS, "ONECLASS_SVM"))
    if solver == "ONECLASS_SVM":
        head.wrong("solver_type", "ONECLASS_SVM is not read; classification and regression are")
    regression = solver in _REGRESSIONS
    classes = head.whole("nr_class", 1 if regression else 2, _MOST_CLASSES)
    outputs = 1 if regression or (classes == 2 and solver != "MCSVM_CS") else classes
    columns, bias = head.whole("nr_feature", 1), head.real("bias")
    weights = _weights(head, columns + (bias >= 0.0), outputs)
    intercept = weights[-1] * bias if bias >= 0.0 else np.zeros(outputs)
    coef, meta = np.ascontiguousarray(weights[:columns].T), {"read_from": "LIBLINEAR", "solver_type": solver}
    if regression:
        return LinearRegressionModel(coef, intercept, None, meta)
    labels = np.array(head.wholes("label", classes), dtype=np.int64)
    if np.unique(labels).size < classes:
        head.wrong("label", "a label occurs twice")
    return LinearModel(coef, intercept, labels[::-1].copy() if outputs == 1 else labels, meta)


def _weights(head: Head, count: int, width: int) -> np.ndarray:
    """The lines of weights."""
    words = head.rest.split()
    try:
        values = np.array(words, dtype=np.float64) if len(words) == count * width and b"_" not in head.rest else None
    except ValueError:
        values = None
    if values is None or not np.isfinite(values).all():
        _complain(head, count, width)
    return values.reshape(count, width)


def _complain(head: Head, count: int, width: int) -> NoReturn:
    """Name the line at which weights are wrong."""
    lines = head.rest.rstrip().splitlines()

    def complaint(line: bytes) -> str:
        words = line.split()
        bad = next((word for word in words if not is_real(word)), None)
        if bad is not None:
            return f"expected a weight, found {brief(bad.decode(errors='backslashreplace'))}"
        return "" if len(words) == width else f"expected {width} weight(s), found {len(words)}"

    check_lines(head.path, lines, head.n_lines + 1, complaint)
    wrong(head.path, head.n_lines + len(lines), f"the file ends after {len(lines)} lines of weights, expected {count}")


def looks_like(start: bytes) -> bool:
    """Whether a file begins as those of LIBLINEAR do."""
    return start.lstrip().startswith(b"solver_type ")
