"""Averaged SGD: longer stochastic gradient steps, and the mean of the iterates as the answer.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i l(y_i <w, x_i>),  u_i = n C_i / sum C.
Update     presented with example i of slope a_i = -l'(m_i) at w, t = 1, 2, ..:
           eta_t = eta0 / (1 + lambda eta0 t)^(3/4),   w <- (1 - eta_t lambda) w + eta_t u_i a_i y_i x_i,
           wbar <- wbar + mu_t (w - wbar),  mu_t = 1 up to the end of epoch ``start_epoch``, in the k-th step after it
             uniform   mu_t = 1 / k,
             weighted  mu_t = 2 / (k + 1), which forgets the first iterates;
             suffix    uniform from t = 0 on; the answer is the mean over the window of epochs that proves most, known
                       from the difference of two sums t wbar.
           eta0 is searched as in ``svm_sgd``, and is at most 1 / lambda.
Lazily     w = s v, wbar = g (r + F v).  v moves by d x_i, r by -F d x_i, and then, whatever the size of w,
           g <- (1 - mu) g,  F <- F + mu s / g.  While mu = 1: r = 0, g = s, F = 1. (Xu keeps 1/s and 1/g.)
Free bias  as in ``svm_sgd``. It is not averaged: its best value for wbar is found beside the certificate.
State      v, r, s, g, F, t, the slopes of every example summed, and S, the sum of all u_i a_i y_i x_i.
Cost       one inner product a visit, three additions per nonzero slope; a round is one epoch.
Certificate  C2 over the best window of epochs (with C7 for a free bias), P at the mean.

Polyak, Juditsky. Acceleration of stochastic approximation by averaging. SIAM J. Control and Optimization 30(4), 1992.
Xu. Towards optimal one pass large scale learning with averaged stochastic gradient descent. arXiv 1107.2490, 2010.
Bottou. Large-scale machine learning with stochastic gradient descent. COMPSTAT 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.models.linear import LinearModel
from slackwater.objective.problem import LinearProblem
from slackwater.rows import add
from slackwater.solvers.linear.descent import DescentState, Moving, learn, learn_nothing, move, rescale, score, step
from slackwater.solvers.linear.svm_sgd import (
    SVMSGD,
    FreeGradient,
    Gradient,
    gradient,
)
from slackwater.solvers.steps import slower

_AVERAGES = ("suffix", "uniform", "weighted")
_S, _T, _BIAS, _G, _F, _F_BEFORE = range(6)  # places in ``now``


class Averaged(NamedTuple):
    """A method beside whose steps the mean of the iterates is kept; ``now`` ends with g, F and F before the step."""

    method: Gradient | FreeGradient
    start: float  # in steps
    forgetting: float  # mu_t = (1 + forgetting) / (k + forgetting)


@score.register(Averaged)
def _score(method, rows, i, v, now, coming):
    return score(method.method, rows, i, v, now, coming)


@step.register(Averaged)
def _step(method, seen, now):
    change = step(method.method, seen, now)
    k = now[_T] - method.start
    if k <= 1.0:
        now[_G], now[_F], now[_F_BEFORE] = now[_S], 1.0, 0.0
    else:
        mu = (1.0 + method.forgetting) / (k + method.forgetting)
        now[_G] *= 1.0 - mu
        now[_F_BEFORE] = now[_F]
        now[_F] += mu * now[_S] / now[_G]
    return change


learn.register(Averaged)(learn_nothing)


@move.register(Averaged)
def _move(method, rows, i, amount, v, aside, now):
    add(rows, i, amount, v)
    if now[_F_BEFORE] != 0.0:
        add(rows, i, -now[_F_BEFORE] * amount, aside)


@rescale.register(Averaged)
def _rescale(method, v, aside, now):
    s, g, F = now[_S], now[_G], now[_F]
    begun = now[_T] - method.start > 1.0
    for j in range(np.uint64(v.size)):
        aside[j] = g * (aside[j] + F * v[j]) if begun else 0.0
        v[j] *= s
    now[_S], now[_G] = 1.0, 1.0
    now[_F] = 0.0 if begun else 1.0


@dataclass(frozen=True)
class ASGD(SVMSGD):
    """Averaged stochastic gradient descent; ``averaging`` is suffix, uniform or weighted.

    The last two begin after the epoch ``start_epoch``. ``average=False`` returns the last iterate.
    """

    name: ClassVar[str] = "asgd"
    paper: ClassVar[str] = "Polyak, Juditsky 1992; Xu 2010; Bottou, COMPSTAT 2010"

    averaging: str = "suffix"
    start_epoch: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.averaging not in _AVERAGES:
            raise ValueError(f"averaging must be one of {', '.join(_AVERAGES)}, got {self.averaging!r}")
        if not 0.0 <= self.start_epoch < np.inf:
            raise ValueError(f"start_epoch must be at least 0 and finite, got {self.start_epoch}")

    def begin(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[Averaged, Moving]:
        """w = 0 and the first step size that does best on a sample."""
        lam, (eta0, own) = problem.regularisation, self.first_steps(problem, rng)
        inside = gradient(problem, slower(lam, min(eta0, 1.0 / lam)), own)
        start = 0.0 if self.averaging == "suffix" else float(round(self.start_epoch * problem.n_rows))
        now = np.zeros(6)
        now[[_S, _G, _F]] = 1.0
        moving = Moving(np.zeros(problem.n_weights), np.zeros(problem.n_weights), now)
        return Averaged(inside, start, float(self.averaging == "weighted")), moving

    def place(self, problem: LinearProblem, state: DescentState, w: np.ndarray, epochs: float) -> None:
        """w, as if it and the mean had been there for so long."""
        state.moving.v[:] = w
        state.moving.now[_T] = epochs * problem.n_rows
        if problem.bias == "free":
            state.moving.v[-1], state.moving.now[_BIAS] = 0.0, w[-1]

    def keeps_total(self) -> bool:
        """Steps of this kind do not add up to it."""
        return True

    def pulls(self, state: DescentState) -> np.ndarray:
        """S."""
        return state.total

    def follow(self, state: DescentState, epochs: int) -> None:
        """n times the sum of all iterates; but that of a free bias at the ends of the epochs."""
        bias = state.path[-1] + epochs * state.moving.now[_BIAS]
        state.path[:] = state.epochs * averaged(state.moving)
        if isinstance(state.method.method, FreeGradient):
            state.path[-1] = bias

    def model(self, problem: LinearProblem, state: DescentState) -> LinearModel:
        """The mean."""
        if self.averaging == "suffix" or not self.average:
            return super().model(problem, state)
        mean = averaged(state.moving)
        mean[-1] += state.moving.now[_BIAS]
        return LinearModel.from_weights(mean, problem.rows.bias)


def averaged(moving: Moving) -> np.ndarray:
    """wbar, without a free bias."""
    v, r, now = moving
    return now[_G] * (r + now[_F] * v)
