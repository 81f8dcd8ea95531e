"""Newton and L-BFGS on smooth losses: directions against matrices, exact ends, gradient certificates."""

import numpy as np
import pytest

from problems import BIASES, SMOOTH, dense, loss_id, optimum, random_problem
from reference.smooth_twin import bfgs_direction, gradient, newton_direction, objective
from slackwater.objective import certify, hinge, huber, linear_problem, smoothed_hinge, squared_hinge
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.linear import lbfgs
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.lbfgs import LBFGS
from slackwater.solvers.linear.newton import Newton
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
SOLVERS = [Newton(), LBFGS()]


@pytest.fixture
def one_step(monkeypatch):
    """Rounds of one step, on tiny problems too."""
    monkeypatch.setattr(lbfgs, "_MOST_ITERATIONS", 1)


def name_of(solver) -> str:
    return solver.name


def start(problem, solver, alpha=None):
    return solver.start(problem, np.random.default_rng(0), alpha)


def signed(problem):
    return dense(problem) * problem.labels[:, None]


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(problem.rows.bias)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


def harder(loss, bias="penalised", n=150):
    """Columns of many sizes: enough steps to see them."""
    table = random_problem(31, loss, bias, n=n, d=8)
    X = dense(table)[:, :-1] * 2.0 ** np.arange(-3, 5)
    return linear_problem(as_rows(X), table.labels, loss, C=1.0, bias=bias)


# ------------------------------------------------------------------------------------------------- both of them


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_the_value_falls_and_the_gap_is_that_of_the_gradient(one_step, loss, bias, solver):
    """Rule C6: P(w) - D = lambda ||G||^2 / 2."""
    problem = random_problem(30, loss, bias, weighted=True)
    state, lam = start(problem, solver), problem.regularisation
    for _ in range(12):
        before = state.value
        solver.advance(problem, state)
        assert state.value <= before * (1.0 + 1e-15)
        found = certificate(problem, solver, state)
        assert found.rule.startswith("C6")
        assert found.primal == pytest.approx(lam * state.value, rel=1e-12)
        assert found.gap == pytest.approx(0.5 * lam * state.squared, rel=1e-6, abs=1e-14)
        assert found.dual <= optimum(problem).primal * (1.0 + 1e-12)
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-4)


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_what_is_known_of_the_point_is_true(one_step, loss, solver):
    problem = random_problem(32, loss, "penalised", weighted=True, sparse=True)
    Z, state = signed(problem), start(problem, solver)
    for _ in range(6):
        assert state.margins == pytest.approx(Z @ state.w, rel=1e-11, abs=1e-12)
        assert state.value == pytest.approx(objective(Z, problem.costs, loss, state.w), rel=1e-12)
        assert state.gradient == pytest.approx(gradient(Z, problem.costs, loss, state.w), rel=1e-9, abs=1e-11)
        solver.advance(problem, state)


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
def test_steps_end_at_the_minimum_of_their_line(one_step, solver):
    """The new gradient is at right angles to the step, which keeps <s, y> > 0."""
    problem = harder(squared_hinge())
    state = start(problem, solver)
    for _ in range(8):
        w, G = state.w.copy(), state.gradient.copy()
        solver.advance(problem, state)
        step = state.w - w
        assert abs(step @ state.gradient) <= 1e-9 * abs(step @ G) + 1e-13 * np.linalg.norm(step)


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_a_free_bias_is_at_its_optimum_after_every_step(one_step, loss, solver):
    problem = random_problem(33, loss, "free", scale=2.0, weighted=True)
    state = start(problem, solver)
    for _ in range(6):
        target, width, cap = loss
        alpha = problem.costs * np.clip((target - signed(problem) @ state.w) / width, 0.0, cap)
        assert abs(alpha @ problem.labels) <= 1e-9 * alpha.sum()
        assert state.gradient[-1] == 0.0
        solver.advance(problem, state)


@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_they_agree_with_dual_coordinate_descent(loss, solver):
    problem = random_problem(34, loss, "penalised", n=100, d=6, C=0.5, weighted=True)
    ours = run(problem, solver, Limits(tol=1e-9, max_rounds=500))
    theirs = run(problem, DCD(), Limits(tol=1e-9, max_rounds=5000))
    assert ours.status.converged
    assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-8)
    assert ours.model.coef == pytest.approx(theirs.model.coef, rel=1e-3, abs=1e-4)


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
def test_a_warm_start_at_the_optimum_has_nothing_to_do(solver):
    problem = random_problem(35, squared_hinge(), "penalised", weighted=True)
    state = start(problem, solver, optimum(problem).alpha)
    assert certificate(problem, solver, state).relative_gap <= 1e-10


@interpreted
@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
def test_at_the_optimum_nothing_moves(solver):
    """One class: w = 0 with the bias at the target is exact where the bias is free."""
    rows = as_rows(np.array([[1.0, 0.5], [0.25, -0.5]]))
    problem = linear_problem(rows, np.ones(2), squared_hinge(), bias="free")
    state = start(problem, solver)
    solver.advance(problem, state)
    assert state.squared == 0.0
    assert state.counters.updates == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=name_of)
def test_the_hinge_is_not_smooth(solver):
    with pytest.raises(UnsupportedError, match="does not treat loss 'hinge'"):
        run(random_problem(1, hinge()), solver, Limits(max_rounds=1))


# ------------------------------------------------------------------------------------------------------- newton


@interpreted
@pytest.mark.parametrize("loss", SMOOTH, ids=loss_id)
def test_newtons_direction_solves_the_equation(loss, monkeypatch):
    """To the last digit when the tolerance of its conjugate gradients is small."""
    monkeypatch.setattr("slackwater.solvers.linear.newton._LOOSEST", 1e-12)
    problem = random_problem(36, loss, "penalised", weighted=True, sparse=True)
    Z, solver = signed(problem), Newton()
    state = start(problem, solver)
    for _ in range(3):
        wanted = newton_direction(Z, problem.costs, loss, state.w)
        assert solver.direction(problem, state) == pytest.approx(wanted, rel=1e-7, abs=1e-9)
        solver.advance(problem, state)


@interpreted
def test_newtons_equation_is_solved_as_exactly_as_the_gap_deserves():
    problem, solver = harder(squared_hinge()), Newton()
    Z, state = signed(problem), start(problem, solver)
    for _ in range(5):
        curved = state.margins < 1.0
        p = solver.direction(problem, state)
        product = p + (Z[curved] @ p * problem.costs[curved] / 0.5) @ Z[curved]
        residual = np.linalg.norm(product + state.gradient) / np.linalg.norm(state.gradient)
        assert residual <= min(0.1, (state.squared / (2.0 * state.value)) ** 0.25) * (1.0 + 1e-6)
        assert p @ state.gradient < 0.0
        solver.advance(problem, state)


@pytest.mark.parametrize("bias", BIASES)
def test_newton_ends_exactly_when_the_short_examples_stay_the_same(bias):
    """Squared hinge: J is then one parabola, and the step goes to its top."""
    problem, solver = random_problem(37, squared_hinge(), bias, n=200, d=6, C=0.5), Newton()
    state, short, same = start(problem, solver), None, 0
    while same < 4:  # the tolerance of the inner iteration falls with the gap
        solver.advance(problem, state)
        now = tuple(state.margins < 1.0)
        same, short = same + 1 if now == short else 0, now
        assert state.counters.updates <= 14
    found = certificate(problem, solver, state)
    assert found.gap <= 1e-14
    assert found.primal == pytest.approx(optimum(problem).primal, rel=1e-11)


@pytest.mark.parametrize("loss", [smoothed_hinge(0.3), huber(0.05)], ids=loss_id)
def test_newton_takes_few_steps_where_the_loss_is_nearly_a_hinge(loss):
    done = run(random_problem(38, loss, n=200, d=6), Newton(), Limits(tol=1e-8, max_rounds=40))
    assert done.status.converged


# -------------------------------------------------------------------------------------------------------- lbfgs


@interpreted
@pytest.mark.parametrize("loss", [squared_hinge(), huber(0.5)], ids=loss_id)
def test_the_two_loops_are_the_bfgs_matrix(one_step, loss):
    problem, solver = harder(loss), LBFGS(memory=4)
    state = start(problem, solver)
    pairs, w, G = [], state.w.copy(), state.gradient.copy()
    for _ in range(8):
        assert solver.direction(problem, state) == pytest.approx(bfgs_direction(pairs[-4:], G), rel=1e-7, abs=1e-10)
        solver.advance(problem, state)
        pairs.append((state.w - w, state.gradient - G))
        w, G = state.w.copy(), state.gradient.copy()
        assert len(state.pairs) == min(4, len(pairs))
        assert all(s @ y > 0.0 for s, y, _ in state.pairs)


def test_pairs_save_steps(one_step):
    problem = harder(squared_hinge())
    rounds = {
        memory: run(problem, LBFGS(memory=memory), Limits(tol=1e-6, max_rounds=3000, certify_every=1)).rounds
        for memory in (1, 10)
    }
    assert rounds[10] < 0.7 * rounds[1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Newton(most_products=0), "most_products must be at least 1, got 0"),
        (lambda: LBFGS(memory=0), "memory must be at least 1, got 0"),
    ],
)
def test_settings_are_checked(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
