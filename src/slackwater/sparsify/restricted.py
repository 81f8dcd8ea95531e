"""The squared hinge over a few functions of the rows: its certificate, and Newton's method by Cholesky factors.

Problem    min over u, b of  J = u'R u/2 + sum_i C_i max(0, 1 - y_i f_i)^2,   f = B'u + b,
           one line of B for each function, R positive definite; b is free, or not there.
Dual       over alpha >= 0 (and sum alpha_i y_i = 0 with b)
           max  sum alpha - g'R^{-1}g/2 - sum_i alpha_i^2 / (4 C_i),   g = B (alpha y):
           weak duality as for every problem here, with R^{-1} in the place of the unit matrix.
Update     the examples short of the margin 1 are S; with N = sum over S of 2 C_i B_i B_i'
           (R + N) d = -gradient by a Cholesky factor, b as one more function that R leaves alone;
           the step along d that minimises J, then the best b. A full step that leaves S as it is ends at the optimum.
State      u, b, f, S, N. From step to step N changes by the examples that enter or leave S, where they are few.
Cost       |B|^2 for each example that enters or leaves S, |B| n for the gradient and the line, |B|^3/3 for the factor.
Certificate  C6 of this problem (with b C6+C7); it says nothing of the problem over all functions.

Chapelle. Training a support vector machine in the primal. Neural Computation 19(5), 2007; Keerthi, DeCoste, JMLR 6,
2005 (finite Newton).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as sl

from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import (
    Certificate,
    DualPoint,
    Evaluation,
    GradientPoint,
    certify,
    dual_half,
    rule_of,
    total_loss,
)
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.losses import Loss, squared_hinge, value
from slackwater.objective.penalties import Penalty, l2
from slackwater.objective.problem import BiasKind, Problem
from slackwater.rows import DenseRows, times, transpose_times
from slackwater.solvers.line_search import line_search

_PIECE = 4096  # examples of the normal equations at a time
_MOST_STEPS = 100
_FULL = 1e-6  # how near to 1 a step counts as a full one
_DONE = 1e-14  # of J: what the model of J may still promise when Newton's method ends
_JITTER = 1e-15  # of the mean diagonal, where rounding leaves a matrix without a factor; tenfold until it has one


@dataclass(frozen=True, eq=False)
class RestrictedProblem(Problem):
    """The problem over the lines of ``functions``, with R and its lower Cholesky factor."""

    task: ClassVar[str] = "restricted"
    penalty: ClassVar[Penalty] = l2()
    loss: ClassVar[Loss] = squared_hinge()

    functions: np.ndarray  # B, (m, n)
    regulariser: np.ndarray  # R, (m, m), float64
    factor: np.ndarray
    labels: np.ndarray
    costs: np.ndarray
    bias: BiasKind  # "none" or "free"

    @property
    def n_rows(self) -> int:
        return self.labels.size

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return (len(self.functions) + 1,)

    @property
    def loss_family(self) -> str:
        return "squared_hinge"

    @property
    def at_zero(self) -> float:
        return float(value(self.loss, 0.0))

    def squared_norm_of_sum(self, coefficients: np.ndarray) -> float:
        """g'R^{-1}g of g = B coefficients, the rounding error of the solution z = R^{-1}g made up for."""
        g = on_examples(self.functions, coefficients)
        z = sl.cho_solve((self.factor, True), g)
        rest = g - self.regulariser @ z
        correction = sl.solve_triangular(self.factor, rest, lower=True)
        return float(g @ z + rest @ z + correction @ correction)


@certify.register
def _certify_restricted(problem: RestrictedProblem, weights: np.ndarray, point: DualPoint | None = None) -> Evaluation:
    """f is summed again from the functions; b is put at its optimum."""
    weights = np.array(weights, dtype=np.float64)
    u, scores = weights[:-1], responses(problem.functions, weights[:-1])
    if problem.bias == "free":
        weights[-1] = optimal_bias(problem.loss, scores, problem.labels, problem.costs).chosen
    scores += weights[-1]
    losses = total_loss(problem.loss, scores, problem.labels, problem.costs)
    primal = problem.regularisation * (0.5 * float(u @ problem.regulariser @ u) + losses)
    point = point or GradientPoint(weights)
    dual = dual_half(problem, point, scores)
    return Evaluation(Certificate(float(primal), dual.value, rule_of(problem, point)), weights, dual.alpha)


def responses(functions: np.ndarray, u: np.ndarray) -> np.ndarray:
    """B'u, float64."""
    out = np.zeros(functions.shape[1] + 1)
    transpose_times(DenseRows(functions, 0.0), u, out)
    return out[:-1]


def on_examples(functions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """B values, float64."""
    out = np.empty(len(functions))
    times(DenseRows(functions, 0.0), np.append(values, 0.0), out)
    return out


class Restricted:
    """The problem over the functions added so far, of at most ``most``, and where Newton's method stands on it."""

    loss: ClassVar[Loss] = squared_hinge()

    def __init__(self, problem: KernelProblem, most: int, biased: bool) -> None:
        """``biased`` is whether there is a free bias."""
        n = problem.n_rows
        self.labels, self.costs, self.biased = problem.labels, problem.costs, biased
        self.size = 0
        self._functions = np.empty((most, n), dtype=problem.gram.points.dtype)
        self._regulariser, self._factor = np.zeros((most, most)), np.zeros((most, most))
        self._u = np.zeros(most)
        self.scores, self.bias = np.zeros(n), 0.0  # f without b; b
        self._short, self._normal = np.zeros(n, dtype=bool), np.zeros((1, 1))
        self._settle_bias()

    @property
    def u(self) -> np.ndarray:
        return self._u[: self.size]

    @property
    def functions(self) -> np.ndarray:
        """B."""
        return self._functions[: self.size]

    @property
    def regulariser(self) -> np.ndarray:
        """R."""
        return self._regulariser[: self.size, : self.size]

    @property
    def factor(self) -> np.ndarray:
        """The lower Cholesky factor of R."""
        return self._factor[: self.size, : self.size]

    @property
    def shortfalls(self) -> np.ndarray:
        """max(0, 1 - y_i f_i)."""
        return np.maximum(0.0, self.loss.target - self.labels * (self.scores + self.bias))

    @property
    def objective(self) -> float:
        """J."""
        losses = total_loss(self.loss, self.scores + self.bias, self.labels, self.costs)
        return float(0.5 * self.u @ self.regulariser @ self.u + losses)

    def add(self, functions: np.ndarray, square: np.ndarray) -> None:
        """More functions with the coefficient 0, R of them all being diagonal: ``square``."""
        start, end = self.size, self.size + len(functions)
        self._functions[start:end] = functions
        places = np.arange(start, end)
        self._regulariser[places, places], self._factor[places, places] = square, np.sqrt(square)
        self.size = end

    def extend(self, function: np.ndarray, column: np.ndarray, coefficient: float, least: float) -> bool:
        """One more function with its coefficient and ``column`` of R; False where R would lose its ``least`` pivot."""
        m = self.size
        line = sl.solve_triangular(self.factor, column[:m], lower=True) if m else column[:0]
        pivot = column[m] - float(line @ line)
        if not pivot > least:
            return False
        self._functions[m] = function
        self._regulariser[m, : m + 1] = self._regulariser[: m + 1, m] = column
        self._factor[m, :m], self._factor[m, m] = line, np.sqrt(pivot)
        self._u[m] = coefficient
        self.scores += coefficient * function.astype(np.float64)
        self.size = m + 1
        return True

    def optimise(self) -> None:
        """Newton's method to the optimum of the functions there are."""
        u = self.u
        self.scores = responses(self.functions, u)
        self._settle_bias()
        self._short[:], self._normal = False, np.zeros((self.size + 1, self.size + 1))
        for _ in range(_MOST_STEPS):
            shortfalls = self.shortfalls
            self._account(shortfalls > 0.0)
            gradient = self._gradient(shortfalls)
            direction = -_solved(self._hessian(), gradient)
            if -float(gradient @ direction) <= _DONE * self.objective:
                break
            step = self._step(direction)
            if step == 0.0:
                break
            before = self._short.copy()
            if abs(step - 1.0) < _FULL and np.array_equal(before, self.shortfalls > 0.0):
                break

    def certificate(self) -> Certificate:
        """Of the point that was reached."""
        kind: BiasKind = "free" if self.biased else "none"
        parts: Any = (self.functions, self.regulariser, self.factor, self.labels, self.costs, kind)
        return certify(RestrictedProblem(*parts), np.append(self.u, self.bias)).certificate

    # ------------------------------------------------------------------------------------------------- inside

    def _settle_bias(self) -> None:
        if self.biased:
            self.bias = optimal_bias(self.loss, self.scores, self.labels, self.costs).chosen

    def _gradient(self, shortfalls: np.ndarray) -> np.ndarray:
        """With respect to u and b."""
        pulls = 2.0 * self.costs * self.labels * shortfalls
        gradient = self.regulariser @ self.u - on_examples(self.functions, pulls)
        return np.append(gradient, -pulls.sum() if self.biased else 0.0)

    def _hessian(self) -> np.ndarray:
        """R + N; a line of the unit matrix for a bias that is not there, or that no example asks for."""
        hessian = self._normal.copy()
        hessian[:-1, :-1] += self.regulariser
        if not self.biased or hessian[-1, -1] == 0.0:
            hessian[-1, :], hessian[:, -1], hessian[-1, -1] = 0.0, 0.0, 1.0
        return hessian

    def _account(self, short: np.ndarray) -> None:
        """N for these examples: from those that changed, or from all where that is less work."""
        changed = np.flatnonzero(short != self._short)
        if changed.size < np.count_nonzero(short):
            self._count(changed, np.where(short[changed], 2.0, -2.0) * self.costs[changed])
        else:
            self._normal[:] = 0.0
            ids = np.flatnonzero(short)
            self._count(ids, 2.0 * self.costs[ids])
        self._short = short

    def _count(self, ids: np.ndarray, weights: np.ndarray) -> None:
        """N += sum_k weights_k (B_k, 1) (B_k, 1)'."""
        for start in range(0, ids.size, _PIECE):
            piece = ids[start : start + _PIECE]
            columns = np.ones((self.size + 1, piece.size))
            columns[:-1] = self.functions[:, piece]
            self._normal += (columns * weights[start : start + _PIECE]) @ columns.T

    def _step(self, direction: np.ndarray) -> float:
        """Go to the least J along the direction, then to the best b; how far it was."""
        d, u = direction[:-1], self.u
        along = responses(self.functions, d)
        margins = self.labels * (self.scores + self.bias)
        Rd = self.regulariser @ d
        change = self.labels * (along + direction[-1])
        step = line_search(self.loss, self.costs, margins, change, float(d @ Rd), float(u @ Rd))
        u += step * d
        self.scores += step * along
        self.bias += step * direction[-1]
        self._settle_bias()
        return step


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """matrix^{-1} right by Cholesky, of a matrix that only rounding may keep from being positive definite."""
    diagonal = np.diagonal(matrix).copy()
    jitter = 0.0
    while True:
        try:
            return sl.cho_solve(sl.cho_factor(matrix, lower=True), right)
        except np.linalg.LinAlgError:
            jitter = 10.0 * jitter or _JITTER
            matrix[np.diag_indices_from(matrix)] = diagonal * (1.0 + jitter)
