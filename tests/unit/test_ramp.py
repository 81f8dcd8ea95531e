"""The ramp loss by CCCP: its rounds are the twin's, the objective never rises, the certificate is local and true."""

import itertools

import numpy as np
import pytest

from conformance.kernel_problems import whole
from conformance.problems import Table
from kernel_runs import clouds, problem_of
from reference.ramp_twin import ramp_twin, ramp_value
from slackwater import SVC
from slackwater.objective import BoxPoint, GradientPoint, certify, hinge, squared_hinge
from slackwater.objective.ramp import RampProblem, Touching
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.kernel.ramp import Ramp
from slackwater.solvers.kernel.smo import SMO
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
BIASES = ("none", "penalised", "free")


def noisy(n, share=0.15, weighted=True) -> Table:
    """Two clouds with a share of wrong labels."""
    table = clouds(n, weighted=weighted)
    wrong = np.random.default_rng(3).random(n) < share
    return table._replace(labels=np.where(wrong, -table.labels, table.labels))


def rounds_of(problem, solver, most=40):
    """The state after every convex problem, until nothing changes any more, and J there."""
    problem, found = solver.restated(problem), []
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(most):
        before = state.beyond.copy(), state.rounds
        solver.advance(problem, state)
        if state.rounds > before[1]:
            found.append(state.value)
            if np.array_equal(before[0], state.beyond):
                return problem, state, found
    raise AssertionError(f"still moving after {most} rounds")


@interpreted
@pytest.mark.parametrize("s", [-1.0, -0.3, 0.0])
def test_every_round_is_the_twins(s):
    problem = problem_of(noisy(24), hinge(), "none", C=2.0)
    _, state, found = rounds_of(problem, Ramp(s=s))
    alpha, values = ramp_twin(whole(problem), problem.labels, problem.costs, s)
    assert found == pytest.approx(values, rel=1e-9)
    assert state.beta * problem.labels == pytest.approx(alpha, abs=1e-6)
    assert len(values) >= (2 if s == 0.0 else 1)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("s", [-1.0, 0.0])
def test_the_objective_never_rises_and_outliers_count_nothing(bias, s):
    problem, state, found = rounds_of(problem_of(noisy(200), hinge(), bias, C=2.0), Ramp(s=s))
    assert all(later <= earlier * (1.0 + 1e-12) for earlier, later in itertools.pairwise(found))
    assert 2 <= len(found) <= 20
    K = whole(problem)
    margins = problem.labels * (K @ state.last.coefficients + state.last.bias)
    assert state.beyond.any() and np.array_equal(margins < s, state.beyond)
    assert (np.abs(state.last.coefficients[margins < s - 1e-9]) <= 1e-12).all()
    by_definition = ramp_value(K, problem.labels, problem.costs, s, state.last.coefficients, state.last.bias)
    assert state.value == pytest.approx(by_definition, rel=1e-9)
    if bias == "free":
        assert abs(state.beta.sum()) <= 1e-9 * np.abs(state.beta).sum()


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("n", [200, 600])
def test_fewer_support_vectors_than_the_hinge_and_a_closed_gap(bias, n):
    table = noisy(n)
    found = run(problem_of(table, hinge(), bias, C=2.0), Ramp(), Limits(tol=1e-7, max_rounds=300), rng=0)
    convex = run(problem_of(table, hinge(), bias, C=2.0), SMO(), Limits(tol=1e-7), rng=0)
    assert found.status.converged
    assert found.model.n_support < convex.model.n_support
    assert found.certificate.primal < convex.certificate.primal
    assert (found.alpha < 0.0).sum() <= 1 and found.alpha.max() > 0.0


@pytest.mark.parametrize("bias", BIASES)
def test_the_convex_problem_lies_above_and_touches(bias):
    problem = RampProblem.of(problem_of(noisy(40), hinge(), bias, C=2.0), -0.5)
    rng, K = np.random.default_rng(1), whole(problem)

    def values(sigma, b):
        f, square = K @ sigma + b, sigma @ K @ sigma
        return touching.primal(square, f), problem.value(square, f)

    sigma = rng.normal(size=40)
    b = 0.4 if bias == "free" else 0.0
    touching = Touching(problem, problem.beyond(K @ sigma + b))
    assert touching.beyond.any() and not touching.beyond.all()
    above, there = values(sigma, b)
    assert above == pytest.approx(there, rel=1e-12)
    points = [touching.feasible(rng.normal(scale=2.0, size=40)) for _ in range(20)]
    bounds = [touching.dual(point @ K @ point, point) for point in points]
    for other in (*points, sigma, *rng.normal(size=(20, 40))):
        best = touching.bias(K @ other)
        for b in (best, best + rng.normal()) if bias == "free" else (0.0,):
            above, there = values(other, b)
            assert there <= above + 1e-9 and max(bounds) <= above + 1e-9
            assert values(other, best)[0] <= above + 1e-9


@pytest.mark.parametrize("bias", BIASES)
def test_far_out_it_is_the_hinge(bias):
    table = noisy(200)
    found = run(problem_of(table, hinge(), bias), Ramp(s=-1e6), Limits(tol=1e-9), rng=0).certificate
    convex = run(problem_of(table, hinge(), bias), SMO(), Limits(tol=1e-9), rng=0).certificate
    assert (found.primal, found.dual) == pytest.approx((convex.primal, convex.dual), rel=1e-8)


def test_no_model_on_the_way_is_worse_than_the_last_solution():
    solver = Ramp()
    problem = solver.restated(problem_of(noisy(600), hinge(), "free", C=2.0))
    state, K = solver.start(problem, np.random.default_rng(0)), whole(problem)
    for _ in range(25):
        solver.advance(problem, state)
        model = solver.model(problem, state)
        value = ramp_value(K, problem.labels, problem.costs, -1.0, model.coefficients, model.bias)
        assert value <= state.value * (1.0 + 1e-9)
        found = certify(problem, model.weights(0.0), solver.dual_point(problem, state)).certificate
        assert found.primal == pytest.approx(problem.regularisation * value, rel=1e-9)
        assert found.dual <= found.primal


def test_a_certificate_says_that_it_is_local():
    svm = SVC(C=2.0, solver="ramp", tol=1e-6, solver_options={"s": -0.5}).fit(*noisy(120, weighted=False)[:2])
    assert svm.certificate_.rule == "C1+C7 local" and "local lower bound" in str(svm.certificate_)
    assert svm.status_.converged and svm.certificate_.relative_gap <= 1e-6
    weights = np.append(np.zeros(24), 0.0)
    problem = RampProblem.of(problem_of(noisy(24), hinge(), "none"), -1.0)
    with pytest.raises(TypeError, match="no local bound of the ramp loss follows from a GradientPoint"):
        certify(problem, weights, GradientPoint(weights))
    broken = certify(problem, np.full(25, np.nan), BoxPoint(np.zeros(24))).certificate
    assert broken.primal == np.inf and broken.dual == -np.inf


@interpreted
def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"s must be a number of at most 0, got 0.5"):
        Ramp(s=0.5)
    with pytest.raises(ValueError, match=r"precision must lie in \(0, 1\), got 1"):
        Ramp(precision=1)
    with pytest.raises(UnsupportedError, match="solver 'ramp' does not treat loss 'squared_hinge'"):
        Ramp().check(problem_of(noisy(10), squared_hinge(), "none"))
