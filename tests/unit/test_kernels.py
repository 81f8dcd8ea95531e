"""Kernels: values against scikit-learn's in every layout and precision, parameters, one sentence for each wrong one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels

from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import KERNELS, Kernel, gamma_value, parse_kernel
from slackwater.rows import as_rows

interpreted = pytest.mark.interpreted

#: Each kernel with scikit-learn's name and parameters for it.
PEERS = {
    "linear": (Kernel("linear"), "linear", {}),
    "rbf": (Kernel("rbf", gamma=0.4), "rbf", {"gamma": 0.4}),
    "polynomial": (Kernel("polynomial", 0.5, 1.5, 3), "poly", {"gamma": 0.5, "coef0": 1.5, "degree": 3}),
    "degree 1": (Kernel("polynomial", 0.5, -1.0, 1), "poly", {"gamma": 0.5, "coef0": -1.0, "degree": 1}),
    "degree 0": (Kernel("polynomial", 0.0, 0.0, 0), "poly", {"gamma": 0.5, "coef0": 0.0, "degree": 0}),
    "sigmoid": (Kernel("sigmoid", 0.3, -0.5), "sigmoid", {"gamma": 0.3, "coef0": -0.5}),
    "laplacian": (Kernel("laplacian", gamma=0.2), "laplacian", {"gamma": 0.2}),
    "chi2": (Kernel("chi2", gamma=0.7), "chi2", {"gamma": 0.7}),
}


def table(rng, n=23, d=7):
    """Numbers of at least 0 that float32 holds exactly, half of them 0; a row and a column of zeros."""
    X = rng.integers(0, 9, size=(n, d)) / 4.0
    X[rng.random((n, d)) < 0.5] = 0.0
    X[3], X[:, 2] = 0.0, 0.0
    return X


def values(points: Points, rows, ids=slice(None)) -> np.ndarray:
    count = np.arange(rows.n_rows)[ids].size
    return points.values(points.lines(rows, ids), np.empty((count, points.n_rows), dtype=points.dtype))


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", PEERS)
def test_values_are_scikit_learns(name, layout, dtype, rng):
    kernel, peer, parameters = PEERS[name]
    X, other = table(rng), table(rng, n=5)
    expected = pairwise_kernels(other, X, metric=peer, **parameters)
    points = Points.of(as_rows(layout(X.astype(dtype))), kernel, dtype)
    found = values(points, as_rows(layout(other.astype(dtype))))
    near = 3e-6 if dtype == np.float32 else 1e-12
    assert found.dtype == dtype
    assert found == pytest.approx(expected, rel=near, abs=near)
    own = points.values(points.own_lines(np.array([7, 0, 3])), np.empty((3, 23), dtype=dtype))
    assert own == pytest.approx(pairwise_kernels(X[[7, 0, 3]], X, metric=peer, **parameters), rel=near, abs=near)
    assert points.diagonal == pytest.approx(
        np.diagonal(pairwise_kernels(X, metric=peer, **parameters)), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize("name", ["rbf", "linear", "polynomial", "laplacian"])
def test_values_of_wide_sparse_rows(name, rng):
    """More entries than are kept dense: the sweep over compressed rows, in more than one tile and one thread."""
    X = sp.random_array((700, 9000), density=0.01, rng=rng, dtype=np.float32, format="csr")
    kernel, peer, parameters = PEERS[name]
    points = Points.of(as_rows(X), kernel)
    assert points.rows.n_entries == X.nnz
    ids = np.array([3, 699, 40, 41, 0])
    found = points.values(points.own_lines(ids), np.empty((5, 700), dtype=np.float32))
    assert found == pytest.approx(pairwise_kernels(X[ids], X, metric=peer, **parameters), rel=1e-5, abs=1e-5)


@interpreted
def test_a_shift_is_added_to_every_value(rng):
    X = table(rng)
    points = Points.of(as_rows(X), Kernel("rbf", gamma=0.3), np.float64, shift=1.0)
    expected = pairwise_kernels(X, metric="rbf", gamma=0.3) + 1.0
    assert values(points, as_rows(X)) == pytest.approx(expected, rel=1e-12)
    assert points.diagonal == pytest.approx(np.full(23, 2.0))


@interpreted
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_gamma_by_name(layout, rng):
    X = table(rng)
    rows = as_rows(layout(X))
    assert gamma_value("auto", rows) == 1.0 / 7
    assert gamma_value("scale", rows) == pytest.approx(1.0 / (7 * X.var()), rel=1e-12)
    times = np.arange(23) % 3
    assert gamma_value("scale", rows, times.astype(float)) == pytest.approx(
        1.0 / (7 * np.repeat(X, times, axis=0).var()), rel=1e-12
    )
    assert gamma_value(0.25, rows) == 0.25 and gamma_value(np.float32(0.5), rows) == 0.5
    assert gamma_value("scale", as_rows(np.ones((3, 2)))) == 1.0
    assert gamma_value("auto", as_rows(np.ones((3, 0)))) == 1.0


def test_names_and_synonyms():
    rows = as_rows(np.eye(3))
    for name in KERNELS:
        assert parse_kernel(name, rows).name == name
    assert parse_kernel("poly", rows, 0.5, 2, 1.0) == Kernel("polynomial", 0.5, 1.0, 2)
    assert parse_kernel("linear", rows, "nonsense").gamma == 1.0
    assert parse_kernel(np.minimum, rows).function is np.minimum
    kernel = Kernel("rbf", 2.0)
    assert parse_kernel(kernel, rows, 5.0) is kernel
    assert parse_kernel("poly", rows, 1, 2.0, np.float32(1)).degree == 2


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"kernel": "gauss"}, "kernel='gauss' is not known; the kernels are rbf, linear, .* or a function"),
        ({"kernel": None}, "kernel=None is not known"),
        ({"kernel": ["rbf"]}, r"kernel=\['rbf'\] is not known"),
        ({"gamma": "wide"}, "gamma='wide' is not known; it is 'scale', 'auto' or a number"),
        ({"gamma": -1.0}, "gamma must be 'scale', 'auto' or a finite number of at least 0, got -1.0"),
        ({"gamma": np.nan}, "gamma must be .*, got nan"),
        ({"gamma": np.inf}, "gamma must be .*, got inf"),
        ({"gamma": None}, "gamma must be .*, got None"),
        ({"degree": -1}, "degree must be a whole number from 0 to 1000, got -1"),
        ({"degree": 2.5}, "degree must be .*, got 2.5"),
        ({"degree": np.inf}, "degree must be .*, got inf"),
        ({"degree": np.nan}, "degree must be .*, got nan"),
        ({"degree": "3"}, "degree must be .*, got '3'"),
        ({"coef0": np.nan}, "coef0 must be a finite number, got nan"),
        ({"coef0": "0"}, "coef0 must be a finite number, got '0'"),
    ],
    ids=str,
)
def test_each_wrong_parameter_gets_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        parse_kernel(**{"kernel": "poly", "rows": as_rows(np.eye(3)), "gamma": 1.0} | wrong)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_chi2_refuses_negative_values(layout, rng):
    X = table(rng)
    rows, negative = as_rows(layout(X)), as_rows(layout(X - 0.5))
    with pytest.raises(ValueError, match="kernel='chi2' needs values of at least 0"):
        parse_kernel("chi2", negative)
    points = Points.of(rows, parse_kernel("chi2", rows))
    with pytest.raises(ValueError, match="kernel='chi2' needs values of at least 0"):
        points.lines(negative, slice(None))
