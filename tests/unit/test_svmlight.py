"""The svmlight reader against a reader of twenty lines, and the writer against the reader."""

import bz2
import gzip
import lzma
import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from reference.svmlight_twin import svmlight_twin
from slackwater.data import read_svmlight, svmlight, svmlight_writing, write_svmlight
from slackwater.rows import CSRRows

ANY_EXAMPLES = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

digits = st.text("0123456789", min_size=1, max_size=25)
signs = st.sampled_from(["", "", "-", "+"])


def decimals(low, high):
    """Decimal text of every form, with exponents from ``low`` to ``high``."""
    exponents = st.one_of(st.just(""), st.builds("{}{:+d}".format, st.sampled_from("eE"), st.integers(low, high)))
    return st.one_of(
        st.builds("{}{}{}".format, signs, digits, exponents),
        st.builds("{}{}.{}{}".format, signs, digits, digits, exponents),
        st.builds("{}.{}{}".format, signs, digits, exponents),
        st.builds("{}{}.{}".format, signs, digits, exponents),
        st.floats(-1e37, 1e37).map(repr),
        st.floats(-1000, 1000, width=32).map(str),
        st.sampled_from(["5e-324", "2.2250738585072011e-308", "2.2250738585072014e-308", "1e-400", "1e-9999999"]),
        st.sampled_from(["0e999", "9007199254740993", "9007199254740992.99999999999999", "1." + "0" * 40 + "1"]),
    )


small = decimals(-60, 12)  # in the range of float32
blanks = st.text(" \t\v\f", min_size=1, max_size=3)
comments = st.sampled_from(["", "", "#", "# 0:3 qid:7", " # caf\u00e9 \t", "\r"])


@st.composite
def lines(draw, with_query):
    label = draw(st.one_of(st.sampled_from(["1", "-1", "+1", "0"]), small))
    columns = draw(st.lists(st.integers(0, 300), max_size=9, unique=True))
    line = label
    if with_query:
        line += f"{draw(blanks)}qid:{draw(st.integers(0, 10**18 - 1))}"
    for column in columns:
        line += f"{draw(blanks)}{column}:{draw(small)}"
    return draw(st.sampled_from(["", " ", "\t "])) + line + draw(st.sampled_from(["", " "])) + draw(comments)


@st.composite
def texts(draw):
    with_query = draw(st.booleans())
    others = st.sampled_from(["", " ", "# a comment 1:2", "\r", "\t#"])
    body = draw(st.lists(st.one_of(lines(with_query), lines(with_query), others), max_size=20))
    body.insert(draw(st.integers(0, len(body))), draw(lines(with_query)))
    return "\n".join(body) + draw(st.sampled_from(["", "\n", "\r\n", "\n\n \n"]))


def put(folder, text, name="a.svm"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_like_twin(table, text, dtype):
    labels, queries, examples = svmlight_twin(text)
    assert table.y.tolist() == [float(label) for label in labels]
    assert (None if table.query_ids is None else table.query_ids.tolist()) == queries
    assert table.rows.dtype == dtype
    assert table.n_columns == max((column + 1 for example in examples for column in example), default=0)
    assert np.diff(table.rows.indptr).tolist() == [len(example) for example in examples]
    assert table.rows.indices.tolist() == [column for example in examples for column in example]
    assert table.rows.values.tolist() == [float(dtype(v)) for example in examples for v in example.values()]


# ------------------------------------------------------------------------------------------------------ reading


@given(text=texts(), piece=st.sampled_from([1, 7, 40, 1000]), threads=st.sampled_from([1, 3]))
@ANY_EXAMPLES
def test_texts_are_read_as_the_twin_reads_them(tmp_path, text, piece, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(svmlight, "PIECE", piece)
        for dtype in (np.float32, np.float64):
            assert_like_twin(read_svmlight(put(tmp_path, text), dtype=dtype, threads=threads), text, dtype)


@given(numbers=st.lists(decimals(-360, 280), min_size=1, max_size=50))
@settings(ANY_EXAMPLES, max_examples=300)
def test_decimals_are_rounded_to_the_nearest_float64(tmp_path, numbers):
    path = put(tmp_path, "1 " + " ".join(f"{k}:{number}" for k, number in enumerate(numbers)))
    values = read_svmlight(path, dtype=np.float64).rows.values
    assert values.tobytes() == np.array([float(number) for number in numbers]).tobytes()


@pytest.mark.interpreted
def test_every_part_of_a_line(tmp_path):
    text = (
        "# a comment before all\n"
        "+1 qid:3 1:0.5 2:-1e-5 7:12345678.875 # 3:4\r\n"
        "\n"
        "-1.5e0\tqid:12 9:.25 4:7. 2:+3\n"
        " 2 qid:12# nothing here\n"
        "3 qid:13 1:0.30000000000000000000004"
    )
    table = read_svmlight(put(tmp_path, text), dtype=np.float64, threads=1)
    assert table.y.tolist() == [1.0, -1.5, 2.0, 3.0]
    assert table.query_ids.tolist() == [3, 12, 12, 13]
    assert table.rows.indptr.tolist() == [0, 3, 6, 6, 7]
    assert table.rows.indices.tolist() == [0, 1, 6, 1, 3, 8, 0]
    assert table.rows.values.tolist() == [0.5, -1e-5, 12345678.875, 3.0, 7.0, 0.25, 0.3]
    assert table.n_columns == 9


@pytest.mark.interpreted
def test_numbers_that_only_python_rounds(tmp_path):
    numbers = ["5e-324", "1e-400", "2.2250738585072011e-308", "9007199254740993", "0." + "0" * 330 + "17"]
    path = put(tmp_path, "4.9e-324 " + " ".join(f"{k}:{number}" for k, number in enumerate(numbers, 1)))
    table = read_svmlight(path, dtype=np.float64)
    assert table.rows.values.tolist() == [float(number) for number in numbers]
    assert table.y.tolist() == [4.9e-324]


def test_columns_count_from_0_where_a_column_0_occurs(tmp_path):
    one, zero = put(tmp_path, "1 1:5 2:6 # 0:30 o'clock\n", "one"), put(tmp_path, "1 1:5\n1 0:4 2:6\n", "zero")
    assert read_svmlight(one).rows.indices.tolist() == [0, 1]
    assert read_svmlight(one, base=0).rows.indices.tolist() == [1, 2]
    assert read_svmlight(zero).rows.indices.tolist() == [1, 0, 2]
    assert read_svmlight(zero, base=0).n_columns == 3


def test_the_number_of_columns_can_be_given(tmp_path):
    path = put(tmp_path, "1 1:5 4:6\n")
    assert read_svmlight(path).n_columns == 4
    assert read_svmlight(path, n_columns=10).X.shape == (1, 10)


def test_the_largest_column_number_fits(tmp_path):
    rows = read_svmlight(put(tmp_path, "1 4294967295:2\n")).rows
    assert rows.indices.tolist() == [2**32 - 2]
    assert rows.n_columns == 2**32 - 1


def test_labels_that_are_words_are_kept_as_the_file_spells_them(tmp_path):
    text = "spam 1:1\nham 2:1\n1.50 1:1 # no word\nné 1:2\n"
    labels = read_svmlight(put(tmp_path, text)).y
    assert labels.tolist() == ["spam", "ham", "1.50", "né"]
    assert labels.dtype.kind == "U"


def test_a_byte_order_mark_is_no_part_of_the_first_label(tmp_path):
    text = "\ufeff1 1:2\n-1 1:3\n"
    for path in (put(tmp_path, text), put(tmp_path, gzip.compress(text.encode()), "b.gz")):
        assert read_svmlight(path).y.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("piece", [10, 10_000])
@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_compressed_files_hold_the_same(tmp_path, monkeypatch, ending, compress, piece):
    monkeypatch.setattr(svmlight, "PIECE", piece)
    text = "".join(f"{k % 3} {k + 1}:{k / 7!r} {k + 100}:1\n" for k in range(300))
    table = read_svmlight(put(tmp_path, compress(text.encode()), f"a.svm.{ending}"), dtype=np.float64)
    assert_like_twin(table, text, np.float64)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_read_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=put, args=(tmp_path, "1 1:2\n-1 2:3", "pipe"))
    writer.start()
    table = read_svmlight(tmp_path / "pipe")
    writer.join()
    assert table.X.toarray().tolist() == [[2.0, 0.0], [0.0, 3.0]]


def random_csr(rng, n, d, dtype):
    X = sp.random(n, d, density=0.1, format="csr", random_state=rng, dtype=np.float64)
    X.data = (rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-9, 9, X.nnz)).astype(dtype)
    return sp.csr_array(X)


def assert_same_rows(left, right):
    for a, b in zip(left, right, strict=True):
        assert np.array_equal(a, b)
    assert left.values.tobytes() == right.values.tobytes()


def test_the_result_does_not_depend_on_threads_or_pieces(tmp_path, monkeypatch, rng):
    X, y = random_csr(rng, 500, 60, np.float32), rng.standard_normal(500)
    write_svmlight(tmp_path / "a", X, y, query_ids=np.arange(500))
    whole = read_svmlight(tmp_path / "a", threads=1)
    monkeypatch.setattr(svmlight, "PIECE", 1000)
    for threads in (1, 2, 5):
        pieces = read_svmlight(tmp_path / "a", threads=threads)
        assert_same_rows(pieces.rows, whole.rows)
        assert np.array_equal(pieces.y, y)
        assert np.array_equal(pieces.query_ids, np.arange(500))


def test_rows_and_row_pointers_have_their_types_and_are_read_only(tmp_path):
    rows = read_svmlight(put(tmp_path, "1 1:2\n")).rows
    assert (rows.indptr.dtype, rows.indices.dtype, rows.dtype) == (np.int64, np.uint32, np.float32)
    assert not any(array.flags.writeable for array in (rows.indptr, rows.indices, rows.values))


def test_scikit_learn_reads_the_same(tmp_path, rng):
    X, y = random_csr(rng, 300, 50, np.float64), rng.integers(0, 5, 300)
    dump_svmlight_file(X, y, os.fspath(tmp_path / "theirs"), zero_based=False)
    write_svmlight(tmp_path / "ours", X, y)
    theirs, labels = load_svmlight_file(os.fspath(tmp_path / "ours"), n_features=50)
    assert (theirs != X).nnz == 0
    assert np.array_equal(labels, y)
    table = read_svmlight(tmp_path / "theirs", n_columns=50, dtype=np.float64)
    theirs, labels = load_svmlight_file(os.fspath(tmp_path / "theirs"), n_features=50)
    assert (table.X != theirs).nnz == 0
    assert np.array_equal(table.y, labels)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dtype": np.int32}, "dtype=int32"),
        ({"base": 2}, "base=2"),
        ({"n_columns": 0}, "n_columns=0"),
        ({"n_columns": 2**32}, "n_columns=4294967296"),
        ({"threads": 0}, "threads=0"),
        ({"threads": 1.5}, "threads=1.5"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, told):
    with pytest.raises(ValueError, match=told):
        read_svmlight(put(tmp_path, "1 1:2\n"), **options)


# ------------------------------------------------------------------------------------------------------ writing


def finite(width):
    bits, dtype = {32: (np.uint32, np.float32), 64: (np.uint64, np.float64)}[width]
    any_bits = st.integers(0, 2**width - 1).map(lambda b: bits(b).view(dtype)).filter(np.isfinite)
    return st.one_of(st.floats(width=width, allow_nan=False, allow_infinity=False), any_bits, st.integers(-99, 99))


@pytest.mark.parametrize("width", [32, 64])
@given(data=st.data())
@ANY_EXAMPLES
def test_numbers_read_back_exactly(tmp_path, width, data):
    dtype = {32: np.float32, 64: np.float64}[width]
    values = np.array(data.draw(st.lists(finite(width), min_size=1, max_size=50)), dtype=dtype)
    rows = CSRRows(np.array([0, values.size]), np.arange(values.size, dtype=np.uint32), values, values.size, 0.0)
    label = data.draw(finite(64))
    write_svmlight(tmp_path / "a", rows, [label])
    back = read_svmlight(tmp_path / "a", dtype=dtype)
    assert back.rows.values.tobytes() == values.tobytes()
    assert back.y.tolist() == [float(label)]
    texts = [word.split(":")[1] for word in (tmp_path / "a").read_text().split()[1:]]
    assert all(len(text) <= len(str(value)) + 4 for text, value in zip(texts, values, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_of_powers_read_back_exactly(tmp_path, dtype):
    info = np.finfo(dtype)
    powers = np.ldexp(1.0, np.arange(info.minexp - 20, info.maxexp)).astype(dtype)
    tens = np.array([float(f"1e{k}") for k in range(-40, 39)], dtype=dtype)
    some = np.concatenate([powers, tens])
    values = np.concatenate([some, np.nextafter(some, dtype(0)), -np.nextafter(some, dtype(np.inf)), [info.max]])
    write_svmlight(tmp_path / "a", values[:, None].astype(dtype), np.zeros(values.size))
    assert read_svmlight(tmp_path / "a", dtype=dtype).rows.values.tobytes() == values.astype(dtype).tobytes()


@pytest.mark.interpreted
def test_numbers_are_as_short_as_can_be(tmp_path):
    values = [0.1, -2.5, 1 / 3, 100, 0, 1e-7, 123456789, 1e22, 0.00012, 1.7976931348623157e308, 1e-300]
    rows = CSRRows(np.array([0, 11]), np.arange(11, dtype=np.uint32), np.array(values, dtype=float), 11, 0.0)
    write_svmlight(tmp_path / "a", rows, [1])
    line = "1 1:0.1 2:-2.5 3:0.3333333333333333 4:100 5:0 6:1e-7 7:123456789 8:1e22 9:0.00012"
    texts = (tmp_path / "a").read_text().split(" ")
    assert [float(text.split(":")[1]) for text in texts[1:]] == values
    write_svmlight(tmp_path / "a", rows._replace(indptr=np.array([0, 9])), [1])
    assert (tmp_path / "a").read_text() == line + "\n"
    single = rows._replace(values=np.array([0.1, 16777216, 3.4e38], dtype=np.float32), indptr=np.array([0, 3]))
    write_svmlight(tmp_path / "a", single, [-1], query_ids=[5])
    assert (tmp_path / "a").read_text() == "-1 qid:5 1:0.1 2:16777216 3:3.4e38\n"


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("base", [0, 1])
def test_what_is_written_is_read_back(tmp_path, rng, ending, base):
    X = random_csr(rng, 400, 30, np.float64)
    y, queries = rng.choice(["no", "yes", "maybe"], 400), rng.integers(0, 10**17, 400)
    write_svmlight(tmp_path / f"a{ending}", X, y, queries, base)
    table = read_svmlight(tmp_path / f"a{ending}", n_columns=30, dtype=np.float64, base=base)
    assert (table.X != X).nnz == 0
    assert np.array_equal(table.y, y)
    assert np.array_equal(table.query_ids, queries)
    assert os.listdir(tmp_path) == [f"a{ending}"]


def test_blocks_of_any_size_give_the_same_text(tmp_path, monkeypatch, rng):
    X = random_csr(rng, 200, 30, np.float32)
    dense = X.toarray()
    y = rng.standard_normal(200)
    write_svmlight(tmp_path / "whole", X, y)
    for entries, some_rows in ((1, 1), (7, 100), (50, 3)):
        monkeypatch.setattr(svmlight_writing, "_BLOCK_ENTRIES", entries)
        monkeypatch.setattr(svmlight_writing, "_BLOCK_ROWS", some_rows)
        for name, matrix in (("sparse", X), ("dense", dense)):
            write_svmlight(tmp_path / name, matrix, y)
            assert (tmp_path / name).read_bytes() == (tmp_path / "whole").read_bytes()


def test_equal_data_make_equal_compressed_files(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_svmlight(tmp_path / name, np.eye(3), [1, 2, 3])
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_labels_of_objects_and_no_rows_at_all_can_be_written(tmp_path):
    write_svmlight(tmp_path / "a", np.eye(3), np.array([1, "b", 0.5], dtype=object))
    assert (tmp_path / "a").read_text() == "1 1:1\nb 2:1\n0.5 3:1\n"
    for X in (np.empty((0, 3)), sp.csr_array((0, 3))):
        write_svmlight(tmp_path / "a", X, [])
        assert (tmp_path / "a").read_bytes() == b""


def test_zeros_of_dense_rows_are_left_out_and_stored_ones_kept(tmp_path):
    write_svmlight(tmp_path / "a", np.array([[0.0, 1.0], [0.0, 0.0]]), [True, False])
    assert (tmp_path / "a").read_text() == "1 2:1\n0\n"
    stored = sp.csr_array((np.array([0.0, -0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    write_svmlight(tmp_path / "a", stored, [1])
    assert (tmp_path / "a").read_text() == "1 1:0 2:-0\n"


@pytest.mark.parametrize(
    ("X", "labels", "options", "told"),
    [
        ([[1.0]], [1, 2], {}, "1 rows need as many labels"),
        ([[1.0]], ["two words"], {}, "label 'two words'"),
        ([[1.0]], ["a:b"], {}, "label 'a:b'"),
        ([[1.0]], [""], {}, "label ''"),
        ([[1.0]], [np.nan], {}, "label nan"),
        ([[1.0], [np.nan]], [1, 2], {}, "row 1, column 0: nan"),
        ([[1.0, 0.0, np.inf]], [1], {}, "row 0, column 2: inf"),
        ([[1.0]], [1], {"query_ids": [-1]}, "query_ids must be from 0"),
        ([[1.0]], [1], {"query_ids": [1.5]}, "query_ids must be 1 whole numbers"),
        ([[1.0]], [1], {"base": 3}, "base=3"),
    ],
)
def test_what_cannot_be_written_is_named_and_no_file_is_left(tmp_path, X, labels, options, told):
    with pytest.raises(ValueError, match=told):
        write_svmlight(tmp_path / "a", np.array(X), labels, **options)
    assert os.listdir(tmp_path) == []
