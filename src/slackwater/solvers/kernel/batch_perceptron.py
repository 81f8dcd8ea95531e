"""The batch perceptron: every step takes the example with the smallest response, inside the unit ball.

Problem    max over ||w|| <= 1 of  min_i c_i,  c_i = y_i <w, Phi(x_i)>: the largest margin without slack. It takes no
           notice of C: on data that cannot be separated its way does not lead to the optimum of P.
Update     j = argmin_i c_i,  alpha_j <- alpha_j + eta_t,  eta_t = 1 / (R sqrt t),  R^2 = max_i K_ii;
           w <- w / ||w|| where ||w|| > 1. It is the stochastic batch perceptron with nu = 0 and nothing left to chance.
State      alpha and c up to a common scale, ||w||^2.
Cost       n additions a step, and a kernel row where it is not kept: the lowest responses come next, so the rows of the
           lowest that are missing are computed together. A round is a fraction of a second of steps.
Certificate  C5: alpha = s p in the direction p of w, for any loss; the model is the multiple of w with the smallest P.

Cotter, Shalev-Shwartz, Srebro. The kernelized stochastic batch perceptron. ICML 2012; Freund, Schapire. Large margin
classification using the perceptron algorithm. Machine Learning 37, 1999.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import DirectionPoint
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Counters, State
from slackwater.solvers.kernel.kernel_solver import KernelSolver, best_multiple
from slackwater.solvers.kernel.lowest import add_row, rows_ahead

_WORK, _EPOCHS, _FETCHES = 2**27, 50, 16  # additions, n steps and blocks of rows in a round, at most
_SMALLEST_SCALE = 1e-9


@dataclass
class PerceptronState(State):
    """w = scale sum_i alpha_i z_i with its responses scale c."""

    alpha: np.ndarray
    c: np.ndarray
    scale: float = 1.0
    square: float = 0.0  # ||w||^2
    t: int = 0


@dataclass(frozen=True)
class BatchPerceptron(KernelSolver):
    """Perceptron on the worst example, projected to the unit ball."""

    name: ClassVar[str] = "batch-perceptron"
    paper: ClassVar[str] = "Cotter, Shalev-Shwartz, Srebro, ICML 2012"
    rule: ClassVar[str] = "C5"
    optimises: ClassVar[bool] = False

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None):
        """w = 0; or in the direction of alpha, with steps as small as after n of them."""
        n = problem.n_rows
        state = PerceptronState(Counters(), np.zeros(n), np.zeros(n))
        if alpha is not None and np.any(alpha > 0.0):
            state.alpha += np.maximum(alpha, 0.0)
            state.c += problem.labels * problem.gram.times(problem.labels * state.alpha)
            state.t = n
            _settle(state)
        return state

    def work(self, problem: KernelProblem, state: PerceptronState) -> None:
        """Some steps."""
        gram, done, n = problem.gram, state.counters, problem.n_rows
        _settle(state)
        reach = math.sqrt(max(gram.diagonal.max(), 0.0)) or 1.0
        left = max(1, min(_EPOCHS * n, _WORK // n))
        first = state.t
        lowest = int(np.argmin(state.c))
        kept = gram.keep(np.array([lowest]))
        for _ in range(_FETCHES):
            state.scale, state.square, taken, lowest = _steps(
                kept, problem.labels, gram.diagonal, state.alpha, state.c, state.scale, state.square, reach, state.t,
                left, lowest,
            )  # fmt: skip
            state.t += taken
            left -= taken
            if left == 0:
                break
            kept = gram.keep(rows_ahead(state.c, kept.slots, gram.capacity, lowest))
        done.updates += state.t - first
        done.inner_products += (state.t - first) * n
        done.epochs = state.t // n

    def model(self, problem: KernelProblem, state: PerceptronState) -> Expansion:
        """The best multiple of w."""
        coefficients = problem.labels * state.alpha
        return Expansion(best_multiple(problem, coefficients, problem.labels * state.c) * coefficients)

    def dual_point(self, problem: KernelProblem, state: PerceptronState) -> DirectionPoint:
        """alpha as a direction."""
        return DirectionPoint(state.alpha.copy())


def _settle(state: PerceptronState) -> None:
    """The scale goes into the numbers, ||w||^2 is summed again, and w comes back into the ball."""
    square = state.scale**2 * max(float(state.alpha @ state.c), 0.0)
    factor = state.scale / math.sqrt(max(square, 1.0))
    state.alpha *= factor
    state.c *= factor
    state.scale, state.square = 1.0, min(square, 1.0)


@compiled
def _steps(kept, labels, diagonal, alpha, c, scale, square, reach, t, most, j):
    """At most so many steps from j, the lowest; the scale, ||w||^2, how many steps, and the lowest then."""
    for taken in range(most):
        slot = kept.slots[j]
        if slot < 0:
            return scale, square, taken, j
        eta = 1.0 / (reach * math.sqrt(t + taken + 1.0))
        square += 2.0 * eta * scale * c[j] + eta * eta * diagonal[j]
        step = eta / scale
        alpha[j] += step
        j = add_row(kept.values[np.uint64(slot)], labels, step * labels[j], c)
        if square > 1.0:
            scale /= math.sqrt(square)
            square = 1.0
        if scale < _SMALLEST_SCALE:
            for i in range(np.uint64(c.size)):
                alpha[i] *= scale
                c[i] *= scale
            scale = 1.0
    return scale, square, most, j
