"""Kernel perceptron: every mistake is stored.

Problem    none that it minimises: separate the examples as they come, with few mistakes.
Update     an example with y f(x) <= 0 is stored: alpha += 1, f <- f + y K(x, .).
           Hypotheses w_1, .., w_T, one after each example, give the predictor: the last one; their average; the vote of
           all; the one that survived most examples.
State      alpha by the order of the mistakes, the time of each.
Cost       at most M kernel values an example, M mistakes so far; and those among the examples of a block.
Certificate  C5: alpha over the stored examples, rescaled; valid, and loose.

On separable data M <= R^2 ||u||^2 for every u with margins of at least 1.
F. Rosenblatt. The perceptron: a probabilistic model for information storage and organization in the brain.
Psychological Review 65, 1958. Y. Freund, R. E. Schapire. Large margin classification using the perceptron algorithm.
Machine Learning 37, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.models.voted import VotedModel
from slackwater.solvers.online.learner import (
    MISTAKES,
    STEPS,
    Active,
    Block,
    Known,
    OnlineLearner,
    OnlineState,
    append,
    score,
)

OUTPUTS = ("last", "averaged", "voted", "longest")


@dataclass(frozen=True)
class KernelPerceptron(OnlineLearner):
    """The perceptron in the space of a kernel, with four kinds of ``output``."""

    name: ClassVar[str] = "kernel-perceptron"
    paper: ClassVar[str] = "Rosenblatt, 1958; Freund, Schapire, Machine Learning 1999"
    repeats: ClassVar[bool] = True

    output: str = "last"

    def __post_init__(self) -> None:
        if self.output not in OUTPUTS:
            raise ValueError(f"output={self.output!r} is not known; the kinds are {', '.join(OUTPUTS)}")

    def learn(self, block: Block, known: Known, signs: np.ndarray, active: Active, scores: np.ndarray) -> None:
        """Store the mistakes."""
        _learn(block, signs, active, scores)

    def coefficients(self, active: Active) -> np.ndarray:
        """Of the last hypothesis, the average or the one that survived longest; a vote has those of the average."""
        columns, signs, survived = history(active)
        if self.output == "last" or columns.size == 0:
            return active.coefficients
        out = np.zeros(active.beta.size)
        if self.output == "longest":
            after = int(np.argmax(survived)) + 1
            np.add.at(out, columns[:after], signs[:after])
        else:
            shares = np.cumsum(survived[::-1])[::-1] / active.counts[STEPS]
            np.add.at(out, columns, signs * shares)
        return out

    def model(self, problem: Any, state: OnlineState) -> Any:
        """A kernel model; for a vote all that was stored, with the order of it."""
        model = super().model(problem, state)
        if self.output != "voted":
            return model
        histories = [history(active) for active in state.outputs]
        steps = max(1, int(state.outputs[0].counts[STEPS]))
        return VotedModel(
            model,
            np.concatenate([columns for columns, _, _ in histories]),
            np.concatenate([signs for _, signs, _ in histories]),
            np.concatenate([survived / steps for _, _, survived in histories]),
            np.array([columns.size for columns, _, _ in histories]),
        )


def history(active: Active) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every mistake in turn the column, the sign, and how many examples the hypothesis after it survived."""
    columns, born = active.order[active.listed], active.born[active.listed]
    ends = np.append(born[1:], active.counts[STEPS] + 1)
    return columns, np.sign(active.beta[columns]), (ends - born).astype(np.float64)


@compiled
def _learn(block, signs, active, scores):
    """y f(x) <= 0: alpha += 1."""
    values, stored = block.values, np.uint64(block.stored)
    for t in range(np.uint64(signs.size)):
        active.counts[STEPS] += 1
        scores[t] = score(values[t], active.beta, stored + t)
        if signs[t] * scores[t] <= 0.0:
            active.counts[MISTAKES] += 1
            append(active, block.homes[t], signs[t])
