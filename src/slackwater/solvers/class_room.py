"""The room below the caps of Crammer and Singer's dual: what its solvers keep instead of the coefficients.

    r_i^y = C_i [y = y_i] - beta_i^y >= 0,   sum_y r_i^y = C_i:

for every example a point of a simplex, all of it with the own class where beta_i = 0.
"""

from __future__ import annotations

import numpy as np


def room_of(beta: np.ndarray | None, codes: np.ndarray, costs: np.ndarray, n_classes: int) -> np.ndarray:
    """That of beta = 0, or of the given coefficients clipped and scaled to be feasible."""
    room = np.zeros((codes.size, n_classes))
    own = np.arange(codes.size), codes
    if beta is not None:
        np.maximum(-np.asarray(beta, dtype=np.float64), 0.0, out=room)
        room[own] = 0.0
        taken = room.sum(axis=1)
        room *= np.minimum(1.0, costs / np.maximum(taken, np.finfo(float).tiny))[:, None]
    room[own] = np.maximum(costs - room.sum(axis=1), 0.0)
    return room


def coefficients_of(room: np.ndarray, codes: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """beta."""
    beta = -room
    beta[np.arange(codes.size), codes] += costs
    return beta
