"""What every sparsifier is: settings, declared abilities, and the small predictors that it passes on its way.

A sparsifier never loops over its own settings, looks at held-out data, reads a clock, catches Ctrl-C or decides which
of its predictors is best: ``sparsify.driver`` does, for all of them alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from slackwater.gram import Gram
from slackwater.models import KernelModel
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.registries import register
from slackwater.rows import CSRRows, DenseRows, take

_REGISTERED: dict[str, type[Sparsifier]] = {}


@dataclass(frozen=True, eq=False)
class Teacher:
    """The dense predictor f = <w, Phi> + b of two classes, and the problem it was trained on.

    ``problem`` brings the training rows' kernel matrix, shared by all methods and settings, their labels and costs.
    ``table`` are the training rows as the caller has them, where the problem's points are made of them: in another
    precision, say. With a precomputed kernel these are the kernel values with all rows that the model knows, and
    ``known_norm`` is ||w||^2.
    """

    model: KernelModel  # one output; its support vectors need not be training rows
    problem: KernelProblem
    table: DenseRows | CSRRows | None = None
    known_norm: float | None = None
    columns: np.ndarray | None = None  # with a precomputed kernel: which columns of other tables are the training rows
    offered: np.ndarray | None = None  # training rows that cost nothing: other problems keep them already
    trained_here: bool = False  # ``model.support`` numbers rows of the kernel matrix, which may still be in memory

    @property
    def gram(self) -> Gram:
        return self.problem.gram

    @property
    def bias(self) -> float:
        """b."""
        return float(self.model.intercept[0])

    @property
    def given(self) -> DenseRows | CSRRows:
        """The training rows as predictors take them."""
        points = self.gram.points
        if self.table is not None:
            return self.table
        return points.rows if self.precomputed else points.given(np.arange(points.n_rows))

    @property
    def precomputed(self) -> bool:
        """Whether there are kernel values instead of rows."""
        return bool(self.gram.points.kernel.name == "precomputed")

    def vectors(self, ids: np.ndarray) -> DenseRows | CSRRows:
        """Training rows as a model keeps them."""
        if self.table is None or self.precomputed:
            return self.gram.points.given(ids)
        return take(self.table, ids)

    @cached_property
    def values(self) -> np.ndarray:
        """f(x_i) of the training rows, the bias included; float64."""
        if self.trained_here:
            beta = np.bincount(self.model.support, self.model.coef[0], minlength=self.gram.n_rows)
            return self.problem.scores(beta) + self.bias
        return self.model.decision_values(self.given)

    @cached_property
    def squared_norm(self) -> float:
        """||w||^2, from the model's own vectors."""
        if self.known_norm is not None:
            return self.known_norm
        if self.precomputed:
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

    @property
    def size(self) -> int:
        """How many vectors it has."""
        return self.coefficients.size

    def model(self, teacher: Teacher) -> KernelModel:
        """The predictor by itself; virtual vectors are numbered from 0 on."""
        points = teacher.gram.points
        vectors = self.vectors if self.ids is None else teacher.vectors(self.ids)
        assert vectors is not None
        return KernelModel(
            points.kernel, vectors, np.array(self.coefficients[None, :], dtype=np.float64),
            np.array([self.bias]), np.arange(self.size) if self.ids is None else self.ids, shift=points.shift,
        )  # fmt: skip


class Sparsifier(ABC):
    """A published algorithm. Subclasses are frozen dataclasses, their fields the settings; defining one registers it.

    ``virtual`` says whether its vectors are points of their own instead of training rows, ``kernels`` what it can
    treat (empty for all), ``retrains`` whether it trains on the rows anew instead of imitating the teacher,
    ``takes_offers`` whether it looks among the rows that ``Teacher.offered`` names first.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    virtual: ClassVar[bool] = False
    kernels: ClassVar[tuple[str, ...]] = ()
    retrains: ClassVar[bool] = False
    takes_offers: ClassVar[bool] = False

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

    def check(self, teacher: Teacher) -> None:
        """Raise one sentence when the teacher's kernel is one that this method cannot treat."""
        kernel = teacher.model.kernel.name
        if not self.kernels or kernel in self.kernels:
            return
        able = sorted(name for name, cls in _REGISTERED.items() if not cls.kernels or kernel in cls.kernels)
        raise ValueError(f"method {self.name!r} does not treat kernel {kernel!r}; methods that do: {', '.join(able)}")

    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def with_settings(self, **settings: Any) -> Self:
        """The same with some settings changed."""
        return replace(self, **settings)  # type: ignore[type-var]


def registered() -> dict[str, type[Sparsifier]]:
    """The sparsifiers defined so far; ``sparsify.registry`` makes that all of them."""
    return _REGISTERED
