"""What every solver is: settings, declared abilities, and how it moves from one round to the next.

A solver never loops to convergence, prints, reads a clock, catches Ctrl-C or decides success: ``training.run`` does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from slackwater.compiled import JIT
from slackwater.objective.certificate import Certificate
from slackwater.objective.losses import LOSSES
from slackwater.objective.problem import Problem
from slackwater.registries import register

_REGISTERED: dict[str, type[Solver]] = {}

#: A round touches at least this many entries, so that small problems do not spend their time between rounds.
ENTRIES_PER_ROUND = 2**18
_TINY = 2**11  # entries: here a round brings a dual solver to rounding error within milliseconds
_EPOCHS_ON_TINY = 4000 if JIT else 200


class UnsupportedError(ValueError):
    """The chosen solver lacks an ability; the sentence says which, and which solvers have it."""


@dataclass
class Counters:
    """Work done so far."""

    epochs: int = 0
    updates: int = 0
    inner_products: int = 0
    row_requests: int = 0
    kernel_evaluations: int = 0


@dataclass
class State:
    """What a solver carries from round to round; each adds its own arrays."""

    counters: Counters


class Pass(NamedTuple):
    """Where one presentation of every row led, and the mean slope that each row had when it was presented."""

    weights: np.ndarray
    slopes: np.ndarray


class Solver(ABC):
    """A published algorithm. Subclasses are frozen dataclasses, their fields the settings; defining one registers it.

    Class variables declare the abilities: ``task`` (or several), ``losses``, ``biases`` and ``penalties`` it can treat,
    the certificate ``rule`` of its dual point, and ``beta``, how far above the wanted gap a cheap estimate may lie to
    ask for a certificate. ``visits`` tells whether rounds go through rows or columns.
    ``optimises`` is False for a solver whose way does not lead to the optimum: its gap is true, but stays. ``convex``
    is False where the problem that it restates is not: certificates then speak of their own model only, and the last
    model is the answer. ``streams`` is True for one that can learn from rows that come and go, by ``present_once``.
    ``grows`` is True for a kernel solver that gains from a start at the optimum of a share of the rows.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    task: ClassVar[str | tuple[str, ...]] = "classification"
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)
    biases: ClassVar[tuple[str, ...]] = ("none", "penalised")
    penalties: ClassVar[tuple[str, ...]] = ("l2",)
    visits: ClassVar[Literal["rows", "columns"]] = "rows"
    rule: ClassVar[str]
    optimises: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    streams: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    beta: float = 1.05

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(_REGISTERED, cls, "solver")

    def restated(self, problem: Any) -> Any:
        """The problem that is really solved; another than the one given where the solver changes the loss."""
        return problem

    @abstractmethod
    def start(self, problem: Any, rng: np.random.Generator, alpha: np.ndarray | None = None) -> Any:
        """The state before the first round; ``alpha``, a point in the dual box, warm-starts it."""

    @abstractmethod
    def advance(self, problem: Any, state: Any) -> None:
        """One round: an epoch, several on tiny data."""

    @abstractmethod
    def model(self, problem: Any, state: Any) -> Any:
        """The predictor as it stands."""

    @abstractmethod
    def dual_point(self, problem: Any, state: Any) -> Any:
        """From what the lower bound follows; None asks for the gradient certificate of the model itself."""

    def estimate(self, problem: Any, state: Any) -> float:
        """A cheap guess of the relative gap, as a trigger only; infinite where there is none."""
        return math.inf

    def certificate_values(self, problem: Any, state: Any) -> float:
        """How many kernel values a certificate would have to compute now."""
        return 0.0

    def review(self, problem: Any, state: Any, certificate: Certificate) -> None:
        """Told the certificate of the state when the loop goes on after one."""

    def present_once(self, problem: Any, rng: np.random.Generator, w: np.ndarray, clock: int) -> Pass:
        """Present every row once, in random order, from the weights ``w`` at the step 1 / (lambda clock)."""
        raise UnsupportedError(f"solver {self.name!r} does not learn from streams")

    def check(self, problem: Problem) -> None:
        """Raise one sentence when the problem needs an ability that this solver lacks."""
        require(self, "task", problem.task, "task")
        require(self, "losses", problem.loss_family, "loss")
        require(self, "biases", problem.bias, "bias")
        require(self, "penalties", problem.penalty_family, "penalty")

    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def registered() -> dict[str, type[Solver]]:
    """The solvers defined so far; ``solvers.registry`` makes that all of them."""
    return _REGISTERED


def tasks_of(solver: Solver | type[Solver]) -> tuple[str, ...]:
    """The tasks that a solver treats."""
    return (solver.task,) if isinstance(solver.task, str) else solver.task


def require(solver: Solver, ability: str, wanted: str, what: str) -> None:
    """Raise unless ``wanted`` is among the solver's declared ``ability``, naming others of its task that have it."""

    def has(able: Solver | type[Solver]) -> bool:
        declared = getattr(able, ability)
        return wanted == declared if isinstance(declared, str) else wanted in declared

    if has(solver):
        return
    own = set(tasks_of(solver))
    peers = {name: cls for name, cls in _REGISTERED.items() if ability == "task" or own & set(tasks_of(cls))}
    able = sorted(name for name, cls in peers.items() if has(cls))
    others = f"solvers that can: {', '.join(able)}" if able else "no solver can"
    raise UnsupportedError(f"solver {solver.name!r} does not treat {what} {wanted!r}; {others}")


def epochs_per_round(problem: Problem) -> int:
    """One epoch, or as many as make a round worth its overhead."""
    work = max(1, problem.rows.n_entries + problem.n_rows)
    return _EPOCHS_ON_TINY if work <= _TINY else max(1, ENTRIES_PER_ROUND // work)
