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
           its optimum; the certificate says what that leaves of the gap.

Joachims, Yu. Sparse kernel SVMs via cutting-plane training. Machine Learning 76, 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from slackwater.objective.certificate import BoxPoint, Evaluation, certify
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Solver
from slackwater.solvers.cuts import slopes_along
from slackwater.solvers.linear.bmrm import BMRM
from slackwater.solvers.linear.ocas import OCAS
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.ending import ladder
from slackwater.sparsify.preimages import Images, as_given, fixed_points, originals
from slackwater.sparsify.projection import Projection
from slackwater.threads import thread_count
from slackwater.training import Limits, run

BASES = ("auto", "preimages", "sampling")
_WIDE = 2**12  # columns, beyond which dense pre-images of sparse rows are no small predictor
_STARTS = 4
_STEPS = 30


@dataclass(frozen=True)
class CPSP(Sparsifier):
    """Cutting planes to the relative gap ``tol`` of the restricted problem at every power of two; ``cuts`` in between.

    ``basis`` is "preimages" (rbf only), "sampling" or "auto"; ``sample`` training rows compete for a place.
    """

    name: ClassVar[str] = "cpsp"
    paper: ClassVar[str] = "Joachims, Yu, Machine Learning 2009"
    virtual: ClassVar[bool] = True
    retrains: ClassVar[bool] = True

    basis: str = "auto"
    sample: int = 59
    cuts: int = 3
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise ValueError(f"basis={self.basis!r} is not known; the choices are {', '.join(BASES)}")
        for name in ("sample", "cuts"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor for each k_max that is a power of two, and for ``most``: what is before k_max is the same."""
        projection, alpha = Projection.of(teacher.problem), None
        preimages = self._preimages(teacher.problem)
        extended = True
        theta = _pulls(projection, np.zeros(0), _first_bias(teacher.problem))
        looks = set(ladder(most))
        while extended and projection.size < most:
            extended = self._extend(projection, theta, preimages, rng)
            final = not extended or projection.size in looks
            limits = Limits(tol=self.tol) if final else Limits(tol=self.tol, max_rounds=self.cuts)
            found = self._train(projection, limits, alpha)
            weights, alpha = found.weights, found.alpha
            scale = projection.linear().rows.bias
            theta = _pulls(projection, weights[:-1], scale * weights[-1])
            if final:
                yield _small(projection, found, scale)

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
        ids = rng.choice(problem.n_rows, min(problem.n_rows, self.sample), replace=False)
        left = projection.left_of_rows(ids)
        if not left.any():
            ids = np.arange(problem.n_rows)
            left = projection.left_of_rows(ids)
            if not left.any():
                return False
            ids = ids[np.argsort(-left)[: self.sample]]
            left = projection.left_of_rows(ids)
        along = np.einsum("ij,j->i", problem.gram.rows(ids), theta) - phi[ids] @ (theta @ phi)
        gains = np.where(left > 0.0, along**2 / np.where(left > 0.0, left, 1.0), -1.0)
        projection.add_row(int(ids[np.argmax(gains)]))
        return True

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
        return found[np.argmax(np.abs(values))]

    def _train(self, projection: Projection, limits: Limits, alpha: np.ndarray | None) -> Evaluation:
        """Cutting planes in the span from the mixture ``alpha``."""
        problem, threads = projection.linear(), thread_count(None)
        solver: Solver = OCAS(threads=threads)
        if "hinge" != problem.loss_family:
            solver = BMRM("primal-line-search", threads=threads)
        found = run(problem, solver, limits, rng=0, alpha=alpha)
        weights = found.model.weights(problem.rows.bias)
        if projection.problem.bias != "free":
            return Evaluation(found.certificate, weights, found.alpha)
        free = certify(replace(problem, bias="free"), weights, BoxPoint(found.alpha))
        return free._replace(alpha=found.alpha)


def _first_bias(problem: KernelProblem) -> float:
    """At w = 0 every example pulls: a bias would hide one class."""
    return 0.0


def _pulls(projection: Projection, u: np.ndarray, bias: float) -> np.ndarray:
    """theta_i = C_i c_i y_i at a point of the span: the subgradient's coefficients but for their sign and lambda."""
    problem = projection.problem
    margins = problem.labels * (projection.features[:, : u.size] @ u + bias)
    slopes = np.empty_like(margins)
    slopes_along(problem.loss, margins, margins, 0.0, slopes)
    return problem.costs * slopes * problem.labels


def _small(projection: Projection, found: Evaluation, scale: float) -> Small:
    """As a predictor; basis vectors without a coefficient are left out."""
    beta, bias = projection.coefficients(found.weights[:-1]), scale * float(found.weights[-1])
    used = np.flatnonzero(beta)
    if projection.ids:
        return Small(beta[used], bias, ids=np.array(projection.ids)[used], certificate=found.certificate)
    vectors = as_given(projection.vectors[used], projection.problem.rows, None)
    return Small(beta[used], bias, vectors=vectors, certificate=found.certificate)
