"""Points: precision far from the origin, lines of other tables, precomputed kernels and functions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

interpreted = pytest.mark.interpreted


def cover(rng, n=300):
    """Columns as those of covtype: heights and distances in the thousands beside a few zeros and ones."""
    heights = rng.normal(3000.0, 200.0, size=(n, 1))
    distances = rng.gamma(2.0, 900.0, size=(n, 2))
    flags = (rng.random((n, 4)) < 0.3).astype(float)
    return np.hstack((heights, distances, flags)).round()


def block_of(points, rows, ids=slice(None)):
    count = np.arange(rows.n_rows)[ids].size
    return points.values(points.lines(rows, ids), np.empty((count, points.n_rows), dtype=points.dtype))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gamma", [1e-7, 1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rbf_of_float32_data_far_from_the_origin(dtype, gamma, layout, rng):
    X = cover(rng)
    exact = rbf_kernel(X, gamma=gamma)
    points = Points.of(as_rows(layout(X.astype(dtype))), Kernel("rbf", gamma=gamma))
    own = points.values(points.own_lines(np.arange(300)), np.empty((300, 300), dtype=np.float32))
    assert abs(own - exact).max() < 1e-5
    assert abs(block_of(points, as_rows(layout(X.astype(dtype)))) - exact).max() < 1e-5
    assert own.dtype == np.float32


def test_a_common_offset_changes_nothing(rng):
    X = rng.normal(size=(200, 3))
    near, far = (Points.of(as_rows(X + offset), Kernel("rbf", gamma=0.5)) for offset in (0.0, 2.0**20))
    ids = np.arange(50)
    one, other = (p.values(p.own_lines(ids), np.empty((50, 200), dtype=np.float32)) for p in (near, far))
    assert abs(one - other).max() < 2e-5
    assert abs(block_of(far, as_rows(X + 2.0**20), ids) - one).max() < 2e-5
    assert isinstance(far.centre, np.ndarray) and near.centre == 0.0


def test_data_that_a_centre_does_not_help_get_float64_products(rng):
    """Two clouds, each far from their mean."""
    X = rng.normal(size=(200, 3)) + np.where(np.arange(200) % 2, 3000.0, -3000.0)[:, None]
    points = Points.of(as_rows(X.astype(np.float32)), Kernel("rbf", gamma=0.5))
    assert points.rows.dtype == np.float64 and points.dtype == np.float32
    exact = rbf_kernel(X.astype(np.float32).astype(float), gamma=0.5)
    assert abs(block_of(points, as_rows(X.astype(np.float32))) - exact).max() < 1e-5


def test_usual_data_keep_float32_products(rng):
    X = rng.normal(size=(50, 4))
    points = Points.of(as_rows(X), Kernel("rbf", gamma=0.3))
    assert points.rows.dtype == np.float32
    assert Points.of(as_rows(X.astype(np.float32)), Kernel("rbf", gamma=0.3), np.float64).rows.dtype == np.float64


@pytest.mark.parametrize("foreign", [np.float32, np.float64])
@pytest.mark.parametrize("own", [np.float32, np.float64])
def test_lines_of_another_table_in_another_precision(own, foreign, rng):
    X, other = rng.normal(size=(40, 6)).astype(np.float32), rng.normal(size=(7, 6)).astype(np.float32)
    points = Points.of(as_rows(X.astype(own)), Kernel("rbf", gamma=0.3), np.float64)
    for layout in (np.asarray, sp.csr_array):
        found = block_of(points, as_rows(layout(other.astype(foreign))), np.array([6, 0]))
        assert found == pytest.approx(rbf_kernel(other[[6, 0]].astype(float), X.astype(float), gamma=0.3), rel=1e-12)


def test_long_lines_have_squares_in_float64():
    """A float32 sum of so many equal squares would stop growing."""
    X = np.full((2, 2**18), 0.125, dtype=np.float32)
    points = Points.of(as_rows(X), Kernel("linear"), np.float64)
    assert points.lines(as_rows(X), slice(None)).squares.tolist() == [4096.0, 4096.0]


@interpreted
def test_the_constant_feature_of_rows_is_no_column(rng):
    X = rng.normal(size=(5, 3))
    points = Points.of(as_rows(X, bias=3.0), Kernel("linear"), np.float64)
    assert block_of(points, as_rows(X, bias=2.0)) == pytest.approx(X @ X.T, rel=1e-12)


# -------------------------------------------------------------------------------------- precomputed, functions


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_rows_are_the_kernels(dtype, rng):
    K = rng.normal(size=(6, 6)).astype(dtype)
    points = Points.of(as_rows(K), Kernel("precomputed"), dtype, shift=1.0)
    found = points.values(points.own_lines(np.array([4, 1])), np.empty((2, 6), dtype=dtype))
    assert (found == K[[4, 1]] + dtype(1.0)).all()
    assert points.diagonal == pytest.approx(np.diagonal(K).astype(float) + 1.0, rel=1e-12)


@pytest.mark.parametrize(
    "K", [np.zeros((3, 4)), np.zeros((4, 3)), sp.csr_array(np.eye(3))], ids=["wide", "tall", "csr"]
)
def test_what_is_no_square_of_kernel_values_is_refused(K):
    with pytest.raises(ValueError, match="needs the square kernel matrix of the training rows as a dense array, got"):
        Points.of(as_rows(K), Kernel("precomputed"))


@interpreted
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_functions_are_given_blocks_of_rows(layout, rng):
    seen = []

    def products(A, B):
        seen.append((sp.issparse(A), sp.issparse(B)))
        return A @ B.T if isinstance(A, np.ndarray) else (A @ B.T).toarray()

    X = rng.normal(size=(70, 3))
    points = Points.of(as_rows(layout(X)), Kernel("callable", function=products), np.float64)
    assert len(seen) == 3  # blocks of 32 for the diagonal, not 70 calls
    assert points.diagonal == pytest.approx((X**2).sum(axis=1), rel=1e-12)
    assert block_of(points, as_rows(layout(X)), np.array([5, 2])) == pytest.approx(X[[5, 2]] @ X.T, rel=1e-12)
    own = points.values(points.own_lines(np.array([69])), np.empty((1, 70)))
    assert own == pytest.approx(X[[69]] @ X.T, rel=1e-12)
    assert set(seen) == {(layout is not np.asarray,) * 2}


@pytest.mark.parametrize(
    "function", [lambda A, B: 1.0, lambda A, B: np.ones((len(B), len(A) + 1)), lambda A, B: np.ones(len(A))]
)
def test_functions_with_wrong_shapes_are_refused(function):
    with pytest.raises(ValueError, match=r"the kernel function gave an array of shape \(.*\) for 3 and 3 rows"):
        Points.of(as_rows(np.zeros((3, 2))), Kernel("callable", function=function))


def test_functions_with_wrong_shapes_later_are_refused():
    points = Points.of(as_rows(np.zeros((3, 2))), Kernel("callable", function=lambda A, B: np.ones((len(A), len(A)))))
    with pytest.raises(ValueError, match=r"an array of shape \(2, 2\) for 2 and 3 rows"):
        block_of(points, as_rows(np.zeros((2, 2))))
