"""What every sparsifier is: settings, declared abilities, and the small predictors that it passes on its way.

A sparsifier never loops over its own settings, looks at held-out data, reads a clock, catches Ctrl-C or decides which
of its predictors is best: ``sparsify.driver`` does, for all of them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from slackwater.gram import Gram
from slackwater.models import KernelModel
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.registries import register
from slackwater.rows import CSRRows, DenseRows

_REGISTERED: dict[str, type[Sparsifier]] = {}


@dataclass(frozen=True, eq=False)
class Teacher:
    """The dense predictor f = <w, Phi> + b of two classes, and the problem it was trained on.

    ``problem`` brings the training rows' kernel matrix, shared by all methods and settings, their labels and costs.
    With a precomputed kernel ``table`` are the kernel values of these rows with all that the model knows, and
    ``known_norm`` is ||w||^2.
    """

    model: KernelModel  # one output; its support vectors need not be training rows
    problem: KernelProblem
    table: DenseRows | None = None
    known_norm: float | None = None
    offered: np.ndarray | None = None  # training rows that cost nothing: other problems keep them already

    @property
    def gram(self) -> Gram:
        return self.problem.gram

    @property
    def bias(self) -> float:
        """b."""
        return float(self.model.intercept[0])

    @cached_property
    def values(self) -> np.ndarray:
        """f(x_i) of the training rows, the bias included; float64."""
        points = self.gram.points
        table = points.rows if points.kernel.name == "precomputed" else points.given(np.arange(points.n_rows))
        return self.model.decision_values(table if self.table is None else self.table)

    @cached_property
    def squared_norm(self) -> float:
        """||w||^2, from the model's own vectors."""
        if self.known_norm is not None:
            return self.known_norm
        if self.model.kernel.name == "precomputed":
            own = self.values[self.model.support] - self.bias
        else:
            own = self.model.decision_values(self.model.vectors) - self.bias
        return float(self.model.coef[0] @ own)


class Small(NamedTuple):
    """A predictor sum_j coefficients_j K(v_j, .) + bias, met on the way of a method."""

    coefficients: np.ndarray  # (m,), none of them 0; they hold the labels' signs
    bias: float
    ids: np.ndarray | None = None  # (m,), int64: the v_j among the training rows; None where they are no training rows
    vectors: DenseRows | CSRRows | None = None  # the v_j where ``ids`` is None
    certificate: Any = None  # of the method's own problem, where it has one


class Sparsifier(ABC):
    """A published algorithm. Subclasses are frozen dataclasses, their fields the settings; defining one registers it.

    ``virtual`` says whether its vectors are points of their own instead of training rows, ``kernels`` what it can
    treat (empty for all), ``retrains`` whether it trains on the rows anew instead of imitating the teacher.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    virtual: ClassVar[bool] = False
    kernels: ClassVar[tuple[str, ...]] = ()
    retrains: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(_REGISTERED, cls, "sparsifier")

    @abstractmethod
    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """The predictors on the way under these settings, of at most ``most`` vectors; ends by itself.

        Few steps apart: the driver may look at each, or stop asking at any time. A method that gives one predictor per
        setting yields once.
        """

    def grid(self, teacher: Teacher) -> list[Self]:
        """The settings among which the published comparison chooses; this one alone where there is no choice."""
        return [self]

    def with_settings(self, **settings: Any) -> Self:
        """The same with some settings changed."""
        return replace(self, **settings)  # type: ignore[type-var]


def registered() -> dict[str, type[Sparsifier]]:
    """The sparsifiers defined so far; ``sparsify.registry`` makes that all of them."""
    return _REGISTERED
