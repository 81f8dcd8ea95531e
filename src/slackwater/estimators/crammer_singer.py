"""``multi_class="crammer_singer"``: all classes in one problem, with one certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from slackwater.estimators.certified import Part
from slackwater.objective import MulticlassProblem, Problem, loss_family, multiclass_problem, parse_loss
from slackwater.rows import take, with_bias
from slackwater.solvers.choice import choose_multiclass
from slackwater.training import Holdout

KINDS = ("ovr", "crammer_singer")


def check_multi_class(kind: Any, loss: str, kinds: tuple[str, ...] = KINDS) -> None:
    """Raise one sentence unless the kind is known and can be had with the loss."""
    if kind not in kinds:
        raise ValueError(f"multi_class={kind!r} is not known; the kinds are {', '.join(kinds)}")
    if kind == "crammer_singer" and loss_family(parse_loss(loss)) != "hinge":
        raise ValueError(f"multi_class='crammer_singer' needs loss='hinge', got {loss!r}")


def choose(examples, bias: str) -> tuple[str, str]:
    """The name of the solver that ``solver="auto"`` takes, and why."""
    return choose_multiclass(examples.rows, examples.labels.n_classes, bias)


def whole(svm, examples, start: np.ndarray | None) -> Part:
    """The one problem that the fit consists of."""

    def problem() -> MulticlassProblem:
        rows, codes, weights = examples.rows, examples.labels.codes, examples.weights
        if examples.kept is not None:
            rows, codes = take(rows, examples.kept), codes[examples.kept]
            weights = None if weights is None else weights[examples.kept]
        return multiclass_problem(
            rows, codes, examples.labels.n_classes, svm.C, weights, svm._bias(), svm._bias_scale()
        )

    def holdout(problem: Problem) -> Holdout | None:
        if examples.holdout is None:
            return None
        rows = with_bias(take(examples.rows, examples.holdout), problem.rows.bias)
        return Holdout(rows, examples.labels.codes[examples.holdout])

    return Part("training", problem, start, holdout)
