"""Zhan-Shen: train again without the examples at which the decision surface bends most, then imitate.

Steps      1. every support vector goes to the surface f = 0:  x <- x - f grad f / ||grad f||^2;
           2. the curvature there, ||(I - nn') Hess f (I - nn')||_F / ||grad f||, n the unit gradient (curvature.py);
           3. the ``percent`` % of the support vectors with the largest leave the training set;
           4. the machine is trained anew on what is left: the same kernel, loss, costs and kind of bias;
           5. Osuna-Girosi on its values (osuna_girosi.py).
State      none between predictors but the regression's.
Cost       |SV|^2 min(|SV|, d^2/2) for the curvatures, in blocks; a training run; the regressions.
Certificate  C1 of each regression, on the reduced training set.

Support vectors are told by their values, as the rows that the loss does not leave alone: the teacher's own need not be
training rows. The measure of curvature is a choice of this implementation.

Zhan, Shen. Design efficient support vector machine for fast classification. Pattern Recognition 38, 2005.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from slackwater.gram import Gram
from slackwater.gram.memory import cache_bytes
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import take
from slackwater.solvers.kernel.blocked_smo import BlockedSMO
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.curvature import DIFFERENTIABLE, Surface, bends_near
from slackwater.sparsify.osuna_girosi import Target, checked_tube, imitations, trained, tubes
from slackwater.training import Limits

#: Percent of the support vectors that leave, as compared.
PERCENTS = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0)

_TOUCHED = 1e-2  # beyond the target: margins of free support vectors are exact only up to the teacher's gap


@dataclass(frozen=True)
class ZhanShen(Sparsifier):
    """Retraining without the ``percent`` % most bent places, then regression as ``osuna-girosi``.

    ``epsilon`` None walks the published tubes; ``tol`` is the certified relative gap of every run.
    """

    name: ClassVar[str] = "zhan-shen"
    paper: ClassVar[str] = "Zhan, Shen, Pattern Recognition 2005"
    kernels: ClassVar[tuple[str, ...]] = DIFFERENTIABLE
    retrains: ClassVar[bool] = True

    _shared: ClassVar[_Bends | None] = None  # between the settings of a grid

    percent: float = 30.0
    epsilon: float | None = None
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if not 0.0 <= self.percent < 100.0:
            raise ValueError(f"percent must lie in [0, 100), got {self.percent!r}")
        checked_tube(self.epsilon)
        Limits(tol=self.tol)

    def sequence(self, teacher: Teacher, most: int, rng: np.random.Generator) -> Iterator[Small]:
        """One predictor for every tube, the widest first, until they need too many vectors."""
        kept = self.kept(teacher)
        problem = _restricted_to(teacher.problem, kept)
        model = trained(problem, BlockedSMO(), self.tol, rng).model
        coefficients = np.zeros(kept.size)
        coefficients[model.support] = model.coef[0]
        target = Target(problem.gram, problem.scores(coefficients), problem.costs, float(model.intercept[0]))
        for small in imitations(target, tubes(self.epsilon), self.tol, most, rng):
            yield small._replace(ids=kept[small.ids])

    def grid(self, teacher: Teacher) -> list[ZhanShen]:
        """The published shares; the curvatures are found once for all of them."""
        settings, shared = [self.with_settings(percent=percent) for percent in PERCENTS], _Bends(teacher)
        for setting in settings:
            object.__setattr__(setting, "_shared", shared)
        return settings

    def kept(self, teacher: Teacher) -> np.ndarray:
        """The rows that stay in the training set; both classes do, and ties leave in the order of the rows."""
        problem, shared = teacher.problem, self._shared
        most_bent_first = (shared if shared and shared.teacher is teacher else _Bends(teacher)).order
        stays = np.ones(problem.n_rows, dtype=bool)
        stays[most_bent_first[: int(self.percent / 100.0 * most_bent_first.size)]] = False
        for label in (-1.0, 1.0):
            if not stays[problem.labels == label].any():
                stays[problem.labels == label] = True
        return np.flatnonzero(stays)


@dataclass(frozen=True, eq=False)
class _Bends:
    """A teacher's support vectors by the curvature of the surface near them."""

    teacher: Teacher

    @cached_property
    def order(self) -> np.ndarray:
        """The most bent first."""
        problem = self.teacher.problem
        ids = np.flatnonzero(problem.labels * self.teacher.values <= problem.loss.target + _TOUCHED)
        return ids[np.argsort(-curvatures(self.teacher, ids), kind="stable")]


def curvatures(teacher: Teacher, ids: np.ndarray) -> np.ndarray:
    """That of the teacher's surface near some training rows."""
    points = teacher.gram.points  # around their centre
    return bends_near(Surface.of(teacher.model, points.centre, points.dtype), points.rows, ids)


def _restricted_to(problem: KernelProblem, ids: np.ndarray) -> KernelProblem:
    """The problem on some of its rows, with a kernel matrix of its own."""
    old = problem.gram
    points = Points.of(take(old.points.rows, ids), old.points.kernel, old.points.dtype, old.points.shift)
    gram = Gram(points, min(old.kept.values.nbytes, cache_bytes("auto")))
    return replace(problem, gram=gram, labels=problem.labels[ids], costs=problem.costs[ids], known={})
