"""Slant and its aggressive variant: the paper's bounds, its steps one by one, and what is delicate about them."""

import numpy as np
import pytest
from scipy.optimize import linprog

from reference.slant_twin import slant
from slackwater.objective.kernels import Kernel
from slackwater.sparsify.demand import Demand, slant_loss
from slackwater.sparsify.slant import Slant, radius_squared
from slackwater.sparsify.slant_aggressive import SlantAggressive
from slackwater.sparsify.steps import OUTSIDE, REACHED
from sparsifying import RBF, matrix_of, spread, teacher, teacher_of, values_of, with_values

interpreted = pytest.mark.interpreted

METHODS = [Slant, SlantAggressive]
BIASES = ["fixed", "learned"]
KERNELS = {
    "rbf": RBF,
    "large": Kernel("polynomial", gamma=0.5, coef0=1.0, degree=2),  # R^2 is not 1
    "linear": Kernel("linear"),
}
ways = pytest.mark.parametrize("bias", BIASES)
methods = pytest.mark.parametrize("method", METHODS)
kernels = pytest.mark.parametrize("kernel", KERNELS)


def smalls(method, found, most=10**9):
    return list(method.sequence(found, most, np.random.default_rng(0)))


def run_of(method, found, bound=10**6):
    """Every step: the coefficients after it, and the vectors at the end."""
    course = method.course(found, Demand.of(found))
    path, ended = [course.field.beta.copy()], None
    while ended != REACHED:
        before = course.steps
        ended, new = course.descend(1)
        if course.steps > before:
            path.append(course.field.beta.copy())
        if ended == OUTSIDE:
            course.admit(new)
        assert course.steps <= bound
    return path, course


@methods
@ways
@kernels
def test_steps_and_vectors_stay_below_the_bound_and_every_step_comes_nearer(method, bias, kernel):
    found = teacher(kernel=KERNELS[kernel])
    sparsifier = method(bias=bias)
    bound = sparsifier.proven_steps(found)
    radius, square = radius_squared(found), found.squared_norm
    K, n = matrix_of(found), found.problem.n_rows
    w = np.zeros(n)
    w[found.model.support] = found.model.coef[0]
    assert square == pytest.approx(w @ K @ w, rel=1e-9)
    if bias == "fixed":
        assert bound == pytest.approx(4.0 * radius * square)
    path, course = run_of(sparsifier, found, bound)
    assert len(path) - 1 == course.steps <= bound
    assert np.count_nonzero(path[-1]) <= (2 if bias == "learned" else 1) * course.steps
    apart = [(beta - w) @ K @ (beta - w) for beta in path]
    assert np.diff(apart).max() <= -0.5 * bound**-1 * apart[0]
    assert len(path) > 3


@methods
@ways
def test_the_slant_loss_of_the_result_is_below_the_hinge_loss_row_by_row(method, bias):
    found = teacher()
    y = found.problem.labels
    last = smalls(method(bias=bias), found)[-1]
    values = values_of(found, last)
    assert (slant_loss(y * values) <= np.maximum(0.0, 1.0 - y * found.values) + 1e-12).all()
    assert Demand.of(found).shortfall(values) <= 0.5


@interpreted
@methods
@ways
@pytest.mark.parametrize(("eta", "eps"), [(0.5, 0.5), (0.25, 0.125), (0.0625, 0.25)])
def test_steps_are_those_of_the_paper(method, bias, eta, eps):
    found = teacher(n=24)
    y, b = found.problem.labels, found.bias
    Q = y[:, None] * matrix_of(found) * y
    expected = slant(Q, y, y * found.values, b, eta, eps, method is SlantAggressive, bias == "learned")
    path, course = run_of(method(eta=eta, eps=eps, bias=bias), found)
    assert len(path) == len(expected) > 5
    for beta, (a, _) in zip(path, expected, strict=True):
        assert beta == pytest.approx(y * a, abs=1e-12)
    assert course.small().bias == pytest.approx(expected[-1][1], abs=1e-9)


@methods
@ways
def test_the_trajectory_brings_every_support_size_and_stops_at_the_most(method, bias):
    found = teacher()
    whole = smalls(method(bias=bias), found)
    sizes = [small.ids.size for small in whole]
    assert sizes[0] == 0 and (np.diff(sizes) >= 1).all() and np.diff(sizes).max() <= 2
    for most in (0, 1, 2, 7):
        few = smalls(method(bias=bias), found, most)
        assert few[-1].ids.size <= most
        assert [small.ids.size for small in few] == sizes[: len(few)]
    for small in whole:
        assert (small.coefficients != 0.0).all() and np.unique(small.ids).size == small.ids.size


def least_shortfall(found, learned):
    """F* by linear programming, the support being all rows."""
    y, n = found.problem.labels, found.problem.n_rows
    K, heights = matrix_of(found), Demand.of(found).heights
    A = np.isfinite(heights)
    column = y[:, None] if learned else np.zeros((n, 1))
    heights = heights - (0.0 if learned else y * found.bias)
    lines = -np.hstack([y[:, None] * K, column, np.ones((n, 1))])[A]
    cost = np.append(np.zeros(n + 1), 1.0)
    limits = [(-10.0, 10.0)] * n + [(None, None)] * 2
    return linprog(cost, A_ub=lines, b_ub=-heights[A], bounds=limits).fun


@ways
def test_the_shortfall_is_that_of_the_linear_program(bias):
    found = teacher(n=30, C=2.0)
    demand, learned = Demand.of(found), bias == "learned"
    assert demand.shortfall(found.values) <= 1e-12
    best = least_shortfall(found, learned)
    assert best <= 1e-9
    for small in smalls(Slant(eta=0.05, eps=0.01, bias=bias), found):
        reached = demand.shortfall(values_of(found, small))
        assert reached >= best
        if learned:  # no other bias is better
            scores = values_of(found, small) - small.bias
            grid = small.bias + np.linspace(-1.0, 1.0, 41)
            assert reached <= min(demand.shortfall(scores + b) for b in grid) + 1e-12
    assert reached <= 0.01 + 1e-12


@methods
def test_responses_are_those_of_the_coefficients(method):
    found = teacher()
    course = method(eta=0.1, eps=0.1).course(found, Demand.of(found))
    ended = None
    while ended != REACHED:
        ended, new = course.descend()
        course.admit(new)
    y, demand = found.problem.labels, Demand.of(found)
    expected = y * (matrix_of(found) @ course.field.beta + found.bias) - demand.heights
    assert course.field.numbers == pytest.approx(expected, abs=1e-12)


@methods
@ways
def test_results_depend_on_the_memory_for_rows_in_rounding_only(method, bias):
    roomy, narrow = teacher(n=200), teacher(n=200, room=1)
    narrow = type(narrow)(roomy.model, narrow.problem)
    assert narrow.gram.capacity == 64
    first, second = (smalls(method(bias=bias, eta=0.1, eps=0.05), found)[-1] for found in (roomy, narrow))
    assert np.array_equal(first.ids, second.ids)
    assert first.coefficients == pytest.approx(second.coefficients, abs=1e-12)


@interpreted
@methods
def test_ties_go_to_the_smallest_row(method):
    X = np.array([[0.0], [5.0], [0.0], [5.0], [9.0], [9.0]])
    found = teacher_of(X, np.array([1.0, -1, 1, -1, 1, 1]), bias="none", kernel=Kernel("rbf", gamma=1.0), C=100.0)
    assert smalls(method(), found)[-1].ids.tolist() == [0, 1, 4]


@interpreted
@methods
@ways
@pytest.mark.parametrize("bias_of_teacher", [0.0, 1.0, -1.0])
def test_a_teacher_that_is_zero(method, bias, bias_of_teacher):
    found = with_values(teacher(n=20), np.zeros(20), bias_of_teacher)
    (small,) = smalls(method(bias=bias), found)
    assert small.ids.size == 0
    labels = found.problem.labels
    expected = bias_of_teacher or labels.mean()
    assert small.bias == pytest.approx(expected)


@methods
def test_a_teacher_that_is_wrong_everywhere_leaves_a_constant(method):
    good = teacher(n=20)
    K, y = matrix_of(good), good.problem.labels
    found = with_values(good, np.linalg.solve(K, -y))
    demand = Demand.of(found)
    assert demand.empty and demand.shortfall(np.zeros(20)) == -np.inf
    (small,) = smalls(method(), found)
    assert small.ids.size == 0 and small.bias == pytest.approx(y.mean())


@methods
def test_rows_at_zero_are_not_asked_for(method):
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = teacher_of(X, np.array([1.0, -1.0, 1.0]), kernel=Kernel("linear"), bias="none")
    found = with_values(found, [1.0, -1.0, 0.0])  # f = (1, -1, 0)
    assert np.isfinite(Demand.of(found).heights).tolist() == [True, True, False]


@methods
@ways
def test_one_class_and_one_row(method, bias):
    one = teacher_of(np.array([[1.0]]), np.array([1.0]), bias="none")
    assert smalls(method(bias=bias), one)[-1].ids.tolist() == [0]
    same = teacher_of(np.arange(6.0)[:, None], np.ones(6), bias="free")
    last = smalls(method(bias=bias), same)[-1]
    assert (values_of(same, last) > 0.0).all()


def test_a_step_without_proof_ends_too():
    found = teacher(n=40)
    for method in METHODS:
        assert smalls(method(eta=16.0), found)


def test_rows_that_are_offered_are_stepped_on_first():
    found = teacher()
    offered = np.arange(0, 80, 2)
    free = type(found)(found.model, found.problem, offered=offered)
    last = smalls(SlantAggressive(), free)[-1]
    alone = smalls(SlantAggressive(), found)[-1]
    assert np.setdiff1d(last.ids, offered).size < alone.ids.size
    assert Demand.of(found).shortfall(values_of(found, last)) <= 0.5 + 1e-12


def test_grids_are_those_of_the_paper():
    found = teacher(n=10)
    assert [each.eta for each in Slant().grid(found)] == [4.0**k for k in range(-4, 3)]
    both = SlantAggressive().grid(found)
    assert {each.eps for each in both} == {2.0**k for k in range(-4, 1)} and len(both) == 35


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"eta": 0.0}, "eta must be positive"),
        ({"eps": float("inf")}, "eps must be positive"),
        ({"bias": "free"}, "bias='free' is not known; it is 'fixed' or 'learned'"),
    ],
)
@methods
def test_wrong_settings(method, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        method(**settings)


@methods
def test_kernel_rows_are_counted_and_shared(method):
    found = teacher(n=300)
    first = smalls(method(), found)
    spent = found.gram.evaluations
    assert spent <= 300 * 300
    assert len(smalls(method(), found)) == len(first)
    assert found.gram.evaluations == spent
    assert spread(first[-1], 300).any()
