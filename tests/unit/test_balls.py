"""CVM and BVM: points join as in their twins, the facts of enclosing balls, the optimum of the squared hinge."""

import numpy as np
import pytest

from conformance.kernel_problems import optimum, whole
from problems import random_table
from reference.balls_twin import bvm_twin, cvm_twin
from slackwater.gram import Gram
from slackwater.objective import certify, hinge, squared_hinge
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.kernel import bvm, cvm
from slackwater.solvers.kernel.bvm import BVM
from slackwater.solvers.kernel.cvm import CVM
from slackwater.training import Limits, run

RBF, LINEAR = Kernel("rbf", gamma=0.4), Kernel("linear")
KERNELS = pytest.mark.parametrize("kernel", [RBF, LINEAR], ids=["constant diagonal", "any diagonal"])


def make(kernel=RBF, *, n=30, C=1.0, weighted=False, bias="penalised", loss=None, seed=4):
    rng = np.random.default_rng(seed)
    X, labels = random_table(rng, n, 3, density=1.0)
    weights = rng.uniform(0.3, 3.0, n) if weighted else None
    points = Points.of(as_rows(X), kernel, np.float64, 1.0 if bias == "penalised" else 0.0)
    return kernel_problem(Gram(points, 2**30), labels, loss or squared_hinge(), C, weights, bias)


def matrix(problem):
    """Kt."""
    y = problem.labels
    return y[:, None] * whole(problem) * y + np.diag(problem.loss.width / problem.costs)


def rounds(problem, solver, count, seed=0):
    state = solver.start(problem, np.random.default_rng(seed))
    for _ in range(count):
        solver.advance(problem, state)
        yield state


@pytest.mark.interpreted
@KERNELS
def test_the_furthest_points_join_one_by_one(kernel, monkeypatch):
    monkeypatch.setattr(cvm, "_CANDIDATES", 1)
    monkeypatch.setattr(cvm, "_EASED", 0.0)
    monkeypatch.setattr(cvm, "_EXACT", 1e-11)
    problem = make(kernel, n=20, weighted=True)
    K = matrix(problem)
    for count, state in enumerate(rounds(problem, CVM(), 10), start=1):
        members, p = cvm_twin(K, int(state.members[0]), count)
        assert state.members.tolist() == members
        assert state.p == pytest.approx(p, abs=1e-6)
        assert state.counters.updates == len(members) - 1


@KERNELS
@pytest.mark.parametrize("sample", [0, 4])
def test_facts_of_every_round(kernel, sample, monkeypatch):
    monkeypatch.setattr(cvm, "_CANDIDATES", 3)
    problem = make(kernel, weighted=True)
    K, best, before = matrix(problem), optimum(problem), 0.0
    for state in rounds(problem, CVM(sample=sample), 25):
        assert (state.p >= 0.0).all() and state.p.sum() == pytest.approx(1.0, rel=1e-12)
        assert np.unique(state.members).size == state.members.size == state.counters.updates + 1
        assert set(np.flatnonzero(state.p)) <= set(state.members)
        assert state.g == pytest.approx(K @ state.p, rel=1e-10, abs=1e-12)
        dual = problem.regularisation / (2.0 * state.p @ state.g)  # D = lambda / (2 p'Kt p)
        found = certify(problem, CVM().model(problem, state).weights(), CVM().dual_point(problem, state)).certificate
        assert found.dual == pytest.approx(dual, rel=1e-10)
        assert before <= dual * (1.0 + 1e-12) and dual <= best.primal * (1.0 + 1e-10)
        assert found.primal >= best.dual * (1.0 - 1e-10)
        assert CVM().estimate(problem, state) == pytest.approx(found.relative_gap, rel=1e-6, abs=1e-10)
        before = dual


@KERNELS
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_it_ends_in_the_optimum_of_the_squared_hinge(kernel, bias):
    problem = make(kernel, n=60, weighted=True, bias=bias)
    found = run(problem, CVM(eps=1e-8), Limits(tol=1e-4, max_rounds=50), rng=1)
    assert found.status.code == "converged"
    assert found.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-4)


def test_a_large_eps_stops_early():
    """All points lie within (1 + eps) times the radius, and fewer have joined."""
    problem, sizes = make(n=120), []
    for eps in (0.05, 1e-6):
        *_, state = rounds(problem, CVM(eps=eps), 40)
        square = state.p @ state.g
        distances = square - 2.0 * state.g + state.eta
        assert (distances <= (1.0 + eps) ** 2 * (state.eta - square) * (1.0 + 1e-6)).all()
        sizes.append(state.members.size)
    assert sizes[0] < sizes[1]


def test_samples_leave_no_point_outside_in_the_end():
    problem = make(n=60)
    found = run(problem, CVM(sample=5), Limits(tol=1e-3, max_rounds=100), rng=2)
    assert found.status.code == "converged"


@pytest.mark.interpreted
@KERNELS
def test_the_ball_moves_as_its_twin(kernel, monkeypatch):
    monkeypatch.setattr(bvm, "_WORK", 20 * 3)
    problem = make(kernel, n=20, weighted=True)
    solver = BVM()
    first = int(np.argmax(solver.start(problem, np.random.default_rng(0)).p))
    way = bvm_twin(matrix(problem), first, 12, solver.eps)
    for k, state in enumerate(rounds(problem, solver, 4), start=1):
        assert state.counters.updates == min(3 * k, len(way))
        assert state.p == pytest.approx(way[min(3 * k, len(way)) - 1], rel=1e-9, abs=1e-12)
        assert state.g == pytest.approx(matrix(problem) @ state.p, rel=1e-9, abs=1e-12)


def test_the_ball_comes_to_rest_with_a_true_gap():
    problem = make(n=60)
    best, found = optimum(problem), run(problem, BVM(), Limits(tol=1e-6, max_rounds=200), rng=0)
    assert found.status.code == "stalled"
    assert found.certificate.dual <= best.primal <= found.certificate.primal
    *_, state = rounds(problem, BVM(), 30)
    square = state.p @ state.g
    assert square - 2.0 * state.g.min() + state.eta <= (1.0 + BVM().eps) ** 2 * state.eta * (1.0 + 1e-12)


@pytest.mark.parametrize("solver", [CVM, BVM])
def test_settings_are_checked(solver):
    with pytest.raises(ValueError, match="eps must lie between 0 and 1, got 0"):
        solver(eps=0.0)
    with pytest.raises(UnsupportedError, match="does not treat loss 'hinge'"):
        run(make(loss=hinge()), solver())
    with pytest.raises(ValueError, match="sample must be at least 0, got -1"):
        CVM(sample=-1)
