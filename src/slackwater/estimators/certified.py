"""What all estimators share: limits, kinds of intercept, problems trained side by side, what a fit leaves behind."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slackwater.estimators.callbacks import CallbackSupportMixin, FitTask
from slackwater.estimators.compiling import Compiling
from slackwater.estimators.side_by_side import side_by_side
from slackwater.models import LinearModel
from slackwater.objective import BiasKind, Problem
from slackwater.solvers.contract import Solver
from slackwater.solvers.registry import make_solver
from slackwater.training import ADVICE, Holdout, Limits, Observer, ProgressLine, Run, Screen, run
from slackwater.training.stopping import is_number


class Part(NamedTuple):
    """One of the problems that a fit consists of; ``problem`` builds it when its turn has come."""

    label: str  # for the progress line
    problem: Callable[[], Problem]
    start: np.ndarray | None = None  # a dual point as shares of the costs
    holdout: Callable[[Problem], Holdout | None] = lambda problem: None


class Trained(NamedTuple):
    """The answers of a fit's problems, and their dual points as shares of the costs."""

    runs: list[Run]
    shares: list[np.ndarray | None]


class Certified(Compiling, CallbackSupportMixin, BaseEstimator):
    """Base of the estimators; subclasses have the parameters that its methods read."""

    _model_class: type[LinearModel] = LinearModel  # of the linear estimators

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _named_solver(self, choose: Callable[[], tuple[str, str]]) -> Solver:
        """The solver that the parameters ask for; ``choose`` knows the best and why."""
        name, self.solver_reason_ = self.solver, "chosen by the caller"
        if name == "auto":
            name, self.solver_reason_ = choose()
        self.solver_ = name
        return make_solver(name, **(self.solver_options or {}))

    def _check_positive(self, *names: str) -> None:
        for name in names:
            number = getattr(self, name)
            if not (is_number(number) and 0.0 < number < math.inf):
                raise ValueError(f"{name} must be positive and finite, got {number!r}")

    def _limits(self, **more: int | None) -> Limits:
        return Limits(
            tol=self.tol, max_time=self.max_time, max_rounds=self.max_rounds, certify_every=self.certify_every, **more
        )

    def _bias(self) -> BiasKind:
        if isinstance(self.fit_intercept, str):
            if self.fit_intercept == "free":
                return "free"
            raise ValueError(f"fit_intercept={self.fit_intercept!r} is not known; it is True, False or 'free'")
        return "penalised" if self.fit_intercept else "none"

    def _bias_scale(self) -> float | None:
        """The constant feature's value; a free bias lets the problem choose."""
        return None if self._bias() == "free" else float(self.intercept_scaling)

    def _train(self, parts: Sequence[Part], solver: Solver, limits: Limits, callbacks: FitTask | None) -> Trained:
        """Train all problems, in ``n_jobs`` threads."""
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31)).spawn(len(parts))
        shares: list[np.ndarray | None] = [None] * len(parts)
        with ExitStack() as stack:
            watchers = self._watchers(stack, [part.label for part in parts], callbacks)

            def task(number: int):
                def train(limits: Limits, stop: threading.Event) -> Run:
                    part = parts[number]
                    problem = part.problem()
                    answer = run(
                        problem, solver, limits, rng=np.random.default_rng(seeds[number]),
                        alpha=_warm(part.start, problem), holdout=part.holdout(problem), observers=watchers[number],
                        stop=stop,
                    )  # fmt: skip
                    shares[number] = None if answer.alpha is None else answer.alpha / _costs_of(problem)
                    return answer

                return train

            tasks = [task(number) for number in range(len(parts))]
            runs = side_by_side(tasks, limits, effective_n_jobs(self.n_jobs))
        return Trained(runs, shares)

    def _watchers(self, stack: ExitStack, labels: list[str], callbacks: FitTask | None) -> list[list[Observer]]:
        """The observers of each problem."""
        watchers: list[list[Observer]] = [[] for _ in labels]
        if self.verbose:
            screen = stack.enter_context(Screen())
            for watching, label in zip(watchers, labels, strict=True):
                watching.append(ProgressLine(label, screen))
        if callbacks is not None:
            for number, watching in enumerate(watchers):
                watching.append(callbacks.rounds(number))
        return watchers

    def _keep_certificates(self, runs: Sequence[Run]) -> None:
        """The attributes that tell how well training went; those of the worst problem without an s."""
        worst = max(runs, key=lambda r: (not r.status.converged, r.certificate.relative_gap))
        self.certificates_ = [r.certificate for r in runs]
        self.statuses_ = [r.status for r in runs]
        self.histories_ = [r.history for r in runs]
        self.certificate_, self.status_, self.history_ = worst.certificate, worst.status, worst.history
        self.n_iter_ = max(r.epochs for r in runs)

    def _keep_model(self, runs: Sequence[Run], classes: np.ndarray | None, loss: str) -> None:
        """The model of all problems together."""
        self.model_ = self._together([r.model for r in runs], classes, self._facts(runs, loss))

    def _together(self, models: Sequence[Any], classes: np.ndarray | None, meta: dict[str, Any] | None = None) -> Any:
        """One linear model of all problems'; those that have not begun, None, contribute zeros."""
        known = next(model for model in models if model is not None)
        zero = self._model_class(np.zeros_like(known.coef), np.zeros_like(known.intercept))
        models = [zero if model is None else model for model in models]
        return self._model_class(
            np.vstack([m.coef for m in models]), np.concatenate([m.intercept for m in models]), classes, meta or {}
        ).folded()

    def _reported(self, model: LinearModel) -> dict[str, Any]:
        """The attributes that show a model's numbers."""
        shown = {"model_": model, "coef_": model.coef, "intercept_": model.intercept}
        return shown if model.classes is None else shown | {"classes_": model.classes}

    def _facts(self, runs: Sequence[Run], loss: str) -> dict[str, Any]:
        """What a saved model tells of its making."""
        return {"loss": loss, "C": float(self.C), "intercept": self._bias()} | self._outcome(runs)

    def _outcome(self, runs: Sequence[Run]) -> dict[str, Any]:
        """How training went, as a saved model tells it."""
        return {
            "solver": self.solver_,
            "certificates": [asdict(r.certificate) for r in runs],
            "statuses": [{"code": r.status.code, "sentence": r.status.sentence} for r in runs],
            "feature_names": [str(name) for name in getattr(self, "feature_names_in_", [])],
        }

    def _warn(self) -> None:
        """One warning when a limit was hit before the gap, with what would help."""
        if self.status_.limited:
            advice = ADVICE[self.status_.code]
            warnings.warn(f"{type(self).__name__}: {self.status_}; {advice}", ConvergenceWarning, stacklevel=3)


def _costs_of(problem: Problem) -> np.ndarray:
    """C_i, as a column where an example has several dual variables."""
    return problem.costs.reshape(-1, *(1 for _ in problem.dual_shape[1:]))


def _warm(shares: np.ndarray | None, problem: Problem) -> np.ndarray | None:
    """The dual point that takes up these shares of the costs, if it is one for this problem."""
    return shares * _costs_of(problem) if shares is not None and shares.shape == problem.dual_shape else None
