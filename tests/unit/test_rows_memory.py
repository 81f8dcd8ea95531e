"""Rows share the memory of usual input; other input is converted with the reason logged; broken input is refused."""

import logging
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from problems import quarters
from slackwater.rows import (
    CSRRows,
    DenseRows,
    as_matrix,
    as_rows,
    dense_block,
    sqnorms,
    take,
    times,
)

interpreted = pytest.mark.interpreted


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return np.dtype(request.param)


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
    X = container(quarters(rng).astype(dtype))
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
    X = sp.csr_array(quarters(rng))
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


def test_read_only_maps_of_sparse_parts_are_used_as_they_are(tmp_path, rng, dtype):
    X = sp.csr_array(quarters(rng).astype(dtype))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr.astype(np.int64)}
    mapped = sp.csr_array(X.shape, dtype=dtype)
    for name, part in parts.items():
        np.save(tmp_path / f"{name}.npy", part)
        setattr(mapped, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    rows = as_rows(mapped)
    for ours, theirs in ((rows.values, mapped.data), (rows.indices, mapped.indices), (rows.indptr, mapped.indptr)):
        assert np.shares_memory(ours, theirs)
    scores = np.empty(9)
    times(rows, np.ones(24), scores)
    assert scores == pytest.approx(X.sum(axis=1), rel=1e-12)


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
    X = quarters(rng).astype(dtype)
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
    X = quarters(rng)
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


@interpreted
def test_rows_out_of_order_are_found_wherever_they_lie(rng):
    """Random column numbers in random rows, empty ones among them, against a look at every row."""
    copied = 0
    for _ in range(200):
        bounds = np.append(0, np.sort(rng.integers(0, 7, size=5)))
        X = sp.csr_array((np.arange(1.0, 7.0), rng.integers(0, 9, size=6), bounds), shape=(5, 9))
        spans = list(pairwise(bounds))
        in_order = all((np.diff(X.indices[a:b]) > 0).all() for a, b in spans)
        w, scores = rng.normal(size=10), np.empty(5)
        expected = [X.data[a:b] @ w[X.indices[a:b]] for a, b in spans]
        rows = as_rows(X)
        times(rows, w, scores)
        assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert all((np.diff(rows.indices[a:b].astype(int)) > 0).all() for a, b in pairwise(rows.indptr))
        assert np.shares_memory(rows.values, X.data) == in_order
        copied += not in_order
    assert 20 < copied < 180


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
