"""Golden vectors and linear programs that kernel solvers share with linear ones: SGD-s in counts, the water level."""

import numpy as np
import pytest

import golden
from conformance.kernel_problems import build
from conformance.problems import Table
from kernel_runs import case_of
from reference.sbp_twin import level_by_program
from slackwater.compiled import random_state
from slackwater.objective import hinge, lower_bound
from slackwater.objective.kernels import Kernel
from slackwater.solvers.kernel import growing_margin
from slackwater.solvers.water import water_level


def test_one_example_has_the_closed_form_in_counts(monkeypatch):
    monkeypatch.setattr(growing_margin, "_EPOCHS", 1)
    known = golden.SGD_S
    case = case_of("kernel-sgd-s", hinge(), "none", suffix=False, average=False)
    problem = build(case, Table(np.array([[1.0]]), np.ones(1)), Kernel("linear"), C=1.0 / float(known.lam))
    solver = case.new()
    state = solver.start(problem, np.random.default_rng(0))
    reached = []
    for _ in range(4):  # epochs without an error are taken at once
        solver.advance(problem, state)
        reached.append(state.t)
        step = state.t - 1
        assert state.count.errors[0] == state.a[0][0] == known.a[step]
        assert solver.model(problem, state).coefficients[0] == pytest.approx(float(known.w[step]), rel=1e-14)
        proven = lower_bound(problem, solver.dual_point(problem, state))
        assert proven == pytest.approx(float(known.dual[step]), abs=1e-14)
    assert reached == [2, 4, 6, 8]


def test_the_water_level_is_that_of_the_linear_program(rng):
    """With ties, with no water, with more than enough."""
    for _ in range(100):
        n = int(rng.integers(1, 12))
        c = np.round(2.0 * rng.normal(size=n)) / 2.0 if rng.random() < 0.6 else rng.normal(size=n)
        volume = float(rng.choice([0.0, 0.05, 1.0, 30.0]))
        best = level_by_program(c, np.ones(n), np.ones(n), volume, free=False)
        found = water_level(c, volume, np.empty(n), random_state(np.random.default_rng(0)))
        assert found == pytest.approx(best, abs=1e-9)
