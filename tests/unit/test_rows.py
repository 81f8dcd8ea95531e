"""Rows: dense and sparse primitives agree with NumPy, memory is shared, odd input is put right or refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from problems import quarters
from slackwater.compiled import compiled
from slackwater.rows import (
    add,
    as_matrix,
    as_rows,
    dense_block,
    dot,
    entries,
    first_equal,
    prefetch_row,
    products_with_block,
    sqnorm,
    sqnorms,
    sweep,
    take,
    times,
    transpose_times,
    with_bias,
)
from slackwater.rows.primitives import count_columns, count_rows

interpreted = pytest.mark.interpreted


@compiled
def compiled_dot(rows, i, w):
    return dot(rows, i, w)


@compiled
def compiled_add(rows, i, scale, w):
    add(rows, i, scale, w)


@compiled
def compiled_facts(rows, i):
    prefetch_row(rows, i)
    return sqnorm(rows, i), entries(rows, i), count_rows(rows), count_columns(rows)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture(params=["dense", "csr"])
def layout(request):
    return request.param


@pytest.fixture(params=[0.0, 1.5], ids=["plain", "bias"])
def case(request, rng, layout, dtype):
    """Rows and the float64 table they stand for, the constant feature as its last column."""
    X, bias = quarters(rng), request.param
    rows = as_rows((X if layout == "dense" else sp.csr_array(X)).astype(dtype), bias=bias)
    return rows, np.column_stack((X, np.full(len(X), bias)))


# -------------------------------------------------------------------------------------------------- primitives


@interpreted
def test_dot(case, rng):
    rows, X = case
    w = rng.normal(size=X.shape[1])
    for i in range(len(X)):
        for result in (dot(rows, i, w), compiled_dot(rows, i, w)):
            assert result == pytest.approx(X[i] @ w, rel=1e-13, abs=1e-13)


@interpreted
def test_sums_are_float64_whatever_the_data_are(layout):
    X = np.ones((1, 3), dtype=np.float32)
    X[0, 1] = 2.0**-12
    X[0, 2] = 1.0 + 2.0**-12
    rows = as_rows(X if layout == "dense" else sp.csr_array(X))
    w = np.array([1.0, 2.0**-40, 2.0**-45, 0.0])
    assert compiled_dot(rows, 0, w) == 1.0 + 2.0**-52 + 2.0**-45
    assert compiled_facts(rows, 0)[0] == 2.0 + 2.0**-11 + 2.0**-23
    compiled_add(rows, 0, 2.0**-30, w)
    assert w[0] == 1.0 + 2.0**-30


@interpreted
def test_add(case, rng):
    rows, X = case
    w = rng.normal(size=X.shape[1])
    for i in range(len(X)):
        for function in (add, compiled_add):
            moved = w.copy()
            function(rows, i, -0.75, moved)
            assert moved == pytest.approx(w - 0.75 * X[i], rel=1e-14, abs=1e-14)


@interpreted
def test_facts_of_a_row(case, layout):
    rows, X = case
    stored = X[:, :-1]
    for i in range(len(X)):
        count = np.count_nonzero(stored[i]) if layout == "csr" else stored.shape[1]
        expected = X[i] @ X[i], count, *stored.shape
        assert compiled_facts(rows, i) == pytest.approx(expected, rel=1e-14)
        assert (sqnorm(rows, i), entries(rows, i)) == pytest.approx(expected[:2], rel=1e-14)
    assert (rows.n_rows, rows.n_columns) == stored.shape
    assert rows.n_entries == (np.count_nonzero(stored) if layout == "csr" else stored.size)


@interpreted
def test_products_with_all_rows(case, rng):
    rows, X = case
    w, c = rng.normal(size=X.shape[1]), rng.normal(size=len(X)) * (np.arange(len(X)) % 3 > 0)
    scores, norms, into = np.empty(len(X)), np.empty(len(X)), np.ones(X.shape[1])
    times(rows, w, scores)
    sqnorms(rows, norms)
    transpose_times(rows, c, into)
    assert scores == pytest.approx(X @ w, rel=1e-12, abs=1e-12)
    assert norms == pytest.approx((X * X).sum(axis=1), rel=1e-14)
    assert into == pytest.approx(1.0 + c @ X, rel=1e-12, abs=1e-12)


@interpreted
def test_products_with_a_block(case, dtype):
    rows, X = case
    ids = np.array([5, 0, 3, 5])
    products = products_with_block(rows, ids)
    assert products.dtype == dtype
    assert (products == X[ids] @ X.T).all()  # small quarters: exact in float32 too
    block = dense_block(rows, ids)
    assert block.dtype == dtype
    assert (block == X[ids, :-1]).all()


@interpreted
def test_sweep(rng):
    X, W = quarters(rng), rng.normal(size=(23, 3))
    out = np.full((9, 3), np.nan)
    sweep(as_rows(sp.csr_array(X)), W, out)
    assert out == pytest.approx(X @ W, rel=1e-12, abs=1e-12)


@interpreted
@pytest.mark.parametrize("ids", [[4, 1, 1, 8], [3], []], ids=str)
def test_take(case, ids):
    rows, X = case
    taken = take(rows, np.array(ids, dtype=np.int64))
    assert type(taken) is type(rows)
    assert (taken.bias, taken.n_columns, taken.dtype) == (rows.bias, rows.n_columns, rows.dtype)
    stored = as_matrix(taken)
    assert ((stored.toarray() if sp.issparse(stored) else stored) == X[ids, :-1]).all()
    assert not np.shares_memory(taken.values, rows.values)


def test_with_bias_shares_everything_else(case):
    rows, _ = case
    other = with_bias(rows, 2.5)
    assert other.bias == 2.5
    assert other.values is rows.values
    assert as_rows(rows, bias=2.5).values is rows.values


@interpreted
def test_empty_shapes(layout):
    for shape in ((0, 3), (2, 0)):
        X = np.zeros(shape)
        rows = as_rows(X if layout == "dense" else sp.csr_array(X), bias=1.0)
        scores = np.empty(shape[0])
        times(rows, np.ones(shape[1] + 1), scores)
        assert (scores == 1.0).all()
        assert (rows.n_rows, rows.n_columns) == shape


@interpreted
def test_nothing_is_prefetched_before_the_first_entry(layout):
    X = np.zeros((2, 3)) if layout == "csr" else np.zeros((2, 0))
    rows = as_rows(X if layout == "dense" else sp.csr_array(X))
    for i in range(2):
        assert compiled_facts(rows, i)[0] == 0.0


@interpreted
def test_rows_longer_than_what_is_prefetched(layout, dtype, rng):
    X = np.zeros((3, 5000), dtype=dtype)
    X[1] = 1.0
    rows = as_rows(X if layout == "dense" else sp.csr_array(X))
    for i in range(3):
        assert compiled_facts(rows, i)[0] == 5000.0 * (i == 1)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_are_named_by_the_first_of_them(stored, dtype):
    X = np.array([[0, 1, 2], [3, 0, 0], [0, 1, 2], [0, 0, 0], [0, 3, 0], [0, 0, 0], [0, 1, 2]], dtype=dtype)
    assert first_equal(as_rows(stored(X))).tolist() == [0, 1, 0, 3, 4, 3, 0]
    assert first_equal(as_rows(stored(X[[0, 1, 3, 4]]))) is None
    assert first_equal(as_rows(stored(np.zeros((3, 0), dtype=dtype)))).tolist() == [0, 0, 0]
