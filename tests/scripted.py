"""For tests of the loop: a solver that plays prepared rounds, a clock that tests turn, an observer that takes notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from problems import optimum
from slackwater.models import LinearModel
from slackwater.objective import BoxPoint
from slackwater.solvers.contract import Counters, Solver, State
from slackwater.training import Observer


class Step(NamedTuple):
    """How far from zero to the optimum the model and the dual point of a round are, and what the solver believes."""

    model: float
    point: float
    estimate: float = math.inf
    moves: bool = True


@dataclass
class ScriptedState(State):
    step: Step
    weights: np.ndarray
    alpha: np.ndarray


@dataclass(frozen=True)
class Scripted(Solver):
    """Plays ``steps``, the last of them for ever. Without a name, it registers nowhere."""

    biases: ClassVar[tuple[str, ...]] = ("none", "penalised", "free")
    rule: ClassVar[str] = "C1"

    steps: Sequence[Step]
    kernel_evaluations: int = 0  # per round
    each_round: Callable[[int], Any] = lambda number: None
    looks: list[int] = field(default_factory=list)  # the rounds whose dual point was asked for
    reviews: list[int] = field(default_factory=list)

    def start(self, problem, rng, alpha=None) -> ScriptedState:
        reference = optimum(problem)
        return ScriptedState(Counters(), Step(0.0, 0.0), reference.w, reference.alpha)

    def advance(self, problem, state) -> None:
        done = state.counters
        state.step = self.steps[min(done.epochs, len(self.steps) - 1)]
        done.epochs += 1
        done.updates += state.step.moves
        done.inner_products += problem.n_rows
        done.kernel_evaluations += self.kernel_evaluations
        self.each_round(done.epochs)

    def model(self, problem, state) -> LinearModel:
        return LinearModel.from_weights(state.step.model * state.weights, problem.rows.bias)

    def dual_point(self, problem, state) -> BoxPoint:
        self.looks.append(state.counters.epochs)
        return BoxPoint(state.step.point * state.alpha)

    def estimate(self, problem, state) -> float:
        return state.step.estimate

    def review(self, problem, state, certificate) -> None:
        self.reviews.append(state.counters.epochs)


class Clock:
    """Stands in for the module ``time`` of the loop; only tests move it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.module = SimpleNamespace(perf_counter=lambda: self.now)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds


class Notes(Observer):
    """Remembers what it was told; asks to stop after round ``stop_at``."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.begun: list[Any] = []
        self.rounds: list[Any] = []
        self.finished: list[Any] = []

    def begin(self, limits) -> None:
        self.begun.append(limits)

    def after_round(self, progress) -> bool:
        self.rounds.append(progress)
        return progress.round == self.stop_at

    def finish(self, run) -> None:
        self.finished.append(run)
