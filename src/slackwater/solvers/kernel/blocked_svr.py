"""Blocked SMO for regression: the working sets of blocked-smo over every example twice.

Problem    max over |beta_i| <= cap C_i (and sum beta = 0 with a free bias) of
           W(beta) = y'beta - eps ||beta||_1 - beta'K beta/2 - sum d beta^2/2,   d_i = width / C_i.
Update     beta = beta+ + beta-, 0 <= beta+_i <= cap C_i and -cap C_i <= beta-_i <= 0, makes W smooth: 2n variables with

               v+ = y - eps - f - d beta+,   v- = y + eps - f - d beta-,   f = K beta,

           the derivatives, and with (K K; K K) as their matrix. The rest is blocked-smo.
State      beta+ and beta-, v+ and v-, the last working set.
Cost       that of blocked-smo; the two variables of an example share a kernel row.
Certificate  C1.

Two variables an example: Smola, Schoelkopf, Statistics and Computing 2004; Chang, Lin, 2011 (LIBSVM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import BoxPoint
from slackwater.objective.kernel_regression import KernelRegressionProblem
from slackwater.objective.regression import TUBE_LOSSES, total_tube_loss
from slackwater.objective.regression_certificate import best_offset, tube_bound
from slackwater.solvers.contract import Counters
from slackwater.solvers.kernel.blocked_smo import _TINY, BlockedSMO, BlockedState

_TURNS = 100  # at most, of one working set, where it is the whole problem: to rounding error at once


class _TwofoldMatrix(NamedTuple):
    """(K K; K K) by rows of K."""

    gram: Any

    @property
    def capacity(self) -> int:
        return self.gram.capacity

    def between(self, ids: np.ndarray) -> np.ndarray:
        """The matrix between ``ids``."""
        rows, places = np.unique(ids % self.gram.n_rows, return_inverse=True)
        return self.gram.between(rows)[np.ix_(places, places)]

    def keep(self, ids: np.ndarray) -> None:
        """See to it that these rows are in memory."""
        self.gram.keep(np.unique(ids % self.gram.n_rows))

    def add(self, ids: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
        """out += sum_k coefficients_k row ids_k, for rows that are kept."""
        sums = np.zeros(self.gram.n_rows)
        self.gram.add(ids % self.gram.n_rows, coefficients, sums)
        out.reshape(2, -1)[:] += sums


class _Twofold(NamedTuple):
    """The problem as blocked-smo sees it."""

    gram: _TwofoldMatrix
    n_rows: int
    bias: str


@dataclass(frozen=True)
class BlockedSVR(BlockedSMO):
    """Sequential minimal optimisation of regression on working sets of at most ``size`` variables."""

    name: ClassVar[str] = "blocked-svr"
    paper: ClassVar[str] = "Chang, Lin, ACM TIST 2011; Cotter, Srebro, Keshet, KDD 2011"
    task: ClassVar[str] = "kernel-regression"
    losses: ClassVar[tuple[str, ...]] = tuple(TUBE_LOSSES)

    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> BlockedState:
        """beta = 0, or the given point put into the box and balanced where the bias is free."""
        top, ridge = problem.loss.cap * problem.costs, problem.loss.width / problem.costs
        beta = np.zeros(problem.n_rows)
        if alpha is not None:
            _, put = tube_bound(problem, alpha)
            beta = beta if put is None else put
        nothing = np.zeros(problem.n_rows)
        state = BlockedState(
            Counters(), np.concatenate((np.maximum(beta, 0.0), np.minimum(beta, 0.0))),
            np.concatenate((nothing, -top)), np.concatenate((top, nothing)), np.tile(ridge, 2), np.tile(nothing, 2),
        )  # fmt: skip
        self.review(problem, state, None)
        return state

    def work(self, problem: Any, state: BlockedState) -> None:
        """One working set."""
        twofold = _Twofold(_TwofoldMatrix(problem.gram), 2 * problem.n_rows, problem.bias)
        done = state.counters
        for _ in range(_TURNS if twofold.n_rows <= _TINY else 1):
            updates = done.updates
            super().work(twofold, state)  # type: ignore[arg-type]
            done.inner_products -= problem.n_rows  # both variables of an example follow from one
            if done.updates == updates:
                break

    def model(self, problem: Any, state: BlockedState) -> Expansion:
        """w(beta), with the best bias."""
        residuals = _residuals(problem, state)
        bias = best_offset(problem.loss, residuals, problem.costs).chosen if problem.bias == "free" else 0.0
        return Expansion(_beta(state), bias)

    def dual_point(self, problem: Any, state: BlockedState) -> BoxPoint:
        """beta itself."""
        return BoxPoint(_beta(state))

    def support(self, state: BlockedState) -> np.ndarray:
        """Where either variable is not 0."""
        return _beta(state) != 0.0

    def estimate(self, problem: Any, state: BlockedState) -> float:
        """The gap itself, up to rounding."""
        loss, beta, residuals = problem.loss, _beta(state), _residuals(problem, state)
        square = float(beta @ (problem.targets - residuals))
        bias = best_offset(loss, residuals, problem.costs).chosen if problem.bias == "free" else 0.0
        primal = 0.5 * square + total_tube_loss(loss, residuals - bias, problem.costs)
        rounding_off = 0.5 * float(state.ridge[: beta.size] @ beta**2)
        dual = problem.targets @ beta - loss.epsilon * np.abs(beta).sum() - 0.5 * square - rounding_off
        return max(primal - dual, 0.0) / dual if dual > 0.0 else math.inf

    def review(self, problem: Any, state: BlockedState, certificate: Any) -> None:
        """Not there yet: v, updated so far by what each step added, is summed from the rows again."""
        beta, eps = _beta(state), problem.loss.epsilon
        residuals = problem.targets - (problem.gram.times(beta) if beta.any() else 0.0)
        state.v[:] = np.concatenate((residuals - eps, residuals + eps)) - state.ridge * state.beta


def _beta(state: BlockedState) -> np.ndarray:
    return state.beta.reshape(2, -1).sum(axis=0)


def _residuals(problem: KernelRegressionProblem, state: BlockedState) -> np.ndarray:
    """y - K beta from v+."""
    n = problem.n_rows
    return state.v[:n] + state.ridge[:n] * state.beta[:n] + problem.loss.epsilon
