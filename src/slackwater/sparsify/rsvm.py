"""RSVM: a machine of its own over the kernels of a few random rows.

Problem    f(x) = sum over j in J of u_j K(x, x_j) + b,  J a random subset of ceil(ratio n) training rows,
           min over u, b of  (||u||^2 + b^2)/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2:
           the ridge is on the coefficients, not on ||w||, so that the kernel need not be positive definite. The costs
           are the teacher's; b is one more function, of the value 1, and missing where the teacher's problem has no
           free bias.
Update     Newton steps by Cholesky factors (restricted.py).
State      u, b, f.
Cost       |J| rows of the kernel matrix; |J|^2 n at the first step, then |J|^2 for each example that changes sides.
Certificate  C6 of this problem.

Lee, Mangasarian. RSVM: reduced support vector machines. SIAM Data Mining, 2001; Lin, Lin, IEEE TNN 14(6), 2003.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.gram import Gram
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.restricted import Restricted

#: The shares of the training rows in the published comparison.
RATIOS = tuple(2.0**power for power in range(-16, 1))

_BLOCK = 512  # rows of the kernel matrix at a time


@dataclass(frozen=True)
class RSVM(Sparsifier):
    """The squared hinge over the kernels of ``ratio`` of all rows, drawn at random, but no more than ``largest``."""

    name: ClassVar[str] = "rsvm"
    paper: ClassVar[str] = "Lee, Mangasarian, SIAM Data Mining 2001"
    retrains: ClassVar[bool] = True

    ratio: float = 0.01
    largest: int = 1000

    def __post_init__(self) -> None:
        checked_largest(self.largest)
        if not 0.0 < self.ratio <= 1.0:
            raise ValueError(f"ratio must lie in (0, 1], got {self.ratio!r}")

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor; a larger ratio with the same seed keeps the rows of a smaller one."""
        problem = teacher.problem
        biased = problem.bias == "free"
        wanted = rng.permutation(problem.n_rows)[: min(self._size(problem.n_rows), most)]
        if wanted.size == 0:
            return
        machine = Restricted(problem, wanted.size + biased, biased=False)
        for block in _blocks(problem.gram, wanted):
            machine.add(block, np.ones(len(block)))
        if biased:
            machine.add(np.ones((1, problem.n_rows)), np.ones(1))
        machine.optimise()
        u = machine.u[: wanted.size]
        used = np.flatnonzero(u)
        bias = float(machine.u[-1]) if biased else 0.0
        yield Small(u[used].copy(), bias, ids=wanted[used], certificate=machine.certificate())

    def grid(self, teacher: Teacher) -> list[RSVM]:
        """The published ratios; of those that mean equally many rows the last."""
        settings = [self.with_settings(ratio=ratio) for ratio in RATIOS]
        return list({setting._size(teacher.problem.n_rows): setting for setting in settings}.values())

    def _size(self, n: int) -> int:
        return min(math.ceil(self.ratio * n), self.largest)


def checked_largest(largest: int) -> None:
    """Raise where the most vectors that a method takes are none."""
    if largest < 1:
        raise ValueError(f"largest must be at least 1, got {largest}")


def _blocks(gram: Gram, ids: np.ndarray) -> Iterator[np.ndarray]:
    """The rows ``ids`` of the kernel matrix, as many at a time as there is room for."""
    size = min(_BLOCK, gram.capacity)
    for start in range(0, ids.size, size):
        yield gram.rows(ids[start : start + size])
