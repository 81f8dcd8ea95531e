"""The linear model: one weight vector and one intercept per output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from slackwater.models.classes import checked_classes, labels_in_order, labels_of, packed_classes, unpacked_classes
from slackwater.models.files import Parts, real, saved_as, told
from slackwater.models.single_row import LinearValues, RowPredictor
from slackwater.rows import CSRRows, DenseRows, as_rows, sweep, times

_BLOCK_ENTRIES = 2**16  # entries of X that are widened to float64 at a time: they stay in the cache of one core
_BLOCK_ROWS = 64  # but no fewer rows, or BLAS has nothing to block


@saved_as("linear")
@dataclass(frozen=True, eq=False)
class LinearModel:
    """f_c(x) = <coef_c, x> + intercept_c; one output for two classes, one per class for more.

    ``classes`` is None for the bare result of a binary solver; ``meta`` holds facts about the fit that JSON can hold.
    """

    coef: np.ndarray  # (k, d), float64
    intercept: np.ndarray  # (k,), float64
    classes: np.ndarray | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        coef, intercept = _own(self.coef), _own(self.intercept)
        if coef.ndim != 2 or coef.shape[0] == 0 or intercept.shape != coef.shape[:1]:
            raise ValueError(f"coef {coef.shape} and intercept {intercept.shape} must have the shapes (k, d) and (k,)")
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", checked_classes(self.classes, coef.shape[0]))

    @classmethod
    def from_weights(
        cls, weights: np.ndarray, bias_scale: float, classes: Any = None, meta: Mapping[str, Any] | None = None
    ) -> Self:
        """From solvers' weight vectors, whose last entry is the weight of the constant feature ``bias_scale``.

        ``weights`` is one vector of d + 1 entries or a matrix with one such line per output.
        """
        lines = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        intercept = bias_scale * lines[:, -1] if bias_scale else np.zeros(lines.shape[0])
        return cls(lines[:, :-1], intercept, classes, {} if meta is None else meta)

    def weights(self, bias_scale: float) -> np.ndarray:
        """What a solver would have returned, the inverse of ``from_weights``: d + 1 entries, a line for each output."""
        if bias_scale:
            last = self.intercept / bias_scale
        elif self.intercept.any():
            raise ValueError(f"an intercept of {self.intercept[0]:g} needs a constant feature that is not 0")
        else:
            last = np.zeros(self.n_outputs)
        lines = np.column_stack((self.coef, last))
        return lines[0] if self.n_outputs == 1 else lines

    def folded(self) -> Self:
        """Two outputs as one, their difference: it is positive where the second is the larger."""
        if self.n_outputs != 2:
            return self
        return replace(self, coef=self.coef[1:] - self.coef[:1], intercept=self.intercept[1:] - self.intercept[:1])

    @property
    def n_outputs(self) -> int:
        return self.coef.shape[0]

    @property
    def n_columns(self) -> int:
        return self.coef.shape[1]

    def decision_values(self, X: Any) -> np.ndarray:
        """f(x) of every row of an array, a sparse matrix or rows: (n,) for one output, (n, k) for more; float64."""
        rows = as_rows(X)
        if rows.n_columns != self.n_columns:
            raise ValueError(f"X has {rows.n_columns} columns, but the model was fitted on {self.n_columns}")
        values = self._dense_values(rows) if isinstance(rows, DenseRows) else self._sparse_values(rows)
        values += self.intercept
        return values[:, 0] if self.n_outputs == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row: -1.0 and 1.0, or the number of the output, where the model knows no classes."""
        return self.labels_of(self.decision_values(X))

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """What decision values stand for."""
        return labels_of(values, self.classes)

    def compile(self) -> RowPredictor:
        """The predictor of one row at a time."""
        return RowPredictor(LinearValues(self.coef.copy(), self.intercept.copy()), self._labels())

    def _labels(self) -> list[Any] | None:
        return labels_in_order(self.classes, self.n_outputs)

    def parts(self) -> Parts:
        """What goes into a file."""
        labels, facts = packed_classes(self.classes)
        tensors = {"coef": self.coef, "intercept": self.intercept}
        if labels is not None:
            tensors["classes"] = labels
        return Parts(tensors, {"shape": list(self.coef.shape), "classes": facts, "meta": dict(self.meta)})

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that ``parts`` was taken from."""
        tensors, facts = parts
        if list(tensors["coef"].shape) != facts["shape"]:
            raise ValueError(f"coef has the shape {tensors['coef'].shape}, the file's facts say {facts['shape']}")
        classes = unpacked_classes(tensors.get("classes"), facts["classes"])
        return cls(real(tensors["coef"]), real(tensors["intercept"]), classes, told(facts["meta"]))

    def _dense_values(self, rows: DenseRows) -> np.ndarray:
        """X coef', in blocks of rows where X has to be widened: never all of X in float64."""
        if rows.dtype == np.float64:
            return rows.values @ self.coef.T
        values = np.empty((rows.n_rows, self.n_outputs))
        step = max(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, self.n_columns))
        wide = np.empty((min(step, rows.n_rows), self.n_columns))
        for start in range(0, rows.n_rows, step):
            block = rows.values[start : start + step]
            np.copyto(wide[: len(block)], block)
            np.matmul(wide[: len(block)], self.coef.T, out=values[start : start + step])
        return values

    def _sparse_values(self, rows: CSRRows) -> np.ndarray:
        values = np.empty((rows.n_rows, self.n_outputs))
        if self.n_outputs == 1:
            times(rows, np.append(self.coef[0], 0.0), values[:, 0])
        else:
            sweep(rows, np.ascontiguousarray(self.coef.T), values)
        return values


@saved_as("linear-regression")
@dataclass(frozen=True, eq=False)
class LinearRegressionModel(LinearModel):
    """The linear model whose decision values are what it predicts."""

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """The values themselves."""
        return values

    def _labels(self) -> None:
        return None


def _own(array: Any) -> np.ndarray:
    """A read-only float64 copy, so that a solver that goes on cannot change the model it has returned."""
    array = np.array(array, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array
