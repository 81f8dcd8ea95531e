"""The surface f = 0 of a kernel predictor: the way to it, and how much it bends there.

For a kernel k(s_j) of the products s_j = <v_j, x>

    grad f = sum_j c_j k'_j v_j,              Hess f = M,     M = sum_j h_j v_j v_j',  h_j = c_j k''_j.

The Gaussian kernel has v_j - x in the place of v_j, k' = 2 gamma K, k'' = 4 gamma^2 K, and with p = sum_j c_j k'_j

    grad f = sum_j c_j k'_j v_j - p x,        Hess f = M - u x' - x u' - p I,   u = sum_j h_j v_j - (sum_j h_j) x/2.

The curvature at x is ||(I - nn') Hess f (I - nn')||_F / ||grad f||, n the unit gradient:  ||H||_F^2 - 2 ||H n||^2 +
(n'H n)^2 of H = Hess f, so no Hessian is ever formed. ||M||_F^2 = sum_jk h_j h_k <v_j, v_k>^2 is a product with the
squares of <v_j, v_k>, a strip of them at a time, or with the products of pairs of columns where these are fewer.
These products are of type ``dtype``, all else is float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slackwater.models import KernelModel
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, DenseRows, as_matrix, dense_block, sqnorms, with_bias

DIFFERENTIABLE = ("rbf", "polynomial", "linear", "sigmoid")

_NUMBERS = 2**24  # in a block: of points times vectors, or of points times columns
_PIECE = 2**20  # the same, of the points that are looked at together
_STRIP = 512  # columns of the squares of products at a time
_STEPS = 20  # of a point on its way to the surface
_NEAR, _ARRIVED = 1e-9, 1e-3  # of the largest |f|: a point that need not go on, one that came to the surface


class Derivatives(NamedTuple):
    """K(v_j, x) and its first and second derivatives; lines are points, columns vectors."""

    values: np.ndarray
    first: np.ndarray  # k'_j
    second: np.ndarray  # k''_j


class Slope(NamedTuple):
    """f and its gradient at some points."""

    values: np.ndarray
    gradients: np.ndarray


@dataclass(frozen=True, eq=False)
class Surface:
    """f = sum_j c_j K(v_j, .) + b with a differentiable kernel."""

    kernel: Kernel
    vectors: Any  # a float64 matrix, dense or sparse
    squares: np.ndarray  # ||v_j||^2
    coefficients: np.ndarray
    bias: float  # all that is constant
    dtype: Any = np.float64  # of the products that ||M||_F^2 is summed from

    @classmethod
    def of(cls, model: KernelModel, centre: np.ndarray | float = 0.0, dtype: Any = np.float64) -> Surface:
        """Of a model of one output, in coordinates around a centre of dense vectors."""
        kernel, coefficients = model.kernel, model.coef[0]
        if kernel.name not in DIFFERENTIABLE:
            raise ValueError(f"kernel {kernel.name!r} has no curvature; those that do: {', '.join(DIFFERENTIABLE)}")
        rows = with_bias(model.vectors, 0.0)
        values = rows.values.astype(np.float64)
        rows = rows._replace(values=values - centre if isinstance(centre, np.ndarray) else values)
        squares = np.empty(rows.n_rows)
        sqnorms(rows, squares)
        bias = float(model.intercept[0]) + model.shift * float(coefficients.sum())
        return cls(kernel, as_matrix(rows), squares, coefficients, bias, dtype)

    def slope(self, x: np.ndarray) -> Slope:
        """f and its gradient at the lines of x."""
        found = Slope(np.empty(len(x)), np.empty_like(x))
        for piece in self._pieces(len(x)):
            y = x[piece]
            at = derivatives(self.kernel, self._products(y), _dots(y, y), self.squares)
            pulls = at.first * self.coefficients
            found.values[piece] = at.values @ self.coefficients + self.bias
            found.gradients[piece] = pulls @ self.vectors
            if self.kernel.translates:
                found.gradients[piece] -= pulls.sum(axis=1)[:, None] * y
        return found

    def projected(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where steps x <- x - t f grad f / ||grad f||^2 come to, and whether that is on f = 0.

        t is halved where |f| would not fall; no step is longer than the width of a Gaussian kernel, beyond which f
        looks different. A point without a gradient stays.
        """
        x = x.copy()
        values, gradients = self.slope(x)
        near = _NEAR * float(np.abs(values).max(initial=0.0))
        lengths, reach = np.ones(len(x)), self._reach
        for _ in range(_STEPS):
            sizes = np.sqrt(_dots(gradients, gradients))
            going = np.flatnonzero((np.abs(values) > near) & (sizes > 0.0))
            if going.size == 0:
                break
            apart = np.clip(values[going] / sizes[going], -reach, reach)
            trial = x[going] - (lengths[going] * apart / sizes[going])[:, None] * gradients[going]
            found = self.slope(trial)
            better = np.abs(found.values) < np.abs(values[going])
            moved = going[better]
            x[moved], values[moved], gradients[moved] = trial[better], found.values[better], found.gradients[better]
            lengths[going] = np.where(better, np.minimum(1.0, 2.0 * lengths[going]), 0.5 * lengths[going])
        return x, np.abs(values) <= _ARRIVED / _NEAR * near

    def curvatures(self, x: np.ndarray) -> np.ndarray:
        """At the lines of x; 0 where f has no gradient, and so no surface."""
        gradients = self.slope(x).gradients
        sizes = np.sqrt(_dots(gradients, gradients))[:, None]
        n = np.divide(gradients, sizes, out=np.zeros_like(gradients), where=sizes > 0.0)
        bends = self._bends(x, n)[:, None]
        return np.divide(bends, sizes, out=np.zeros_like(bends), where=sizes > 0.0)[:, 0]

    def _bends(self, x: np.ndarray, n: np.ndarray) -> np.ndarray:
        """||(I - nn') H (I - nn')||_F of the Hessian H at every line of x, with that of n."""
        h, bends = np.empty((len(x), len(self.squares))), np.empty(len(x))
        for piece in self._pieces(len(x)):
            bends[piece] = self._all_but_norms(x[piece], n[piece], h[piece])
        return np.sqrt(np.maximum(bends + self._squared_norms(h), 0.0))

    def _all_but_norms(self, x: np.ndarray, n: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Write h; what the square of the bend is beyond ||M||_F^2."""
        products, squares = self._products(x), _dots(x, x)
        found = derivatives(self.kernel, products, squares, self.squares)
        np.multiply(found.second, self.coefficients, out=h)
        Hn, more = (h * self._products(n)) @ self.vectors, np.zeros(len(x))
        if self.kernel.translates:
            p = found.first @ self.coefficients
            u = h @ self.vectors - 0.5 * h.sum(axis=1)[:, None] * x
            xMu, ux, trace = _dots((h * products) @ self.vectors, u), _dots(u, x), h @ self.squares
            Hn -= p[:, None] * n + _dots(x, n)[:, None] * u + _dots(u, n)[:, None] * x
            more = 2.0 * (_dots(u, u) * squares + ux * ux) - 4.0 * xMu
            more += p * (p * x.shape[1] - 2.0 * (trace - 2.0 * ux))
        across = _dots(n, Hn)
        return more - 2.0 * _dots(Hn, Hn) + across * across

    def _squared_norms(self, h: np.ndarray) -> np.ndarray:
        """||sum_j h_j v_j v_j'||_F^2 for every line of h."""
        total, h = np.zeros(len(h)), h.astype(self.dtype, copy=False)
        m, d = self.vectors.shape
        if d * (d + 1) // 2 <= m:
            for strip in _pairs_of_columns(_dense(self.vectors)):
                part = h @ strip.astype(self.dtype, copy=False)
                total += _dots(part, part)
            return total
        for start in range(0, m, _STRIP):
            strip = _dense(self.vectors @ self.vectors[start : start + _STRIP].T)
            total += _dots(h @ (strip * strip).astype(self.dtype, copy=False), h[:, start : start + _STRIP])
        return total

    @property
    def _reach(self) -> float:
        """The longest step."""
        return 1.0 / math.sqrt(2.0 * self.kernel.gamma) if self.kernel.translates and self.kernel.gamma else math.inf

    def _pieces(self, points: int) -> list[slice]:
        """Points whose products with all vectors stay near the processor."""
        step = max(1, _PIECE // max(1, *self.vectors.shape))
        return [slice(start, start + step) for start in range(0, points, step)]

    def _products(self, x: np.ndarray) -> np.ndarray:
        """<x_i, v_j>."""
        return np.ascontiguousarray((self.vectors @ x.T).T)


def bends_near(surface: Surface, rows: DenseRows | CSRRows, ids: np.ndarray) -> np.ndarray:
    """The curvature where some rows, projected onto the surface, come to lie; 0 for those that do not get there."""
    if surface.kernel.name == "linear":
        return np.zeros(ids.size)
    out = np.empty(ids.size)
    step = max(1, _NUMBERS // max(1, *surface.vectors.shape))
    for start in range(0, ids.size, step):
        x = dense_block(rows, ids[start : start + step]).astype(np.float64)
        x, arrived = surface.projected(x)
        out[start : start + step] = np.where(arrived, surface.curvatures(x), 0.0)
    return out


def derivatives(kernel: Kernel, products: np.ndarray, squares: np.ndarray, others: np.ndarray) -> Derivatives:
    """From <x_i, v_j>, ||x_i||^2 and ||v_j||^2."""
    gamma = kernel.gamma
    if kernel.name == "rbf":
        values = np.exp(-gamma * np.maximum(squares[:, None] + others - 2.0 * products, 0.0))
        return Derivatives(values, 2.0 * gamma * values, 4.0 * gamma * gamma * values)
    if kernel.name == "linear":
        return Derivatives(products, np.ones_like(products), np.zeros_like(products))
    base, d = gamma * products + kernel.coef0, kernel.degree
    if kernel.name == "sigmoid":
        values = np.tanh(base)
        first = 1.0 - values * values
        return Derivatives(values, gamma * first, -2.0 * gamma * gamma * values * first)
    first = d * gamma * base ** max(d - 1, 0)
    return Derivatives(base**d, first, d * (d - 1) * gamma * gamma * base ** max(d - 2, 0))


def _pairs_of_columns(matrix: np.ndarray) -> Iterator[np.ndarray]:
    """Products of all pairs of columns, those of different ones times sqrt 2, a strip at a time."""
    left, right = np.triu_indices(matrix.shape[1])
    factors = np.where(left == right, 1.0, np.sqrt(2.0))
    for start in range(0, left.size, _STRIP):
        some = slice(start, start + _STRIP)
        yield matrix[:, left[some]] * matrix[:, right[some]] * factors[some]


def _dense(matrix: Any) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The products of equal lines."""
    return np.einsum("ij,ij->i", a, b)
