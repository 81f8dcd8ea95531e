"""Reduced set: few points zeta_j of their own whose images come close to the teacher's w.

Problem    min over beta, zeta of  E = ||w - v||^2 = a'K a - 2 a'K_xz beta + beta'K_zz beta,   w = sum_i a_i Phi(x_i),
           v = sum_{j <= k} beta_j Phi(zeta_j);  for given points  beta = K_zz^{-1} K_zx a,  with a small ridge.
Update     sequential: zeta_k has the largest <w - v, Phi(zeta)>^2 / K(zeta, zeta) found by the rbf fixed point from
           several support vectors at once, that with the largest value and others at random; other kernels go down E
           from the best support vector. All beta are fitted again.
           joint: L-BFGS on all zeta at once, beta following; by the envelope theorem
           dE/dzeta_j = -2 beta_j grad (w - v)(zeta_j)   (preimages.py). At sizes a factor sqrt 2 apart; those that
           are added later build on the zeta where they have come to, so that E falls from size to size.
State      the zeta, their kernel values with the x_i and with each other.
Cost       m d additions for a step of a fixed point, with m support vectors in d columns; k m d for a joint step.
Bias       the best one on the training rows where it is free; E knows nothing of it.

Burges. Simplified support vector decision rules. ICML 1996; Burges, Schoelkopf, NIPS 1997; Schoelkopf and others, IEEE
Transactions on Neural Networks 10, 1999; the joint phase in Wu, Schoelkopf, Bakir, JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from slackwater.objective.kernel_points import Points
from slackwater.rows import CSRRows, DenseRows, dense_block
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.ending import check_least, ladder, of_vectors
from slackwater.sparsify.preimages import SMOOTH, Compact, Images, as_given, fixed_points, gradients

_RIDGE = 1e-12  # of the mean of K(zeta, zeta), in float64
_ROUNDINGS = 10.0  # the same in roundings of the kernel's values
_ALONE = 20  # steps of L-BFGS for one point
_NOTHING = 1e-14  # of ||w||^2: what is left is rounding


class Fit(NamedTuple):
    """The best coefficients of some points, and E."""

    beta: np.ndarray
    error: float


@dataclass(frozen=True, eq=False)
class Target:
    """w, in the columns that its vectors use."""

    compact: Compact
    images: Images
    own: np.ndarray  # <w, Phi(x_m)> of its own vectors
    squared_norm: float

    @classmethod
    def of(cls, teacher: Teacher) -> Self:
        """The teacher's w; kernel values as precise as those it was trained on."""
        model = teacher.model
        compact = Compact.of(model.vectors)
        points = Points.of(compact.rows, model.kernel, teacher.gram.points.dtype, model.shift)
        images = Images.of(points, model.coef[0])
        own = images.values(compact.rows)
        return cls(compact, images, own, float(model.coef[0] @ own))

    @property
    def vectors(self) -> DenseRows | CSRRows:
        return self.compact.rows

    def points(self, Z: np.ndarray, dtype=None) -> Points:
        """The lines of Z under the same kernel."""
        bare = self.images.points
        return Points.of(DenseRows(Z, 0.0), bare.kernel, dtype or bare.dtype, self.images.shift)

    def with_own(self, Z: np.ndarray) -> np.ndarray:
        """K(zeta_j, x_m), float64."""
        own = self.images.points
        values = own.values(own.lines(DenseRows(Z, 0.0), slice(None)), np.empty((len(Z), own.n_rows), own.dtype))
        return values.astype(np.float64) + self.images.shift

    def fit(self, Z: np.ndarray, values: np.ndarray | None = None) -> Fit:
        """The best coefficients for the lines of Z, given <w, Phi(zeta_j)> where they are known."""
        if not len(Z):
            return Fit(np.empty(0), self.squared_norm)
        if values is None:
            values = self.images.values(DenseRows(Z, 0.0))
        K = self.points(Z, np.float64).square(np.arange(len(Z)))
        ridge = max(_RIDGE, _ROUNDINGS * float(np.finfo(self.images.points.dtype).eps)) * np.trace(K) / len(Z)
        beta = cho_solve(cho_factor(K + ridge * np.eye(len(Z))), values)
        return Fit(beta, self.squared_norm - 2.0 * float(values @ beta) + float(beta @ K @ beta))

    def residual(self, Z: np.ndarray, beta: np.ndarray) -> list[Images]:
        """w - v."""
        return [self.images, Images.of(self.points(Z), -beta)] if len(Z) else [self.images]

    def descend(self, Z: np.ndarray, first: int, steps: int) -> np.ndarray:
        """L-BFGS on the lines of Z from ``first`` on: E is no larger than before."""
        scale, shape = 1.0 / self.squared_norm, Z[first:].shape

        def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
            moved = np.concatenate((Z[:first], flat.reshape(shape)))
            fit = self.fit(moved)
            slopes = gradients(self.residual(moved, fit.beta), moved[first:])
            return scale * fit.error, (-2.0 * scale * fit.beta[first:, None] * slopes).ravel()

        start = Z[first:].ravel()
        options = {"maxiter": steps, "ftol": 1e-10, "gtol": 1e-9}
        found = minimize(value, start, jac=True, method="L-BFGS-B", options=options)
        if not found.fun < value(start)[0]:
            return Z
        return np.concatenate((Z[:first], found.x.reshape(shape)))


class Span(NamedTuple):
    """Points, what is known of them, and the best coefficients."""

    Z: np.ndarray
    with_own: np.ndarray  # K(zeta_j, x_m)
    fit: Fit

    @classmethod
    def of(cls, target: Target, Z: np.ndarray) -> Self:
        """Of these points."""
        with_own = target.with_own(Z)
        return cls(Z, with_own, target.fit(Z, with_own @ target.images.theta))

    def extended(self, target: Target, more: np.ndarray) -> Span:
        """And of more points."""
        with_own = np.concatenate((self.with_own, target.with_own(more)))
        Z = np.concatenate((self.Z, more))
        return Span(Z, with_own, target.fit(Z, with_own @ target.images.theta))


@dataclass(frozen=True)
class ReducedSet(Sparsifier):
    """``starts`` points at a time begin a fixed point of at most ``steps`` steps; ``descents`` of each joint phase.

    ``phases`` are the joint ones while the size doubles; 0 is one at the end, which is the fastest way to one size. No
    predictor has more than ``largest`` vectors, however many are asked for.
    """

    name: ClassVar[str] = "reduced-set"
    paper: ClassVar[str] = "Burges, Schoelkopf, NIPS 1997; Wu, Schoelkopf, Bakir, JMLR 2006"
    virtual: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = SMOOTH

    starts: int = 4
    steps: int = 30
    descents: int = 50
    largest: int = 512
    phases: int = 2

    def __post_init__(self) -> None:
        check_least(self, starts=1, steps=0, descents=0, largest=1, phases=0)

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """After every joint phase; without it as the points are added."""
        if teacher.model.n_support == 0 or not teacher.squared_norm > 0.0:
            return
        target = Target.of(teacher)
        top = min(most, self.largest, teacher.model.n_support)
        sizes = ladder(top, steps=self.phases) if self.phases else [top]
        span = Span.of(target, np.empty((0, target.vectors.n_columns)))
        for size in sizes:
            while len(span.Z) < size and span.fit.error > _NOTHING * target.squared_norm:
                span = self._with_one_more(target, span, rng)
            if self.descents:
                span = Span.of(target, target.descend(span.Z, 0, self.descents))
            yield _small(teacher, target, span)
            if len(span.Z) < size:
                return

    def _with_one_more(self, target: Target, span: Span, rng: np.random.Generator) -> Span:
        """The span and the point along which w - v is longest."""
        bare, left = target.images.points, target.own - span.fit.beta @ span.with_own
        gains = left**2 / np.maximum(bare.diagonal + target.images.shift, np.finfo(float).tiny)
        best = np.argmax(gains)
        if not bare.kernel.translates:
            start = dense_block(target.vectors, np.array([best])).astype(np.float64)
            return Span.of(target, target.descend(np.concatenate((span.Z, start)), len(span.Z), _ALONE))
        starts = np.unique(np.append(rng.choice(left.size, min(left.size, self.starts) - 1), best))
        begin = dense_block(target.vectors, starts).astype(np.float64)
        points, values = fixed_points(target.residual(span.Z, span.fit.beta), begin, self.steps)
        return span.extended(target, points[[np.argmax(np.abs(values))]])


def _small(teacher: Teacher, target: Target, span: Span) -> Small:
    """As a predictor; points without a coefficient are left out."""
    used = np.flatnonzero(span.fit.beta)
    vectors = as_given(span.Z[used], teacher.model.vectors, target.compact.columns)
    return of_vectors(teacher, vectors, span.fit.beta[used])
