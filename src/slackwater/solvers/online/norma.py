"""NORMA: stochastic gradient descent in the space of a kernel, whose oldest terms are dropped.

Problem    min over f of  lambda ||f||^2 / 2 + mean of max(0, rho - y f(x)), by one gradient step an example.
Update     step t: all coefficients <- (1 - eta_t lambda) times them; where y f(x) < rho the example is stored with the
           coefficient eta_t y, and a free bias b <- b + eta_t y. eta_t = eta, eta / sqrt t or 1 / (lambda t).
           Truncation: terms of tau steps and more are dropped, and the oldest beyond the budget. With a constant eta
           what is dropped has the norm R (1 - eta lambda)^tau / lambda at most.
State      coefficients with one factor before them all, in the order of their age.
Cost       at most min(tau, B) kernel values an example, and those among the examples of a block.
Certificate  C5: the coefficients over the stored examples, rescaled; valid, and loose.

J. Kivinen, A. J. Smola, R. C. Williamson. Online learning with kernels. IEEE Trans. Signal Processing 52(8), 2004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from slackwater.compiled import compiled
from slackwater.solvers.online.learner import (
    BIAS,
    END,
    FACTOR,
    FIRST,
    MISTAKES,
    STEPS,
    Active,
    Block,
    Known,
    OnlineLearner,
    append,
    bound,
    drop_oldest,
    require_budget,
    score,
    shrink,
)

SCHEDULES = ("constant", "sqrt", "pegasos")


class Rates(NamedTuple):
    """The settings as the compiled loop takes them."""

    lam: float
    eta: float
    rho: float
    schedule: int  # its place in SCHEDULES
    tau: int
    budget: int


@dataclass(frozen=True)
class Norma(OnlineLearner):
    """Gradient steps; ``schedule`` is "constant", "sqrt" for eta / sqrt t, or "pegasos" for 1 / (lam t)."""

    name: ClassVar[str] = "norma"
    paper: ClassVar[str] = "Kivinen, Smola, Williamson, IEEE Trans. Signal Processing 2004"
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")

    lam: float = 1e-3
    eta: float = 0.3
    schedule: str = "constant"
    rho: float = 1.0
    tau: int | None = None
    budget: int | None = 1000

    def __post_init__(self) -> None:
        require_budget(self.budget)
        for name in ("lam", "eta"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 0.0 <= self.rho < math.inf:
            raise ValueError(f"rho must be finite and at least 0, got {self.rho}")
        if self.tau is not None and self.tau < 1:
            raise ValueError(f"tau must be a number of steps, at least 1, or None; got {self.tau}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule={self.schedule!r} is not known; the kinds are {', '.join(SCHEDULES)}")
        if self.schedule != "pegasos" and not self.eta * self.lam < 1.0:
            raise ValueError(f"eta * lam must lie below 1, got {self.eta * self.lam:g}")

    @property
    def rates(self) -> Rates:
        """For the compiled loop."""
        tau, budget = bound(self.tau), bound(self.budget)
        return Rates(float(self.lam), float(self.eta), float(self.rho), SCHEDULES.index(self.schedule), tau, budget)

    def learn(self, block: Block, known: Known, signs: np.ndarray, active: Active, scores: np.ndarray) -> None:
        """One step for each example."""
        _learn(block, signs, active, scores, self.rates)

    def cost(self, n: int) -> float:
        """C = 1 / (lambda n)."""
        return 1.0 / (self.lam * n)


def truncation(lam: float, eta: float, error: float, radius: float = 1.0) -> int:
    """The tau with which constant steps drop no more than ``error`` in norm; radius^2 bounds K(x, x)."""
    return max(1, math.ceil(math.log(radius / (lam * error)) / -math.log1p(-eta * lam)))


@compiled
def _learn(block, signs, active, scores, rates):
    values, counts, sums, stored = block.values, active.counts, active.sums, np.uint64(block.stored)
    for t in range(np.uint64(signs.size)):
        counts[STEPS] += 1
        eta = _rate(rates, counts[STEPS])
        scores[t] = sums[FACTOR] * score(values[t], active.beta, stored + t) + sums[BIAS]
        margin = signs[t] * scores[t]
        counts[MISTAKES] += margin <= 0.0
        shrink(active, max(0.0, 1.0 - eta * rates.lam))
        if margin < rates.rho:
            append(active, block.homes[t], eta * signs[t] / sums[FACTOR])
            if block.free_bias:
                sums[BIAS] += eta * signs[t]
            if counts[END] - counts[FIRST] > rates.budget:
                drop_oldest(active)
        while counts[FIRST] < counts[END] and active.born[counts[FIRST]] <= counts[STEPS] - rates.tau:
            drop_oldest(active)


@compiled
def _rate(rates, step):
    if rates.schedule == 0:
        return rates.eta
    return rates.eta / math.sqrt(step) if rates.schedule == 1 else 1.0 / (rates.lam * step)
