"""What newton and lbfgs share: the gradient of a smooth loss, its certificate and the exact search along a line.

Problem    min over w of  J(w) = ||w||^2/2 + sum_i C_i l(m_i),  m_i = y_i <w, x_i>,  l smooth.
State      w, the margins m_i, the gradient  G = w - sum_i C_i a_i y_i x_i,  a_i = -l'(m_i).
Line       J is piecewise quadratic along a line p, and y_i <p, x_i> tells it whole: ``line_search`` finds its minimum
           exactly without a look at the rows.
Free bias  not regularised and never a free parameter of the search: it is put at its optimum after every step, so that
           G has no component along it and sum_i alpha_i y_i = 0 holds.
Certificate  C6: alpha_i = C_i a_i proves a gap of lambda ||G||^2 / 2 on the scale of P, known after every step.

Chapelle. Training a support vector machine in the primal. Neural Computation 19(5), 2007.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.models.linear import LinearModel
from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import Certificate
from slackwater.objective.losses import slope, value
from slackwater.objective.problem import LinearProblem
from slackwater.rows import squared_norm, times, transpose_times
from slackwater.solvers.contract import Counters, Solver, State
from slackwater.solvers.line_search import line_search, room_for_kinks

_STILL = 1e-31  # a relative gap of rounding errors only


@dataclass
class SmoothState(State):
    """The point and all that is known of J there, and room for the next step."""

    w: np.ndarray
    margins: np.ndarray
    gradient: np.ndarray
    value: float  # J(w)
    squared: float  # ||G||^2
    change: np.ndarray  # of the margins along the line
    kinks: np.ndarray


@dataclass(frozen=True)
class Smooth(Solver):
    """A method of descent without its direction."""

    losses: ClassVar[tuple[str, ...]] = ("squared_hinge", "smoothed_hinge", "huber")
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C6"

    def start(self, problem: LinearProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> Any:
        """w = 0, or w(alpha)."""
        w = np.zeros(problem.n_weights)
        if alpha is not None:
            inside = np.clip(alpha, 0.0, problem.loss.cap * problem.costs)
            transpose_times(problem.rows, inside * problem.labels, w)
        n, kinks = problem.n_rows, room_for_kinks(problem.loss, problem.n_rows)
        state = self.state(SmoothState(Counters(), w, np.empty(n), np.empty_like(w), 0.0, 0.0, np.empty(n), kinks))
        take_stock(problem, state)
        return state

    def state(self, point: SmoothState) -> Any:
        """The state of this method around a point."""
        return point

    @abstractmethod
    def direction(self, problem: LinearProblem, state: Any) -> np.ndarray:
        """Where to go from here: p with <p, G> < 0."""

    def advance(self, problem: LinearProblem, state: Any) -> None:
        """One step to the minimum along the direction."""
        if still(state):
            return
        descend(problem, state, self.direction(problem, state))

    def model(self, problem: LinearProblem, state: Any) -> LinearModel:
        """w."""
        return LinearModel.from_weights(state.w, problem.rows.bias)

    def dual_point(self, problem: LinearProblem, state: Any) -> None:
        """The gradient at w."""
        return

    def estimate(self, problem: LinearProblem, state: Any) -> float:
        """The gap itself, up to rounding."""
        gap = 0.5 * state.squared
        return gap / (state.value - gap) if state.value > gap else math.inf

    def review(self, problem: LinearProblem, state: Any, certificate: Certificate) -> None:
        """Not there yet: the margins, updated so far by what each step added, are summed from the rows again."""
        take_stock(problem, state)


def still(state: SmoothState) -> bool:
    """Whether the gradient is zero up to rounding."""
    return state.squared <= _STILL * state.value


def regularised(problem: LinearProblem, v: np.ndarray) -> np.ndarray:
    """v without the component of a free bias."""
    if problem.bias != "free":
        return v
    v = v.copy()
    v[-1] = 0.0
    return v


def take_stock(problem: LinearProblem, state: SmoothState) -> None:
    """The margins from the rows, and J and G."""
    times(problem.rows, state.w, state.margins)
    state.margins *= problem.labels
    state.counters.epochs += 1
    state.counters.inner_products += problem.n_rows
    evaluate(problem, state)


def evaluate(problem: LinearProblem, state: SmoothState) -> None:
    """J and G at the margins as they are; a free bias moves to its optimum first."""
    if problem.bias == "free":
        _place_bias(problem, state)
    pull = state.change
    losses = _pulls(problem.loss, state.margins, problem.labels, problem.costs, pull)
    w, gradient = regularised(problem, state.w), state.gradient
    np.negative(w, out=gradient)
    transpose_times(problem.rows, pull, gradient)
    np.negative(gradient, out=gradient)
    if problem.bias == "free":
        gradient[-1] = 0.0
    state.value = 0.5 * squared_norm(w) + losses
    state.squared = squared_norm(gradient)
    state.counters.epochs += 1


def descend(problem: LinearProblem, state: SmoothState, p: np.ndarray) -> None:
    """Go to the minimum along p."""
    change = state.change
    times(problem.rows, p, change)
    change *= problem.labels
    state.counters.epochs += 1
    state.counters.inner_products += problem.n_rows
    penalised = regularised(problem, p)
    square, product = squared_norm(penalised), inner(penalised, state.w)
    t = line_search(problem.loss, problem.costs, state.margins, change, square, product, state.kinks)
    if t == 0.0:
        return
    add_to(state.w, t, p)
    add_to(state.margins, t, change)
    state.counters.updates += 1
    evaluate(problem, state)


def _place_bias(problem: LinearProblem, state: SmoothState) -> None:
    before = state.w[-1] * problem.rows.bias
    alone = problem.labels * state.margins - before
    # Seen from the first row's class: when all labels turn, the bias turns to the last digit.
    side = problem.labels[0]
    bias = side * optimal_bias(problem.loss, side * alone, side * problem.labels, problem.costs).chosen
    np.add(alone, bias, out=alone)
    np.multiply(problem.labels, alone, out=state.margins)
    state.w[-1] = bias / problem.rows.bias


@compiled
def _pulls(loss, margins, labels, costs, out):
    """out_i = C_i a_i y_i; returns sum_i C_i l(m_i)."""
    total = 0.0
    for i in range(np.uint64(margins.size)):
        m = margins[i]
        out[i] = costs[i] * slope(loss, m) * labels[i]
        total += costs[i] * value(loss, m)
    return total


# Sums over weight vectors without the threads of a BLAS.


@compiled
def inner(x, y):
    """<x, y>."""
    total = 0.0
    for j in range(np.uint64(x.size)):
        total += x[j] * y[j]
    return total


@compiled
def add_to(x, scale, y):
    """x += scale y."""
    for j in range(np.uint64(x.size)):
        x[j] += scale * y[j]
