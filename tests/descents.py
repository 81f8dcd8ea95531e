"""Moving a solver round by round."""

import numpy as np


def rounds(problem, solver, count, seed=0, alpha=None):
    """The states after 1, 2, .. rounds: one and the same object, moved on."""
    state = solver.start(problem, np.random.default_rng(seed), alpha)
    for _ in range(count):
        solver.advance(problem, state)
        yield state
