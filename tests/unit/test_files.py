"""Files of examples by their extensions, archives, and the sets in the folder of real data."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater.data import DataFileError, MissingDataFile, Table, named_set, read, read_npz, write, write_npz
from slackwater.rows import CSRRows, DenseRows, as_rows


@pytest.fixture
def sparse(rng):
    X = sp.random(40, 12, density=0.3, format="csr", random_state=rng)
    return Table(as_rows(X), rng.integers(0, 3, 40))


@pytest.fixture
def dense(rng):
    return Table(as_rows(rng.standard_normal((30, 5)).astype(np.float32)), rng.choice(["no", "yes"], 30))


def assert_same(left, right):
    assert type(left.rows) is type(right.rows)
    assert left.rows.dtype == right.rows.dtype
    assert left.n_columns == right.n_columns
    assert all(np.array_equal(a, b) for a, b in zip(left.rows, right.rows, strict=True))
    assert np.array_equal(left.y, right.y)


# ------------------------------------------------------------------------------------------------------- tables


def test_a_table_shows_its_rows_as_a_matrix_on_the_same_memory(sparse, dense):
    assert sparse.X.format == "csr"
    assert np.shares_memory(sparse.X.data, sparse.rows.values)
    assert np.shares_memory(dense.X, dense.rows.values)
    assert sparse.X.shape == (sparse.n_rows, sparse.n_columns) == (40, 12)
    assert dense.y is dense.labels


@pytest.mark.parametrize("columns", [{"labels": np.ones(3)}, {"labels": np.ones(2), "query_ids": np.ones(3)}])
def test_a_table_refuses_columns_of_another_length(columns):
    with pytest.raises(ValueError, match=r"2 rows but (labels|query ids) of shape \(3,\)"):
        Table(as_rows(np.eye(2)), **columns)


# ------------------------------------------------------------------------------------------------------ formats


def test_archives_hold_both_parts_exactly(tmp_path, sparse, dense):
    write_npz(tmp_path / "a.npz", sparse, dense)
    assert_same(read(tmp_path / "a.npz"), sparse)
    assert_same(read(tmp_path / "a.npz", part="test"), dense)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        sparse_names = ["train_data", "train_indices", "train_indptr", "train_shape", "train_y"]
        assert sorted(archive.files) == ["test_X", "test_y", *sparse_names]
    assert os.listdir(tmp_path) == ["a.npz"]


def test_archives_written_by_others_are_read(tmp_path, sparse):
    X = sp.csr_matrix(sparse.X)
    np.savez(
        tmp_path / "a.npz",
        train_indptr=X.indptr.astype(np.int32),
        train_indices=X.indices.astype(np.int32),
        train_data=X.data,
        train_shape=np.array(X.shape),
        train_y=sparse.y.astype(np.int8),
        more=np.ones(1),
    )
    table = read(tmp_path / "a.npz")
    assert_same(table, sparse)
    assert table.rows.indptr.dtype == np.int64
    assert table.source == os.fspath(tmp_path / "a.npz")


def test_pixels_become_float32(tmp_path):
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    np.savez(tmp_path / "a.npz", train_X=pixels, train_y=[1, 2, 3])
    table = read(tmp_path / "a.npz")
    assert isinstance(table.rows, DenseRows)
    assert table.rows.dtype == np.float32
    assert np.array_equal(table.X, pixels)
    assert read(tmp_path / "a.npz", dtype=np.float64).rows.dtype == np.float64


def test_archives_keep_query_ids_and_labels_of_objects(tmp_path):
    labels = np.array(["a", "b"], dtype=object)
    write(tmp_path / "a.npz", Table(as_rows(np.eye(2)), labels, np.array([4, 5])))
    table = read_npz(tmp_path / "a.npz")
    assert table.y.tolist() == ["a", "b"]
    assert table.query_ids.tolist() == [4, 5]
    with pytest.raises(ValueError, match="labels of type object cannot be written"):
        write(tmp_path / "b.npz", Table(as_rows(np.eye(1)), np.array([None])))
    assert os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("name", ["a.svm", "a", "a.txt", "a.train.gz", "a.data.XZ", "a.npz", "a.NPZ"])
def test_the_extension_tells_the_format(tmp_path, sparse, name):
    write(tmp_path / name, sparse)
    table = read(tmp_path / name, dtype=np.float64, n_columns=12)
    assert_same(table, sparse)
    start = (tmp_path / name).read_bytes()[:2]
    assert (start == b"PK") == name.lower().endswith(".npz")
    assert (start == b"\x1f\x8b") == name.endswith(".gz")


def test_text_is_read_as_float32_unless_told(tmp_path, sparse):
    write(tmp_path / "a.svm", sparse)
    assert read(tmp_path / "a.svm").rows.dtype == np.float32
    assert read(tmp_path / "a.svm", dtype=np.float64, threads=2).rows.dtype == np.float64


def test_a_matrix_and_labels_are_written_as_a_table_is(tmp_path, sparse):
    write(tmp_path / "a", sparse)
    write(tmp_path / "b", sparse.X, sparse.y.tolist())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for wrong in ((sparse.X,), (sparse, sparse.y)):
        with pytest.raises(TypeError, match="a table, or X and y"):
            write(tmp_path / "c", *wrong)


@pytest.mark.parametrize("name", ["a.csv", "a.CSV.gz", "a.parquet", "a.npy", "a.npz.gz", "a.svm.zst"])
def test_formats_that_are_not_supported_are_named_with_those_that_are(tmp_path, sparse, name):
    told = r"files are not supported; supported are NumPy archives \(\.npz\) and svmlight text"
    with pytest.raises(DataFileError, match=told):
        read(tmp_path / name)
    with pytest.raises(DataFileError, match=told):
        write(tmp_path / name, sparse)
    assert os.listdir(tmp_path) == []


def test_the_number_of_columns_can_be_given(tmp_path, sparse, dense):
    write_npz(tmp_path / "a.npz", sparse, dense)
    wider = read(tmp_path / "a.npz", n_columns=100)
    assert isinstance(wider.rows, CSRRows)
    assert wider.X.shape == (40, 100)
    assert np.array_equal(wider.X.toarray()[:, :12], sparse.X.toarray())
    assert_same(read(tmp_path / "a.npz", part="test", n_columns=5), dense)
    for part, columns, found in (("train", 11, 12), ("test", 6, 5), ("test", 4, 5)):
        with pytest.raises(DataFileError, match=f"there are {found} columns, expected {columns}$"):
            read(tmp_path / "a.npz", part=part, n_columns=columns)


# ---------------------------------------------------------------------------------------------------- named sets


def test_named_sets_lie_in_the_folder_of_the_environment(tmp_path, monkeypatch, sparse, dense):
    write_npz(tmp_path / "some.npz", sparse, dense)
    monkeypatch.setenv("SLACKWATER_DATA", os.fspath(tmp_path))
    assert_same(named_set("some"), sparse)
    assert_same(named_set("some", "test"), dense)
    with pytest.raises(MissingDataFile, match=r"other\.npz: there is no such file; the folder holds some$"):
        named_set("other")


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_of_real_data_the_variable_is_named(monkeypatch, value):
    monkeypatch.delenv("SLACKWATER_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("SLACKWATER_DATA", value)
    with pytest.raises(MissingDataFile, match="SLACKWATER_DATA must name the folder"):
        named_set("some")


def test_real_sets_survive_the_way_through_text(real_data, tmp_path):
    table = named_set("a9a")
    assert (table.n_rows, table.n_columns, sorted(set(table.y.tolist()))) == (32561, 123, [-1, 1])
    write(tmp_path / "a9a.svm", table)
    assert_same(read(tmp_path / "a9a.svm"), table)
