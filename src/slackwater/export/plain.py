"""A model as other formats take it: weights, or vectors with coefficients, and how labels follow from values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from slackwater.models import KernelModel, KernelRegressionModel, LinearModel, LinearRegressionModel, load
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, DenseRows, as_matrix

Decide = Literal["sign", "largest", "votes", "value"]


class ExportError(ValueError):
    """What a format cannot say, in one sentence that names what it can."""


@dataclass(frozen=True, eq=False)
class Plain:
    """f_c(x) = sum_j coef_cj K(x_j, x) + intercept_c; without vectors, f_c(x) = <coef_c, x> + intercept_c.

    "sign": the second class where f > 0. "largest": the class of the largest f, the first of equals. "votes": one f per
    pair of classes, counted as KernelModel counts them. "value": f itself, a regression.
    """

    kernel: Kernel
    vectors: DenseRows | CSRRows | None
    coef: np.ndarray  # float64; as KernelModel has it, or one line of weights for each output
    intercept: np.ndarray  # with what a shift of all kernel values adds
    decide: Decide
    classes: np.ndarray
    n_columns: int
    blocks: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        return self.intercept.size

    @property
    def n_classes(self) -> int:
        return self.classes.size

    @property
    def n_vectors(self) -> int:
        return 0 if self.vectors is None else self.vectors.n_rows

    @property
    def matrix(self) -> Any:
        """The vectors, or the weights, as an array or a SciPy matrix."""
        return self.coef if self.vectors is None else as_matrix(self.vectors)

    def outputs(self) -> np.ndarray:
        """For every coefficient the number of the output that it counts for."""
        if self.blocks is None:
            return np.broadcast_to(np.arange(self.n_outputs)[:, None], self.coef.shape)
        k = self.blocks.size
        own, line = np.repeat(np.arange(k), self.blocks), np.arange(k - 1)[:, None]
        other = line + (line >= own)
        a, b = np.minimum(own, other), np.maximum(own, other)
        return a * (2 * k - a - 1) // 2 + b - a - 1

    def by_output(self) -> np.ndarray:
        """Coefficients with one line for each output, pairs too."""
        lines = np.zeros((self.n_outputs, self.coef.shape[1]))
        lines[self.outputs(), np.arange(self.coef.shape[1])] = self.coef
        return lines


def model_of(source: Any) -> LinearModel | KernelModel:
    """The model that is meant: itself, that of a fitted estimator, or that in a file."""
    if isinstance(source, str | os.PathLike):
        source = load(source)
    model = getattr(source, "model_", source)
    if isinstance(model, LinearModel | KernelModel):
        return model
    hint = "; fit it first" if hasattr(source, "fit") and not hasattr(source, "model_") else ""
    raise ExportError(f"a {type(model).__name__} cannot be exported, linear and kernel models can{hint}")


def plain(model: LinearModel | KernelModel, kernels: tuple[str, ...], format_name: str) -> Plain:
    """The model as ``format_name`` takes it, which knows these kernels besides the linear one."""
    decide = decide_of(model)
    classes = classes_of(model, decide)
    if model.n_columns == 0 and getattr(model, "kernel", None) is None:
        raise ExportError("a model of no columns cannot be exported")
    if isinstance(model, LinearModel):
        return Plain(Kernel("linear"), None, model.coef, model.intercept, decide, classes, model.n_columns)
    check_kernel(model.kernel, ("linear", *kernels), format_name)
    intercept = model.shifted_intercept()
    if model.kernel.name == "linear" or model.n_support == 0:
        weights = model.primal_weights() if model.n_support else np.zeros((model.n_outputs, model.n_columns))
        return Plain(Kernel("linear"), None, weights, intercept, decide, classes, model.n_columns)
    return Plain(
        model.kernel, model.vectors, model.coef, intercept, decide, classes, model.n_columns, model.blocks
    )  # fmt: skip


def check_kernel(kernel: Kernel, known: tuple[str, ...], format_name: str) -> None:
    """Raise where a format has no such kernel."""
    if kernel.name not in known:
        name = "a function of your own" if kernel.name == "callable" else kernel.name
        raise ExportError(f"{format_name} cannot say the kernel {name}; it can say {', '.join(known)}")


def decide_of(model: LinearModel | KernelModel) -> Decide:
    """How labels follow from the decision values of a model."""
    if isinstance(model, LinearRegressionModel | KernelRegressionModel):
        if model.n_outputs != 1:
            raise ExportError(
                f"a regression of {model.n_outputs} outputs cannot be exported, one of a single output can"
            )
        return "value"
    if getattr(model, "blocks", None) is not None:
        return "votes"
    return "sign" if model.n_outputs == 1 else "largest"


def classes_of(model: LinearModel | KernelModel, decide: Decide) -> np.ndarray:
    """The classes; those that ``labels_of`` answers with where the model knows none."""
    if decide == "value":
        return np.empty(0)
    if model.classes is not None:
        return model.classes
    blocks = getattr(model, "blocks", None)
    return np.array([-1.0, 1.0]) if decide == "sign" else np.arange(model.n_outputs if blocks is None else blocks.size)


def whole_labels(classes: np.ndarray, format_name: str) -> list[int]:
    """The classes as the whole numbers of a format that has no other labels."""
    labels = classes.tolist()
    if not all(isinstance(label, int | float) and label == int(label) and abs(label) < 2**31 for label in labels):
        raise ExportError(f"labels in {format_name}'s format are whole numbers; this model's are {shown(labels)}")
    return [int(label) for label in labels]


def shown(labels: list) -> str:
    """Some labels, for a sentence."""
    return ", ".join(map(repr, labels[:5])) + (", ..." if len(labels) > 5 else "")
