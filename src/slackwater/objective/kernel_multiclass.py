"""The problem of Crammer and Singer over a kernel matrix: all classes in one problem, one matrix for all of them.

    J(W) = sum_y ||w_y||^2/2 + sum_i C_i max_y ( [y != y_i] + f_y(x_i) - f_{y_i}(x_i) ),   w_y = sum_j v_j^y Phi(x_j),
    f_y = K v^y.

The dual, its certificate and what they say of two classes are those of ``multiclass`` with f_y instead of <w_y, x_i>.
``weights`` hold a line of coefficients for each class, and 0 for a bias behind them. A penalised bias sits in the
kernel's values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.kernel_problem import OverKernelMatrix, positive_costs
from slackwater.objective.multiclass import OfAllClasses, checked_codes, costliest, worst_short
from slackwater.objective.problem import BiasKind
from slackwater.rows import inner


@dataclass(frozen=True)
class KernelMulticlassProblem(OfAllClasses, OverKernelMatrix):
    """Classification into all classes at once over a kernel matrix."""

    task: ClassVar[str] = "kernel-multiclass"

    gram: Any
    codes: np.ndarray
    n_classes: int
    costs: np.ndarray
    bias: BiasKind = "none"
    known: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return self.n_classes, self.n_rows + 1

    def scores_of_classes(self, coefficients: np.ndarray) -> np.ndarray:
        """K v^y, a line for each class; those of the last certificate are remembered."""
        if self.known and np.array_equal(coefficients, self.known["coefficients"]):
            return self.known["scores"]
        scores = np.empty((self.n_classes, self.n_rows))
        for y, line in enumerate(coefficients):
            scores[y] = self.gram.times(line)
        self.known.update(coefficients=coefficients.copy(), scores=scores)
        return scores

    def at(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and scores."""
        coefficients = np.ascontiguousarray(weights[:, :-1])
        return coefficients, self.scores_of_classes(coefficients)

    def objective(self, at: tuple[np.ndarray, np.ndarray]) -> float:
        """J(W)."""
        coefficients, scores = at
        return 0.5 * inner(coefficients.ravel(), scores.ravel()) + total_loss_of(scores, self.codes, self.costs)

    def slopes(self, at: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """From the scores."""
        beta = np.zeros(self.dual_shape)
        _slopes(at[1], self.codes, self.costs, beta)
        return beta

    def squares(self, beta: np.ndarray) -> float:
        """sum_y beta_y'K beta_y."""
        coefficients = np.ascontiguousarray(beta.T)
        return inner(coefficients.ravel(), self.scores_of_classes(coefficients).ravel())


def kernel_multiclass_problem(
    gram, codes, n_classes: int, C: float = 1.0, weights=None, bias: BiasKind = "none"
) -> KernelMulticlassProblem:
    """Build a problem over a kernel matrix."""
    codes = checked_codes(codes, gram.n_rows, n_classes, bias)
    return KernelMulticlassProblem(gram, codes, n_classes, positive_costs(C, weights, gram.n_rows), bias)


@compiled
def total_loss_of(scores, codes, costs):
    """sum_i C_i max_y ( [y != y_i] + f_y - f_{y_i} ) from scores, a line for each class."""
    total = 0.0
    for i in range(np.uint64(codes.size)):
        total += costs[i] * worst_short(scores[:, i], np.uint64(codes[i]), scores.shape[0])
    return total


@compiled
def _slopes(scores, codes, costs, beta):
    """The subgradient's beta."""
    for i in range(np.uint64(codes.size)):
        own = np.uint64(codes[i])
        worst = costliest(scores[:, i], own, scores.shape[0])
        if worst != own:
            beta[i, own], beta[i, worst] = costs[i], -costs[i]
