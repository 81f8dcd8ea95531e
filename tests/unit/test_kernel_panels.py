"""Products and rbf values by panels, against NumPy; squares of the kernel matrix; the small problem's two solvers."""

import numpy as np
import pytest
import scipy.sparse as sp

from problems import LOSSES, loss_id
from slackwater.compiled import LANES
from slackwater.gram import Gram
from slackwater.objective import bias as bias_module
from slackwater.objective import kernel_panels, optimal_bias
from slackwater.objective.kernel_panels import products, sparse_lines
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.kernel.working_set import improve_pairs, improve_singles

pytestmark = pytest.mark.interpreted


def some_rows(n, d, filled, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < filled)
    X[n // 2] = 0.0
    return X.astype(dtype)


@pytest.mark.parametrize("n", [1, LANES - 1, LANES, 2 * LANES + 3])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_in_one_strip(n, stored, dtype):
    X, Z = some_rows(n, 7, 0.5, dtype), some_rows(9, 7, 0.7, dtype, seed=1)
    out = np.full((9, n), np.nan, dtype=dtype)
    products(sparse_lines(as_rows(stored(Z))), as_rows(stored(X)), out)
    assert np.allclose(out, Z.astype(float) @ X.T.astype(float), atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_products_in_strips_and_rounds(stored, monkeypatch):
    monkeypatch.setattr(kernel_panels, "_STRIP", 10)
    monkeypatch.setattr(kernel_panels, "_LEAST_IN_STRIP", 2)
    monkeypatch.setattr(kernel_panels, "_ROUND", 4)
    X, Z = some_rows(70, 45, 0.5), some_rows(9, 45, 0.7, seed=1)
    lines = sparse_lines(as_rows(stored(Z)))
    assert lines.bounds.shape[1] > 3
    out = np.full((9, 70), np.nan)
    products(lines, as_rows(stored(X)), out)
    assert np.allclose(out, Z @ X.T, atol=1e-13)


def test_products_of_very_many_columns_number_those_of_a_panel_anew(monkeypatch):
    monkeypatch.setattr(kernel_panels, "_WIDE", 50)
    X, Z = some_rows(2 * LANES + 5, 60, 0.02), some_rows(9, 60, 0.1, seed=1)
    out = np.full((9, len(X)), np.nan)
    products(sparse_lines(as_rows(sp.csr_array(Z))), as_rows(sp.csr_array(X)), out)
    assert np.allclose(out, Z @ X.T, atol=1e-13)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_rbf_values_without_a_second_pass(stored):
    X = some_rows(150, 30, 0.3, np.float32)
    points = Points.of(as_rows(stored(X)), Kernel("rbf", gamma=0.2))
    ids = np.array([3, 75, 149, 0])
    found = points.values(points.own_lines(ids), np.empty((4, 150), dtype=np.float32))
    apart = ((X[ids, None].astype(float) - X[None].astype(float)) ** 2).sum(2)
    assert np.allclose(found, np.exp(-0.2 * apart), rtol=3e-6)


@pytest.mark.parametrize("name", ["rbf", "linear", "polynomial", "laplacian", "precomputed"])
def test_the_square_is_the_rows_at_its_own_columns(name):
    X = some_rows(40, 5, 0.8, np.float32)
    rows = as_rows(X if name != "precomputed" else (X @ X.T).copy())
    points = Points.of(rows, Kernel(name, gamma=0.3, coef0=1.0, degree=2))
    ids = np.array([5, 3, 20, 39])
    assert np.allclose(points.square(ids), Gram(points, 2**20).rows(ids)[:, ids], rtol=1e-5)


def test_between_keeps_no_rows_of_a_large_matrix_and_counts_its_values(monkeypatch):
    monkeypatch.setattr("slackwater.gram.gram._SHORT", 30)
    gram = Gram(Points.of(as_rows(some_rows(40, 5, 0.8)), Kernel("rbf")), 2**20)
    K = gram.between(np.array([1, 7]))
    assert gram.evaluations == 4 and (gram.kept.slots == -1).all()
    assert np.allclose(K, gram.square(np.array([1, 7])), rtol=1e-6)


# -------------------------------------------------------------------------------------------- the small problem


def small(seed, n=30):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, 3)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(2))
    return K, np.full(n, 0.1), y, np.where(y < 0, -2.0, 0.0), np.where(y > 0, 2.0, 0.0)


def second_order_pair(K, ridge, beta, lower, upper, v):
    """The pair of algorithms.md K5, in plain NumPy."""
    up, down = beta < upper, beta > lower
    i = int(np.argmax(np.where(up, v, -np.inf)))
    rise = v[i] - v
    bend = K[i, i] + ridge[i] + np.diag(K) + ridge - 2.0 * K[i]
    gain = np.where(down & (rise > 0.0), rise**2 / bend, 0.0)
    return i, int(np.argmax(gain)), v[i] - v[down].min(initial=np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_of_second_order_selection(seed):
    K, ridge, y, lower, upper = small(seed)
    beta, v = np.zeros(y.size), y.copy()
    for _ in range(25):
        expected = second_order_pair(K, ridge, beta, lower, upper, v)
        before = beta.copy()
        assert improve_pairs(K, ridge, beta, lower, upper, v, 1e-9, 1) == 1
        assert set(np.flatnonzero(beta != before)) == set(expected[:2])
        assert np.allclose(v, y - K @ beta - ridge * beta, atol=1e-12)
    steps = improve_pairs(K, ridge, beta, lower, upper, v, 1e-9, 10_000)
    assert steps < 10_000
    assert second_order_pair(K, ridge, beta, lower, upper, v)[2] <= 1e-9
    assert abs(beta.sum()) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_singles_take_the_coordinate_with_the_largest_gain(seed):
    K, ridge, y, lower, upper = small(seed)
    beta, v = np.zeros(y.size), y.copy()
    for _ in range(25):
        bend = np.diag(K) + ridge
        move = np.clip(beta + v / bend, lower, upper) - beta
        before, best = beta.copy(), int(np.argmax(move * v - 0.5 * move**2 * bend))
        assert improve_singles(K, ridge, beta, lower, upper, v, 1e-9, 1) == 1
        assert np.flatnonzero(beta != before).tolist() == [best]
        assert beta[best] == pytest.approx(before[best] + move[best], abs=1e-14)
        assert np.allclose(v, y - K @ beta - ridge * beta, atol=1e-12)
    assert improve_singles(K, ridge, beta, lower, upper, v, 1e-9, 10_000) < 10_000
    free = np.where(v > 0, beta < upper, beta > lower)
    assert np.abs(v[free]).max(initial=0.0) <= 1e-9


# --------------------------------------------------------------------------------------------------- the bias


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_a_sample_of_the_kinks_leaves_the_bias_as_it_is(seed, coarse, loss, monkeypatch):
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(400) * 2.0
    scores = np.round(scores) if coarse else scores
    labels = np.where(rng.random(400) < rng.uniform(0.02, 0.98), 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    costs = rng.choice([0.5, 1.0, 4.0], 400)
    whole = optimal_bias(loss, scores, labels, costs)
    monkeypatch.setattr(bias_module, "_SAMPLE", 10)
    assert optimal_bias(loss, scores, labels, costs) == whole


def test_equal_points_share_a_row_and_lose_it_together():
    X = some_rows(20, 4, 0.8)[np.arange(140) % 14]
    gram = Gram(Points.of(as_rows(X), Kernel("rbf", gamma=0.4), np.float64), 8 * 140 * 8)
    assert gram.capacity == 64
    gram.keep(np.array([3, 17, 5]))
    assert gram.evaluations == 2 * 140
    assert gram.kept.slots[3] == gram.kept.slots[17] == gram.kept.slots[3 + 70] >= 0
    coefficients = np.sin(np.arange(140.0))
    K = np.exp(-0.4 * ((X[:, None] - X[None]) ** 2).sum(2))
    assert np.allclose(gram.times(coefficients), K @ coefficients, atol=1e-12)
    assert gram.evaluations == 14 * 140


def test_rows_that_make_room_are_forgotten_by_all_equal_points():
    X = np.concatenate([some_rows(150, 4, 1.0)] * 2)
    gram = Gram(Points.of(as_rows(X), Kernel("rbf", gamma=0.4), np.float64), 1)
    assert gram.capacity == 64
    gram.keep(np.arange(64))
    gram.keep(np.arange(70, 120))
    assert (gram.kept.slots[:50] < 0).all() and (gram.kept.slots[150:200] < 0).all()
    assert (gram.kept.slots[220:270] >= 0).all()
    assert np.allclose(gram.rows(np.array([3, 153]))[:, 7], np.exp(-0.4 * ((X[3] - X[7]) ** 2).sum()))


def test_long_rows_have_float32_values_of_float64_products():
    X = 1000.0 * some_rows(90, 4, 1.0)
    X[1] = X[0] + 0.5
    points = Points.of(as_rows(X), Kernel("rbf", gamma=0.4))
    assert points.rows.dtype == np.float64 and points.dtype == np.float32
    found = points.values(points.own_lines(np.array([0])), np.empty((1, 90), dtype=np.float32))[0]
    assert np.allclose(found[:2], [1.0, np.exp(-0.4 * 1.0)], rtol=1e-6)
