"""Kernel models of several outputs: put together from binary ones, and taken apart again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.models.kernel import KernelModel, pairs_of
from slackwater.objective.kernels import Kernel
from slackwater.rows import take


class Output(NamedTuple):
    """A binary predictor over numbered rows."""

    ids: np.ndarray
    coefficients: np.ndarray
    bias: float


class Frame(NamedTuple):
    """What all outputs share: the kernel, the classes, every row's class, and how vectors are had."""

    kernel: Kernel
    shift: float
    classes: np.ndarray | None
    codes: np.ndarray  # the number of each row's class
    paired: bool
    vectors: Callable[[np.ndarray], Any]

    @property
    def n_classes(self) -> int:
        return 2 if self.classes is None else len(self.classes)

    def together(self, outputs: Sequence[Output | None], meta: Mapping[str, Any] | None = None) -> KernelModel:
        """The model of all outputs, its vectors grouped by class; None contributes zeros."""
        k, lines = self.n_classes, self.n_classes - 1 if self.paired else len(outputs)
        coef, intercept = np.zeros((lines, self.codes.size)), np.zeros(len(outputs))
        for number, output in enumerate(outputs):
            if output is None:
                continue
            ids, coefficients, intercept[number] = output
            if self.paired:
                a, b = pairs_of(k)[number]
                coef[np.where(self.codes[ids] == a, b - 1, a), ids] = coefficients
            else:
                coef[number, ids] = coefficients
        support = np.flatnonzero(coef.any(axis=0))
        support = support[np.argsort(self.codes[support], kind="stable")]
        blocks = np.bincount(self.codes[support], minlength=k) if self.paired else None
        return KernelModel(
            self.kernel, self.vectors(support), np.ascontiguousarray(coef[:, support]), intercept, support,
            self.classes, blocks, self.shift, meta or {},
        )  # fmt: skip


def outputs_of(model: KernelModel) -> list[KernelModel]:
    """A binary model for every output, positive on the side of its class: of the first one for pairs."""
    if model.blocks is None:
        return [_alone(model, line, bias) for line, bias in zip(model.coef, model.intercept, strict=True)]
    codes = np.repeat(np.arange(model.blocks.size), model.blocks)
    found = []
    for (a, b), bias in zip(pairs_of(model.blocks.size), model.intercept, strict=True):
        line = np.where(codes == a, model.coef[b - 1], np.where(codes == b, model.coef[a], 0.0))
        found.append(_alone(model, line, bias))
    return found


def _alone(model: KernelModel, line: np.ndarray, bias: float) -> KernelModel:
    kept = np.flatnonzero(line)
    return KernelModel(
        model.kernel, take(model.vectors, kept), np.array(line[None, kept]), np.array([bias]), model.support[kept],
        shift=model.shift,
    )  # fmt: skip
