"""CPSP: cutting plane subspace pursuit.

Problem    min over w in span(Phi(b_1) .. Phi(b_k)) and the basis b of  P(w) = lambda/2 ||w||^2 + mean loss.
Update     cutting planes on the problem restricted to the span (projection.py): every subgradient of the mean loss is
           replaced by its projection. After a few cuts the basis takes in the vector best aligned with the part of the
           subgradient  g = -sum_i p_i c_i y_i Phi(x_i)  that the projection leaves out, while there are fewer than
           k_max: the pre-image of that part by the rbf fixed point (preimages.py), or of a random sample of training
           rows the one along which most of it lies (S8's "sampling").
State      the rows projected on the basis, n k numbers; the mixture of the cuts so far, with which the next begin.
Cost       for each basis vector one row of the kernel matrix, the search, and a few passes over the projected rows.
Certificate  of the restricted problem: C1 from the mixture of the cuts, +C7 with a free bias. Of the full problem P is
           an upper bound only.
Bias       a free bias is trained as a constant feature so large that its penalty is next to nothing, and then put at
           its optimum; the certificate of the free problem says whether a larger one is needed.

Joachims, Yu. Sparse kernel SVMs via cutting-plane training. Machine Learning 76, 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.objective.certificate import BoxPoint, Certificate, Evaluation, certify
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.problem import LinearProblem
from slackwater.solvers.contract import Solver
from slackwater.solvers.cuts import slopes_along
from slackwater.solvers.linear.bmrm import BMRM
from slackwater.solvers.linear.ocas import OCAS
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.ending import check_least, ladder
from slackwater.sparsify.preimages import Images, as_given, fixed_points, originals
from slackwater.sparsify.projection import Projection
from slackwater.threads import thread_count
from slackwater.training import Limits, run

BASES = ("auto", "preimages", "sampling")
_WIDE = 2**12  # columns, beyond which dense pre-images of sparse rows are no small predictor
_STARTS = 4
_STEPS = 30
_FREEDOMS = (10.0, 100.0, 1000.0)  # constant features of a free bias, in typical lengths of Phi(x)
_LARGE = 2**21  # numbers of the projected rows that are worth threads


@dataclass(frozen=True)
class CPSP(Sparsifier):
    """Cutting planes to the relative gap ``tol`` of the restricted problem at every power of two; ``cuts`` in between.

    ``basis`` is "preimages" (rbf only), "sampling" or "auto"; ``sample`` training rows compete for a place. No
    predictor has more than ``largest`` vectors, however many are asked for.
    """

    name: ClassVar[str] = "cpsp"
    paper: ClassVar[str] = "Joachims, Yu, Machine Learning 2009"
    virtual: ClassVar[bool] = True
    retrains: ClassVar[bool] = True

    basis: str = "auto"
    sample: int = 59
    cuts: int = 3
    tol: float = 1e-3
    largest: int = 512

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise ValueError(f"basis={self.basis!r} is not known; the choices are {', '.join(BASES)}")
        check_least(self, sample=1, cuts=1, tol=0, largest=1)

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor for each k_max that is a power of two, and for ``most``: what is before k_max is the same."""
        problem = teacher.problem
        most = min(most, self.largest, problem.n_rows)
        projection, alpha, looks = Projection.of(problem), None, ladder(most)
        theta, preimages, extended = _pulls(projection, np.zeros(0), 0.0), self._preimages(problem), True
        while extended and projection.size < most:
            extended = self._extend(projection, theta, preimages, rng)
            final = not extended or projection.size in looks
            found = self._train(projection, Limits(self.tol, max_rounds=None if final else self.cuts), alpha)
            alpha, theta = found.alpha, _pulls(projection, found.u, found.bias)
            if final:
                yield _small(projection, found)

    def _preimages(self, problem: KernelProblem) -> bool:
        """Whether basis vectors are points of their own."""
        rbf = problem.gram.points.kernel.name == "rbf"
        if self.basis == "preimages" and not rbf:
            raise ValueError(f"basis='preimages' needs the rbf kernel, got {problem.gram.points.kernel.name!r}")
        return self.basis == "preimages" or (self.basis == "auto" and rbf and problem.rows.n_columns <= _WIDE)

    def _extend(self, projection: Projection, theta: np.ndarray, preimages: bool, rng) -> bool:
        """One basis vector more; False where nothing is left to add."""
        if preimages:
            return projection.add_vector(self._preimage(projection, theta, rng))
        problem, phi = projection.problem, projection.features
        ids = self._candidates(projection, rng)
        if not ids.size:
            return False
        along = np.einsum("ij,j->i", problem.gram.rows(ids), theta) - phi[ids] @ (theta @ phi)
        projection.add_row(int(ids[np.argmax(along**2 / projection.left_of_rows(ids))]))
        return True

    def _candidates(self, projection: Projection, rng: np.random.Generator) -> np.ndarray:
        """A random sample of rows outside the span; of all of them where the sample is inside."""
        n = projection.problem.n_rows
        size = min(self.sample, projection.problem.gram.capacity, n)
        ids = rng.choice(n, size, replace=False)
        outside = ids[projection.left_of_rows(ids) > 0.0]
        if outside.size:
            return outside
        return np.flatnonzero(projection.left_of_rows(np.arange(n)) > 0.0)[:size]

    def _preimage(self, projection: Projection, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The point best aligned with the part of the subgradient outside the span."""
        points = projection.problem.gram.points
        pulling = np.flatnonzero(theta)
        parts = [Images.of(points.some(pulling), theta[pulling])]
        if projection.size:
            inside = projection.coefficients(theta @ projection.features)
            parts.append(Images.of(projection.basis_points(projection.vectors), -inside))
        starts = originals(points, rng.choice(pulling, min(pulling.size, self.sample), replace=False))
        values = sum(part.pull(starts).values for part in parts)
        best = np.argsort(-np.abs(values))[:_STARTS]
        found, values = fixed_points(parts, starts[best], _STEPS)
        return found[np.argmax(np.abs(values))].astype(points.rows.dtype).astype(np.float64)

    def _train(self, projection: Projection, limits: Limits, alpha: np.ndarray | None) -> Trained:
        """Cutting planes in the span from the mixture ``alpha``; a free bias freer until the gap is ``tol``."""
        for freedom in _FREEDOMS:
            problem = projection.linear(freedom)
            done = run(problem, _solver(problem), limits, rng=0, alpha=alpha)
            mixture = np.zeros(problem.n_rows) if done.alpha is None else done.alpha
            alpha = mixture
            found = Evaluation(done.certificate, done.model.weights(problem.rows.bias), mixture)
            if projection.problem.bias != "free":
                break
            found = certify(replace(problem, bias="free"), found.weights, BoxPoint(mixture))
            if limits.max_rounds is not None or found.certificate.relative_gap <= self.tol:
                break
            limits = replace(limits, tol=0.5 * self.tol)
        weights = found.weights
        return Trained(weights[:-1], problem.rows.bias * float(weights[-1]), mixture, found.certificate)


class Trained(NamedTuple):
    """A point of the span with its bias, the mixture it comes from, and what that proves."""

    u: np.ndarray
    bias: float
    alpha: np.ndarray
    certificate: Certificate


def _solver(problem: LinearProblem) -> Solver:
    threads = thread_count(None) if problem.rows.n_entries >= _LARGE else 1
    if problem.loss_family == "hinge":
        return OCAS(threads=threads)
    return BMRM("primal-line-search", threads=threads)


def _pulls(projection: Projection, u: np.ndarray, bias: float) -> np.ndarray:
    """theta_i = C_i c_i y_i at a point of the span: the subgradient's coefficients but for their sign and lambda."""
    problem = projection.problem
    margins = problem.labels * (projection.features[:, : u.size] @ u + bias)
    slopes = np.empty_like(margins)
    slopes_along(problem.loss, margins, margins, 0.0, slopes)
    return problem.costs * slopes * problem.labels


def _small(projection: Projection, found: Trained) -> Small:
    """As a predictor; basis vectors without a coefficient are left out."""
    beta = projection.coefficients(found.u)
    used = np.flatnonzero(beta)
    if projection.ids:
        return Small(beta[used], found.bias, ids=np.array(projection.ids)[used], certificate=found.certificate)
    vectors = as_given(projection.vectors[used], projection.problem.rows, None)
    return Small(beta[used], found.bias, vectors=vectors, certificate=found.certificate)
