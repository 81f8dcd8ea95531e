"""Pegasos: step by step as its twin, the facts of both papers, and certificates for every loss."""

import math

import numpy as np
import pytest

from problems import LOSSES, SMOOTH, dense, loss_id, optimum, random_problem, random_table
from reference.pegasos_twin import pegasos_twin
from slackwater.objective import BoxPoint, certify, hinge, linear_problem, lower_bound, primal_value, squared_hinge
from slackwater.objective.losses import slope
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.linear import growing_margin, pegasos
from slackwater.solvers.linear.pegasos import Pegasos, steepest
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
LAST = {"average": False}


@pytest.fixture
def one_epoch(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    for module in (pegasos, growing_margin):
        monkeypatch.setattr(module, "epochs_per_round", lambda problem: 1)


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


def iterate(state) -> np.ndarray:
    return state.scale * state.v


# ------------------------------------------------------------------------------------------------ step by step


@interpreted
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize(("batch", "replacement"), [(1, False), (5, False), (24, False), (1, True), (3, True)])
def test_every_epoch_is_the_twins(one_epoch, batch, replacement, projection):
    problem = random_problem(1, hinge(), "penalised", weighted=True, C=3.0, sparse=batch > 1)
    solver = Pegasos(batch=batch, projection=projection, replacement=replacement, **LAST)
    batches = []
    for state in rounds(problem, solver, 4):
        order = state.visits.order.tolist()
        batches += [order[k : k + batch] for k in range(0, len(order), batch)]
        w, counts = pegasos_twin(
            dense(problem), problem.labels, problem.regularisation, batches, projection, problem.shares
        )
        assert iterate(state) == pytest.approx(w, rel=1e-10, abs=1e-11)
        assert solver.model(problem, state).weights(problem.rows.bias) == pytest.approx(w, rel=1e-10, abs=1e-11)
        assert state.table[:, 1].tolist() == counts.tolist()
        assert state.t == state.counters.epochs * problem.n_rows
    assert (state.jumps > 0) == projection
    assert state.counters.epochs == 4
    assert state.counters.inner_products >= 4 * problem.n_rows
    if not replacement:
        assert counts.max() <= 4


@interpreted
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_smooth_losses_step_by_their_slopes(one_epoch, loss):
    problem = random_problem(2, loss, weighted=True, C=0.1)
    Z, lam, u = dense(problem) * problem.labels[:, None], problem.regularisation, problem.shares
    radius, w, slopes, t = math.sqrt(steepest(loss) / lam), np.zeros(problem.n_weights), np.zeros(problem.n_rows), 0
    for state in rounds(problem, Pegasos(), 3):
        for i in state.visits.order:
            t += 1
            a = slope(loss, float(w @ Z[i]))
            w = (1.0 - 1.0 / t) * w + u[i] * a * Z[i] / (lam * t)
            w *= min(1.0, radius / max(np.linalg.norm(w), 1e-300))
            slopes[i] += a
        assert iterate(state) == pytest.approx(w, rel=1e-9, abs=1e-10)
        assert state.table[:, 1] == pytest.approx(slopes, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_without_projection_it_is_sgd_s(one_epoch, bias):
    """L3 = L7: w = a / (lambda t), t shifted by one."""
    problem = random_problem(3, hinge(), bias, weighted=True, C=2.0)
    one, other = Pegasos(projection=False, **LAST), SGDS(average=False)
    for left, right in zip(rounds(problem, one, 20), rounds(problem, other, 20), strict=True):
        assert left.visits.order.tolist() == right.visits.order.tolist()
        assert left.table[:, 1].tolist() == right.table[:, 1].tolist()
        assert iterate(left) == pytest.approx(right.a / (problem.regularisation * right.t), rel=1e-10, abs=1e-12)
        assert certificate(problem, one, left).dual == pytest.approx(certificate(problem, other, right).dual, rel=1e-9)


def test_a_batch_of_everything_knows_no_order(one_epoch):
    problem = random_problem(4, hinge(), C=0.5)
    solver = Pegasos(batch=problem.n_rows)
    left, right = (last(problem, solver, 10, seed) for seed in (0, 1))
    assert left.visits.order.tolist() != right.visits.order.tolist()
    assert iterate(left) == pytest.approx(iterate(right), rel=1e-11, abs=1e-12)
    beyond = last(problem, Pegasos(batch=10 * problem.n_rows, projection=False), 10)
    assert iterate(beyond) == pytest.approx(iterate(last(problem, Pegasos(batch=24, projection=False), 10)))


def test_a_tiny_scale_is_moved_into_the_vector(one_epoch):
    problem = random_problem(5, hinge(), n=40)
    solver = Pegasos()
    plain, tiny = (last(problem, solver, 2) for _ in range(2))
    tiny.v, tiny.scale = tiny.v * (tiny.scale * 1e9), 1e-9
    for state in (plain, tiny):
        solver.advance(problem, state)
    assert tiny.scale > 0.1
    assert iterate(tiny) == pytest.approx(iterate(plain), rel=1e-10)
    assert tiny.table[:, 1].tolist() == plain.table[:, 1].tolist()


# ------------------------------------------------------------------------------------------------------------- facts


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_steepest_product_of_slope_and_margin(loss):
    margins = np.linspace(-3.0, 3.0, 6001)
    products = [slope(loss, m) * m for m in margins]
    assert steepest(loss) == pytest.approx(max(products), abs=2e-3)
    assert steepest(loss) >= max(products) - 1e-12


def test_the_radii_of_the_papers():
    assert steepest(hinge()) == 1.0
    assert steepest(squared_hinge()) == 0.5


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_no_optimum_lies_outside_the_ball(loss, C):
    problem = random_problem(6, loss, "penalised", weighted=True, C=C)
    assert problem.regularisation * problem.squared_norm(optimum(problem).w) <= steepest(loss) * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_no_step_leaves_the_ball(one_epoch, loss):
    """Epochs of one row are single steps; then whole epochs."""
    single = linear_problem(as_rows(np.array([[3.0, -4.0]])), [1.0], loss, C=5.0)
    for problem in (single, random_problem(7, loss, C=20.0)):
        radius = math.sqrt(steepest(loss) / problem.regularisation)
        jumps = 0
        for state in rounds(problem, Pegasos(), 20):
            assert np.linalg.norm(iterate(state)) <= radius * (1 + 1e-12)
            jumps = state.jumps
        assert jumps > 0


def test_the_excess_falls_like_one_over_t(one_epoch):
    problem = random_problem(8, hinge(), n=200, C=0.5)
    best, excess = optimum(problem).primal, {}
    for state in rounds(problem, Pegasos(), 64):
        excess[state.counters.epochs] = primal_value(problem, iterate(state)) - best
    early, late = (np.mean([excess[e] for e in range(start, 2 * start)]) for start in (4, 32))
    assert 0.0 < late < 0.3 * early


def test_the_sum_of_the_slopes_needs_no_vector_of_its_own(one_epoch):
    """lambda k t w = sum u_i A_i y_i x_i since the last projection, k not dividing n included."""
    problem = random_problem(9, hinge(), "penalised", weighted=True, C=0.2)
    solver = Pegasos(batch=7, projection=False)
    for state in rounds(problem, solver, 12):
        total = solver._now(problem, state).total
        slopes = problem.shares * state.table[:, 1] * problem.labels
        assert total == pytest.approx(slopes @ dense(problem), rel=1e-10, abs=1e-11)


# ------------------------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_bound_lies_below_the_optimum(one_epoch, loss, bias):
    problem = random_problem(10, loss, bias, weighted=True, C=1.5)
    best = optimum(problem).primal
    for solver in (Pegasos(), Pegasos(replacement=True), Pegasos(batch=7, suffix=False)):
        for state in rounds(problem, solver, 25):
            found = certificate(problem, solver, state)
            assert found.dual <= best * (1 + 1e-10) and found.primal >= best * (1 - 1e-10)
            assert found.rule == "C2"
            bound = state.windows.promise(solver._now(problem, state), problem.regularisation)[0]
            if not solver.replacement and solver.suffix:
                # The sums miss a little: the mean of a square is not the square of the mean.
                assert bound <= lower_bound(problem, solver.dual_point(problem, state)) + 1e-9 * abs(bound)


@pytest.mark.parametrize("settings", [{}, {"batch": 5}, {"projection": False}, {"replacement": True}, LAST], ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_one_per_cent_is_certified(loss, settings):
    problem = random_problem(11, loss, "penalised", weighted=True, n=60, C=0.3)
    answer = run(problem, Pegasos(**settings), Limits(tol=0.01, max_rounds=60), rng=1)
    assert answer.status.converged, answer.status
    best = optimum(problem).primal
    assert best * (1 - 1e-10) <= answer.certificate.primal <= 1.01 * best
    again = certify(problem, answer.model.weights(problem.rows.bias), BoxPoint(answer.alpha)).certificate
    assert again.relative_gap == pytest.approx(answer.certificate.relative_gap, rel=1e-9)


def test_no_promise_while_it_projects(one_epoch):
    problem = random_problem(12, hinge(), C=1e4)
    solver = Pegasos()
    for state in rounds(problem, solver, 3):
        assert state.jumps > 0
        assert solver.estimate(problem, state) == math.inf
        assert math.isfinite(certificate(problem, solver, state).dual)


def test_the_estimate_is_near_the_gap(one_epoch):
    problem = random_problem(15, hinge(), n=400, d=6, C=0.5)
    solver = Pegasos()
    ratios = [
        solver.estimate(problem, state) / certificate(problem, solver, state).relative_gap
        for state in rounds(problem, solver, 60)
    ][20:]
    assert 0.5 < min(ratios) and max(ratios) < 6.0


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_warm_start_keeps_what_it_is_given(one_epoch, loss, batch):
    problem = random_problem(16, loss, "penalised", weighted=True, n=50, C=2.0)
    best, solver = optimum(problem), Pegasos(batch=batch)
    state = solver.start(problem, np.random.default_rng(0), best.alpha)
    found = certificate(problem, solver, state)
    assert found.primal == pytest.approx(best.primal, rel=1e-5)
    assert found.dual == pytest.approx(best.dual, rel=1e-5)
    cold = certificate(problem, solver, last(problem, solver, 1))
    solver.advance(problem, state)
    warm = certificate(problem, solver, state)
    assert warm.dual <= best.primal * (1 + 1e-10)
    assert warm.gap < 0.5 * cold.gap


@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=loss_id)
@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_size_of_numbers(one_epoch, loss, size, dtype):
    X, y = random_table(np.random.default_rng(23))
    problem = linear_problem(as_rows((size * X).astype(dtype)), y, loss, bias="penalised")
    solver = Pegasos()
    for state in rounds(problem, solver, 30):
        found = certificate(problem, solver, state)
        assert math.isfinite(found.dual) and math.isfinite(found.primal)
        assert found.dual <= found.primal
        assert not math.isnan(solver.estimate(problem, state))


def test_what_it_refuses():
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        Pegasos(batch=0)
    with pytest.raises(UnsupportedError, match="solver 'pegasos' does not treat bias 'free'"):
        Pegasos().check(random_problem(1, hinge(), "free"))
