"""Kernel SGD-s and kernel Pegasos: visit by visit as their twin, as the linear solvers, and the facts of the papers."""

import math

import numpy as np
import pytest

from conformance.kernel_problems import optimum, whole
from problems import random_table
from reference.kernel_counts_twin import kernel_counts_twin
from slackwater.gram import Gram, gram
from slackwater.objective import certify, hinge, linear_problem
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernel_problem import kernel_problem
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.kernel import growing_margin
from slackwater.solvers.kernel.kernel_pegasos import KernelPegasos
from slackwater.solvers.kernel.kernel_sgd_s import KernelSGDS
from slackwater.solvers.linear import growing_margin as linear_growing_margin
from slackwater.solvers.linear.sgd_r import SGDR
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
RBF, LINEAR = Kernel("rbf", gamma=0.4), Kernel("linear")
BOTH = pytest.mark.parametrize("solver", [KernelSGDS(), KernelPegasos()], ids=["sgd-s", "pegasos"])


def make(kernel=RBF, *, n=40, C=2.0, weighted=True, room=2**30, bias="none", seed=1):
    rng = np.random.default_rng(seed)
    X, labels = random_table(rng, n, 4)
    weights = rng.uniform(0.3, 3.0, n) if weighted else None
    points = Points.of(as_rows(X), kernel, np.float64, 1.0 if bias == "penalised" else 0.0)
    return kernel_problem(Gram(points, room), labels, hinge(), C, weights, bias)


@pytest.fixture(autouse=True)
def one_epoch(monkeypatch):
    """Rounds of one epoch, and several blocks in each."""
    monkeypatch.setattr(growing_margin, "_EPOCHS", 1)
    monkeypatch.setattr(growing_margin, "_FIRST_BLOCK", 7)
    monkeypatch.setattr(growing_margin, "_BLOCK", 16)
    monkeypatch.setattr(linear_growing_margin, "epochs_per_round", lambda problem: 1)


def rounds(problem, solver, count, alpha=None, seed=0):
    """The states after 1, 2, .. rounds: one and the same object, moved on."""
    state = solver.start(problem, np.random.default_rng(seed), alpha)
    for _ in range(count):
        solver.advance(problem, state)
        yield state


@interpreted
@pytest.mark.parametrize("solver", [KernelSGDS(suffix=False), KernelPegasos()], ids=["sgd-s", "pegasos"])
def test_every_epoch_is_the_twins(solver):
    problem, orders = make(), []
    K = whole(problem)
    for state in rounds(problem, solver, 6):
        orders.append(state.order.tolist())
        history = kernel_counts_twin(K, problem.labels, problem.regularisation, orders, problem.shares)
        counts, norm, bound = history[-1]
        assert state.count.errors.tolist() == counts.tolist()
        assert state.a[0] == pytest.approx(problem.shares * problem.labels * counts)
        assert state.a[1] == pytest.approx(K @ state.a[0], rel=1e-12, abs=1e-12)
        assert math.sqrt(state.a[0] @ state.a[1]) / (problem.regularisation * state.t) == pytest.approx(norm)
        if not solver.replacement:
            assert state.windows.find(state.ended, problem.regularisation).bound == pytest.approx(bound, rel=1e-10)


@pytest.mark.parametrize(
    ("solver", "linear"), [(KernelSGDS(), SGDS(average=False)), (KernelPegasos(), SGDR(average=False))], ids=str
)
def test_a_linear_kernel_takes_the_way_of_the_linear_solver(solver, linear):
    problem = make(LINEAR)
    same = linear_problem(problem.rows, problem.labels, hinge(), 1.0, problem.costs, "none")
    for kernelised, plain in zip(rounds(problem, solver, 20), rounds(same, linear, 20), strict=True):
        assert kernelised.order.tolist() == plain.visits.order.tolist()
        assert kernelised.count.errors.tolist() == plain.table[:, 1].tolist()
        assert kernelised.a[0] @ problem.rows.values == pytest.approx(plain.a[:-1], rel=1e-9, abs=1e-9)


@BOTH
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_facts_of_every_epoch(solver, bias):
    problem = make(bias=bias, weighted=False)
    best, lam, radius = optimum(problem), problem.regularisation, problem.gram.diagonal.max()
    for state in rounds(problem, solver, 60):
        assert state.count.errors.sum() <= state.t == state.counters.epochs * problem.n_rows
        assert state.counters.updates == state.count.errors.sum()
        norm = math.sqrt(state.a[0] @ state.a[1]) / (lam * state.t)
        assert norm <= math.sqrt((1.0 + (radius / lam - 1.0) / state.t) / lam) * (1.0 + 1e-12)
        if not solver.replacement:
            assert state.count.errors.max() <= state.counters.epochs
        point = solver.dual_point(problem, state)
        found = certify(problem, solver.model(problem, state).weights(), point).certificate
        assert found.dual <= best.primal * (1.0 + 1e-12)
        assert found.primal >= best.dual * (1.0 - 1e-12)


def test_the_estimate_is_the_gap():
    problem, solver = make(), KernelSGDS()
    for state in rounds(problem, solver, 12):
        before = problem.gram.evaluations
        estimate = solver.estimate(problem, state)
        assert problem.gram.evaluations == before
        found = certify(problem, solver.model(problem, state).weights(), solver.dual_point(problem, state)).certificate
        assert estimate == pytest.approx(found.relative_gap, rel=1e-9)


@BOTH
def test_the_model_is_the_better_of_mean_and_last(solver):
    problem = make()
    state = list(rounds(problem, solver, 15))[-1]
    last = certify(problem, np.append(state.a[0] / (problem.regularisation * state.t), 0.0)).certificate.primal
    window = state.windows.find(state.ended, problem.regularisation).weights[0]
    mean = certify(problem, np.append(window, 0.0)).certificate.primal
    chosen = certify(problem, solver.model(problem, state).weights()).certificate.primal
    assert chosen == pytest.approx(min(last, mean), rel=1e-12)
    alone = type(solver)(average=False)
    assert certify(problem, alone.model(problem, state).weights()).certificate.primal == pytest.approx(last, rel=1e-12)


@BOTH
def test_a_small_cache_takes_the_same_way(solver, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 5)
    full, small = make(), make(room=1)
    assert small.gram.capacity == 5
    for one, other in zip(rounds(full, solver, 5), rounds(small, solver, 5), strict=True):
        assert one.count.errors.tolist() == other.count.errors.tolist()
    assert full.gram.evaluations <= full.n_rows**2 < small.gram.evaluations


def test_rounds_may_be_parts_of_an_epoch(monkeypatch):
    monkeypatch.setattr(growing_margin, "_WORK", 0)
    problem, solver = make(n=40), KernelSGDS()
    best = optimum(problem)
    ends = []
    for state in rounds(problem, solver, 9):  # of 16, 16 and 8 visits
        ends.append(state.counters.epochs)
        point, model = solver.dual_point(problem, state), solver.model(problem, state)
        found = certify(problem, model.weights(), point).certificate
        assert found.dual <= best.primal and found.primal >= best.dual
        assert math.isinf(solver.estimate(problem, state)) == (state.position > 0 or found.dual <= 0.0)
    assert ends == [0, 0, 1, 1, 1, 2, 2, 2, 3]


@BOTH
def test_a_warm_start_begins_at_its_point(solver):
    problem = make(C=5.0)
    best = optimum(problem)
    state = solver.start(problem, np.random.default_rng(0), best.alpha)
    found = certify(problem, solver.model(problem, state).weights(), solver.dual_point(problem, state)).certificate
    assert found.primal == pytest.approx(best.primal, rel=1e-6)
    cold, warm = (
        run(problem, solver, Limits(tol=0.0, max_rounds=10), rng=0, alpha=alpha).certificate
        for alpha in (None, best.alpha)
    )
    assert warm.gap < cold.gap


def test_the_gap_closes():
    for solver in (KernelSGDS(), KernelPegasos()):
        found = run(make(), solver, Limits(tol=0.02, max_rounds=2000), rng=0)
        assert found.status.code == "converged"


def test_other_losses_are_refused():
    problem = make(bias="none")
    with pytest.raises(UnsupportedError, match="does not treat bias 'free'"):
        run(kernel_problem(problem.gram, problem.labels, hinge(), 1.0, None, "free"), KernelSGDS())


@BOTH
def test_epochs_without_errors_are_passed_over(solver):
    """With a large C the threshold stays low for long once every example has been drawn."""
    problem = make(Kernel("rbf", gamma=50.0), C=1e4, weighted=False)
    *_, state = rounds(problem, solver, 9)
    assert state.counters.epochs > 9 and state.t == state.counters.epochs * problem.n_rows
    assert (problem.labels * state.a[1]).min() > problem.regularisation * (state.t - problem.n_rows)
    assert state.counters.updates < state.t / 2
    if solver.replacement:
        assert state.count.draws.sum() == state.t


def test_epochs_passed_over_count_in_the_mean():
    problem = make(Kernel("rbf", gamma=50.0), C=1e4, weighted=False)
    state = next(rounds(problem, KernelSGDS(), 1))
    ends = problem.n_rows * np.arange(1, state.counters.epochs + 1)
    assert ends.size > 1
    assert state.path == pytest.approx(state.a * (1.0 / (problem.regularisation * ends)).sum())
