"""Step sizes of stochastic descents, and the search for their first one on a sample (Bottou's svmsgd, version 2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.problem import LinearProblem
from slackwater.rows import sqnorms, take

_SAMPLE = 1000
_FURTHEST = 60  # doublings or halvings
_BELOW = 0.5  # of 1 / lambda
_NOTICED = 1e-4  # part of the cost


class Steps(NamedTuple):
    """1 / eta_t = (offset + rate t)^(quarters / 4) / size; its reciprocal stays finite where eta_0 is not."""

    offset: float
    rate: float
    quarters: int
    size: float


@compiled
def inverse_step(steps, t):
    """1 / eta_t."""
    x = steps.offset + steps.rate * t
    if steps.quarters == 3:
        root = math.sqrt(x)
        x = root * math.sqrt(root)
    elif steps.quarters == 2:
        x = math.sqrt(x)
    return x / steps.size


def reciprocal(lam: float, t0: float = 0.0) -> Steps:
    """eta_t = 1 / (lambda (t0 + t)); with t0 = 1 / (lambda eta0) this is eta0 / (1 + lambda eta0 t)."""
    return Steps(lam * t0, lam, 4, 1.0)


def slower(lam: float, eta0: float) -> Steps:
    """eta_t = eta0 / (1 + lambda eta0 t)^(3/4): what averages of the iterates want."""
    return Steps(1.0, lam * eta0, 3, eta0)


def root(eta0: float) -> Steps:
    """eta_t = eta0 / sqrt(t + 1)."""
    return Steps(1.0, 1.0, 2, eta0)


def constant(eta: float) -> Steps:
    """eta_t = eta."""
    return Steps(1.0, 0.0, 4, eta)


def sample_of(problem: LinearProblem, rng: np.random.Generator, size: int = _SAMPLE) -> LinearProblem:
    """Some of the examples, with the lambda of all."""
    ids = rng.permutation(problem.n_rows)[:size]
    costs = problem.costs[ids]
    costs = costs * (1.0 / (problem.regularisation * costs.sum()))
    return replace(problem, rows=take(problem.rows, ids), labels=problem.labels[ids], costs=costs)


def best_first_step(problem: LinearProblem, cost: Callable[[float], float]) -> float:
    """From 1 / (mean ||x||^2) on, doubled or halved while ``cost`` falls; below 1 / lambda where w is shrunk by it.

    Of the last two the smaller is taken: a step too large costs more than one too small.
    """
    norms = np.empty(problem.n_rows)
    sqnorms(problem.rows, norms)
    once = _BELOW / problem.regularisation
    most = once if problem.penalty.square else math.inf
    low = min(most, 1.0 / norms.mean()) if norms.any() else once
    here, above = cost(low), cost(2.0 * low) if 2.0 * low <= most else math.inf
    if _falls(here, above):
        for _ in range(_FURTHEST):
            low, here = 2.0 * low, above
            above = cost(2.0 * low) if 2.0 * low <= most else math.inf
            if not _falls(here, above):
                break
        return low
    for _ in range(_FURTHEST):
        if not _falls(above, here):
            break
        low, above = 0.5 * low, here
        here = cost(low)
    return low


def _falls(before: float, after: float) -> bool:
    """Enough to go on: where no step helps, ever smaller ones would do ever less harm."""
    return after < before and not after > (1.0 - _NOTICED) * before
