"""Pre-images: points of the input space whose images lie along a given sum of images.

Psi = sum_m theta_m Phi(s_m) is a vector of the kernel's space, Psi(z) = <Psi, Phi(z)> = sum_m theta_m K(s_m, z), and

    grad Psi(z) = sum_m theta_m h(s_m, z) (s_m - r z),

with h = 2 gamma K and r = 1 for the rbf kernel, h = gamma p K_(p-1) and r = 0 for the polynomial one of degree p,
K_(p-1) being that of one degree less. Where the gradient is 0 the rbf kernel has the fixed point

    z  <-  sum_m theta_m K(s_m, z) s_m / sum_m theta_m K(s_m, z)

of Schoelkopf and others (IEEE Transactions on Neural Networks 10, 1999). Kernel values come by blocks, as everywhere;
sums over the s_m are products of matrices in the precision of the points, those of values are float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, DenseRows, as_matrix, as_rows, dense_block, narrowed
from slackwater.rows.convert import frozen

#: Kernels that have a gradient here.
SMOOTH = ("rbf", "polynomial", "linear")
_BLOCK = 2**23  # kernel values at a time
_DENSE = 2**27  # entries up to which the s_m are kept as a dense matrix for sums
_VANISHING = 1e-9  # of sum |theta_m|: a denominator that is nothing but rounding
_STILL = 1e-7  # relative rise of |Psi(z)| below which a fixed point is reached


class Pull(NamedTuple):
    """What a sum of images does at points z, one per line: Psi(z) and its gradient's two parts."""

    values: np.ndarray
    sums: np.ndarray  # sum_m theta_m h(s_m, z) s_m
    totals: np.ndarray  # sum_m theta_m h(s_m, z)

    @classmethod
    def of(cls, parts: Sequence[Images], Z: np.ndarray) -> Self:
        """Of the sum of some sums."""
        pulls = [part.pull(Z) for part in parts]
        return cls(*(np.sum(kind, axis=0) for kind in zip(*pulls, strict=True)))


@dataclass(frozen=True, eq=False)
class Images:
    """sum_m theta_m Phi(s_m) over the points s_m."""

    points: Points  # with no shift: that has no gradient
    slopes: Points  # the same under the kernel that h is a multiple of
    theta: np.ndarray
    matrix: np.ndarray | sp.csr_array  # the s_m
    shift: float

    @classmethod
    def of(cls, points: Points, theta: np.ndarray) -> Self:
        """The sum over ``points``, whose kernel must be smooth."""
        bare = replace(points, shift=0.0)
        kernel = points.kernel
        if kernel.name == "linear":
            slopes = replace(bare, kernel=Kernel("polynomial", 1.0, 0.0, 0))
        elif kernel.name == "polynomial":
            slopes = replace(bare, kernel=replace(kernel, degree=max(kernel.degree - 1, 0)))
        else:
            slopes = bare
        rows = points.rows
        small = rows.n_rows * rows.n_columns <= _DENSE
        matrix = dense_block(rows, np.arange(rows.n_rows)) if small else as_matrix(rows)
        return cls(bare, slopes, np.asarray(theta, dtype=np.float64), matrix, points.shift)

    @property
    def about(self) -> float:
        """r."""
        return 1.0 if self.points.kernel.translates else 0.0

    def values(self, rows: DenseRows | CSRRows) -> np.ndarray:
        """Psi at these rows, float64."""
        out = np.empty(rows.n_rows)
        for part in self._parts(rows.n_rows):
            out[part] = self._block(self.points, rows, part) @ self.theta
        return out + self.shift * self.theta.sum()

    def pull(self, Z: np.ndarray) -> Pull:
        """Psi and its gradient's parts at the lines of Z."""
        rows = DenseRows(np.ascontiguousarray(Z), 0.0)
        found = Pull(np.empty(len(Z)), np.empty(Z.shape), np.empty(len(Z)))
        for part in self._parts(len(Z)):
            K = self._block(self.points, rows, part)
            found.values[part] = K @ self.theta
            if self.slopes is not self.points:
                K = self._block(self.slopes, rows, part)
            K *= (self._scale() * self.theta).astype(K.dtype)
            found.totals[part] = K.sum(axis=1, dtype=np.float64)
            found.sums[part] = K @ self.matrix
        if isinstance(self.points.centre, np.ndarray):
            found.sums[:] += np.outer(found.totals, self.points.centre)
        return found._replace(values=found.values + self.shift * self.theta.sum())

    def _parts(self, count: int) -> list[slice]:
        step = max(1, _BLOCK // max(1, self.points.n_rows))
        return [slice(start, start + step) for start in range(0, count, step)]

    def _block(self, points: Points, rows: DenseRows | CSRRows, part: slice) -> np.ndarray:
        lines = points.lines(rows, part)
        return points.values(lines, np.empty((len(lines.squares), points.n_rows), dtype=points.dtype))

    def _scale(self) -> float:
        """h over the value of the other kernel."""
        kernel = self.points.kernel
        if kernel.name == "linear":
            return 1.0
        return 2.0 * kernel.gamma if kernel.translates else kernel.gamma * kernel.degree


def gradients(parts: Sequence[Images], Z: np.ndarray) -> np.ndarray:
    """grad Psi at every line of Z."""
    pull = Pull.of(parts, Z)
    return pull.sums - parts[0].about * pull.totals[:, None] * Z


def fixed_points(parts: Sequence[Images], Z: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the fixed point of the rbf kernel leads from every line of Z, and Psi there.

    A line stays at the best point of its way once |Psi| no longer rises or the denominator vanishes: others go on.
    """
    Z, values = Z.copy(), np.zeros(len(Z))
    going, ahead = np.arange(len(Z)), Z.copy()
    size = sum(np.abs(part.theta).sum() for part in parts) * 2.0 * parts[0].points.kernel.gamma
    for _ in range(steps + 1):
        pull = Pull.of(parts, ahead)
        rising = np.abs(pull.values) > np.abs(values[going]) * (1.0 + _STILL)
        better = going[rising]
        Z[better], values[better] = ahead[rising], pull.values[rising]
        moving = rising & (np.abs(pull.totals) > _VANISHING * size)
        if not moving.any():
            break
        going, ahead = going[moving], pull.sums[moving] / pull.totals[moving, None]
    return Z, values


# ------------------------------------------------------------------------------------------------ wide sparse rows


class Compact(NamedTuple):
    """Sparse rows in the columns that they have anything in: pre-images lie in these."""

    rows: DenseRows | CSRRows
    columns: np.ndarray | None  # which they are among all, None where all are kept

    @classmethod
    def of(cls, rows: DenseRows | CSRRows) -> Self:
        """Dense rows, and sparse ones that are not wide, stay as they are."""
        fewer = narrowed(rows, np.arange(rows.n_rows))
        if fewer is rows or not isinstance(rows, CSRRows):
            return cls(rows, None)
        return cls(fewer, np.unique(rows.indices[rows.indptr[0] : rows.indptr[-1]]))


def as_given(Z: np.ndarray, like: DenseRows | CSRRows, columns: np.ndarray | None) -> DenseRows | CSRRows:
    """The lines of Z as rows, in the precision of those they were made from; sparse where these were wide."""
    Z = Z.astype(like.dtype)
    if columns is None:
        return DenseRows(frozen(Z), 0.0)
    rows = as_rows(sp.csr_array(Z))
    assert isinstance(rows, CSRRows)
    return rows._replace(indices=frozen(columns[rows.indices].astype(np.uint32)), columns=like.n_columns)


def originals(points: Points, ids: np.ndarray) -> np.ndarray:
    """Some of the points as they were given, dense, float64."""
    return dense_block(points.rows, ids).astype(np.float64) + points.centre
