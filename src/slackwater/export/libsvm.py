"""LIBSVM's model files, out and in: two classes, pairs of classes, regression.

A file has the coefficients sv_coef, rho and the labels in LIBSVM's order: f(x) = sum_j coef_j K(x_j, x) - rho, positive
for the first of a pair of labels. Of two classes it is therefore the second of ours that comes first. Pairs are as in
KernelModel: vectors in blocks, k - 1 coefficients each. LIBSVM breaks ties of votes by the order of labels, KernelModel
by the decision values.
"""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from slackwater.data import DataFileError
from slackwater.data.svmlight import svmlight_table
from slackwater.data.svmlight_writing import svmlight_lines
from slackwater.export.plain import ExportError, check_kernel, classes_of, decide_of, whole_labels
from slackwater.export.svm_text import Head, brief, check_lines, is_real, wrong
from slackwater.models import KernelModel, KernelRegressionModel, LinearModel
from slackwater.models.linear import LinearRegressionModel
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, DenseRows, as_matrix, as_rows

KERNELS = ("linear", "polynomial", "rbf", "sigmoid")
_CLASSIFIERS, _REGRESSIONS = ("c_svc", "nu_svc"), ("epsilon_svr", "nu_svr")
_USES = {"linear": (), "rbf": ("gamma",), "polynomial": ("degree", "gamma", "coef0"), "sigmoid": ("gamma", "coef0")}
_NAMES = (
    "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB",
    "prob_density_marks", "nr_sv",
)  # fmt: skip
_MOST_CLASSES = 2**16


# ------------------------------------------------------------------------------------------------------ writing


def libsvm_bytes(model: LinearModel | KernelModel) -> bytes:
    """The file's content."""
    model = _as_expansion(model)
    check_kernel(model.kernel, KERNELS, "LIBSVM's format")
    decide, intercept = decide_of(model), model.shifted_intercept()
    if decide == "largest":
        raise ExportError(
            "LIBSVM's format holds two classes or pairs of classes, not each class against the rest: "
            "train with multi_class='ovo', or use c99, onnx or json"
        )
    kernel, blocks = model.kernel, model.blocks
    head = [f"svm_type {'epsilon_svr' if decide == 'value' else 'c_svc'}", f"kernel_type {kernel.name}"]
    head += [f"{name} {_joined([getattr(kernel, name)])}" for name in _USES[kernel.name]]
    order, facts = np.arange(model.n_support), []
    if blocks is not None:
        labels = whole_labels(classes_of(model, decide), "LIBSVM")
        facts = [f"label {_joined(labels)}", f"nr_sv {_joined(blocks)}"]
    elif decide == "sign":
        negative = model.coef[0] < 0.0
        order = np.argsort(negative, kind="stable")  # LIBSVM wants the vectors of the first label first
        first, second = whole_labels(classes_of(model, decide), "LIBSVM")
        facts = [f"label {second} {first}", f"nr_sv {(~negative).sum()} {negative.sum()}"]
    classes = 2 if blocks is None else blocks.size
    head += [f"nr_class {classes}", f"total_sv {model.n_support}", f"rho {_joined(0.0 - intercept)}"]
    coef = [_joined(column) for column in model.coef.T[order]]
    return "\n".join([*head, *facts, "SV\n"]).encode() + b"".join(svmlight_lines(_sorted(model)[order], coef))


def _as_expansion(model: LinearModel | KernelModel) -> KernelModel:
    """A linear model of one output as a kernel model whose only vector is its weights."""
    if isinstance(model, KernelModel):
        return model
    kind = KernelRegressionModel if isinstance(model, LinearRegressionModel) else KernelModel
    flat = model.folded()
    if flat.n_outputs > 1:
        raise ExportError("LIBSVM's format holds pairs of classes, not each class against the rest: use liblinear")
    return kind(Kernel("linear"), as_rows(flat.coef), np.ones((1, 1)), flat.intercept, np.arange(1), flat.classes)


def _joined(values: Any) -> str:
    """Numbers by the digits that name them exactly."""
    return " ".join(map(repr, np.asarray(values).tolist()))


def _sorted(model: KernelModel) -> sp.csr_array:
    """The vectors in float64, so that a reader gets the very numbers, their columns in order."""
    matrix = sp.csr_array(as_matrix(model.vectors)).astype(np.float64)
    matrix.sort_indices()
    return matrix


# ------------------------------------------------------------------------------------------------------ reading


def from_libsvm(path: str | os.PathLike[str], n_columns: int | None = None) -> KernelModel:
    """The model in a file of LIBSVM, on ``n_columns`` columns; None takes the last column that a vector has."""
    head = Head.of(path, _NAMES, "SV")
    kind = head.word("svm_type", (*_CLASSIFIERS, *_REGRESSIONS, "one_class"))
    if kind == "one_class":
        head.wrong("svm_type", "one_class is not read; classification and regression are")
    kernel = _kernel(head)
    regression = kind in _REGRESSIONS
    classes = head.whole("nr_class", 2, _MOST_CLASSES)
    intercept = 0.0 - head.reals("rho", 1 if regression else classes * (classes - 1) // 2)
    count = head.whole("total_sv", 0)
    vectors, coef = _vectors(head, count, 1 if regression else classes - 1, n_columns)
    support, meta = np.arange(count), {"read_from": "LIBSVM", "svm_type": kind}
    if regression:
        return KernelRegressionModel(kernel, vectors, coef, intercept, support, meta=meta)
    labels = np.array(head.wholes("label", classes), dtype=np.int64)
    if np.unique(labels).size < classes:
        head.wrong("label", "a label occurs twice")
    if classes == 2:
        return KernelModel(kernel, vectors, coef, intercept, support, labels[::-1].copy(), meta=meta)
    blocks = np.array(head.wholes("nr_sv", classes), dtype=np.int64)
    if (blocks < 0).any() or blocks.sum() != count:
        head.wrong("nr_sv", f"the numbers of vectors must add up to total_sv, {count}")
    return KernelModel(kernel, vectors, coef, intercept, support, labels, blocks, meta=meta)


def _kernel(head: Head) -> Kernel:
    name = head.word("kernel_type", (*KERNELS, "precomputed"))
    if name == "precomputed":
        head.wrong("kernel_type", f"precomputed is not read; {', '.join(KERNELS)} are")
    values: dict[str, Any] = {}
    for key in _USES[name]:
        values[key] = head.whole("degree", 0) if key == "degree" else head.real(key)
    return Kernel(name, **values)


def _vectors(
    head: Head, count: int, coefficients: int, n_columns: int | None
) -> tuple[DenseRows | CSRRows, np.ndarray]:
    """The support vectors, and their coefficients by lines."""
    lines = head.rest.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    first = head.n_lines + 1
    if len(lines) != count:
        wrong(head.path, head.n_lines + len(lines), f"the file ends after {len(lines)} vectors, total_sv is {count}")
    if count == 0:
        return as_rows(sp.csr_array((0, n_columns or 0))), np.zeros((coefficients, 0))
    front = re.compile(rb"[ \t]*" + rb"([^\s:]+)(?=\s|$)[ \t]*" * coefficients)
    check_lines(head.path, lines, first, lambda line: _complaint(line, front, coefficients))
    found = [front.match(line) for line in lines]
    coef = np.array([match.groups() for match in found if match], dtype=np.float64).T
    text = b"".join(b"1 " + line[match.end() :] + b"\n" for line, match in zip(lines, found, strict=True) if match)
    try:
        rows = svmlight_table(os.fspath(head.path), text, n_columns).rows
    except DataFileError as error:
        wrong(head.path, head.n_lines + (error.line or 1), error.problem)
    return rows, np.ascontiguousarray(coef)


def _complaint(line: bytes, front: re.Pattern[bytes], coefficients: int) -> str:
    """What is wrong with the coefficients at the head of a vector's line."""
    match = front.match(line)
    words = [] if match is None else list(match.groups())
    bad = next((word for word in words if not is_real(word)), None)
    if bad is not None:
        return f"expected a coefficient, found {brief(bad.decode(errors='backslashreplace'))}"
    if match is None or b"#" in line or b"qid" in line:
        return f"expected {coefficients} coefficient(s) and then column:value"
    return ""


def looks_like(start: bytes) -> bool:
    """Whether a file begins as those of LIBSVM do."""
    return start.lstrip().startswith(b"svm_type ")
