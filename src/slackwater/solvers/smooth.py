"""What newton and lbfgs share: the gradient of a smooth loss, its certificate and the exact search along a line.

Problem    min over w of  J(w) = ||w||^2/2 + sum_i C_i l(m_i),  m_i = y_i <w, x_i>,  l smooth.
State      w, the scores <w, x_i>, the gradient  G = w - sum_i C_i a_i y_i x_i,  a_i = -l'(m_i).
Line       J is piecewise quadratic along a line p, and <p, x_i> tells it whole: its minimum is found without a look at
           the rows, as the zero of a piecewise linear function, by Newton's method inside a bracket.
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
from slackwater.rows import times, transpose_times
from slackwater.solvers.contract import Counters, Solver, State

_STILL = 1e-31  # a relative gap of rounding errors only
_EXACT = 1e-9  # of the slope at the start of a line, where its search ends
_MOST_TRIALS = 60


@dataclass
class SmoothState(State):
    """The point and all that is known of J there."""

    w: np.ndarray
    scores: np.ndarray
    gradient: np.ndarray
    value: float  # J(w)
    squared: float  # ||G||^2


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
        state = self.state(SmoothState(Counters(), w, np.empty(problem.n_rows), np.empty_like(w), 0.0, 0.0))
        times(problem.rows, w, state.scores)
        evaluate(problem, state)
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
        """Not there yet: the scores, updated so far by what each step added, are summed from the rows again."""
        times(problem.rows, state.w, state.scores)
        evaluate(problem, state)


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


def evaluate(problem: LinearProblem, state: SmoothState) -> None:
    """J and G at the scores as they are; a free bias moves to its optimum first."""
    if problem.bias == "free":
        _place_bias(problem, state)
    pull = np.empty(problem.n_rows)
    losses = _pulls(problem.loss, state.scores, problem.labels, problem.costs, pull)
    w = regularised(problem, state.w)
    np.negative(w, out=state.gradient)
    transpose_times(problem.rows, pull, state.gradient)
    np.negative(state.gradient, out=state.gradient)
    if problem.bias == "free":
        state.gradient[-1] = 0.0
    state.value = 0.5 * float(w @ w) + losses
    state.squared = float(state.gradient @ state.gradient)
    state.counters.epochs += 1


def descend(problem: LinearProblem, state: SmoothState, p: np.ndarray) -> None:
    """Go to the minimum along p."""
    along = np.empty(problem.n_rows)
    times(problem.rows, p, along)
    state.counters.epochs += 1
    state.counters.inner_products += problem.n_rows
    penalised = regularised(problem, p)
    square, product = float(penalised @ penalised), float(penalised @ state.w)
    t = line_minimum(problem.loss, state.scores, along, problem.labels, problem.costs, square, product)
    if t == 0.0:
        return
    state.w += t * p
    state.scores += t * along
    state.counters.updates += 1
    evaluate(problem, state)


def _place_bias(problem: LinearProblem, state: SmoothState) -> None:
    before = state.w[-1] * problem.rows.bias
    alone = state.scores - before
    # Seen from the first row's class: when all labels turn, the bias turns to the last digit.
    side = problem.labels[0]
    bias = side * optimal_bias(problem.loss, side * alone, side * problem.labels, problem.costs).chosen
    np.add(alone, bias, out=state.scores)
    state.w[-1] = bias / problem.rows.bias


@compiled
def _pulls(loss, scores, labels, costs, out):
    """out_i = C_i a_i y_i; returns sum_i C_i l(m_i)."""
    total = 0.0
    for i in range(np.uint64(scores.size)):
        m = labels[i] * scores[i]
        out[i] = costs[i] * slope(loss, m) * labels[i]
        total += costs[i] * value(loss, m)
    return total


@compiled
def _bend(loss, scores, along, labels, costs, t):
    """First and second derivative of  sum_i C_i l(m_i + t y_i <p, x_i>)  in t."""
    first, second = 0.0, 0.0
    knee = loss.cap * loss.width
    for i in range(np.uint64(scores.size)):
        r = loss.target - labels[i] * (scores[i] + t * along[i])
        steep = min(max(r, 0.0), knee)
        first -= costs[i] * labels[i] * along[i] * steep
        second += costs[i] * along[i] * along[i] if 0.0 < r < knee else 0.0
    return first / loss.width, second / loss.width


@compiled
def line_minimum(loss, scores, along, labels, costs, square, product):
    """The t >= 0 that minimises J(w + t p);  square = ||p||^2, product = <w, p>, both as the regulariser sees them."""
    low, high, t = 0.0, math.inf, 0.0
    enough = 0.0
    for trial in range(_MOST_TRIALS):
        first, second = _bend(loss, scores, along, labels, costs, t)
        first += product + t * square
        second += square
        if trial == 0:
            enough = -_EXACT * first
        if (trial == 0 and first >= 0.0) or abs(first) <= enough:
            break
        if first < 0.0:
            low = t
        else:
            high = t
        # No curvature (a step of the bias alone, far from all kinks): nowhere better to go than twice as far.
        further = t - first / second if second > 0.0 else 2.0 * t + 1.0
        if not low < further < high:
            further = 0.5 * (low + high)
            if not low < further < high:
                break
        t = further
    return t
