"""SVM-SGD: plain stochastic gradient steps whose first size is searched on a sample.

Problem    min over w of  P(w) = lambda/2 ||w||^2 + (1/n) sum_i u_i l(y_i <w, x_i>),  u_i = n C_i / sum C.
Update     presented with example i of slope a_i = -l'(m_i) at w, t = 1, 2, ..:
           eta_t = eta0 / (1 + lambda eta0 t) = 1 / (lambda (t0 + t)),  t0 = 1 / (lambda eta0),
           w <- (1 - eta_t lambda) w + eta_t u_i a_i y_i x_i.
First step one pass with a constant eta over at most 1000 examples; eta is doubled or halved while P there falls, and
           the smaller of the last two is eta0 (version 2 of the program).
Free bias  not shrunk, and moved by a part of eta_t, ``bias_step``: every example pulls at it, at other weights only
           few. That is 0.01 by default, more where lambda is large: eta_t falls like 1/(lambda t), and the smaller
           bias_step / lambda is, the longer the bias needs to get where it belongs.
State      w = scale v, t, the slopes of every example summed.
Cost       one inner product a visit, one addition per nonzero slope; a round is one epoch.
Certificate  C2 over the best window of epochs (with C7 for a free bias). lambda (t0 + t) w grows by u_i a_i y_i x_i
           alone, so that the sum behind the bound is known without being kept.

As eta0 grows this becomes Pegasos without its projection.

Bottou. Stochastic gradient descent examples on toy problems (svmsgd), 2007. The idea: Zhang. Solving large scale linear
prediction problems using stochastic gradient descent algorithms. ICML 2004.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.certificate import primal_value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import CSRRows, DenseRows, dot_ahead
from slackwater.solvers.contract import Pass
from slackwater.solvers.linear.descent import (
    Change,
    DescentState,
    Moving,
    StochasticDescent,
    add_row,
    example_table,
    learn,
    learn_nothing,
    move,
    present,
    rescale,
    rescale_weights,
    scaled_step,
    score,
    step,
)
from slackwater.solvers.steps import Steps, best_first_step, constant, inverse_step, reciprocal, sample_of
from slackwater.solvers.visits import new_visits

_BIAS_STEP = 0.01
_LEAST_PULL = 30.0  # bias_step B^2 / lambda, for the constant feature B


@compiled(inline=True)
def shrink(now, keep):
    """w <- keep w. A first step of 1 / lambda would erase w, but there is no w yet."""
    if keep > 0.0:
        now[0] *= keep


class Gradient(NamedTuple):
    """Steps along the stochastic subgradient; ``now`` holds the scale and t."""

    steps: Steps
    lam: float


@scaled_step(Gradient)
def _step(method, seen, now):
    now[1] += 1.0
    eta = 1.0 / inverse_step(method.steps, now[1])
    keep = 1.0 - eta * method.lam
    shrink(now, keep)
    return Change(eta * seen.pull / now[0], keep * seen.score + eta * seen.pull * seen.q)


class FreeGradient(NamedTuple):
    """The same beside a free bias: rows come without their constant feature, now[2] is its weight."""

    steps: Steps
    lam: float
    constant: float
    bias_step: float


@score.register(FreeGradient)
def _score(method, rows, i, v, now, coming):
    return now[0] * dot_ahead(rows, i, v, coming) + now[2] * method.constant


@step.register(FreeGradient)
def _free_step(method, seen, now):
    now[1] += 1.0
    eta = 1.0 / inverse_step(method.steps, now[1])
    keep, before = 1.0 - eta * method.lam, now[2] * method.constant
    shrink(now, keep)
    now[2] += method.bias_step * eta * seen.pull * method.constant
    q, after = seen.q - method.constant**2, now[2] * method.constant
    return Change(eta * seen.pull / now[0], keep * (seen.score - before) + eta * seen.pull * q + after)


learn.register(FreeGradient)(learn_nothing)
move.register(FreeGradient)(add_row)
rescale.register(FreeGradient)(rescale_weights)


@dataclass(frozen=True)
class SVMSGD(StochasticDescent):
    """Bottou's stochastic gradient descent; ``eta0=None`` searches the first step size."""

    name: ClassVar[str] = "svm-sgd"
    paper: ClassVar[str] = "Bottou, svmsgd 2007; Zhang, ICML 2004"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    streams: ClassVar[bool] = True

    eta0: float | None = None
    bias_step: float | None = None

    def __post_init__(self) -> None:
        check_first_step(self.eta0)
        if self.bias_step is not None and not 0.0 < self.bias_step < np.inf:
            raise ValueError(f"bias_step must be positive and finite or None, got {self.bias_step}")

    def begin(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[Any, Moving]:
        """w = 0 and the first step size that does best on a sample."""
        lam, (eta0, own) = problem.regularisation, self.first_steps(problem, rng)
        return gradient(problem, reciprocal(lam, 1.0 / (lam * eta0)), own), zeros(problem)

    def first_steps(self, problem: LinearProblem, rng: np.random.Generator) -> tuple[float, float | None]:
        """eta0, and the part of the steps that moves a free bias."""
        own = (self.bias_step or slow_bias(problem)) if problem.bias == "free" else None
        return (self.eta0 if self.eta0 is not None else searched_first_step(problem, rng, own)), own

    def present_once(self, problem: LinearProblem, rng: np.random.Generator, w: np.ndarray, clock: int) -> Pass:
        """The clock says how large the steps are: no first one is searched."""
        known = replace(self, eta0=1.0 / problem.regularisation)
        return StochasticDescent.present_once(known, problem, rng, w, clock)

    def place(self, problem: LinearProblem, state: DescentState, w: np.ndarray, epochs: float) -> None:
        """w, with the step sizes for which lambda t w = S."""
        state.moving.v[:] = w
        state.moving.now[1] = epochs * problem.n_rows - state.method.steps.offset / state.method.lam
        if problem.bias == "free":
            state.moving.v[-1], state.moving.now[2] = 0.0, w[-1]

    def seen_rows(self, problem: LinearProblem) -> DenseRows | CSRRows:
        """A free bias has its own place."""
        return problem.rows._replace(bias=0.0) if problem.bias == "free" else problem.rows

    def iterate(self, state: DescentState) -> np.ndarray:
        """w."""
        return weights(state.moving)

    def keeps_total(self) -> bool:
        """It follows from w."""
        return False

    def pulls(self, state: DescentState) -> np.ndarray:
        """lambda (t0 + t) w."""
        return inverse_step(state.method.steps, state.moving.now[1]) * state.moving.scaled


def gradient(problem: LinearProblem, steps: Steps, bias_step: float | None) -> Gradient | FreeGradient:
    """The method; ``bias_step`` is None where the bias is a weight like any other."""
    if bias_step is None:
        return Gradient(steps, problem.regularisation)
    return FreeGradient(steps, problem.regularisation, problem.rows.bias, bias_step)


def slow_bias(problem: LinearProblem) -> float:
    """The part of eta_t that moves a free bias."""
    return min(1.0, max(_BIAS_STEP, _LEAST_PULL * problem.regularisation / problem.rows.bias**2))


def zeros(problem: LinearProblem) -> Moving:
    """w = 0 as 1 times v, t = 0."""
    return Moving(np.zeros(problem.n_weights), np.zeros(0), np.array([1.0, 0.0, 0.0]))


def weights(moving: Moving) -> np.ndarray:
    """w, a free bias put where it belongs."""
    w = moving.scaled
    w[-1] += moving.now[2]
    return w


def searched_first_step(problem: LinearProblem, rng: np.random.Generator, bias_step: float | None = None) -> float:
    """The eta with which one pass over a sample lowers P there most."""
    sample = sample_of(problem, rng)
    rows = sample.rows if bias_step is None else sample.rows._replace(bias=0.0)
    table, visits = example_table(sample), new_visits(sample.rows, rng)

    def cost(eta: float) -> float:
        moving = zeros(sample)
        again = visits._replace(order=visits.order.copy(), random=visits.random.copy())
        present(gradient(sample, constant(eta), bias_step), moving, rows, sample.loss, table, again, np.zeros(0), 1)
        return primal_value(sample, weights(moving))

    return best_first_step(sample, cost)


def check_first_step(eta0: float | None) -> None:
    """Raise unless a step size is positive or to be searched."""
    if eta0 is not None and not 0.0 < eta0 < np.inf:
        raise ValueError(f"eta0 must be positive and finite or None, got {eta0}")
