"""What kernel solvers share: coefficients, the scores that follow from them, the count of kernel rows, the gap.

With signed coefficients beta_i = y_i alpha_i a dual variable lives in [lower_i, upper_i], one end of which is 0, and

    v_i = y_i target - f_i - d_i beta_i,  f = K beta,  d_i = width / C_i,

is the dual's derivative: W = target sum |beta| - beta'K beta / 2 - sum d beta^2 / 2. Where v_i > 0 beta_i wants up.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import BoxPoint, balanced, total_loss
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import inner
from slackwater.solvers.contract import Counters, Solver, State
from slackwater.solvers.line_search import line_search

_CANCELLED = 1e-8  # of (sum |beta_i| ||Phi(x_i)||)^2: a sum whose ||w||^2 is less has lost too many digits


class KernelSolver(Solver):
    """Base of the kernel solvers: ``work`` is a round, and the rows it takes are counted."""

    task: ClassVar[str | tuple[str, ...]] = "kernel"

    def advance(self, problem: KernelProblem, state: Any) -> None:
        """One round, with its kernel rows and evaluations counted."""
        gram, done = problem.gram, state.counters
        requests, evaluations = gram.requests, gram.evaluations
        self.work(problem, state)
        done.row_requests += gram.requests - requests
        done.kernel_evaluations += gram.evaluations - evaluations

    def certificate_values(self, problem: Any, state: Any) -> float:
        """Rows of support vectors that are not in memory, as far as ``support`` tells."""
        missing = np.count_nonzero(self.support(state) & (problem.gram.kept.slots < 0))
        return float(missing) * problem.n_rows

    def support(self, state: Any) -> Any:
        """Which examples have a coefficient, a boolean for each; False where that takes a model to know."""
        return False

    @abstractmethod
    def work(self, problem: KernelProblem, state: Any) -> None:
        """One round."""


@dataclass
class DualState(State):
    """A dual point as solvers of the dual keep it."""

    beta: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray  # d_i
    v: np.ndarray


class DualKernelSolver(KernelSolver):
    """Base of the solvers that keep the dual's derivative up to date; certificate C1."""

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "smoothed_hinge", "huber")
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    def start(self, problem: KernelProblem, rng: np.random.Generator, alpha: np.ndarray | None = None) -> Any:
        """alpha = 0, or the given point clipped to the box and balanced where the bias is free."""
        labels, loss = problem.labels, problem.loss
        top = loss.cap * problem.costs
        beta = np.zeros(problem.n_rows)
        if alpha is not None:
            beta = balanced(problem, labels * np.clip(alpha, 0.0, top))
        ridge = loss.width / problem.costs
        v = labels * loss.target - ridge * beta
        if beta.any():
            v -= problem.remembered_scores(beta)
        point = DualState(
            Counters(), beta, np.where(labels < 0.0, -top, 0.0), np.where(labels > 0.0, top, 0.0), ridge, v
        )
        return self.state(problem, point, rng)

    def state(self, problem: KernelProblem, point: DualState, rng: np.random.Generator) -> Any:
        """The state of this solver around a point."""
        return point

    def model(self, problem: KernelProblem, state: Any) -> Expansion:
        """w(alpha), with the best bias."""
        bias = best_bias(problem, scores_of(problem, state)) if problem.bias == "free" else 0.0
        return Expansion(state.beta.copy(), bias)

    def dual_point(self, problem: KernelProblem, state: Any) -> BoxPoint:
        """alpha itself."""
        return BoxPoint(state.beta * problem.labels)

    def support(self, state: Any) -> Any:
        """Where beta is not 0."""
        return state.beta != 0.0

    def estimate(self, problem: KernelProblem, state: Any) -> float:
        """The gap itself, up to rounding."""
        primal, dual, _ = values(problem, state)
        return max(primal - dual, 0.0) / dual if dual > 0.0 else math.inf

    def review(self, problem: KernelProblem, state: Any, certificate: Any) -> None:
        """Not there yet: v, updated so far by what each step added, is summed from the rows again."""
        scores = problem.scores(state.beta)
        state.v[:] = problem.labels * problem.loss.target - state.ridge * state.beta - scores


def scores_of(problem: KernelProblem, state: DualState) -> np.ndarray:
    """f = K beta from v."""
    return problem.labels * problem.loss.target - state.ridge * state.beta - state.v


def values(problem: KernelProblem, state: DualState) -> tuple[float, float, float]:
    """J with the best bias, W(beta), and that bias, up to rounding.

    Their difference knows nothing of scores of variables at the right end of their box: these may be old.
    """
    loss, scores = problem.loss, scores_of(problem, state)
    square = inner(state.beta, scores)
    bias = best_bias(problem, scores) if problem.bias == "free" else 0.0
    primal = 0.5 * square + total_loss(loss, scores + bias, problem.labels, problem.costs)
    dual = loss.target * np.abs(state.beta).sum() - 0.5 * square
    if loss.width:
        dual -= 0.5 * inner(state.ridge, state.beta**2)
    return primal, dual, bias


def best_bias(problem: KernelProblem, scores: np.ndarray) -> float:
    """The bias with the least loss at these scores."""
    return optimal_bias(problem.loss, scores, problem.labels, problem.costs).chosen


def best_multiple(problem: KernelProblem, coefficients: np.ndarray, scores: np.ndarray) -> float:
    """The k >= 0 with the least P(k w), for solvers to which only the direction of w matters; 0 where w is rounding."""
    square = float(coefficients @ scores)
    if square <= _CANCELLED * float(np.abs(coefficients) @ np.sqrt(np.maximum(problem.gram.diagonal, 0.0))) ** 2:
        return 0.0
    shares, curvature = problem.regularisation * problem.costs, problem.regularisation * square
    return line_search(problem.loss, shares, np.zeros_like(scores), problem.labels * scores, curvature, 0.0)
