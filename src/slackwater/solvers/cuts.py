"""Cuts, bundles of them and sweeps over the rows: what the cutting plane methods share.

With the shares p_i = lambda C_i of the examples (they sum to 1) and slopes c_i in [0, cap], 0 or 1 for the hinge,

    mean loss(w) = sum_i p_i l(y_i <w, x_i>)  >=  <g, w> + b    for every w,
    g = -sum_i p_i c_i y_i x_i,      b = sum_i p_i (target c_i - width c_i^2 / 2),

with equality where c_i = -l'(m_i). The lower model is the maximum of the cuts and of 0, the cut c = 0; its minimum with
the regulariser is dual to a small program over mixtures beta of cuts (rule C3), and the mixture's slopes
a = sum_j beta_j c^j, which are C1's alpha_i = C_i a_i, prove at least as much. So the slopes of every cut are kept, one
bit per example for the hinge and a float32 otherwise, and the certificate follows from the rows, not from the cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.losses import slope, value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add, dot
from slackwater.solvers.small_qp import simplex_qp

_IDLE = 50  # rounds without a part in the mixture, after which a cut is dropped
_ROOM = 32
_COLUMNS = 1024  # of the cuts that are mixed at a time: they stay in the cache

# ------------------------------------------------------------------------------------------ sweeps over the rows


def margins_at(problem: LinearProblem, w: np.ndarray, threads: int = 1) -> np.ndarray:
    """m_i = y_i <w, x_i>."""
    out = np.empty(problem.n_rows)
    _in_parts(
        lambda _, first, last: _margins(problem.rows, problem.labels, w, first, last, out), problem.n_rows, threads
    )
    return out


def add_rows(problem: LinearProblem, coefficients: np.ndarray, out: np.ndarray, threads: int = 1) -> None:
    """out += X' coefficients; every thread sums its own rows, and the sums are added in the rows' order."""
    parts = [out, *(np.zeros_like(out) for _ in range(_parts(problem.n_rows, threads) - 1))]
    _in_parts(lambda k, first, last: _sum(problem.rows, coefficients, first, last, parts[k]), problem.n_rows, threads)
    for part in parts[1:]:
        out += part


def _parts(n: int, threads: int) -> int:
    return max(1, min(threads, n))


def _in_parts(work: Callable[[int, int, int], None], n: int, threads: int) -> None:
    """work(k, first, last) over equal parts of n rows, each in a thread of its own."""
    parts = _parts(n, threads)
    bounds = [n * k // parts for k in range(parts + 1)]
    if parts == 1:
        work(0, 0, n)
        return
    with ThreadPoolExecutor(parts, thread_name_prefix="slackwater") as pool:
        for done in [pool.submit(work, k, bounds[k], bounds[k + 1]) for k in range(parts)]:
            done.result()


@compiled
def _margins(rows, labels, w, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = labels[i] * dot(rows, i, w)


@compiled
def _sum(rows, coefficients, first, last, out):
    for i in range(np.uint64(first), np.uint64(last)):
        if coefficients[i] != 0.0:
            add(rows, i, coefficients[i], out)


@compiled
def mean_loss(loss, shares, margins):
    """sum_i p_i l(m_i)."""
    total = 0.0
    for i in range(np.uint64(margins.size)):
        total += shares[i] * value(loss, margins[i])
    return total


@compiled
def slopes_at(loss, margins, out):
    """out_i = -l'(m_i)."""
    for i in range(np.uint64(margins.size)):
        out[i] = slope(loss, margins[i])


# ---------------------------------------------------------------------------------------------------- one cut


class Cut(NamedTuple):
    """<g, w> + b with the slopes that it was made from."""

    gradient: np.ndarray
    offset: float
    slopes: np.ndarray


@dataclass
class CutMaker:
    """Makes cuts from slopes. Where few slopes differ from those of the last cut, g takes in the differences only."""

    shares: np.ndarray
    threads: int
    coefficients: np.ndarray  # -p_i y_i c_i of the last cut
    gradient: np.ndarray
    rows_added: int = 0

    @classmethod
    def of(cls, problem: LinearProblem, threads: int) -> CutMaker:
        """The last cut is c = 0."""
        shares = problem.regularisation * problem.costs
        return cls(shares, threads, np.zeros(problem.n_rows), np.zeros(problem.n_weights))

    def make(self, problem: LinearProblem, slopes: np.ndarray) -> Cut:
        """The cut of these slopes."""
        loss = problem.loss
        coefficients = (slopes * self.shares) * -problem.labels
        change = coefficients - self.coefficients
        changed = int(np.count_nonzero(change))
        # After as many additions as a cut from nothing takes a few times over, rounding has grown as much as it may.
        if changed + self.rows_added > _FEW_SUMS * problem.n_rows or 2 * changed > np.count_nonzero(coefficients):
            self.gradient, change, self.rows_added = np.zeros(problem.n_weights), coefficients, -changed
        self.rows_added += changed
        self.gradient = self.gradient.copy()
        add_rows(problem, change, self.gradient, self.threads)
        self.coefficients = coefficients
        offset = loss.target * (self.shares @ slopes)
        if loss.width:
            offset -= 0.5 * loss.width * (self.shares @ slopes**2)
        return Cut(self.gradient, float(offset), slopes)


_FEW_SUMS = 4

# ------------------------------------------------------------------------------------------------ many of them


@dataclass
class Bundle:
    """Cuts by number from 1 on, the zero cut being number 0, and the best mixture of them.

    Takes one dense vector of d + 1 numbers per cut, which is much where d is a million: 8 MB a cut.
    """

    lam: float
    most: int
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
            problem.regularisation, most, np.empty((_ROOM, problem.n_weights)), np.zeros(_ROOM + 1),
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
        while self.count >= self.most:
            self._drop(1 + int(np.argmax(self.idle[1 : self.count + 1])))
        if self.count == len(self.gradients):
            self._grow()
        new = self.count + 1
        self.gradients[new - 1] = cut.gradient
        products = self.gradients[:new] @ cut.gradient / self.lam
        self.gram[new, 1 : new + 1] = self.gram[1 : new + 1, new] = products
        self.offsets[new], self.beta[new], self.idle[new] = cut.offset, 0.0, 0
        binary = bool(np.all((cut.slopes == 0.0) | (cut.slopes == 1.0)))
        self.slopes.append(np.packbits(cut.slopes > 0.0) if binary else cut.slopes.astype(np.float32))

    def solve(self) -> tuple[np.ndarray, float]:
        """The best mixture: w = -sum_j beta_j g_j / lambda and D. Cuts long without a part in it go."""
        size = self.count + 1
        simplex_qp(self.gram[:size, :size], self.offsets[:size], self.beta[:size])
        self.idle[:size] += 1
        self.idle[:size][self.beta[:size] > 0.0] = 0
        for j in range(self.count, 0, -1):
            if self.idle[j] > _IDLE:
                self._drop(j)
        size = self.count + 1
        w = np.zeros(self.gradients.shape[1])
        active = np.flatnonzero(self.beta[1:size])
        _mix(self.gradients, active, self.beta[1:size][active] / -self.lam, w)
        return w, float(self.offsets[:size] @ self.beta[:size] - 0.5 * self.lam * (w @ w))

    def mixture(self, n: int) -> np.ndarray:
        """a = sum_j beta_j c^j."""
        total = np.zeros(n)
        for j in np.flatnonzero(self.beta[1 : self.count + 1]):
            slopes = self.slopes[j]
            total += self.beta[j + 1] * (np.unpackbits(slopes, count=n) if slopes.dtype == np.uint8 else slopes)
        return total

    def _drop(self, j: int) -> None:
        """The last cut takes the place of cut j; what j had in the mixture goes to the zero cut."""
        last = self.count
        self.beta[0] += self.beta[j]
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


@compiled
def _mix(gradients, active, scales, out):
    """out += sum_j scales_j g_active_j."""
    width = np.uint64(out.size)
    for first in range(np.uint64(0), width, np.uint64(_COLUMNS)):
        last = min(width, first + np.uint64(_COLUMNS))
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
    new: Cut | None = None

    @classmethod
    def of(cls, problem: LinearProblem) -> Aggregate:
        """The zero cut."""
        return cls(problem.regularisation, np.zeros(problem.n_weights), 0.0, np.zeros(problem.n_rows))

    def add(self, cut: Cut) -> None:
        """The cut to be mixed in next."""
        self.new = cut

    def solve(self) -> tuple[np.ndarray, float]:
        """D on the line between the two cuts is a parabola: go to its top."""
        if self.new is not None:
            change = self.new.gradient - self.gradient
            rise = self.new.offset - self.offset - self.gradient @ change / self.lam
            curvature = change @ change / self.lam
            eta = min(rise / curvature, 1.0) if curvature > 0.0 else 1.0
            if rise > 0.0:
                self.gradient = self.gradient + eta * change
                self.offset += eta * (self.new.offset - self.offset)
                self.slopes = self.slopes + eta * (self.new.slopes - self.slopes)
            self.new = None
        w = self.gradient / -self.lam
        return w, float(self.offset - 0.5 * self.lam * (w @ w))

    def mixture(self, n: int) -> np.ndarray:
        """a."""
        return self.slopes
