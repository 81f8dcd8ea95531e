"""A regularisation path: the same data for many costs C, each point certified and begun where the one before ended."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slackwater.estimators.linear_svc import Examples, LinearSVC
from slackwater.estimators.side_by_side import Shares, Task, side_by_side
from slackwater.models import LinearModel
from slackwater.objective import Certificate, LinearProblem
from slackwater.solvers.contract import Solver
from slackwater.training import ADVICE, Limits, Run, Status, run

#: The range of costs that a number of them is spread over, evenly in their logarithm.
SMALLEST_C, LARGEST_C = 1e-3, 10.0


@dataclass(frozen=True, eq=False)
class RegularisationPath:
    """The points of a path, from small to large C; lists of lists have one line per point, one entry per output.

    Two classes have one output, more have one per class. ``seconds`` are those of the point's training, summed over
    the outputs; ``epochs`` likewise.
    """

    Cs: np.ndarray
    coefs: np.ndarray  # (points, outputs, columns)
    intercepts: np.ndarray  # (points, outputs)
    classes: np.ndarray
    certificates: list[list[Certificate]]
    statuses: list[list[Status]]
    epochs: np.ndarray  # (points,)
    seconds: np.ndarray  # (points,)
    solver: str

    def __len__(self) -> int:
        return len(self.Cs)

    def model(self, k: int) -> LinearModel:
        """The predictor at ``Cs[k]``, which can be saved."""
        facts = {"solver": self.solver, "C": float(self.Cs[k])}
        return LinearModel(self.coefs[k], self.intercepts[k], self.classes, facts)

    def worst(self, k: int) -> Certificate:
        """The certificate with the largest relative gap of all outputs at ``Cs[k]``."""
        return max(self.certificates[k], key=lambda certificate: certificate.relative_gap)

    def __str__(self) -> str:
        lines = [
            f"C {C:<9.4g} gap {self.worst(k).relative_gap:<9.2g} {epochs:6} epochs  {seconds:.3g} s"
            for k, (C, epochs, seconds) in enumerate(zip(self.Cs, self.epochs, self.seconds, strict=True))
        ]
        return "\n".join(lines)


def path(
    X,
    y,
    Cs=10,
    *,
    sample_weight=None,
    loss="hinge",
    solver="auto",
    solver_options=None,
    tol=1e-3,
    max_time=None,
    max_rounds=None,
    fit_intercept=True,
    intercept_scaling=1.0,
    class_weight=None,
    n_jobs=None,
    random_state=None,
) -> RegularisationPath:
    """Train ``LinearSVC`` for every C of ``Cs``, from small to large, each certified to the gap ``tol``.

    Every point begins at the dual solution of the one before, every dual variable at the same share of its cost, and
    the rows are converted once: to the same gaps as single fits, in a fraction of their epochs.

    Parameters
    ----------
    Cs : costs, or how many to spread between 0.001 and 10. The answer has them sorted, each once.
    max_time : seconds for the whole path. max_rounds : rounds for each point and class.
    n_jobs : threads for the classes, where there are more than two.

    The others are those of ``LinearSVC``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from slackwater import path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> points = path(X / X.max(axis=0), y, [0.01, 0.1, 1.0], random_state=0)
    >>> len(points), points.coefs.shape
    (3, (3, 1, 30))
    """
    svm = LinearSVC(
        loss=loss, solver=solver, solver_options=solver_options, tol=tol, max_time=max_time, max_rounds=max_rounds,
        fit_intercept=fit_intercept, intercept_scaling=intercept_scaling, class_weight=class_weight, n_jobs=n_jobs,
        random_state=random_state,
    )  # fmt: skip
    Cs = checked_costs(Cs)
    (answer,) = paths(svm, checked_examples(svm, X, y, sample_weight), Cs)
    warn_of_limits("path", [answer])
    return answer


def checked_costs(Cs: Any) -> np.ndarray:
    """The costs in rising order, each once."""
    if isinstance(Cs, bool | np.bool_) or (isinstance(Cs, int | np.integer) and Cs < 1):
        raise ValueError(f"Cs must be costs or how many to try, at least 1; got {Cs!r}")
    if isinstance(Cs, int | np.integer):
        return np.geomspace(SMALLEST_C, LARGEST_C, int(Cs))
    try:
        costs = np.unique(np.asarray(Cs, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"Cs must be costs or how many to try; got {Cs!r}") from None
    if np.ndim(Cs) != 1:
        raise ValueError(f"Cs must be one row of costs or how many to try; got {Cs!r}")
    if costs.size == 0:
        raise ValueError("Cs is empty: a path needs at least one cost")
    wrong = costs[~((costs > 0.0) & np.isfinite(costs))]
    if wrong.size:
        raise ValueError(f"every C of Cs must be positive and finite, got {wrong[0]:g}")
    return costs


def checked_examples(svm: LinearSVC, X, y, sample_weight) -> Examples:
    """The rows of a fit, converted once; the parameters are looked at first."""
    svm._check_parameters()
    return svm._examples(X, y, sample_weight)


def paths(
    svm: LinearSVC, examples: Examples, Cs: np.ndarray, trains: Sequence[np.ndarray | None] = (None,)
) -> list[RegularisationPath]:
    """One path for every set of training rows, None for all; those of all sets and classes side by side.

    ``svm`` says everything but the cost, which is to be 1.
    """
    limits, solver, positives = svm._limits(), svm._solver(examples), examples.positives
    parts = [(train, positive) for train in trains for positive in positives]
    seeds = np.random.SeedSequence(check_random_state(svm.random_state).randint(2**31)).spawn(len(parts))

    def task(number: int) -> Task[_Followed]:
        train, positive = parts[number]

        def follow(limits: Limits, stop: threading.Event) -> _Followed:
            problem = svm._problem(examples._replace(kept=train), positive)
            return _follow(problem, Cs, solver, limits, np.random.default_rng(seeds[number]), stop)

        return follow

    tasks = [task(number) for number in range(len(parts))]
    followed = side_by_side(tasks, limits, effective_n_jobs(svm.n_jobs))
    size = len(positives)
    groups = [followed[first : first + size] for first in range(0, len(followed), size)]
    return [_together(Cs, group, examples.labels.classes, svm.solver_) for group in groups]


class _Followed(NamedTuple):
    """The points of one binary problem."""

    runs: list[Run]
    seconds: list[float]


def _follow(
    unit: LinearProblem, Cs: np.ndarray, solver: Solver, limits: Limits, rng: np.random.Generator, stop: threading.Event
) -> _Followed:
    """The points of one binary problem, given with the costs of C = 1. After ``stop`` each ends with its first round.

    A bounded alpha_i moves with its bound, and few are not bounded: the shares alpha_i / C_i of one point serve the
    next far better than the alpha_i do.
    """
    answer, shares = _Followed([], []), None
    turns = Shares(limits, len(Cs), 1)
    for C in Cs:
        begin = time.perf_counter()
        problem = replace(unit, costs=C * unit.costs)
        alpha = None if shares is None else shares * problem.costs
        point = run(problem, solver, turns.next(), rng=rng, alpha=alpha, stop=stop)
        shares = point.alpha / problem.costs if point.alpha is not None else shares
        answer.runs.append(point)
        answer.seconds.append(time.perf_counter() - begin)
    return answer


def _together(Cs: np.ndarray, outputs: list[_Followed], classes: np.ndarray, solver: str) -> RegularisationPath:
    points = list(zip(*(output.runs for output in outputs), strict=True))
    return RegularisationPath(
        Cs=Cs,
        coefs=np.stack([np.vstack([r.model.coef for r in point]) for point in points]),
        intercepts=np.stack([np.concatenate([r.model.intercept for r in point]) for point in points]),
        classes=classes,
        certificates=[[r.certificate for r in point] for point in points],
        statuses=[[r.status for r in point] for point in points],
        epochs=np.array([sum(r.epochs for r in point) for point in points]),
        seconds=np.sum([output.seconds for output in outputs], axis=0),
        solver=solver,
    )


def warn_of_limits(name: str, answers: Sequence[RegularisationPath]) -> None:
    """One warning for all points that ended before their gap."""
    fits = [(C, s) for answer in answers for C, point in zip(answer.Cs, answer.statuses, strict=True) for s in point]
    met = [(C, status) for C, status in fits if status.limited]
    if met:
        C, status = max(met, key=lambda line: line[0])
        ended = f"{len(met)} of {len(fits)} fits ended early, the last with C={C:g}: {status}"
        warnings.warn(f"{name}: {ended}; {ADVICE[status.code]}", ConvergenceWarning, stacklevel=3)
