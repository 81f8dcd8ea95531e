"""CSVM: condensed vector machines, trained on a working set whose close members are merged.

Problem    the teacher's, on a working set of at most ``most`` weighted points in the place of the training rows:
           max  target sum alpha - beta'K beta/2 - sum d beta^2/2,  0 <= alpha_j <= cap C_j (and y'alpha = 0).
Update     first stage: of a random sample the row that is shortest of its margin joins the working set, until none is
           short of it or the set is full. Second stage: the rows are gone through in random order, those short of their
           margin join. After each step the optimum over the working set (K5); members without a coefficient leave when
           room is needed. Two of one class that are each other's nearest and closer than ``threshold`` are merged, and
           however far they are apart where the set is full (condensed.py); classes are balanced after it (C7).
State      the working set and its kernel matrix.
Cost       |W| kernel values for each row that is looked at, |W|^2 for an optimum.
Certificate  none of the full problem: points and caps are others.
Bias       a free bias is put at its optimum on the training rows at the end.

Threshold 0 never merges: that is the plain incremental SVM, which stops where the working set is full.

Nguyen, Matsumoto, Takishima, Hashimoto. Condensed vector machines: learning fast machine for large data. IEEE
Transactions on Neural Networks 21(12), 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.objective.kernel_problem import KernelProblem
from slackwater.sparsify.condensed import WorkingSet
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.ending import check_least, ladder, of_vectors
from slackwater.sparsify.preimages import as_given

_MOST_NUMBERS = 2**28  # that the working set's points may take, dense


@dataclass(frozen=True)
class CSVM(Sparsifier):
    """``threshold`` is a squared distance between images; ``scans`` passes take ``ahead`` rows at a time.

    Rows whose margin is short by more than ``tolerance`` join, and optima are as exact. No predictor has more than
    ``largest`` vectors, however many are asked for.
    """

    name: ClassVar[str] = "csvm"
    paper: ClassVar[str] = "Nguyen, Matsumoto, Takishima, Hashimoto, IEEE TNN 2010"
    virtual: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = ("rbf", "polynomial", "linear", "laplacian", "chi2")
    retrains: ClassVar[bool] = True

    threshold: float = 0.1
    sample: int = 59
    scans: int = 1
    ahead: int = 32
    tolerance: float = 1e-2
    largest: int = 512

    def __post_init__(self) -> None:
        check_least(self, threshold=0, sample=1, scans=0, ahead=1, tolerance=0, largest=1)

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor for each budget that is a power of two, and for ``most``: every one is trained from nothing."""
        problem, most = teacher.problem, min(most, self.largest, teacher.problem.n_rows)
        if (most + self.ahead) * problem.rows.n_columns > _MOST_NUMBERS:
            raise ValueError(
                f"csvm merges rows into dense points: {most} of {problem.rows.n_columns} columns are too many"
            )
        for budget in ladder(most):
            work = WorkingSet.of(problem, budget + self.ahead + 1)
            self._gather(work, budget, rng)
            for _ in range(self.scans):
                if not self._scan(work, budget, rng):
                    break
            if work.beta[: work.size].any():
                yield _small(teacher, work)

    def _gather(self, work: WorkingSet, budget: int, rng: np.random.Generator) -> None:
        """The first stage."""
        problem = work.problem
        for label in np.unique(problem.labels)[:budget]:
            work.add(rng.choice(np.flatnonzero(problem.labels == label), 1))
        work.optimise(self.tolerance)
        while work.size < budget:
            ids = rng.choice(problem.n_rows, min(problem.n_rows, self.sample), replace=False)
            short = _shortfall(work, ids)
            if short.max() <= self.tolerance or not self._join(work, ids[[np.argmax(short)]], budget):
                return

    def _scan(self, work: WorkingSet, budget: int, rng: np.random.Generator) -> bool:
        """The second stage: whether any row joined, and there may be more."""
        order, joined = rng.permutation(work.problem.n_rows), False
        for start in range(0, order.size, self.ahead):
            ids = order[start : start + self.ahead]
            short = ids[_shortfall(work, ids) > self.tolerance]
            if short.size:
                if not self._join(work, short, budget):
                    return False
                joined = True
        return joined

    def _join(self, work: WorkingSet, ids: np.ndarray, budget: int) -> bool:
        """Rows come in, others make room, and the optimum is found anew; False where there is no room."""
        if work.size + ids.size > budget:
            work.drop_idle()
        if self.threshold == 0.0:
            ids = ids[: budget - work.size]
        work.add(ids)
        distance, i, j = work.nearest()
        while distance < self.threshold or (work.size > budget and distance < np.inf):
            work.merge(i, j)
            distance, i, j = work.nearest()
        while work.size > budget:  # of one vector each, of two classes
            work.remove(work.size - 1)
        work.optimise(self.tolerance)
        return ids.size > 0


def _shortfall(work: WorkingSet, ids: np.ndarray) -> np.ndarray:
    """target - y f of some rows, nothing for those that are in the working set already."""
    problem: KernelProblem = work.problem
    return np.where(work.inside[ids], -np.inf, problem.loss.target - problem.labels[ids] * work.scores(ids))


def _small(teacher: Teacher, work: WorkingSet) -> Small:
    """As a predictor, of the members that have a coefficient."""
    used = np.flatnonzero(work.beta[: work.size])
    vectors = as_given(work.vectors[used] + teacher.gram.points.centre, work.problem.rows, None)
    return of_vectors(teacher, vectors, work.beta[used])
