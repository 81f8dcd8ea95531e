"""The ramp loss by the convex-concave procedure: SMO in boxes that move where outliers are given up.

Problem    min over w, b of  ||w||^2/2 + sum_i C_i l(y_i f_i),  l(m) = H_1(m) - H_s(m),  H_t(m) = max(0, t - m): the
           hinge cut off at the margin s. It is not convex; objective/ramp.py says what can be certified.
Update     from a model with B = {i: m_i < s}, that is beta_i = C_i [i in B], solve the convex problem
           max sum alpha - alpha'Q alpha/2  over  -beta_i <= alpha_i <= C_i - beta_i  (y'alpha = 0 with a free bias)
           by SMO (smo.py) until ``precision`` is left of what it can gain; its solution is the next model, and alpha
           is clipped to the next boxes. The first B is empty: the hinge's problem.
State      SMO's, with the boxes of B; the last model and its objective, which no round raises.
Cost       SMO's; few outer rounds, each warm. In the end those beyond s have alpha = 0.
Model      the last solution, or the point on the way to the next where that is better already.
Certificate  C1 of the convex problem that touches the objective at the model; of the optimum nothing is proven.

Collobert, Sinz, Weston, Bottou. Trading convexity for scalability. ICML 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slackwater.models.kernel import Expansion
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.ramp import RampProblem, Touching
from slackwater.rows import inner
from slackwater.solvers.kernel.active_set import unshrink
from slackwater.solvers.kernel.kernel_solver import DualState, scores_of
from slackwater.solvers.kernel.smo import SMO, SMOState

_ROUNDING = 1e-13  # of the objective: what a convex problem cannot gain reliably


@dataclass
class RampState(SMOState):
    """SMO's, and where the convex problem touches the ramp's."""

    beyond: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=bool))  # B
    last: Expansion = field(default_factory=lambda: Expansion(np.empty(0)))
    value: float = math.inf  # J of the last model
    gap: float = math.inf  # relative, of the model, as far as known
    rounds: int = 0  # convex problems solved


@dataclass(frozen=True)
class Ramp(SMO):
    """CCCP for the hinge cut off at the margin ``s``; a convex problem is left at ``precision`` of its gain."""

    name: ClassVar[str] = "ramp"
    paper: ClassVar[str] = "Collobert, Sinz, Weston, Bottou, ICML 2006"
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    convex: ClassVar[bool] = False
    rule: ClassVar[str] = "C1 local"

    s: float = -1.0
    precision: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -math.inf < self.s <= 0.0:
            raise ValueError(f"s must be a number of at most 0, got {self.s}")
        if not 0.0 < self.precision < 1.0:
            raise ValueError(f"precision must lie in (0, 1), got {self.precision}")

    def restated(self, problem: KernelProblem) -> RampProblem:
        """With the hinge cut off."""
        return RampProblem.of(problem, self.s)

    def state(self, problem: Any, point: DualState, rng: np.random.Generator) -> RampState:
        """w = 0 is the last model, B is empty."""
        n = problem.n_rows
        value = problem.value(0.0, np.zeros(n))
        return RampState.around(point, beyond=np.zeros(n, dtype=bool), last=Expansion(np.zeros(n)), value=value)

    def work(self, problem: Any, state: Any) -> None:
        """Some hundred steps; the next convex problem where this one is solved."""
        super().work(problem, state)
        if state.active.size == problem.n_rows:
            self._weigh(problem, state)

    def model(self, problem: Any, state: Any) -> Expansion:
        """The better of the last model and the current point."""
        scores = problem.remembered_scores(state.beta)
        square, bias = inner(state.beta, scores), Touching(problem, state.beyond).bias(scores)
        if problem.value(square, scores + bias) < state.value:
            return Expansion(state.beta.copy(), bias)
        return state.last

    def estimate(self, problem: Any, state: Any) -> float:
        """The gap when all rows took part last; infinite where the convex problem has just been changed."""
        return state.gap

    def _weigh(self, problem: RampProblem, state: RampState) -> None:
        """How far the convex problem is from its optimum, by scores of all rows."""
        touching, scores = Touching(problem, state.beyond), scores_of(problem, state)
        square, bias = inner(state.beta, scores), touching.bias(scores)
        scores += bias
        primal, dual = touching.primal(square, scores), touching.dual(square, state.beta)
        left = primal - dual
        if left <= max(self.precision * (state.value - dual), _ROUNDING * abs(primal)):
            state.rounds += 1
            state.last, state.value = Expansion(state.beta.copy(), bias), problem.value(square, scores)
            beyond = problem.beyond(scores)
            if not np.array_equal(beyond, state.beyond):
                self._touch(problem, state, beyond)
                return
        state.gap = max(state.value - dual, 0.0) / dual if dual > 0.0 else math.inf

    def _touch(self, problem: RampProblem, state: RampState, beyond: np.ndarray) -> None:
        """The boxes of another convex problem, warm from here."""
        touching = Touching(problem, beyond)
        state.beyond = beyond
        state.beta[:] = touching.feasible(state.beta)
        state.lower[:] = np.where(touching.labels < 0.0, -problem.costs, 0.0)
        state.upper[:] = np.where(touching.labels > 0.0, problem.costs, 0.0)
        unshrink(problem, state)
        state.gap = math.inf
