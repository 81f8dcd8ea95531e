"""What can be proven of an online learner's coefficients: rule C5, for the problem on the examples of one call."""

from __future__ import annotations

import numpy as np

from slackwater.gram import Gram, cache_bytes
from slackwater.models import KernelModel
from slackwater.objective import Certificate, DirectionPoint, hinge
from slackwater.objective.certificate import dual_half, rule_of, total_loss
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.rows import take
from slackwater.solvers.online.learner import Arrivals

_SMALL = 2**23  # entries of a kernel matrix that is computed in float64


def online_certificates(model: KernelModel, arrivals: Arrivals, C: float) -> list[Certificate]:
    """For every output P of the model on the arrivals, and the bound of its coefficients for those among them."""
    n = arrivals.rows.n_rows
    scores = model.decision_values(arrivals.rows).reshape(n, -1)
    at_vectors = model.decision_values(model.vectors).reshape(model.n_support, -1) - model.intercept
    certificates = []
    for number, (coef, signs) in enumerate(zip(model.coef, arrivals.signs, strict=True)):
        square = float(coef @ at_vectors[:, number])
        losses = total_loss(hinge(), np.ascontiguousarray(scores[:, number]), signs, np.full(n, C))
        bound, rule = _bound(model, coef, arrivals, C)
        certificates.append(Certificate((0.5 * square + losses) / (C * n), bound / (C * n), rule))
    return certificates


def _bound(model: KernelModel, coef: np.ndarray, arrivals: Arrivals, C: float) -> tuple[float, str]:
    """D / lambda from the arrivals that are stored: each has one alpha, however often it is stored."""
    own = np.flatnonzero((model.support >= arrivals.numbers.min()) & (coef != 0.0))
    if own.size == 0:
        return 0.0, "C5"
    _, firsts, which = np.unique(model.support[own], return_index=True, return_inverse=True)
    p = np.bincount(which, np.abs(coef[own]))
    dtype = np.float64 if p.size**2 <= _SMALL else np.float32
    points = Points.of(take(model.vectors, own[firsts]), model.kernel, dtype, arrivals.shift)
    gram = Gram(points, cache_bytes("auto"))
    problem = kernel_problem(gram, np.sign(coef[own[firsts]]), hinge(), C, None, arrivals.bias)
    point = DirectionPoint(p)
    value = dual_half(problem, point, None).value / problem.regularisation
    return max(value, 0.0), rule_of(problem, point)
