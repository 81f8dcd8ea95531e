"""Kernels: from products or distances of rows to kernel values, in place, by compiled loops that vectorise.

============  ===========================================================
linear        <x, z>
rbf           exp(-gamma ||x - z||^2)
polynomial    (gamma <x, z> + coef0)^degree
sigmoid       tanh(gamma <x, z> + coef0), not positive definite in general
laplacian     exp(-gamma ||x - z||_1)
chi2          exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j)), for x, z >= 0
precomputed   the rows are those of the kernel matrix
callable      a function of two blocks of rows
============  ===========================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.compiled import by_type, compiled, exp32
from slackwater.rows import CSRRows, DenseRows, sqnorms, times, with_bias

KERNELS = ("rbf", "linear", "polynomial", "sigmoid", "laplacian", "chi2", "precomputed")
#: Other names of the same kernels, as scikit-learn knows them.
_SYNONYMS = {"poly": "polynomial"}
_NUMBERS = int | float | np.integer | np.floating
_OF_PRODUCTS = ("linear", "polynomial", "sigmoid", "rbf")
_OF_DIFFERENCES = ("laplacian", "chi2")
HIGHEST_DEGREE = 1000  # powers are taken by multiplication


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters; ``function`` is that of the kernel called "callable"."""

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    function: Callable[[Any, Any], Any] | None = None

    @property
    def of_products(self) -> bool:
        """Whether its values follow from the products <x, z> and the squared norms."""
        return self.name in _OF_PRODUCTS

    @property
    def of_differences(self) -> bool:
        """Whether its values follow from sums over the columns of a term of x_j and z_j."""
        return self.name in _OF_DIFFERENCES

    @property
    def translates(self) -> bool:
        """Whether shifting all rows by one vector changes nothing."""
        return self.name == "rbf"

    def at_itself(self, squares: np.ndarray) -> np.ndarray:
        """K(x, x) in float64 from ||x||^2, for kernels of products or differences."""
        if self.name == "linear":
            return squares.copy()
        if self.name == "polynomial":
            return (self.gamma * squares + self.coef0) ** self.degree
        if self.name == "sigmoid":
            return np.tanh(self.gamma * squares + self.coef0)
        return np.ones_like(squares)


def parse_kernel(
    kernel: Any,
    rows: DenseRows | CSRRows,
    gamma: Any = "scale",
    degree: Any = 3,
    coef0: Any = 0.0,
    weights: np.ndarray | None = None,
) -> Kernel:
    """The kernel that a user's parameters mean on these rows, or on rows repeated as often as ``weights`` say."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Kernel("callable", function=kernel)
    name = _SYNONYMS.get(kernel, kernel) if isinstance(kernel, str) else None
    if name not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is not known; the kernels are {', '.join(KERNELS)} or a function")
    if not isinstance(degree, _NUMBERS) or not 0 <= degree <= HIGHEST_DEGREE or degree != int(degree):
        raise ValueError(f"degree must be a whole number from 0 to {HIGHEST_DEGREE}, got {degree!r}")
    if not isinstance(coef0, _NUMBERS) or not math.isfinite(coef0):
        raise ValueError(f"coef0 must be a finite number, got {coef0!r}")
    if name == "precomputed":
        return Kernel(name)
    found = Kernel(name, 1.0 if name == "linear" else gamma_value(gamma, rows, weights), float(coef0), int(degree))
    check_values(found, rows)
    return found


def check_values(kernel: Kernel, rows: DenseRows | CSRRows) -> None:
    """Raise where the rows hold what the kernel is not defined for."""
    if kernel.name == "chi2" and rows.values.size and rows.values.min() < 0.0:
        raise ValueError("kernel='chi2' needs values of at least 0")


def gamma_value(gamma: Any, rows: DenseRows | CSRRows, weights: np.ndarray | None = None) -> float:
    """The number itself; "scale" is 1 / (columns x variance of all entries), "auto" is 1 / columns."""
    if isinstance(gamma, str):
        columns = max(1, rows.n_columns)
        if gamma == "auto":
            return 1.0 / columns
        if gamma != "scale":
            raise ValueError(f"gamma={gamma!r} is not known; it is 'scale', 'auto' or a number")
        variance = _variance(rows, np.ones(rows.n_rows) if weights is None else weights)
        return 1.0 / (columns * variance) if variance > 0.0 else 1.0
    if not isinstance(gamma, _NUMBERS) or not 0.0 <= gamma < math.inf:
        raise ValueError(f"gamma must be 'scale', 'auto' or a finite number of at least 0, got {gamma!r}")
    return float(gamma)


def _variance(rows: DenseRows | CSRRows, weights: np.ndarray) -> float:
    """The variance of all entries, those that are not stored being 0."""
    rows = with_bias(rows, 0.0)
    sums, squares = np.empty(rows.n_rows), np.empty(rows.n_rows)
    times(rows, np.ones(rows.n_columns + 1), sums)
    sqnorms(rows, squares)
    count = max(1, rows.n_columns) * weights.sum()
    mean = weights @ sums / count
    return max(float(weights @ squares / count - mean * mean), 0.0)


# ------------------------------------------------------------------------------------- from products to values


def from_products(
    kernel: Kernel, block: np.ndarray, squares: np.ndarray, others: np.ndarray, first: int, last: int
) -> None:
    """Replace <x, z> by K(x, z) in columns first..last of a block; ||x||^2 of its lines, ||z||^2 of all columns."""
    gamma, coef0 = block.dtype.type(kernel.gamma), block.dtype.type(kernel.coef0)
    part = block[:, first:last]
    if kernel.name == "rbf" and block.dtype == np.float32:
        _rbf32(block, squares, others, gamma, first, last)
    elif kernel.name == "rbf":
        _rbf_exponents(block, squares, others, gamma, first, last)
        np.exp(part, out=part)
    elif kernel.name == "polynomial" and kernel.degree == 0:
        part[:] = 1.0
    elif kernel.name == "polynomial":
        _polynomial(block, gamma, coef0, kernel.degree, first, last)
    elif kernel.name == "sigmoid":
        part *= gamma
        part += coef0
        np.tanh(part, out=part)


@compiled
def _rbf32(block, squares, others, gamma, first, last):
    for k in range(np.uint64(block.shape[0])):
        line, square = block[k], squares[k]
        for i in range(np.uint64(first), np.uint64(last)):
            apart = max(square + others[i] - line[i] - line[i], np.float32(0.0))
            line[i] = exp32(-gamma * apart)


@compiled
def _rbf_exponents(block, squares, others, gamma, first, last):
    for k in range(np.uint64(block.shape[0])):
        line, square = block[k], squares[k]
        for i in range(np.uint64(first), np.uint64(last)):
            line[i] = -gamma * max(square + others[i] - line[i] - line[i], 0.0)


@compiled
def _polynomial(block, gamma, coef0, degree, first, last):
    for k in range(np.uint64(block.shape[0])):
        line = block[k]
        for i in range(np.uint64(first), np.uint64(last)):
            base = gamma * line[i] + coef0
            power = base
            for _ in range(1, degree):
                power *= base
            line[i] = power


# ---------------------------------------------------------------------------------- from differences to values


def from_differences(kernel: Kernel, lines: np.ndarray, rows: DenseRows | CSRRows, block: np.ndarray, first, last):
    """Write K(x, z) for dense lines x and the rows z in first..last into these columns of a block."""
    whole = _chi2_sums if kernel.name == "chi2" else _absolute_sums
    whole(rows, np.ascontiguousarray(lines), block, first, last)
    part = block[:, first:last]
    part *= block.dtype.type(-kernel.gamma)
    np.exp(part, out=part)


@by_type
def _absolute_sum(rows, i, x, alone):
    """||x - z_i||_1 for a dense x with ||x||_1 = alone."""


@_absolute_sum.register(DenseRows)
def _dense_absolute_sum(rows, i, x, alone):
    z, total = rows.values[i], 0.0
    for j in range(np.uint64(z.size)):
        total += abs(x[j] - z[j])
    return total


@_absolute_sum.register(CSRRows)
def _csr_absolute_sum(rows, i, x, alone):
    total = alone
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        a = x[rows.indices[p]]
        total += abs(a - rows.values[p]) - abs(a)
    return total


@by_type
def _chi2_sum(rows, i, x, alone):
    """sum_j (x_j - z_ij)^2 / (x_j + z_ij) for a dense x >= 0 with the sum alone."""


@_chi2_sum.register(DenseRows)
def _dense_chi2_sum(rows, i, x, alone):
    z, total = rows.values[i], 0.0
    for j in range(np.uint64(z.size)):
        both, apart = x[j] + z[j], x[j] - z[j]
        total += apart * apart / both if both > 0.0 else 0.0
    return total


@_chi2_sum.register(CSRRows)
def _csr_chi2_sum(rows, i, x, alone):
    total = alone
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + np.uint64(1)])):
        a, z = x[rows.indices[p]], rows.values[p]
        both, apart = a + z, a - z
        total += (apart * apart / both if both > 0.0 else 0.0) - a
    return total


@compiled
def _absolute_sums(rows, lines, block, first, last):
    for k in range(np.uint64(lines.shape[0])):
        x, alone = lines[k], 0.0
        for j in range(np.uint64(x.size)):
            alone += abs(x[j])
        for i in range(np.uint64(first), np.uint64(last)):
            block[k, i] = _absolute_sum(rows, i, x, alone)


@compiled
def _chi2_sums(rows, lines, block, first, last):
    for k in range(np.uint64(lines.shape[0])):
        x, alone = lines[k], 0.0
        for j in range(np.uint64(x.size)):
            alone += x[j]
        for i in range(np.uint64(first), np.uint64(last)):
            block[k, i] = _chi2_sum(rows, i, x, alone)
