"""Training rows projected on the span of some basis vectors b_1 .. b_k: there a kernel problem is a linear one.

With K_BB = L L' the rows  phi_i = L^{-1} K(B, x_i)  have  <phi_i, phi_j> = <P Phi(x_i), P Phi(x_j)>,  P being the
projection, and w = sum_j beta_j Phi(b_j)  has  <w, Phi(x_i)> = <u, phi_i>,  ||w|| = ||u||,  beta = L^{-T} u. So the
problem restricted to the span is the linear problem on the phi_i, with its solvers and its certificates. A basis vector
more is one column more, and leaves the others as they are:

    phi_i,k+1 = (K(b, x_i) - <l, phi_i>) / rho,   l = L^{-1} K(B, b),   rho^2 = K(b, b) - ||l||^2.

Takes n k numbers in float64, and one row of the kernel matrix for each basis vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular

from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.problem import LinearProblem
from slackwater.rows import DenseRows
from slackwater.rows.convert import frozen
from slackwater.sparsify.ending import rows_of_vectors
from slackwater.sparsify.preimages import Images, as_given

_AHEAD = 8  # columns, or a quarter of those there are
_ROUNDINGS = 1e3  # of K(b, b): a part outside the span that is nothing but rounding


@dataclass(eq=False)
class Projection:
    """The basis, L and the phi_i; columns from ``size`` on are zeros still."""

    problem: KernelProblem
    features: np.ndarray  # (n, room)
    factor: np.ndarray  # L, (room, room)
    size: int = 0
    ids: list[int] = field(default_factory=list)  # of basis vectors that are training rows
    vectors: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # the others, one per line

    @classmethod
    def of(cls, problem: KernelProblem) -> Self:
        """No basis vector."""
        nothing = np.empty((0, problem.rows.n_columns))
        return cls(problem, np.zeros((problem.n_rows, 0)), np.zeros((0, 0)), vectors=nothing)

    def left_of_rows(self, ids: np.ndarray) -> np.ndarray:
        """rho^2 of some training rows; 0 where it is rounding."""
        diagonal = self.problem.gram.diagonal[ids]
        left = diagonal - np.einsum("ij,ij->i", self.features[ids], self.features[ids])
        return np.where(left > self._rounding * diagonal, left, 0.0)

    def add_row(self, i: int) -> None:
        """A training row whose rho is not 0 joins the basis."""
        row = self.problem.gram.rows(np.array([i]))[0]
        self._add(row, self.features[i, : self.size].copy(), float(self.left_of_rows(np.array([i]))[0]))
        self.ids.append(i)

    def add_vector(self, z: np.ndarray) -> bool:
        """A point of its own joins the basis; False where it brings nothing new."""
        problem = self.problem
        bare = self.basis_points(z[None])
        itself = float(bare.diagonal[0])
        with_basis = Images.of(bare, np.ones(1)).values(DenseRows(self.vectors, 0.0))
        line = solve_triangular(self.factor[: self.size, : self.size], with_basis, lower=True)
        left = itself - float(line @ line)
        if not left > self._rounding * itself:
            return False
        problem.gram.evaluations += problem.n_rows
        self._add(rows_of_vectors(problem, as_given(z[None], problem.rows, None), slice(None))[0], line, left)
        self.vectors = np.concatenate((self.vectors, z[None]))
        return True

    def basis_points(self, Z: np.ndarray) -> Points:
        """Lines of Z under the same kernel, in float64."""
        points = self.problem.gram.points
        return Points.of(DenseRows(Z, 0.0), points.kernel, np.float64, points.shift)

    def coefficients(self, u: np.ndarray) -> np.ndarray:
        """beta = L^{-T} u."""
        L = self.factor[: self.size, : self.size]
        return solve_triangular(L, u[: self.size], lower=True, trans="T")

    def linear(self, freedom: float) -> LinearProblem:
        """The restricted problem; a free bias is a constant feature that is so many times as long as Phi(x)."""
        problem, scale = self.problem, 0.0
        if problem.bias == "free":
            scale = freedom * float(np.sqrt(problem.gram.diagonal.mean())) or freedom
        rows = DenseRows(frozen(self.features), scale)
        return LinearProblem(rows, problem.labels, problem.costs, problem.loss, "penalised" if scale else "none")

    @property
    def _rounding(self) -> float:
        return _ROUNDINGS * float(np.finfo(self.problem.gram.points.dtype).eps)

    def _add(self, row: np.ndarray, line: np.ndarray, left: float) -> None:
        k, rho = self.size, float(np.sqrt(left))
        if k == self.features.shape[1]:
            self._widen(k + max(_AHEAD, k // 4))
        self.features[:, k] = (row - self.features[:, :k] @ line) / rho
        self.factor[k, :k], self.factor[k, k] = line, rho
        self.size += 1

    def _widen(self, room: int) -> None:
        features, factor = np.zeros((len(self.features), room)), np.zeros((room, room))
        features[:, : self.size] = self.features
        factor[: self.size, : self.size] = self.factor
        self.features, self.factor = features, factor
