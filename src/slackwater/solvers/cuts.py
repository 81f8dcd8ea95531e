"""Cuts and bundles of them: what the cutting plane methods share.

With the shares p_i = lambda C_i of the examples (they sum to 1) and slopes c_i in [0, cap], 0 or 1 for the hinge,

    mean loss(w) = sum_i p_i l(y_i <w, x_i>)  >=  <g, w> + b    for every w,
    g = -sum_i p_i c_i y_i x_i,      b = sum_i p_i (target c_i - width c_i^2 / 2),

with equality where c_i = -l'(m_i). The lower model is the maximum of the cuts and of 0, the cut c = 0; its minimum with
the regulariser is dual to a small program over mixtures beta of cuts (rule C3), and the mixture's slopes
a = sum_j beta_j c^j, which are C1's alpha_i = C_i a_i, prove at least as much. So the slopes of every cut are kept, one
bit per example for the hinge and a float32 otherwise, and the certificate follows from the rows, not from the cuts.

Passes over examples are fused and write into arrays that stay: on small data, fresh memory for them and the threads
that a BLAS wakes for a sum cost more than the products with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.losses import slope, value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import squared_norm
from slackwater.solvers.small_qp import simplex_qp
from slackwater.solvers.sweeps import add_rows

_IDLE = 50  # rounds without a part in the mixture, after which a cut is dropped
_ROOM = 32
_COLUMNS = 1024  # of the cuts that are mixed at a time: they stay in the cache

# ------------------------------------------------------------------------------------------ along a line


@compiled
def loss_along(loss, shares, margins, change, k, out):
    """out = m + k dm;  returns sum_i p_i l(out_i)."""
    total = 0.0
    for i in range(np.uint64(margins.size)):
        m = margins[i] + k * change[i]
        out[i] = m
        total += shares[i] * value(loss, m)
    return total


@compiled
def slopes_along(loss, margins, change, k, out):
    """out_i = -l'(m_i + k dm_i)."""
    for i in range(np.uint64(margins.size)):
        out[i] = slope(loss, margins[i] + k * change[i])


@compiled
def move(x, share, towards):
    """x <- x + share (towards - x)."""
    for j in range(np.uint64(x.size)):
        x[j] += share * (towards[j] - x[j])


@compiled
def products_along(w, to):
    """||to - w||^2 and <w, to - w>."""
    square, product = 0.0, 0.0
    for j in range(np.uint64(w.size)):
        change = to[j] - w[j]
        square += change * change
        product += w[j] * change
    return square, product


# ---------------------------------------------------------------------------------------------------- one cut


class Cut(NamedTuple):
    """<g, w> + b with the slopes that it was made from; whoever keeps a cut copies its arrays."""

    gradient: np.ndarray
    offset: float
    slopes: np.ndarray


class _Summary(NamedTuple):
    """What one look at the slopes of a cut tells."""

    changed: int
    used: int
    offset: float


@dataclass
class CutMaker:
    """Makes cuts from slopes. Where few slopes differ from those of the last cut, g takes in the differences only."""

    shares: np.ndarray
    threads: int
    coefficients: np.ndarray  # -p_i y_i c_i of the last cut
    gradient: np.ndarray
    before: np.ndarray  # the coefficients of the cut before
    ids: np.ndarray
    terms: np.ndarray
    rows_added: int = 0

    @classmethod
    def of(cls, problem: LinearProblem, threads: int) -> CutMaker:
        """The last cut is c = 0."""
        n = problem.n_rows
        shares = problem.regularisation * problem.costs
        return cls(
            shares, threads, np.zeros(n), np.zeros(problem.n_weights), np.zeros(n), np.empty(n + 1, dtype=np.uint32),
            np.empty(n + 1),
        )  # fmt: skip

    def make(self, problem: LinearProblem, slopes: np.ndarray) -> Cut:
        """The cut of these slopes."""
        self.coefficients, self.before = self.before, self.coefficients
        seen = _Summary(*_compare(problem.loss, self.shares, problem.labels, slopes, self.before, self.coefficients))
        # After as many additions as a cut from nothing takes a few times over, rounding has grown as much as it may.
        if seen.changed + self.rows_added > _FEW_SUMS * problem.n_rows or 2 * seen.changed > seen.used:
            self.gradient[:], self.before[:], self.rows_added = 0.0, 0.0, 0
        else:
            self.rows_added += seen.changed
        count = _differences(self.coefficients, self.before, self.ids, self.terms)
        add_rows(problem, self.ids[:count], self.terms[:count], self.gradient, self.threads)
        return Cut(self.gradient, seen.offset, slopes)


_FEW_SUMS = 4


@compiled
def _compare(loss, shares, labels, slopes, before, coefficients):
    """The coefficients of a cut; how many differ from those before and are not 0, and the offset."""
    changed, used, offset = np.int64(0), np.int64(0), 0.0
    for i in range(np.uint64(slopes.size)):
        c, p = slopes[i], shares[i]
        coefficient = -labels[i] * p * c
        coefficients[i] = coefficient
        changed += np.int64(coefficient != before[i])
        used += np.int64(coefficient != 0.0)
        offset += p * c * (loss.target - 0.5 * loss.width * c)
    return changed, used, offset


@compiled
def _differences(coefficients, before, ids, terms):
    """The rows whose coefficient has changed and by how much, written before it is known whether they count."""
    count = np.uint64(0)
    for i in range(np.uint64(coefficients.size)):
        change = coefficients[i] - before[i]
        ids[count], terms[count] = i, change
        count += np.uint64(change != 0.0)
    return count


# ------------------------------------------------------------------------------------------------ many of them


@dataclass
class Bundle:
    """Cuts by number from 1 on, the zero cut being number 0, and the best mixture of them.

    Takes one dense vector of d + 1 numbers per cut, which is much where d is a million: 8 MB a cut.
    """

    lam: float
    most: int
    rows: int
    gradients: np.ndarray
    offsets: np.ndarray
    gram: np.ndarray  # <g_j, g_k> / lambda
    beta: np.ndarray
    idle: np.ndarray  # rounds since beta_j was positive
    slopes: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def of(cls, problem: LinearProblem, most: int) -> Bundle:
        """The zero cut alone; at most ``most`` more will be kept."""
        bundle = cls(
            problem.regularisation, most, problem.n_rows, np.empty((_ROOM, problem.n_weights)), np.zeros(_ROOM + 1),
            np.zeros((_ROOM + 1, _ROOM + 1)), np.zeros(_ROOM + 1), np.zeros(_ROOM + 1, dtype=np.int64),
        )  # fmt: skip
        bundle.beta[0] = 1.0
        return bundle

    @property
    def count(self) -> int:
        """Cuts besides the zero cut."""
        return len(self.slopes)

    def add(self, cut: Cut) -> None:
        """One cut more; the program is solved anew by ``solve``."""
        if self.count >= self.most:
            self._make_room()
        if self.count == len(self.gradients):
            self._grow()
        new = self.count + 1
        self.gradients[new - 1] = cut.gradient
        products = _products(self.gradients[:new], cut.gradient)
        products /= self.lam
        self.gram[new, 1 : new + 1] = self.gram[1 : new + 1, new] = products
        self.offsets[new], self.beta[new], self.idle[new] = cut.offset, 0.0, 0
        self.slopes.append(_kept(cut.slopes))

    def solve(self, w: np.ndarray) -> float:
        """The best mixture: w <- -sum_j beta_j g_j / lambda; D. Cuts long without a part in it go."""
        size = self.count + 1
        simplex_qp(self.gram[:size, :size], self.offsets[:size], self.beta[:size])
        self.idle[:size] += 1
        self.idle[:size][self.beta[:size] > 0.0] = 0
        for j in range(self.count, 0, -1):
            if self.idle[j] > _IDLE:
                self._drop(j)
        size = self.count + 1
        active = np.flatnonzero(self.beta[1:size])
        _mix(self.gradients, active, self.beta[1:size][active] / -self.lam, w)
        return float(self.offsets[:size] @ self.beta[:size] - 0.5 * self.lam * squared_norm(w))

    def mixture(self) -> np.ndarray:
        """a = sum_j beta_j c^j."""
        total = np.zeros(self.rows)
        for j in 1 + np.flatnonzero(self.beta[1 : self.count + 1]):
            total += self.beta[j] * _unpacked(self.slopes[j - 1], self.rows)
        return total

    def _make_room(self) -> None:
        """The cut that has been idle longest goes; where all take part, the two with the least of it become one."""
        j = 1 + int(np.argmax(self.idle[1 : self.count + 1]))
        if self.beta[j] > 0.0:
            j, other = (1 + int(k) for k in np.argsort(self.beta[1 : self.count + 1])[:2])
            self._merge(j, other)
        self._drop(j)

    def _merge(self, j: int, other: int) -> None:
        """Cut ``other`` becomes its mixture with cut j, in the shares that both have: D stays where it is."""
        both, size = self.beta[j] + self.beta[other], self.count + 1
        share = self.beta[j] / both
        move(self.gradients[other - 1], share, self.gradients[j - 1])
        self.offsets[other] += share * (self.offsets[j] - self.offsets[other])
        move(self.gram[other, :size], share, self.gram[j, :size])
        self.gram[:size, other] = self.gram[other, :size]
        self.gram[other, other] += share * (self.gram[j, other] - self.gram[other, other])
        self.beta[j], self.beta[other] = 0.0, both
        slopes = _unpacked(self.slopes[other - 1], self.rows).astype(np.float64)
        move(slopes, share, _unpacked(self.slopes[j - 1], self.rows).astype(np.float64))
        self.slopes[other - 1] = slopes

    def _drop(self, j: int) -> None:
        """The last cut takes the place of the idle cut j."""
        last = self.count
        self.gradients[j - 1] = self.gradients[last - 1]
        for array in (self.offsets, self.beta, self.idle):
            array[j] = array[last]
        self.gram[j, : last + 1] = self.gram[last, : last + 1]
        self.gram[: last + 1, j] = self.gram[: last + 1, last]
        self.gram[j, j] = self.gram[last, last]
        self.slopes[j - 1] = self.slopes[-1]
        self.slopes.pop()

    def _grow(self) -> None:
        """Twice the room; memory is taken when it is written to."""
        old = self.count
        gradients = np.empty((2 * old, self.gradients.shape[1]))
        gradients[:old] = self.gradients
        self.gradients = gradients
        gram = np.zeros((2 * old + 1, 2 * old + 1))
        gram[: old + 1, : old + 1] = self.gram
        self.gram = gram
        self.offsets, self.beta, self.idle = (
            np.append(array, np.zeros(old, dtype=array.dtype)) for array in (self.offsets, self.beta, self.idle)
        )


def _kept(slopes: np.ndarray) -> np.ndarray:
    """Slopes to be kept: as bits where they are 0 or 1."""
    return np.packbits(slopes != 0.0) if _binary(slopes) else slopes.astype(np.float32)


def _unpacked(kept: np.ndarray, n: int) -> np.ndarray:
    """The slopes again."""
    return np.unpackbits(kept, count=n) if kept.dtype == np.uint8 else kept


@compiled
def _binary(slopes):
    others = 0
    for i in range(np.uint64(slopes.size)):
        others += (slopes[i] != 0.0) & (slopes[i] != 1.0)
    return others == 0


@compiled
def _products(lines, x):
    """<line, x> for every line."""
    out = np.empty(lines.shape[0])
    for j in range(np.uint64(out.size)):
        line, total = lines[j], 0.0
        for column in range(np.uint64(x.size)):
            total += line[column] * x[column]
        out[j] = total
    return out


@compiled
def _mix(gradients, active, scales, out):
    """out = sum_j scales_j g_active_j."""
    width = np.uint64(out.size)
    for first in range(np.uint64(0), width, np.uint64(_COLUMNS)):
        last = min(width, first + np.uint64(_COLUMNS))
        for column in range(first, last):
            out[column] = 0.0
        for k in range(np.uint64(active.size)):
            line, scale = gradients[active[k]], scales[k]
            for column in range(first, last):
                out[column] += scale * line[column]


# ----------------------------------------------------------------------------------- one mixture instead of many


@dataclass
class Aggregate:
    """One cut that is a mixture of all so far; each new cut is mixed in by the best share: O(n + d) memory."""

    lam: float
    gradient: np.ndarray
    offset: float
    slopes: np.ndarray

    @classmethod
    def of(cls, problem: LinearProblem) -> Aggregate:
        """The zero cut."""
        return cls(problem.regularisation, np.zeros(problem.n_weights), 0.0, np.zeros(problem.n_rows))

    def add(self, cut: Cut) -> None:
        """D on the line to the new cut is a parabola: go to its top."""
        square, product = products_along(self.gradient, cut.gradient)
        rise, curvature = cut.offset - self.offset - product / self.lam, square / self.lam
        if rise > 0.0:
            eta = min(rise / curvature, 1.0) if curvature > 0.0 else 1.0
            move(self.gradient, eta, cut.gradient)
            move(self.slopes, eta, cut.slopes)
            self.offset += eta * (cut.offset - self.offset)

    def solve(self, w: np.ndarray) -> float:
        """w <- -g / lambda; D."""
        np.divide(self.gradient, -self.lam, out=w)
        return float(self.offset - 0.5 * self.lam * squared_norm(w))

    def mixture(self) -> np.ndarray:
        """a."""
        return self.slopes
