"""The working set of CSVM: weighted points, the optimum over them, and how two of them become one.

Point j has a label y_j, a coefficient beta_j = y_j alpha_j and a cost C_j, so that 0 <= alpha_j <= cap C_j. Two of one
class are merged into

    zeta = (C_i v_i + C_j v_j) / (C_i + C_j),    C_zeta = (C_i K(zeta, v_i) + C_j K(zeta, v_j)) / K(zeta, zeta),

and alpha_zeta likewise, clipped to its box: the multiples of Phi(zeta) nearest to the two parts of w and of the caps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.compiled import compiled
from slackwater.objective.bias import optimal_bias
from slackwater.objective.certificate import balanced
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.kernels import from_differences, from_products
from slackwater.rows import DenseRows, dense_block
from slackwater.solvers.kernel.working_set import improve_pairs, improve_singles

_STEPS = 200  # of the optimum over the working set, per member


@dataclass(eq=False)
class WorkingSet:
    """The first ``size`` places of the arrays are taken; K is float64."""

    problem: KernelProblem
    vectors: np.ndarray  # (room, d), in the precision and around the centre of the problem's points
    labels: np.ndarray
    costs: np.ndarray
    beta: np.ndarray
    K: np.ndarray
    inside: np.ndarray  # (n,): whether a training row is here, alone or merged with others
    rows: list[np.ndarray] = field(default_factory=list)  # which training rows each member stands for
    bias: float = 0.0

    @classmethod
    def of(cls, problem: KernelProblem, room: int) -> WorkingSet:
        """Nobody in it."""
        vectors = np.zeros((room, problem.rows.n_columns), dtype=problem.rows.dtype)
        labels, costs, beta = np.zeros((3, room))
        inside = np.zeros(problem.n_rows, dtype=bool)
        return cls(problem, vectors, labels, costs, beta, np.zeros((room, room)), inside)

    @property
    def size(self) -> int:
        return len(self.rows)

    def scores(self, ids: np.ndarray) -> np.ndarray:
        """f of some training rows."""
        if not self.size:
            return np.full(ids.size, self.bias)
        dtype = self.problem.gram.points.dtype
        members = self._points(self.vectors[: self.size])
        values = members.values(members.lines(self.problem.rows, ids), np.empty((ids.size, self.size), dtype))
        self.problem.gram.evaluations += values.size
        return values @ self.beta[: self.size] + self.bias

    def add(self, ids: np.ndarray) -> None:
        """Training rows come in, at beta = 0."""
        problem = self.problem
        for i, row in zip(ids, dense_block(problem.rows, ids), strict=True):
            self._put(row, problem.labels[i], problem.costs[i], 0.0, np.array([i]))

    def optimise(self, tolerance: float) -> int:
        """The optimum over the working set, by K5 or its one-variable case, and its bias: how many steps it took."""
        m, loss, free = self.size, self.problem.loss, self.problem.bias == "free"
        K, labels, costs, beta = np.ascontiguousarray(self.K[:m, :m]), self.labels[:m], self.costs[:m], self.beta[:m]
        top = loss.cap * costs
        ridge = np.divide(loss.width, costs, out=np.zeros_like(costs), where=costs > 0.0)  # a cap may have vanished
        if free:
            part = replace(self.problem, labels=labels, costs=costs)
            beta[:] = balanced(part, beta)
        lower, upper = np.where(labels < 0.0, -top, 0.0), np.where(labels > 0.0, top, 0.0)
        v = labels * loss.target - K @ beta - ridge * beta
        improve = improve_pairs if free else improve_singles
        steps = int(improve(K, ridge, beta, lower, upper, v, tolerance, _STEPS * m))
        if free:
            self.bias = optimal_bias(loss, K @ beta, labels, costs).chosen
        return steps

    def drop_idle(self) -> None:
        """Whoever has no coefficient leaves."""
        for j in range(self.size - 1, -1, -1):
            if self.beta[j] == 0.0:
                self.remove(j)

    def nearest(self) -> tuple[float, int, int]:
        """The least ||Phi(v_i) - Phi(v_j)||^2 between two of one class, and which they are: each other's nearest."""
        if self.size < 2:
            return np.inf, 0, 0
        distance, i, j = _nearest_pair(self.K, self.labels, self.size)
        return float(distance), int(i), int(j)

    def merge(self, i: int, j: int) -> None:
        """Two of one class become one."""
        loss, y = self.problem.loss, self.labels[i]
        both = np.array([i, j])
        shares = self.costs[both] / self.costs[both].sum()
        zeta = (shares @ self.vectors[both]).astype(self.vectors.dtype)
        with_both, itself = self._values(zeta, self.vectors[both])
        cost = float(self.costs[both] @ with_both) / itself
        alpha = float(np.clip(y * (self.beta[both] @ with_both) / itself, 0.0, loss.cap * cost))
        rows = np.concatenate((self.rows[i], self.rows[j]))
        self.remove(max(i, j))
        self.remove(min(i, j))
        self._put(zeta, y, cost, y * alpha, rows)

    def remove(self, j: int) -> None:
        """Member j leaves; the last one takes its place."""
        last = self.size - 1
        self.inside[self.rows[j]] = False
        for array in (self.vectors, self.labels, self.costs, self.beta):
            array[j] = array[last]
        self.K[j, : last + 1] = self.K[last, : last + 1]
        self.K[: last + 1, j] = self.K[: last + 1, last]
        self.K[j, j] = self.K[last, last]
        self.rows[j] = self.rows[last]
        self.rows.pop()

    def _put(self, vector: np.ndarray, label: float, cost: float, beta: float, rows: np.ndarray) -> None:
        j = self.size
        self.vectors[j], self.labels[j], self.costs[j], self.beta[j] = vector, label, cost, beta
        self.rows.append(rows)
        self.inside[rows] = True
        line, self.K[j, j] = self._values(vector, self.vectors[:j])
        self.K[j, :j] = self.K[:j, j] = line

    def _values(self, vector: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, float]:
        """K(vector, others), float64, and K(vector, vector)."""
        points, m = self.problem.gram.points, len(others)
        kernel, block = points.kernel, np.empty((1, m), dtype=others.dtype)
        squares, square = np.einsum("ij,ij->i", others, others), np.array([vector @ vector])
        if kernel.of_differences:
            from_differences(kernel, vector[None], DenseRows(others, 0.0), block, 0, m)
        else:
            np.matmul(vector[None], others.T, out=block)
            from_products(kernel, block, square, squares, 0, m)
        self.problem.gram.evaluations += m
        itself = kernel.at_itself(square.astype(np.float64))[0]
        return block[0].astype(np.float64) + points.shift, float(itself) + points.shift

    def _points(self, vectors: np.ndarray) -> Points:
        own = self.problem.gram.points
        return Points.of(DenseRows(vectors, 0.0), own.kernel, own.dtype, own.shift)


@compiled
def _nearest_pair(K, labels, size):
    """The two of one class with the least K_ii + K_jj - 2 K_ij."""
    least, first, second = np.inf, 0, 0
    for i in range(np.uint64(size)):
        row, own, label = K[i], K[i, i], labels[i]
        here = np.inf
        for j in range(i):
            apart = own + K[j, j] - 2.0 * row[j]
            here = min(here, apart if labels[j] == label else np.inf)
        if here < least:
            least, first = here, i
            for j in range(i):
                if labels[j] == label and own + K[j, j] - 2.0 * row[j] == here:
                    second = j
    return least, first, second
