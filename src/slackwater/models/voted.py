"""The voted perceptron: all hypotheses of its training decide, each with as many votes as examples it survived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np

from slackwater.compiled import compiled
from slackwater.models.classes import labels_of
from slackwater.models.files import Parts, real, saved_as, whole
from slackwater.models.kernel import KernelModel, shares
from slackwater.objective.kernel_points import Points
from slackwater.rows import as_rows

_LINES = 256  # rows whose kernel values are computed at a time


@saved_as("voted")
@dataclass(frozen=True, eq=False)
class VotedModel:
    """Hypothesis k of an output is the sum of signs_j K(x_j, .) over its first k mistakes; it has votes_k of all votes.

    ``expansion`` holds the vectors, with the coefficients of the averaged hypothesis.
    """

    expansion: KernelModel
    vectors: np.ndarray  # of every mistake in turn, one output after the other: which vector
    signs: np.ndarray
    votes: np.ndarray  # of the hypothesis after it
    lengths: np.ndarray  # mistakes of each output

    def __post_init__(self) -> None:
        total = self.vectors.size
        if self.expansion.blocks is not None or self.expansion.kernel.name == "precomputed":
            raise ValueError("a voted model has neither pairs of classes nor a precomputed kernel")
        if self.lengths.shape != (self.expansion.n_outputs,) or not shares(self.lengths, total):
            raise ValueError("the mistakes of a voted model do not fit its outputs")
        if {self.vectors.shape, self.signs.shape, self.votes.shape} != {(total,)}:
            raise ValueError("the mistakes of a voted model do not fit together")
        if total and not 0 <= self.vectors.min() <= self.vectors.max() < self.expansion.n_support:
            raise ValueError("a mistake of a voted model names a vector that is not there")

    @property
    def classes(self) -> np.ndarray | None:
        return self.expansion.classes

    @property
    def n_outputs(self) -> int:
        return self.expansion.n_outputs

    @property
    def n_support(self) -> int:
        return self.expansion.n_support

    @property
    def n_columns(self) -> int:
        return self.expansion.n_columns

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the averaged hypothesis."""
        return self.expansion.coef

    @property
    def meta(self) -> Mapping[str, Any]:
        return self.expansion.meta

    def decision_values(self, X: Any) -> np.ndarray:
        """The votes for, less the votes against, between -1 and 1: (n,) for one output, (n, k) for more."""
        rows, model = as_rows(X), self.expansion
        if rows.n_columns != self.n_columns:
            raise ValueError(f"X has {rows.n_columns} columns, but the model was fitted on {self.n_columns}")
        out = np.zeros((model.n_outputs, rows.n_rows))
        dtype = np.promote_types(rows.dtype, model.vectors.dtype)
        points = Points.of(model.vectors, model.kernel, dtype, model.shift)
        ends = np.cumsum(self.lengths)
        for start in range(0, rows.n_rows if model.n_support else 0, _LINES):
            part = out[:, start : start + _LINES]
            lines = points.lines(rows, slice(start, start + _LINES))
            values = points.values(lines, np.empty((part.shape[1], model.n_support), dtype=points.dtype))
            for number, end in enumerate(ends):
                mine = slice(end - self.lengths[number], end)
                _vote(values, self.vectors[mine], self.signs[mine], self.votes[mine], part[number])
        return out[0] if model.n_outputs == 1 else np.ascontiguousarray(out.T)

    def predict(self, X: Any) -> np.ndarray:
        """The label of every row."""
        return self.labels_of(self.decision_values(X))

    def labels_of(self, values: np.ndarray) -> np.ndarray:
        """What decision values stand for."""
        return labels_of(values, self.classes)

    def compile(self) -> NoReturn:
        """There is none: the votes of all hypotheses are not a sum over the vectors."""
        raise TypeError("a voted model has no predictor of single rows; its averaged hypothesis, 'expansion', has")

    def telling(self, facts: Mapping[str, Any]) -> Self:
        """The same, with these facts in ``meta``."""
        return replace(self, expansion=self.expansion.telling(facts))

    def parts(self) -> Parts:
        """What goes into a file."""
        inner = self.expansion.parts()
        own = {"of_mistakes": self.vectors, "signs": self.signs, "votes": self.votes, "lengths": self.lengths}
        return Parts(inner.tensors | own, inner.facts)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The model that ``parts`` was taken from."""
        tensors = parts.tensors
        return cls(
            KernelModel.from_parts(parts), whole(tensors["of_mistakes"]), real(tensors["signs"]),
            real(tensors["votes"]), whole(tensors["lengths"]),
        )  # fmt: skip


@compiled
def _vote(values, vectors, signs, votes, out):
    """Of every row the votes of the hypotheses that find it positive, less those of the others."""
    for i in range(np.uint64(out.size)):
        f, total, line = 0.0, 0.0, values[i]
        for k in range(np.uint64(vectors.size)):
            f += signs[k] * line[vectors[k]]
            if f > 0.0:
                total += votes[k]
            elif f < 0.0:
                total -= votes[k]
        out[i] = total
