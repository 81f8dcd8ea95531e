"""SpSVM: a machine of its own over kernels of training rows that are picked greedily.

Problem    f(x) = sum over j in J of beta_j K(x, x_j) + b, |J| small,
           min over beta, b of  J(beta, b) = beta'K_JJ beta/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2:
           the squared hinge machine with w in the span of J, the teacher's costs and kind of bias.
Update     J grows by one of ``candidates`` rows, drawn from those outside: with the others held,
               g_j = K_jJ beta - sum_i 2 C_i y_i (1 - m_i)_+ K_ij,   h_j = K_jj + sum over S of 2 C_i K_ij^2,
           S the examples short of the margin m_i = 1; the one with the largest g_j^2/h_j, twice what the parabola
           at the present point falls, comes in with beta_j = -g_j/h_j. Newton steps over all of J (restricted.py)
           only where |J| passes a power of 2^(1/4), and at the end.
State      J, beta, b, f, the |J| rows of the kernel matrix, K_JJ in float64 with its Cholesky factor.
Cost       |candidates| rows of the kernel matrix for every row that comes in; |J|^2 |S| now and then; |J| n memory.
Certificate  C6 (with b C6+C7) of the problem over J at every predictor handed out.

59 candidates hold one of the best twentieth of all rows with probability 0.95. Keerthi, Chapelle, DeCoste. Building
support vector machines with reduced classifier complexity. JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.gram import Gram
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import take
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.restricted import Restricted
from slackwater.sparsify.rsvm import checked_largest
from slackwater.threads import in_parts, thread_count

_GROWTH = 2.0**0.25  # of |J| between two optimisations
_RIDGE = 1e-10  # of the mean diagonal, on that of K_JJ
_LEAST_PIVOT = 0.5  # of the ridge: less comes of kernels that are not positive definite
_NEGLIGIBLE = 1e-12  # of the objective: no candidate promises more


class _Scores(NamedTuple):
    """g_j and h_j of some candidates."""

    g: np.ndarray
    h: np.ndarray

    @property
    def gains(self) -> np.ndarray:
        """Twice the decrease that each promises."""
        return self.g * self.g / self.h


@dataclass(frozen=True)
class SpSVM(Sparsifier):
    """The squared hinge over the kernels of at most ``largest`` rows, each the best of ``candidates`` random ones."""

    name: ClassVar[str] = "spsvm"
    paper: ClassVar[str] = "Keerthi, Chapelle, DeCoste, JMLR 2006"
    retrains: ClassVar[bool] = True

    candidates: int = 59
    largest: int = 1000

    def __post_init__(self) -> None:
        checked_largest(self.largest)
        if self.candidates < 1:
            raise ValueError(f"candidates must be at least 1, got {self.candidates}")

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """The predictor after every optimisation over all of J."""
        growth = Growth(teacher.problem, min(most, self.largest, teacher.problem.n_rows))
        last, growing = 0, True
        while growing:
            growing = growth.add_one(self.candidates, rng)
            if growth.size >= _next_size(last) or (growth.size > last and not growing):
                growth.machine.optimise()
                yield growth.small()
                last = growth.size


def _next_size(size: int) -> float:
    """The next power of 2^(1/4), from 1 on."""
    power = 1.0
    while power <= size:
        power *= _GROWTH
    return power


class Growth:
    """J, the machine over it, and the rows that may still come in."""

    def __init__(self, problem: KernelProblem, most: int) -> None:
        self.problem, self.most = problem, most
        self.machine = Restricted(problem, most, biased=problem.bias == "free")
        self.ids = np.empty(most, dtype=np.int64)  # J
        self.outside = problem.gram.diagonal > 0.0  # rows without length span nothing
        self.ridge = _RIDGE * float(problem.gram.diagonal.mean())

    @property
    def size(self) -> int:
        return self.machine.size

    def add_one(self, count: int, rng: np.random.Generator) -> bool:
        """The best of ``count`` rows drawn from those outside comes in; False where J is complete."""
        while self.size < self.most:
            drawn = self._drawn(count, rng)
            if drawn.size == 0:
                return False
            found = self.scores(drawn)
            best = int(np.argmax(found.gains))
            if not found.gains[best] > _NEGLIGIBLE * self.machine.objective:
                return False
            if self.take(int(drawn[best]), -float(found.g[best] / found.h[best])):
                return True
        return False

    def take(self, j: int, coefficient: float) -> bool:
        """Row j comes in; False where K_JJ would no longer be positive definite."""
        self.outside[j] = False
        self.ids[self.size] = j
        gram = self.problem.gram
        column = _last_line(gram.points, self.ids[: self.size + 1])
        column[-1] += self.ridge
        gram.evaluations += column.size
        function = gram.rows(np.array([j]))[0]
        return self.machine.extend(function, column, coefficient, _LEAST_PIVOT * self.ridge)

    def scores(self, ids: np.ndarray) -> _Scores:
        """g and h of rows outside J."""
        machine, gram = self.machine, self.problem.gram
        shortfalls = machine.shortfalls
        short = np.flatnonzero(shortfalls)
        curves = 2.0 * machine.costs[short]
        pulls = curves * machine.labels[short] * shortfalls[short]
        sums = np.empty((2, ids.size))
        for start in range(0, ids.size, gram.capacity):
            piece = slice(start, start + gram.capacity)
            _sums_over_short(gram, ids[piece], short, pulls, curves, sums[:, piece])
        return _Scores(machine.scores[ids] - sums[0], gram.diagonal[ids] + self.ridge + sums[1])

    def small(self) -> Small:
        """The predictor as it stands."""
        u = self.machine.u
        used = np.flatnonzero(u)
        return Small(u[used].copy(), self.machine.bias, self.ids[used], certificate=self.machine.certificate())

    def _drawn(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Different rows from outside J, all of them where there are no more than ``count``."""
        outside = np.flatnonzero(self.outside)
        return outside if outside.size <= count else rng.choice(outside, count, replace=False)


def _last_line(points: Points, ids: np.ndarray) -> np.ndarray:
    """K between the last of ``ids`` and all of them, from products in float64: K_JJ must stay positive definite."""
    if points.kernel.name in ("precomputed", "callable"):
        return points.square(ids)[-1].astype(np.float64)
    exact = Points.of(take(points.rows, ids), points.kernel, np.float64, points.shift)
    line = exact.values(exact.own_lines(np.array([ids.size - 1])), np.empty((1, ids.size)))[0]
    line[-1] = exact.diagonal[-1]
    return line


def _sums_over_short(gram: Gram, ids, short, pulls, curves, out) -> None:
    """out[0] = sum over S of pulls_i K_ij, out[1] = sum over S of curves_i K_ij^2."""
    kept = gram.keep(ids)
    slots = kept.slots[ids]
    in_parts(
        lambda a, b: _both_sums(kept.values, slots, short, pulls, curves, out, a, b),
        ids.size, thread_count(None), short.size,
    )  # fmt: skip


@compiled
def _both_sums(values, slots, short, pulls, curves, out, first, last):
    for k in range(np.uint64(first), np.uint64(last)):
        line, pull, curve = values[slots[k]], 0.0, 0.0
        for s in range(np.uint64(short.size)):
            x = np.float64(line[np.uint64(short[s])])
            pull += pulls[s] * x
            curve += curves[s] * (x * x)
        out[0, k], out[1, k] = pull, curve
