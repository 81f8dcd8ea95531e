"""The one training loop: it drives any solver from round to round and answers with a certified model.

Solvers only advance. The loop owns the budgets, the clock, Ctrl-C, the certificates and the history. A certificate
costs about two passes over the data, so it is drawn when the solver's own estimate promises the wanted gap, on a
geometric schedule of rounds besides, and at the end. The schedule counts rounds, never seconds: results depend on the
seed alone.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slackwater.models import LinearModel, model_of
from slackwater.objective.certificate import BoxPoint, Certificate, Evaluation, certify
from slackwater.objective.problem import Problem
from slackwater.rows import CSRRows, DenseRows, times
from slackwater.solvers.contract import Solver
from slackwater.training.growing import Growing, grows
from slackwater.training.history import History, Record
from slackwater.training.observers import Observer, Progress, SoFar
from slackwater.training.stopping import Limits, Status, converged, counted, gap_text, interruptible, seconds_text

_SPARSE_SCHEDULE = 4.0  # growth of the rounds between certificates where an estimate tells when to look
_DENSE_SCHEDULE = 1.25  # and where none does
_FIRST_SCHEDULED = 8
_MOST_TRUST = 100.0
_MOST_LOOKING = 0.1  # of the seconds so far, for one certificate under a limit of time
_STALL_ROUNDS, _STALL_CERTIFICATES = 200, 5
_ROUNDING = 1e-12  # a relative gap that float64 cannot shrink reliably


@dataclass(frozen=True)
class Run:
    """What training returns: ``certificate.primal`` is of ``model``; ``alpha`` belongs to the bound."""

    model: Any  # of the problem's kind
    certificate: Certificate
    status: Status
    history: History
    alpha: np.ndarray | None
    rounds: int
    epochs: int


class Holdout(NamedTuple):
    """Examples kept back from training, to watch the error on."""

    rows: DenseRows | CSRRows
    labels: np.ndarray  # -1 or +1; the number of the class where every class has an output

    def error(self, weights: np.ndarray) -> float:
        """The share of wrong signs, or of wrong classes."""
        if weights.ndim == 2:
            chosen = LinearModel.from_weights(weights, self.rows.bias).predict(self.rows)
            return float(np.mean(chosen != self.labels))
        scores = np.empty(self.rows.n_rows)
        times(self.rows, weights, scores)
        return float(np.mean((scores > 0.0) != (self.labels > 0.0)))


def run(
    problem: Problem,
    solver: Solver,
    limits: Limits | None = None,
    *,
    rng: np.random.Generator | int | None = None,
    alpha: np.ndarray | None = None,
    holdout: Holdout | None = None,
    observers: Sequence[Observer] = (),
    stop: threading.Event | None = None,
) -> Run:
    """Train until the certified relative gap is ``limits.tol`` or a limit is met. ``alpha`` warm-starts the solver.

    ``stop`` ends the run after its round; the first Ctrl-C does the same, with the best model so far returned.
    """
    solver.check(problem)
    problem = solver.restated(problem)
    stop = stop or threading.Event()
    loop = _Loop(problem, solver, limits or Limits(), holdout, observers)
    with interruptible(stop):
        return loop.train(np.random.default_rng(rng), alpha, stop)


class _Best:
    """The best model, the best bound and the model with the fewest holdout errors so far.

    Where the problem is not convex a bound speaks of its own model only: the last model is kept, with its bound.
    """

    def __init__(self, problem: Problem, convex: bool) -> None:
        self.convex = convex
        self.weights = np.zeros(problem.weights_shape)
        self.certificate = Certificate(problem.at_zero, 0.0, "C1")
        if problem.bias == "free":  # w = 0 comes with its own best bias
            at_zero = BoxPoint(np.zeros(problem.dual_shape))
            self.certificate, self.weights, _ = certify(problem, self.weights, at_zero)
        self.alpha: np.ndarray | None = None
        self.error = math.inf
        self.looks_without_progress = 0
        self._at_least_error = (self.certificate.primal, self.weights)

    def take(self, certificate: Certificate, weights: np.ndarray, alpha: np.ndarray | None, error: float) -> None:
        """Keep what is better than before."""
        if not self.convex or certificate.dual > self.certificate.dual:
            self.alpha = alpha
        self.certificate, self.weights = self.joined(certificate, weights)
        self.looks_without_progress += 1
        if error < self.error:
            self.error, self.looks_without_progress = error, 0
            self._at_least_error = (certificate.primal, weights)

    def joined(self, certificate: Certificate, weights: np.ndarray) -> tuple[Certificate, np.ndarray]:
        """What is known with this certificate of these weights, and the model to answer with."""
        if not self.convex:
            return certificate, weights
        better = certificate.primal < self.certificate.primal
        return self.certificate.better(certificate), weights if better else self.weights

    def settle_on_holdout(self) -> None:
        """The model is from now on the one with the fewest holdout errors."""
        primal, self.weights = self._at_least_error
        self.certificate = replace(self.certificate, primal=primal)


@dataclass
class _Clock:
    """Seconds inside the solver, and since the start."""

    start: float
    inside: float = 0.0
    last_round: float = 0.0

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    def timed(self, work, *arguments: Any) -> Any:
        """Do the solver's work on the solver's clock."""
        begin = time.perf_counter()
        answer = work(*arguments)
        self.last_round = time.perf_counter() - begin
        self.inside += self.last_round
        return answer


class _Loop:
    def __init__(self, problem, solver: Solver, limits: Limits, holdout: Holdout | None, observers) -> None:
        self.problem, self.solver, self.limits, self.holdout = problem, solver, limits, holdout
        self.observers = observers
        self.history = History()
        self.round = 0
        self.trust = 1.0  # certified gap per estimated gap, as far as known
        self.estimate = math.inf
        self.next_look = 1 if limits.certify_every == 1 else limits.certify_every or _FIRST_SCHEDULED
        self.improved_at = 0  # round of the last smaller gap
        self.looks_since = 0
        self.updates_at_look = -1
        self.certificate_seconds = 0.0
        self.price = math.inf  # seconds per kernel value of a sum, where one has been seen
        self.asked_to_stop = False

    def train(self, rng: np.random.Generator, alpha: np.ndarray | None, stop: threading.Event) -> Run:
        self.clock = _Clock(time.perf_counter())
        self.best = _Best(self.problem, self.solver.convex)
        for observer in self.observers:
            observer.begin(self.limits)
        status = None
        if alpha is None and grows(self.problem, self.solver, self.limits):
            status = self._begin_on_shares(rng, stop)
        else:
            self.state = self.clock.timed(self.solver.start, self.problem, rng, alpha)
        while status is None:
            self.clock.timed(self.solver.advance, self.problem, self.state)
            self.round += 1
            status = self._after_round(stop)
        answer = self._answer(status)
        for observer in self.observers:
            observer.finish(answer)
        return answer

    def _begin_on_shares(self, rng: np.random.Generator, stop: threading.Event) -> Status | None:
        """Start from the optimum of a share of the rows, certified for all of them: the start has summed their rows."""
        gram = self.problem.gram
        requests, evaluations = gram.requests, gram.evaluations
        growing = Growing(self.problem, self.solver, rng, self.limits)

        def halted(growing: Growing) -> bool:
            self.round = growing.rounds
            self._tell(None, lambda: self._joined(growing.evaluation()), lambda: self._model(growing.weights()))
            return stop.is_set() or self.asked_to_stop

        alpha = self.clock.timed(growing.train, lambda: self.clock.elapsed, halted)
        before = gram.evaluations
        self.state = self.clock.timed(self.solver.start, self.problem, rng, alpha)
        if gram.evaluations > before:
            self.price = self.clock.last_round / (gram.evaluations - before)
        self.clock.last_round = 0.0
        done = self.state.counters
        done.updates, done.epochs = growing.updates, growing.rounds
        done.row_requests, done.kernel_evaluations = gram.requests - requests, gram.evaluations - evaluations
        self.estimate = self.solver.estimate(self.problem, self.state)
        asked = ("interrupted", "stopped by an observer") if self.asked_to_stop else None
        return self._verdict(self._look(), asked or self._exhausted(stop))

    def _after_round(self, stop: threading.Event) -> Status | None:
        """Look, certify where it is time, tell the observers, decide."""
        self.estimate = self.solver.estimate(self.problem, self.state)
        ending = self._exhausted(stop)
        due = self._promising() or (self.round >= self.next_look and self._affordable())
        record = self._look() if ending or due else None
        status = self._verdict(record, ending)
        self._tell(record, self._so_far, self._latest)
        if status is None and self.asked_to_stop:
            if record is None:
                self._look()
            return self._ended("interrupted", "stopped by an observer")
        if status is None and record is not None:
            self.solver.review(self.problem, self.state, self.best.certificate)
        return status

    def _tell(self, record: Record | None, so_far: Callable[[], SoFar], latest: Callable[[], Any]) -> None:
        """Tell the observers; each may ask to stop."""
        best = self.best
        progress = Progress(
            self.round, self.clock.elapsed, self.estimate, best.certificate, record, so_far, best.alpha, self.limits,
            latest,
        )  # fmt: skip
        asked = [observer.after_round(progress) for observer in self.observers]
        self.asked_to_stop = self.asked_to_stop or any(asked)

    def _promising(self) -> bool:
        """The estimate, corrected by what the last certificate taught, is near the wanted gap (or not a number)."""
        return not self.estimate * self.trust > self.solver.beta * max(self.limits.tol, _ROUNDING)

    def _exhausted(self, stop: threading.Event) -> tuple[str, str] | None:
        """The budget that is used up: code and words."""
        limits = self.limits
        if stop.is_set():
            return "interrupted", "interrupted"
        if limits.max_rounds is not None and self.round >= limits.max_rounds:
            return "max_rounds", f"limit of {counted(limits.max_rounds, 'round')}"
        if limits.max_time is not None and self._ahead() > limits.max_time:
            return "max_time", f"time limit of {seconds_text(limits.max_time)} after {counted(self.round, 'round')}"
        spent = self.state.counters.kernel_evaluations
        if limits.max_kernel_evaluations is not None and spent >= limits.max_kernel_evaluations:
            return "max_kernel_evaluations", f"limit of {counted(limits.max_kernel_evaluations, 'kernel evaluation')}"
        return None

    def _ahead(self) -> float:
        """The seconds at which a run that goes on for a round would end."""
        return self.clock.elapsed + self.clock.last_round + self._seconds_of_a_look()

    def _seconds_of_a_look(self) -> float:
        """What a certificate would take now: as long as the last, or as so many kernel values took the solver."""
        values, done = self.solver.certificate_values(self.problem, self.state), self.state.counters.kernel_evaluations
        price = min(self.price, self.clock.inside / done if done else math.inf)
        return max(self.certificate_seconds, price * values if values else 0.0)

    def _affordable(self) -> bool:
        """Whether a scheduled certificate leaves most of the time to the solver, where time is limited."""
        if self.limits.max_time is None or self.limits.certify_every is not None:
            return True
        return self._seconds_of_a_look() <= _MOST_LOOKING * self.clock.elapsed

    def _look(self) -> Record:
        """Certify the state and measure the holdout error."""
        begin = time.perf_counter()
        counters = self.state.counters
        certificate, weights, alpha = self._evaluate()
        error = self.holdout.error(weights) if self.holdout is not None else math.nan
        before = self.best.certificate.relative_gap
        self.best.take(certificate, weights, alpha, error)
        after = self.best.certificate
        self._schedule(certificate, after.relative_gap < before)
        record = Record(
            self.round, counters.epochs, self.clock.inside, self.clock.elapsed - self.clock.inside,
            certificate.primal, certificate.dual, after.gap, after.relative_gap, error,
            counters.updates, counters.inner_products, counters.row_requests, counters.kernel_evaluations,
        )  # fmt: skip
        self.history.append(record)
        self.certificate_seconds = time.perf_counter() - begin
        return record

    def _schedule(self, certificate: Certificate, improved: bool) -> None:
        """When to look next, and how far to trust the estimate."""
        gap = certificate.relative_gap
        informed = 0.0 < self.estimate < math.inf
        if informed and 0.0 < gap < math.inf:
            self.trust = min(max(gap / self.estimate, 1.0 / _MOST_TRUST), _MOST_TRUST)
        growth = _SPARSE_SCHEDULE if informed and self.holdout is None else _DENSE_SCHEDULE
        every = self.limits.certify_every
        self.next_look = self.round + every if every else max(self.round + 1, math.ceil(growth * self.round))
        self.looks_since += 1
        if improved:
            self.improved_at, self.looks_since = self.round, 0

    def _verdict(self, record: Record | None, ending: tuple[str, str] | None) -> Status | None:
        """The status to end with, None to go on."""
        if record is None:
            return None
        certificate, limits = self.best.certificate, self.limits
        if certificate.relative_gap <= limits.tol:
            return converged(certificate, limits.tol, self.round)
        if not math.isfinite(record.primal):
            return self._ended("diverged", f"the model stopped being finite in round {self.round}")
        patience = limits.patience
        if patience is not None and self.holdout is not None and self.best.looks_without_progress >= patience:
            self.best.settle_on_holdout()
            looks = counted(patience, "look")
            return self._ended("holdout", f"no smaller holdout error than {self.best.error:.4g} in {looks}")
        if ending is not None:
            return self._ended(*ending)
        still = record.updates == self.updates_at_look
        self.updates_at_look = record.updates
        if still and self.looks_since > 0:  # a mean of the weights may yet be on its way
            return self._ended("stalled", f"nothing moves any more after {counted(self.round, 'round')}")
        if certificate.relative_gap <= _ROUNDING and self.looks_since > 0:
            return self._ended("stalled", f"at the limit of float64 after {counted(self.round, 'round')}")
        waited = self.round - self.improved_at
        if waited >= max(_STALL_ROUNDS, self.round // 2) and self.looks_since >= _STALL_CERTIFICATES:
            return self._ended("stalled", f"no smaller gap in the last {waited} rounds")
        return None

    def _ended(self, code: str, words: str) -> Status:
        return Status(code, f"{words}, {gap_text(self.best.certificate)}")

    def _evaluate(self) -> Evaluation:
        """Certify the state as it is."""
        model = self.solver.model(self.problem, self.state)
        point = self.solver.dual_point(self.problem, self.state)
        return certify(self.problem, model.weights(self.problem.rows.bias), point)

    def _so_far(self) -> SoFar:
        """What an end after this round would return. Who asks pays for it; the run goes on as if nobody had asked."""
        if self.history and self.history[-1].round == self.round:
            return SoFar(self._model(self.best.weights), self.best.certificate)
        return self._joined(self._evaluate())

    def _joined(self, evaluation: Evaluation) -> SoFar:
        """What is known with one more certificate."""
        certificate, weights = self.best.joined(*evaluation[:2])
        return SoFar(self._model(weights), certificate)

    def _latest(self) -> Any:
        """The solver's model as it stands."""
        return self._model(self.solver.model(self.problem, self.state).weights(self.problem.rows.bias))

    def _model(self, weights: np.ndarray) -> Any:
        return model_of(self.problem, weights)

    def _answer(self, status: Status) -> Run:
        alpha, epochs = self.best.alpha, self.state.counters.epochs
        return Run(
            self._model(self.best.weights), self.best.certificate, status, self.history, alpha, self.round, epochs
        )
