"""Rows: dense and sparse primitives agree with NumPy, memory is shared, odd input is put right or refused."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater.compiled import compiled
from slackwater.rows import (
    CSRRows,
    DenseRows,
    add,
    as_matrix,
    as_rows,
    dense_block,
    dot,
    entries,
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


def table(rng, n=9, d=23) -> np.ndarray:
    """Values that float32 holds exactly; one row of zeros, one full row, one column of zeros."""
    X = rng.integers(-8, 9, size=(n, d)) / 4.0
    X[rng.random((n, d)) < 0.5] = 0.0
    X[3], X[5], X[:, 2] = 0.0, 1.25, 0.0
    return X


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture(params=["dense", "csr"])
def layout(request):
    return request.param


@pytest.fixture(params=[0.0, 1.5], ids=["plain", "bias"])
def case(request, rng, layout, dtype):
    """Rows and the float64 table they stand for, the constant feature as its last column."""
    X, bias = table(rng), request.param
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
    rows = as_rows(X if layout == "dense" else sp.csr_array(X))
    w = np.array([1.0, 2.0**-40, 2.0**-45, 0.0])
    assert compiled_dot(rows, 0, w) == 1.0 + 2.0**-52 + 2.0**-45
    assert compiled_facts(rows, 0)[0] == 2.0 + 2.0**-24
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
    X, W = table(rng), rng.normal(size=(23, 3))
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


def test_rows_longer_than_what_is_prefetched(layout, dtype, rng):
    X = np.zeros((3, 5000), dtype=dtype)
    X[1] = 1.0
    rows = as_rows(X if layout == "dense" else sp.csr_array(X))
    for i in range(3):
        assert compiled_facts(rows, i)[0] == 5000.0 * (i == 1)


# ------------------------------------------------------------------------------------------------------ memory


def test_dense_input_is_not_copied(dtype, rng):
    X = rng.normal(size=(4, 3)).astype(dtype)
    rows = as_rows(X)
    assert rows.values.dtype == dtype
    assert np.shares_memory(rows.values, X)
    assert np.shares_memory(as_matrix(rows), X)
    assert X.flags.writeable
    assert not rows.values.flags.writeable


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_sparse_input_is_not_copied(dtype, container, rng):
    X = container(table(rng).astype(dtype))
    X.indptr = X.indptr.astype(np.int64)
    rows = as_rows(X)
    assert isinstance(rows, CSRRows)
    assert (rows.indptr.dtype, rows.indices.dtype, rows.values.dtype) == (np.int64, np.uint32, dtype)
    for ours, theirs in ((rows.values, X.data), (rows.indices, X.indices), (rows.indptr, X.indptr)):
        assert np.shares_memory(ours, theirs)
        assert not ours.flags.writeable
    matrix = as_matrix(rows)
    assert np.shares_memory(matrix.data, X.data)
    assert np.shares_memory(matrix.indices, X.indices)
    assert (matrix != X).nnz == 0


def test_narrow_indptr_is_widened(rng):
    X = sp.csr_array(table(rng))
    assert X.indptr.dtype == np.int32
    rows = as_rows(X)
    assert rows.indptr.dtype == np.int64
    assert np.shares_memory(rows.indices, X.indices)


def test_a_read_only_map_of_a_file_is_used_as_it_is(tmp_path, rng, dtype):
    X = rng.normal(size=(5, 4)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    rows = as_rows(mapped, bias=1.0)
    assert np.shares_memory(rows.values, mapped)
    scores = np.empty(5)
    times(rows, np.ones(5), scores)
    assert scores == pytest.approx(X.sum(axis=1, dtype=float) + 1.0, rel=1e-12)


def test_one_machine_code_serves_writable_and_read_only_arrays(rng):
    X = rng.normal(size=(4, 3))
    frozen = X.copy()
    frozen.flags.writeable = False
    if hasattr(times, "signatures"):
        for values in (X, frozen):
            times(as_rows(values), np.ones(4), np.empty(4))
        dense = [s for s in times.signatures if "DenseRows" in str(s) and "float64, 2d" in str(s)]
        assert len(dense) == 1
    assert not as_rows(X).values.flags.writeable


def test_more_columns_than_a_signed_32_bit_number_holds():
    columns = 2**31 + 10
    X = sp.csr_array((np.array([2.0, 3.0]), np.array([5, columns - 1]), np.array([0, 1, 2])), shape=(2, columns))
    rows = as_rows(X, bias=1.0)
    assert rows.indices.tolist() == [5, columns - 1]
    assert rows.n_columns == columns
    norms = np.empty(2)
    sqnorms(rows, norms)
    assert norms.tolist() == [5.0, 10.0]
    matrix = as_matrix(rows)
    assert matrix.shape == X.shape
    assert matrix.indices.tolist() == [5, columns - 1]
    assert as_rows(matrix).indices.tolist() == [5, columns - 1]
    assert take(rows, np.array([1])).indices.tolist() == [columns - 1]


# ------------------------------------------------------------------------------------- conversions with a reason


def reason(caplog) -> str:
    assert {record.name for record in caplog.records} == {"slackwater"}
    return " ".join(record.getMessage() for record in caplog.records)


@pytest.fixture(autouse=True)
def _listen(caplog):
    caplog.set_level(logging.INFO, logger="slackwater")


def test_usual_input_is_taken_without_a_word(caplog, rng, dtype):
    X = table(rng).astype(dtype)
    as_rows(X)
    as_rows(sp.csr_array(X))
    assert caplog.records == []


def test_fortran_order_is_converted(caplog, rng):
    X = np.asfortranarray(rng.normal(size=(6, 4)))
    rows = as_rows(X)
    assert rows.values.flags.c_contiguous
    assert (rows.values == X).all()
    assert "copied to C order" in reason(caplog)


def test_strided_tables_are_converted(caplog, rng):
    X = rng.normal(size=(6, 8))[::2, ::2]
    assert (as_rows(X).values == X).all()
    assert "copied to C order" in reason(caplog)


CONVERTED = {"int64": "float64", "int32": "float64", "bool": "float32", "uint8": "float32", "int16": "float32"}
CONVERTED_DENSE = CONVERTED | {"float16": "float32", ">f8": "float64", "O": "float64"}  # no sparse matrix has these


@pytest.mark.parametrize(
    ("container", "given", "kept"),
    [(np.asarray, *pair) for pair in CONVERTED_DENSE.items()] + [(sp.csr_array, *pair) for pair in CONVERTED.items()],
)
def test_other_numbers_are_converted(caplog, container, given, kept):
    rows = as_rows(container(np.array([[0, 1], [1, 0]]).astype(given)))
    assert rows.dtype == np.dtype(kept)
    assert rows.dtype.isnative
    assert dense_block(rows, np.arange(2)).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert "values converted from" in reason(caplog)


@pytest.mark.parametrize("format", ["csc", "coo", "lil", "dok"])
def test_other_sparse_formats_are_converted(caplog, rng, format):
    X = table(rng)
    rows = as_rows(sp.csr_array(X).asformat(format))
    assert (as_matrix(rows).toarray() == X).all()
    assert f"converted from {format} to CSR" in reason(caplog)


def test_unsorted_columns_are_sorted_in_a_copy(caplog):
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    rows = as_rows(X)
    assert rows.indices.tolist() == [0, 2, 1]
    assert rows.values.tolist() == [2.0, 1.0, 3.0]
    assert X.indices.tolist() == [2, 0, 1]
    assert "copied: column numbers" in reason(caplog)


def test_duplicate_columns_are_added_in_a_copy(caplog):
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    rows = as_rows(X)
    assert as_matrix(rows).toarray().tolist() == [[0.0, 3.0], [3.0, 0.0]]
    assert rows.n_entries == 2
    assert X.data.tolist() == [1.0, 2.0, 3.0]
    assert "copied: column numbers" in reason(caplog)


def test_wide_column_numbers_are_narrowed(caplog):
    X = sp.csr_array((np.array([1.0]), np.array([1]), np.array([0, 1])), shape=(1, 2))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert as_rows(X).indices.dtype == np.uint32
    assert "column numbers converted from int64" in reason(caplog)


# ---------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), np.float64(1.0)], ids=["1d", "3d", "0d"])
def test_tables_have_two_dimensions(X):
    with pytest.raises(ValueError, match=f"got an array of {X.ndim} dimension"):
        as_rows(X)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_complex_values_are_refused(container):
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_rows(container(np.eye(2) * 1j))


def broken(indices=(0, 1), indptr=(0, 1, 2), width=np.int32):
    X = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    X.indices, X.indptr = np.array(indices, dtype=width), np.array(indptr, dtype=width)
    return X


@interpreted
@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("indices", [(0, 2), (-1, 1), (0, 2**31 - 1)], ids=str)
def test_column_numbers_outside_the_table_are_refused(indices, width):
    with pytest.raises(ValueError, match="names a column outside"):
        as_rows(broken(indices=indices, width=width))


@pytest.mark.parametrize("column", [2**32, 2**32 + 1, -(2**32)])
def test_column_numbers_that_would_wrap_around_are_refused(column):
    with pytest.raises(ValueError, match="names a column outside"):
        as_rows(broken(indices=(0, column), width=np.int64))


@interpreted
@pytest.mark.parametrize("indptr", [(0, 1), (-1, 1, 2), (0, 1, 3), (0, 2, 1), (0, 3, 2), (2, 1, 2)], ids=str)
def test_indptr_that_leaves_the_arrays_is_refused(indptr):
    with pytest.raises(ValueError, match="indptr"):
        as_rows(broken(indptr=indptr))


def test_more_columns_than_32_bits_are_refused():
    with pytest.raises(ValueError, match=f"{2**32} columns; the limit is {2**32 - 1}"):
        as_rows(sp.csr_array((1, 2**32)))


def test_rows_are_tuples_of_arrays():
    assert DenseRows._fields == ("values", "bias")
    assert CSRRows._fields == ("indptr", "indices", "values", "columns", "bias")
