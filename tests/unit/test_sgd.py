"""SGD-r, SGD-s and SGD-m: step by step as their twins, the facts of the paper, and what their margin errors prove."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import golden
from problems import dense, optimum, random_problem, random_table
from reference.sgd_m_twin import sgd_m_twin
from reference.sgd_s_twin import sgd_s_twin
from slackwater.objective import BoxPoint, CountPoint, certify, hinge, linear_problem, lower_bound
from slackwater.rows import as_rows
from slackwater.solvers.linear import growing_margin
from slackwater.solvers.linear.growing_margin import epochs_ahead
from slackwater.solvers.linear.sgd_m import SGDM
from slackwater.solvers.linear.sgd_r import SGDR
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
ALL = (SGDR(), SGDS(), SGDM())
KINDS = tuple(itertools.product(("none", "penalised"), (False, True)))
PAPER = {"suffix": False, "average": False}


def solver_id(value) -> str | None:
    return getattr(value, "name", None)


every_solver = pytest.mark.parametrize("solver", ALL, ids=solver_id)


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(growing_margin, "epochs_per_round", lambda problem: 1)


def rounds(problem, solver, count, seed=0, alpha=None):
    """The states after 1, 2, .. rounds: one and the same object, moved on."""
    state = solver.start(problem, np.random.default_rng(seed), alpha)
    for _ in range(count):
        solver.advance(problem, state)
        yield state


def last(problem, solver, count, seed=0):
    return list(rounds(problem, solver, count, seed))[-1]


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(problem.rows.bias)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


def weights_of(problem, alpha) -> np.ndarray:
    return (alpha * problem.labels) @ dense(problem)


# ------------------------------------------------------------------------------------------------ step by step


def test_one_example_has_the_closed_form(one_epoch):
    known = golden.SGD_S
    problem = linear_problem(as_rows(np.array([[1.0]])), [1.0], hinge(), C=1.0 / float(known.lam))
    solver = SGDS(**PAPER)
    for step, state in enumerate(rounds(problem, solver, len(known.a))):
        assert state.a[0] == known.a[step]
        assert state.mass == state.table[0, 1] == known.a[step]
        assert solver.model(problem, state).coef[0, 0] == pytest.approx(float(known.w[step]), rel=1e-15)
        proven = lower_bound(problem, solver.dual_point(problem, state))
        assert proven == pytest.approx(float(known.dual[step]), abs=1e-15)
        assert state.windows.promise(solver._now(state), float(known.lam))[0] == pytest.approx(proven, abs=1e-15)


@interpreted
@pytest.mark.parametrize(("bias", "weighted"), KINDS)
def test_every_epoch_of_sgd_s_is_the_twins(one_epoch, bias, weighted):
    problem = random_problem(3, hinge(), bias, weighted=weighted, sparse=weighted)
    solver, orders = SGDS(**PAPER), []
    for state in rounds(problem, solver, 6):
        orders.append(state.visits.order.tolist())
        twin = sgd_s_twin(dense(problem), problem.labels, problem.regularisation, orders, problem.shares)[-1]
        assert state.a == pytest.approx(twin.a, rel=1e-12, abs=1e-13)
        assert state.table[:, 1].tolist() == twin.counts.tolist()
        assert state.mass == pytest.approx(twin.mass, rel=1e-13)
        weights = solver.model(problem, state).weights(problem.rows.bias)
        assert weights == pytest.approx(twin.w, rel=1e-12, abs=1e-13)
        assert lower_bound(problem, solver.dual_point(problem, state)) == pytest.approx(twin.dual, rel=1e-12)
    assert len({tuple(order) for order in orders}) == 6
    assert all(sorted(order) == list(range(problem.n_rows)) for order in orders)
    assert state.counters.epochs == 6
    assert state.counters.inner_products == 6 * problem.n_rows
    assert state.t == 6 * problem.n_rows


@interpreted
@pytest.mark.parametrize("weighted", [False, True])
def test_every_epoch_of_sgd_m_is_the_twins(one_epoch, weighted):
    problem = random_problem(4, hinge(), weighted=weighted, C=2.0)
    solver, orders = SGDM(growth=1.0, **PAPER), []
    for state in rounds(problem, solver, 11):
        orders.append(state.visits.order.tolist())
    a, counts, T, dual = sgd_m_twin(
        dense(problem), problem.labels, problem.regularisation, orders, shares=problem.shares
    )
    assert state.a == pytest.approx(a, rel=1e-11, abs=1e-12)
    assert state.table[:, 1].tolist() == counts.tolist()
    assert state.t == T * problem.n_rows == 35 * problem.n_rows
    assert lower_bound(problem, solver.dual_point(problem, state)) == pytest.approx(dual, rel=1e-11)
    assert state.counters.inner_products == 11 * problem.n_rows


@interpreted
def test_every_epoch_of_sgd_r_follows_its_draws(one_epoch):
    problem = random_problem(5, hinge(), "penalised", weighted=True)
    Z = dense(problem) * problem.labels[:, None]
    a, errors, draws, t = np.zeros(problem.n_weights), np.zeros(problem.n_rows), np.zeros(problem.n_rows), 0
    for state in rounds(problem, SGDR(), 8):
        for i in state.visits.order:
            draws[i] += 1
            if a @ Z[i] <= problem.regularisation * t:
                a, errors[i] = a + problem.shares[i] * Z[i], errors[i] + 1
            t += 1
        assert state.a == pytest.approx(a, rel=1e-12, abs=1e-13)
        assert state.table[:, 1].tolist() == errors.tolist()
        assert state.table[:, 3].tolist() == draws.tolist()
    assert errors.max() > 8  # more margin errors than epochs: outside the box, were they not divided by the draws


def test_without_repeats_sgd_m_is_sgd_s():
    problem = random_problem(6, hinge(), weighted=True, n=60)
    solvers = SGDS(average=False), SGDM(multiplicity=1, average=False)
    plain, repeated = (last(problem, solver, 3) for solver in solvers)
    assert plain.a.tobytes() == repeated.a.tobytes()
    assert plain.table.tobytes() == repeated.table.tobytes()
    assert certificate(problem, solvers[0], plain) == certificate(problem, solvers[1], repeated)


def test_rounds_of_many_epochs_are_the_epochs_one_by_one(monkeypatch):
    problem = random_problem(7, hinge(), n=40)
    monkeypatch.setattr(growing_margin, "epochs_per_round", lambda problem: 50)
    at_once = last(problem, SGDM(), 1)
    monkeypatch.setattr(growing_margin, "epochs_per_round", lambda problem: 1)
    one_by_one = last(problem, SGDM(), 50)
    assert at_once.a.tobytes() == one_by_one.a.tobytes()
    assert at_once.table.tobytes() == one_by_one.table.tobytes()
    assert at_once.counters == one_by_one.counters
    assert [s.epochs for s in at_once.windows.snapshots] == [s.epochs for s in one_by_one.windows.snapshots]


# ---------------------------------------------------------------------------------------------- facts of the paper


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", [SGDS(**PAPER), SGDM(**PAPER)], ids=solver_id)
def test_the_state_is_its_margin_errors(one_epoch, solver, weighted):
    """a = sum u_i I_i z_i; alpha = C I / T lies in the box; w = w(alpha); D = M/(nT) - ||a||^2/(2 lambda n^2 T^2)."""
    problem = random_problem(8, hinge(), "penalised", weighted=weighted, C=3.0)
    lam, n = problem.regularisation, problem.n_rows
    for state in rounds(problem, solver, 30):
        T, errors = state.t / n, state.table[:, 1]
        assert state.a == pytest.approx(weights_of(problem, problem.shares * errors), rel=1e-11, abs=1e-12)
        assert 0 <= errors.min() and errors.max() <= T
        alpha = problem.costs * errors / T
        weights = solver.model(problem, state).weights(problem.rows.bias)
        assert weights == pytest.approx(weights_of(problem, alpha), rel=1e-11, abs=1e-13)
        formula = state.mass / (n * T) - state.a @ state.a / (2 * lam * (n * T) ** 2)
        assert lower_bound(problem, BoxPoint(alpha)) == pytest.approx(formula, rel=1e-11, abs=1e-13)
        assert lower_bound(problem, solver.dual_point(problem, state)) == pytest.approx(formula, rel=1e-11, abs=1e-13)


@every_solver
@pytest.mark.parametrize(("bias", "weighted"), KINDS)
def test_every_bound_lies_below_the_optimum(one_epoch, solver, bias, weighted):
    problem = random_problem(9, hinge(), bias, weighted=weighted, C=1.5)
    best = optimum(problem).primal
    for state in rounds(problem, solver, 40):
        found = certificate(problem, solver, state)
        assert found.dual <= best * (1 + 1e-10) and found.primal >= best * (1 - 1e-10)
        assert found.rule == "C2"


def test_the_norm_is_bounded_at_every_step(one_epoch):
    """||a_t||^2 <= t R^2 + lambda t (t - 1): epochs of one row are single steps; then whole epochs."""
    for problem in (
        linear_problem(as_rows(np.array([[0.3, -0.4]])), [1.0], hinge(), C=3.0),
        random_problem(10, hinge(), C=5.0),
    ):
        lam, R2 = problem.regularisation, (dense(problem) ** 2).sum(axis=1).max()
        for solver in (SGDS(), SGDR()):
            for state in rounds(problem, solver, 40):
                t = state.t
                assert state.a @ state.a <= (t * R2 + lam * t * (t - 1)) * (1 + 1e-12)
                assert np.linalg.norm(state.a / (lam * t)) <= math.sqrt(R2) / lam * (1 + 1e-12)


@every_solver
@pytest.mark.parametrize(("bias", "weighted", "C"), [("none", False, 0.1), ("penalised", True, 1.0), ("none", True, 4)])
def test_one_per_cent_is_certified(solver, bias, weighted, C):
    problem = random_problem(11, hinge(), bias, weighted=weighted, n=60, C=C)
    answer = run(problem, solver, Limits(tol=0.01, max_rounds=60), rng=1)
    assert answer.status.converged, answer.status
    best = optimum(problem).primal
    assert best * (1 - 1e-10) <= answer.certificate.primal <= 1.01 * best
    assert answer.certificate.dual <= best * (1 + 1e-10)
    assert answer.certificate.primal == pytest.approx(
        certify(problem, answer.model.weights(problem.rows.bias), BoxPoint(answer.alpha)).certificate.primal, rel=1e-12
    )


@pytest.mark.parametrize("solver", [SGDS(), SGDM()], ids=solver_id)
def test_a_window_proves_more_than_all_epochs(one_epoch, solver):
    problem = random_problem(12, hinge(), n=300, d=8, C=1.0)
    state = last(problem, solver, 120)
    everything = CountPoint(state.table[:, 1], state.t / problem.n_rows)
    best = optimum(problem).primal
    uniform, window = lower_bound(problem, everything), lower_bound(problem, solver.dual_point(problem, state))
    assert best - window < 0.5 * (best - uniform)


def test_the_mean_iterate_is_the_better_model(one_epoch):
    problem = random_problem(12, hinge(), n=300, d=8, C=1.0)
    state, mean, single = None, [], []
    for state in rounds(problem, SGDS(), 100):
        for solver, values in ((SGDS(), mean), (SGDS(average=False), single)):
            values.append(certificate(problem, solver, state).primal)
    assert np.mean(mean[50:]) - optimum(problem).primal < 0.7 * (np.mean(single[50:]) - optimum(problem).primal)
    last_iterate = SGDS(average=False).model(problem, state).coef[0]
    assert last_iterate == pytest.approx(state.a[:-1] / (problem.regularisation * state.t), rel=1e-15)


def test_draws_are_averaged_one_by_one(one_epoch):
    """What is a margin error at every draw has alpha = C; dividing by T instead proves less."""
    problem = random_problem(13, hinge(), n=200, d=3, C=0.05)
    state = last(problem, SGDR(suffix=False), 40)
    own = SGDR(suffix=False).dual_point(problem, state)
    always = state.table[:, 1] == state.table[:, 3]
    assert always.mean() > 0.3 and np.all(own.counts[always] == 1.0)
    assert np.all(own.counts <= 1.0)
    clipped = CountPoint(state.table[:, 1], state.t / problem.n_rows)
    assert lower_bound(problem, own) > lower_bound(problem, clipped)


# ----------------------------------------------------------------------------------------------------- the estimate


@pytest.mark.parametrize("solver", [SGDS(), SGDM()], ids=solver_id)
def test_the_promised_bound_is_the_certified_one(one_epoch, solver):
    problem = random_problem(14, hinge(), "penalised", weighted=True, n=80)
    looked = 0
    for state in rounds(problem, solver, 60):
        promised, loss = state.windows.promise(solver._now(state), problem.regularisation)
        if state.windows.paused:
            assert solver.estimate(problem, state) == math.inf
            continue
        found = state.windows.find(solver._now(state), problem.regularisation)
        certified = lower_bound(problem, found.point)
        assert certified == pytest.approx(found.bound, rel=1e-6, abs=1e-9)
        assert promised <= found.bound and 0.0 < loss < math.inf
        looked += 1
    assert looked >= 30


def test_the_estimate_is_near_the_gap(one_epoch):
    problem = random_problem(15, hinge(), n=400, d=6, C=0.5)
    ratios = [
        SGDS().estimate(problem, state) / certificate(problem, SGDS(), state).relative_gap
        for state in rounds(problem, SGDS(), 60)
    ][20:]
    assert 0.5 < min(ratios) and max(ratios) < 6.0


def test_no_estimate_right_after_a_certificate(one_epoch):
    problem = random_problem(15, hinge(), n=100)
    solver = SGDS()
    state = last(problem, solver, 64)
    assert solver.estimate(problem, state) < math.inf
    solver.review(problem, state, certificate(problem, solver, state))
    solver.advance(problem, state)
    assert solver.estimate(problem, state) == math.inf
    solver.advance(problem, state)
    assert solver.estimate(problem, state) < math.inf


def test_beta_is_a_setting():
    assert SGDS().beta == 1.05 and SGDS(beta=2.0).beta == 2.0
    assert {"beta", "suffix", "average"} <= set(SGDR().settings())
    problem = random_problem(15, hinge(), n=100)
    eager, patient = (
        run(problem, SGDS(beta=beta), Limits(tol=1e-3, max_rounds=400), rng=0).history for beta in (30.0, 1.0)
    )
    assert len(eager) >= len(patient)


# ----------------------------------------------------------------------------------------------------- a warm start


@every_solver
def test_a_warm_start_keeps_what_it_is_given(one_epoch, solver):
    problem = random_problem(16, hinge(), "penalised", weighted=True, n=50, C=2.0)
    best = optimum(problem)
    state = solver.start(problem, np.random.default_rng(0), best.alpha)
    epochs = epochs_ahead(problem, (dense(problem) ** 2).sum(axis=1))
    assert state.t == epochs * problem.n_rows
    assert solver.model(problem, state).weights(problem.rows.bias) == pytest.approx(best.w, rel=1e-5, abs=1e-6)
    found = certificate(problem, solver, state)
    assert found.primal == pytest.approx(best.primal, rel=1e-5)
    assert found.dual == pytest.approx(best.dual, rel=1e-5)
    cold = certificate(problem, solver, last(problem, solver, 1))
    solver.advance(problem, state)
    warm = certificate(problem, solver, state)
    assert warm.dual <= best.primal * (1 + 1e-10)
    assert warm.relative_gap < 0.25 * cold.relative_gap


def test_a_warm_start_is_put_into_the_box():
    problem = random_problem(16, hinge())
    state = SGDS().start(problem, np.random.default_rng(0), np.full(problem.n_rows, 1e9) * problem.labels)
    epochs = state.t / problem.n_rows
    assert state.table[:, 1].tolist() == np.where(problem.labels > 0, epochs, 0.0).tolist()


# ------------------------------------------------------------------------------------------------- sizes of numbers


@every_solver
@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_size_of_numbers(one_epoch, solver, size, dtype):
    X, y = random_table(np.random.default_rng(23))
    problem = linear_problem(as_rows((size * X).astype(dtype)), y, hinge(), bias="penalised")
    best = None
    for state in rounds(problem, solver, 30):
        found = certificate(problem, solver, state)
        assert math.isfinite(found.dual) and math.isfinite(found.primal)
        assert found.dual <= found.primal
        assert not math.isnan(solver.estimate(problem, state))
        best = found if best is None else best.better(found)
    assert best.dual <= best.primal
    warm = solver.start(problem, np.random.default_rng(0), problem.costs / 2)
    solver.advance(problem, warm)
    assert math.isfinite(certificate(problem, solver, warm).dual)


# --------------------------------------------------------------------------------------------------------- real data


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "C", "epochs"), [(SGDS(), 0.1, 12), (SGDM(), 0.1, 12), (SGDM(), 1.0, 80)])
def test_web_pages_are_certified(real_data, solver, C, epochs):
    with np.load(real_data / "w8a.npz") as file:
        parts = (file["train_data"].astype(np.float32), file["train_indices"], file["train_indptr"])
        X, y = sp.csr_matrix(parts, shape=tuple(file["train_shape"])), file["train_y"].astype(float)
    answer = run(linear_problem(as_rows(X), y, hinge(), C=C), solver, Limits(tol=0.01, max_rounds=epochs), rng=0)
    assert answer.status.converged, answer.status
