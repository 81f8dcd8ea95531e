"""What methods with vectors of their own share: sizes to pass on, scores on the training rows, the bias."""

from __future__ import annotations

import numpy as np

from slackwater.objective.kernel_problem import KernelProblem
from slackwater.rows import CSRRows, DenseRows
from slackwater.solvers.kernel.kernel_solver import best_bias
from slackwater.sparsify.contract import Small, Teacher

_BLOCK = 2**24  # kernel values at a time


def ladder(most: int, steps: int = 1) -> list[int]:
    """1, 2, 4, .. and ``most``, the powers of two; with ``steps`` so many sizes from each to the next."""
    sizes, power = {most} if most > 0 else set(), 0
    while 2.0 ** (power / steps) < most:
        sizes.add(round(2.0 ** (power / steps)))
        power += 1
    return sorted(sizes)


def check_least(settings: object, **least: float) -> None:
    """Raise where a setting of this name is smaller than that."""
    for name, bound in least.items():
        if not getattr(settings, name) >= bound:
            raise ValueError(f"{name} must be at least {bound}, got {getattr(settings, name)}")


def scores_of_vectors(problem: KernelProblem, vectors: DenseRows | CSRRows, coefficients: np.ndarray) -> np.ndarray:
    """sum_j coefficients_j K(v_j, x_i) for all training rows x_i, float64."""
    points, scores = problem.gram.points, np.zeros(problem.n_rows)
    step = max(1, _BLOCK // max(1, problem.n_rows))
    for start in range(0, vectors.n_rows, step):
        scores += coefficients[start : start + step] @ rows_of_vectors(problem, vectors, slice(start, start + step))
    problem.gram.evaluations += vectors.n_rows * points.n_rows
    return scores


def rows_of_vectors(problem: KernelProblem, vectors: DenseRows | CSRRows, part: slice) -> np.ndarray:
    """K(v_j, x_i) of some of the vectors, one per line."""
    points = problem.gram.points
    lines = points.lines(vectors, part)
    count = len(range(vectors.n_rows)[part])
    return points.values(lines, np.empty((count, points.n_rows), dtype=points.dtype))


def of_vectors(teacher: Teacher, vectors: DenseRows | CSRRows, coefficients: np.ndarray) -> Small:
    """The predictor, with the best bias on the training rows where the bias is free."""
    problem, bias = teacher.problem, teacher.bias
    if problem.bias == "free":
        bias = best_bias(problem, scores_of_vectors(problem, vectors, coefficients))
    return Small(coefficients, bias, vectors=vectors)
