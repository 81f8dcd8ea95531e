"""The best predictor on given vectors: the SVM with the squared hinge, restricted to their span (restricted.py).

min over beta, b of  ||w||^2/2 + sum_i C_i max(0, 1 - y_i f(x_i))^2,
f = <w, Phi> + b,   w = sum_j beta_j Phi(v_j).
"""

from __future__ import annotations

import numpy as np

from slackwater.sparsify.contract import Small, Teacher
from slackwater.sparsify.restricted import Restricted

_LEAST = 1e-10  # of R^2: a vector that adds less to the span of those before it is left out


def refit(teacher: Teacher, ids: np.ndarray) -> Small:
    """The predictor on these training rows, trained to the teacher's labels."""
    problem, gram = teacher.problem, teacher.gram
    machine = Restricted(problem, ids.size, biased=problem.bias == "free")
    least, taken = _LEAST * float(np.abs(gram.diagonal).max(initial=0.0)), np.empty(0, dtype=np.int64)
    for start in range(0, ids.size, gram.capacity):
        part = ids[start : start + gram.capacity]
        for i, row in zip(part, gram.rows(part), strict=True):
            with_it = np.append(taken, i)
            if machine.extend(row, row[with_it].astype(np.float64), 0.0, least):
                taken = with_it
    machine.optimise()
    kept = np.flatnonzero(machine.u)
    return Small(machine.u[kept], float(machine.bias), taken[kept])
