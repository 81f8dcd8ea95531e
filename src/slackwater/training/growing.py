"""Large kernel problems begin on growing random shares of their rows, each warm-started from the one before.

Most of what a cold start on all rows does is undone later, at the price of rows of full length. A stage is the same
problem on some of the rows, each with its own cost C_i; the shares are nested and have the classes in equal parts. The
dual point of a stage, with zeros elsewhere, is one of every larger stage and of the whole problem. Stages are never
certified: what is proven is proven of the whole problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.certificate import BoxPoint, Evaluation, certify
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.solvers.contract import Solver
from slackwater.training.stopping import Limits

LARGE = 100_000  # rows from which a problem begins on a share of them
_LEAST = 10_000  # rows of a stage
_FIRST, _MOST = 1 / 32, 1 / 2  # of the rows, in a stage
_GROWTH, _WORTH_WHILE = 4, 1.5  # of the rows, from stage to stage
_EASED = 0.1  # relative gap, as the solver guesses it, at which more rows help more than more rounds
_UNFINISHED = 1.0  # and beyond which the smaller stage before had the better model
_MANY = 2**62
_TRIALS, _SAMPLE = 4, 64  # rows whose sum tells what kernel values cost
_STAGES = 0.6  # of the time limit, within which a stage has to be over as far as one can tell when it begins
_WHOLE = 0.9  # of the time limit, within which the sum of the support vectors' rows over all examples has to be over


def grows(problem: Any, solver: Solver, limits: Limits) -> bool:
    """Whether to begin on shares of the rows: under a limit of time, on many of them.

    Budgets of rounds or kernel values are those of the problem itself. Without any limit it does not pay where nearly
    all rows become support vectors.
    """
    if limits.max_time is None:
        return False
    counted = limits.max_rounds is not None or limits.max_kernel_evaluations is not None
    known = isinstance(problem, KernelProblem) and problem.gram.points.kernel.name != "precomputed"
    return solver.grows and known and not counted and problem.n_rows >= LARGE


class Growing:
    """Training on shares of the rows: where it stands, as a point of the whole problem."""

    problem: KernelProblem  # of the stage
    state: Any

    def __init__(self, problem: KernelProblem, solver: Any, rng: np.random.Generator, limits: Limits) -> None:
        self.whole, self.solver, self.rng = problem, solver, rng
        self.allowed = math.inf if limits.max_time is None else limits.max_time
        self.eased = max(_EASED, limits.tol)
        sides = (np.flatnonzero(problem.labels < 0.0), np.flatnonzero(problem.labels > 0.0))
        self._orders = [rng.permutation(side) for side in sides]
        self.ids = np.empty(0, dtype=np.int64)
        self.alpha = np.zeros(problem.n_rows)
        self.rounds = self.updates = 0
        self._price = self._measured_price() if self.allowed < math.inf else 0.0
        self._square = self._line = 0.0  # seconds of a stage of m rows: square m^2 + line m

    def train(self, elapsed: Callable[[], float], halted: Callable[[Growing], bool]) -> np.ndarray:
        """The dual point of the last stage that there is time for; ``halted`` is asked after every round."""
        going = True
        while going and (rows := self._next(elapsed())):
            going = self._stage(rows, elapsed, halted)
        return self.alpha

    def _next(self, elapsed: float) -> int:
        """The rows of the next stage, 0 for none."""
        n, before = self.whole.n_rows, self.ids.size
        if not before:
            return min(n, max(_LEAST, math.ceil(_FIRST * n)))
        rows = min(math.ceil(_MOST * n), _GROWTH * before)
        if self.allowed < math.inf:
            rows = min(rows, _affordable(self._square, self._line, _STAGES * self.allowed - elapsed))
            sums = self._price * n
            rows = min(rows, _affordable(self._square, self._line + sums, _WHOLE * self.allowed - elapsed))
        return rows if rows >= _WORTH_WHILE * before else 0

    def _stage(self, rows: int, elapsed: Callable[[], float], halted: Callable[[Growing], bool]) -> bool:
        """Train on so many rows; whether to go on with more."""
        begin = time.perf_counter()
        self._widen(rows)
        gap, going = math.inf, True
        while going and gap > self.eased:
            self._advance()
            gap = self.solver.estimate(self.problem, self.state)
            going = not halted(self) and elapsed() + self._seconds_of_the_whole() <= _WHOLE * self.allowed
        if gap <= _UNFINISHED or not self.alpha.any():
            self.alpha = self.point()
        self._leave(time.perf_counter() - begin)
        return going

    def evaluation(self) -> Evaluation:
        """The certificate that the stage's model and point have for the whole problem."""
        return certify(self.whole, self.weights(), BoxPoint(self.point()))

    def weights(self) -> np.ndarray:
        """Those of the stage's model, among all rows."""
        model: Expansion = self.solver.model(self.problem, self.state)
        weights, own = np.zeros(self.whole.n_rows + 1), model.weights(0.0)
        weights[self.ids], weights[-1] = own[:-1], own[-1]
        return weights

    def point(self) -> np.ndarray:
        """The stage's dual point among all rows."""
        alpha = np.zeros(self.whole.n_rows)
        alpha[self.ids] = self.solver.dual_point(self.problem, self.state).alpha
        return alpha

    def _widen(self, rows: int) -> None:
        """The next stage, on so many rows, from the point of the last."""
        whole, share = self.whole, rows / self.whole.n_rows
        ids = np.sort(np.concatenate([order[: math.ceil(share * order.size)] for order in self._orders]))
        self.ids = ids
        self.problem = replace(
            whole, gram=whole.gram.some(ids), labels=whole.labels[ids], costs=whole.costs[ids], known={}
        )
        alpha = self.alpha[ids]
        self.state = self.solver.start(self.problem, self.rng, alpha if alpha.any() else None)

    def _advance(self) -> None:
        self.solver.advance(self.problem, self.state)
        self.rounds += 1

    def _measured_price(self) -> float:
        """Seconds per kernel value of a sum of rows over all examples."""
        gram, n, least = self.whole.gram, self.whole.n_rows, math.inf
        for _ in range(_TRIALS):
            some, before = np.zeros(n), gram.evaluations
            some[self.rng.choice(n, min(n, _SAMPLE), replace=False)] = 1.0
            begin = time.perf_counter()
            gram.times(some)
            least = min(least, (time.perf_counter() - begin) / max(1, gram.evaluations - before))
        return least

    def _seconds_of_the_whole(self) -> float:
        """What the sum of the support vectors' rows over all examples takes."""
        return self._price * np.count_nonzero(self.solver.support(self.state)) * self.whole.n_rows

    def _leave(self, seconds: float) -> None:
        """Count what was done; the kernel rows' memory is free for the next stage."""
        gram, counted, n = self.problem.gram, self.whole.gram, self.problem.n_rows
        self._square = self._price * gram.requests / n  # had no row been kept
        self._line = max(seconds - self._price * gram.evaluations, 0.0) / n
        counted.evaluations += gram.evaluations
        counted.requests += gram.requests
        self.updates += self.state.counters.updates
        del self.problem, self.state


def _affordable(square: float, line: float, seconds: float) -> int:
    """The most rows m with square m^2 + line m <= seconds."""
    if seconds <= 0.0:
        return 0
    slowness = line + math.sqrt(line * line + 4.0 * square * seconds)
    return int(min(2.0 * seconds / slowness, _MANY)) if slowness else _MANY
