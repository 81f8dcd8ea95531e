"""Broken, cut and missing data files: one sentence each, and nothing written half."""

import bz2
import errno
import gzip
import lzma
import os
import pickle
import time

import numpy as np
import pytest

from slackwater.data import (
    DataFileError,
    MissingDataFile,
    Table,
    read,
    read_npz,
    read_svmlight,
    svmlight,
    svmlight_writing,
    write,
    write_npz,
    write_svmlight,
)
from slackwater.rows import as_rows

GOOD = "1 1:1 2:2\n-1 1:1\n"


def put(folder, content, name="a.svm"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def broken(path, **options):
    """The error of reading this file; its message is one line that begins with the file."""
    with pytest.raises(DataFileError) as caught:
        read_svmlight(path, **options)
    message = str(caught.value)
    assert message.startswith(os.fspath(path))
    assert "\n" not in message
    return caught.value


# ------------------------------------------------------------------------------------------------- broken lines

LINES = [
    # line, column, what was expected, what was found
    ("1:0.5 2:1", 1, "a label before the first column:value", "'1:0.5'"),
    ("  1:0.5", 3, "a label before the first column:value", "'1:0.5'"),
    ("1e999 1:1", 1, "a label, a finite number or a word", "'1e999'"),
    ("a\x01b 1:1", 1, "a label, a finite number or a word", r"'a\x01b'"),
    ("1 5", 3, "column:value", "'5'"),
    ("1 1:1 7 8:1", 7, "column:value", "'7'"),
    ("1 x:1", 3, "column:value", "'x:1'"),
    ("1 -1:1", 3, "column:value", "'-1:1'"),
    ("1 1:1 :1", 7, "column:value", "':1'"),
    ("1 1.0:1", 3, "column:value", "'1.0:1'"),
    ("1 1:1,2:1", 5, "a number", "'1,2:1'"),
    ("1 qid:3 1:1", 3, "column:value only, as in the first example", "'qid:3'"),
    ("1 1:", 5, "a number", "the end of the line"),
    ("1 1:\r", 5, "a number", "the end of the line"),
    ("1 1: # comment", 5, "a number", "the end of the line"),
    ("1 1:# comment", 5, "a number", "the end of the line"),
    ("1 1: 2", 5, "a number", "a blank"),
    ("1 1:x", 5, "a number", "'x'"),
    ("1 2:1 3:1e", 9, "a number", "'1e'"),
    ("1 2:1 3:1e+", 9, "a number", "'1e+'"),
    ("1 2:1 3:1.5.5", 9, "a number", "'1.5.5'"),
    ("1 2:1 3:--1", 9, "a number", "'--1'"),
    ("1 2:1 3:.", 9, "a number", "'.'"),
    ("1 2:1 3:nan", 9, "a number", "'nan'"),
    ("1 2:1 3:inf", 9, "a number", "'inf'"),
    ("1 2:1 3:0x10", 9, "a number", "'0x10'"),
    ("1 2:1 3:1_0", 9, "a number", "'1_0'"),
    ("1 2:1 3:12345678901234567x", 9, "a number", "'12345678901234567x'"),
    ("1 2:1 3:1e39", 9, "a number in the range of float32", "'1e39'"),
    ("1 2:1 3:-3.5e38", 9, "a number in the range of float32", "'-3.5e38'"),
    ("1 2:1 3:1e9999999", 9, "a number in the range of float32", "'1e9999999'"),
    ("1 4294967296:1", 3, "a column number from 1 to 4294967295", "'4294967296'"),
    ("1 99999999999999999999999999:1", 3, "a column number from 1 to 4294967295", "'99999999999999999999999999'"),
    ("1 2:1 2:1", 7, "every column once", "'2' again"),
    ("1 7:1 3:1 5:1 3:1 # 3:1", 15, "every column once", "'3' again"),
    ("1 1:" + "z" * 99, 5, "a number", "'" + "z" * 30 + "...'"),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("line", "column", "expected", "found"), LINES)
def test_a_broken_line_is_named_with_its_column(tmp_path, monkeypatch, line, column, expected, found, threads):
    monkeypatch.setattr(svmlight, "PIECE", 16)
    path = put(tmp_path, GOOD + "# a comment\n\n" + GOOD + line + "\n" + GOOD)
    error = broken(path, threads=threads)
    assert str(error) == f"{path}, line 7, column {column}: expected {expected}, found {found}"
    assert (error.source, error.line, error.column) == (os.fspath(path), 7, column)


@pytest.mark.interpreted
@pytest.mark.parametrize(("line", "column", "expected", "found"), LINES[1:20:4])
def test_a_broken_last_line_is_named_with_its_column(tmp_path, line, column, expected, found):
    path = put(tmp_path, "1 1:1\n" + line)
    assert str(broken(path)) == f"{path}, line 2, column {column}: expected {expected}, found {found}"


@pytest.mark.parametrize(
    ("line", "column", "found"),
    [
        ("1 1:2", 3, "'1:2'"),
        ("1", 2, "the end of the line"),
        ("1 qid: 1:2", 3, "'qid:'"),
        ("1 qid:x 1:2", 3, "'qid:x'"),
        ("1 qid:-3 1:2", 3, "'qid:-3'"),
        ("1 qid:1234567890123456789 1:2", 3, "'qid:1234567890123456789'"),
        ("1 # qid:3", 3, "the end of the line"),
    ],
)
def test_a_missing_query_id_is_named(tmp_path, line, column, found):
    path = put(tmp_path, f"1 qid:1 1:2\n{line}\n1 qid:1 1:2\n")
    wanted = "expected qid:number as in the first example"
    assert str(broken(path)) == f"{path}, line 2, column {column}: {wanted}, found {found}"


def test_a_query_id_met_again_is_named(tmp_path):
    error = broken(put(tmp_path, "1 qid:1 qid:2 1:2\n"))
    assert (error.line, error.column) == (1, 9)


def test_columns_outside_the_given_number_are_named(tmp_path):
    error = broken(put(tmp_path, "1 1:2 3:1\n1 2:3 4:5\n"), n_columns=3)
    assert str(error).endswith("line 2, column 7: expected a column number from 1 to 3, found '4'")
    error = broken(put(tmp_path, "1 0:2 2:1\n1 2:3 3:5\n"), n_columns=3)
    assert str(error).endswith("line 2, column 7: expected a column number from 0 to 2, found '3'")
    error = broken(put(tmp_path, "1 0:2 2:1\n"), base=1)
    assert str(error).endswith("line 1, column 3: expected a column number from 1 to 4294967295, found '0'")


def test_double_precision_takes_what_single_cannot(tmp_path):
    path = put(tmp_path, "1 1:1e39\n1 1:1e309\n")
    error = broken(path, dtype=np.float64)
    assert str(error).endswith("line 2, column 5: expected a number in the range of float64, found '1e309'")


def test_the_first_of_many_broken_lines_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlight, "PIECE", 100)
    lines = ["1 1:1"] * 3000
    for k in (1234, 1236, 1500, 2999):
        lines[k] = "1 1:x"
    path = put(tmp_path, "\n".join(lines))
    for threads in (1, 2, 4):
        assert broken(path, threads=threads).line == 1235


def test_a_broken_line_in_a_compressed_file_is_named(tmp_path):
    error = broken(put(tmp_path, gzip.compress((GOOD + "1 1:?").encode()), "a.gz"))
    assert (error.line, error.column) == (3, 5)


def test_a_label_that_is_no_utf8_is_named(tmp_path):
    error = broken(put(tmp_path, b"yes 1:1\n\xff\xfe 1:2\n"))
    assert (error.line, error.column) == (2, 1)
    assert "a label in UTF-8" in str(error)


def test_bytes_that_are_no_text_are_an_error(tmp_path, rng):
    for seed in range(20):
        noise = np.random.default_rng(seed).integers(0, 256, 5000, dtype=np.uint8).tobytes()
        assert broken(put(tmp_path, noise)).line is not None


def test_plain_words_are_no_svmlight_text(tmp_path):
    assert "this is no svmlight file" in str(broken(put(tmp_path, "a,b,c\n1,2,3\n")))


@pytest.mark.parametrize("content", ["", "\n", "\n\n  \r\n", "# only a comment", "\ufeff"])
@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress])
def test_a_file_without_examples_is_an_error(tmp_path, content, pack):
    path = put(tmp_path, pack(content.encode()), "a.gz" if pack is gzip.compress else "a.svm")
    assert str(broken(path)) == f"{path}: the file holds no examples"


def test_errors_survive_pickling():
    for error in (DataFileError("a.svm", "expected a number", 3, 5), MissingDataFile("a.svm", "there is no such file")):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert (str(back), back.line, back.column) == (str(error), error.line, error.column)


# -------------------------------------------------------------------------------------------- files as a whole


@pytest.mark.parametrize("name", ["none.svm", "none.gz", "none.npz", "folder/none.svm"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(MissingDataFile, match=r"none\.\w+: there is no such file$") as caught:
        read(tmp_path / name)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, DataFileError)


@pytest.mark.parametrize("name", ["folder", "folder.gz", "folder.npz"])
def test_a_folder_is_no_file(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(DataFileError, match=r"this is a folder, not a file$"):
        read(tmp_path / name)


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_a_compressed_file_cut_short_or_altered_is_an_error(tmp_path, ending, compress):
    text = "".join(f"1 {k + 1}:{k / 7}\n" for k in range(5000)).encode()
    packed = compress(text)
    altered = bytearray(packed)
    altered[len(packed) // 2] ^= 0xFF
    told = r"the compressed file is damaged or cut short \(.+\)$"
    for content in (packed[: len(packed) // 2], packed[:-4], bytes(altered), b"1 1:1\n"):
        with pytest.raises(DataFileError, match=told):
            read_svmlight(put(tmp_path, content, f"a.svm.{ending}"))


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    path = put(tmp_path, GOOD)

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(DataFileError, match=r"the file cannot be read: Permission denied$"):
        read_svmlight(path)


def test_a_file_that_shrinks_meanwhile_is_named(tmp_path, monkeypatch):
    path = put(tmp_path, GOOD * 1000)
    text = svmlight.open_text(path, 1000)
    path.write_text(GOOD)
    monkeypatch.setattr(svmlight, "open_text", lambda *arguments: text)
    with pytest.raises(DataFileError, match=r"the file became shorter while it was read$"):
        read_svmlight(path)


def test_a_file_that_changes_between_the_passes_is_named(tmp_path, monkeypatch):
    path = put(tmp_path, "1 10:100000000000\n" * 1000)
    counted = svmlight._first_has_query

    def change(text):
        answer = counted(text)
        path.write_text("1 1:1 2:2 3:3 4:4\n" * 1000)
        return answer

    monkeypatch.setattr(svmlight, "_first_has_query", change)
    with pytest.raises(DataFileError, match=r"the file changed while it was read$"):
        read_svmlight(path)


def test_ctrl_c_while_reading_ends_the_threads(tmp_path, monkeypatch):
    path = put(tmp_path, GOOD * 1000)
    monkeypatch.setattr(svmlight, "PIECE", 100)
    read_piece, seen = svmlight._Reading.piece, []

    def interrupted(self, k):
        seen.append(k)
        if k == 3:
            raise KeyboardInterrupt
        if k > 3:
            time.sleep(0.01)
        return read_piece(self, k)

    monkeypatch.setattr(svmlight._Reading, "piece", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_svmlight(path, threads=2)
    done = len(seen)
    assert done < 100  # of about 180 pieces
    time.sleep(0.03)
    assert len(seen) == done


# ---------------------------------------------------------------------------------------------------- archives


def archive(folder, **arrays):
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


SPARSE = {
    "train_indptr": np.array([0, 1, 2]),
    "train_indices": np.array([0, 2]),
    "train_data": np.array([1.0, 2.0]),
    "train_shape": np.array([2, 3]),
    "train_y": np.array([1, -1]),
}
DENSE = {"train_X": np.ones((2, 3)), "train_y": np.array([1, -1])}


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"train_X": np.ones((2, 3))}, "train_y missing (arrays: train_X)"),
        ({"train_y": np.ones(2)}, "train_indptr, train_indices, train_data, train_shape missing, or train_X instead"),
        ({k: v for k, v in SPARSE.items() if k != "train_shape"}, "train_shape missing (arrays: "),
        ({"x": np.ones(2)}, "there is no 'train' part (arrays: x)"),
        ({}, "there is no 'train' part (arrays: none)"),
        ({"test_X": np.ones((2, 3)), "test_y": np.ones(2)}, "there is no 'train' part; it has 'test'"),
        (DENSE | {"train_y": np.ones(3)}, "train_y has the shape (3,), but there are 2 rows"),
        (DENSE | {"train_X": np.ones(3)}, "got an array of 1 dimension(s)"),
        (DENSE | {"train_X": np.array([["a"]])}, "train_X holds <U1, expected numbers"),
        (DENSE | {"train_X": np.array([[1.0, np.nan]])}, "train_X holds a value that is not finite"),
        (DENSE | {"train_X": np.array([[None]])}, "holds Python objects, which are not read"),
        (SPARSE | {"train_indices": np.array([0, 3])}, "do not fit together"),
        (SPARSE | {"train_indices": np.array([0, -1])}, "do not fit together"),
        (SPARSE | {"train_indices": np.array([0])}, "do not fit together"),
        (SPARSE | {"train_indices": np.array([0.5, 1])}, "indices must be a list of whole numbers"),
        (SPARSE | {"train_indptr": np.array([0, 2])}, "do not fit together"),
        (SPARSE | {"train_indptr": np.array([0, 2, 1])}, "do not fit together"),
        (SPARSE | {"train_indptr": np.array([0, 1, 9])}, "do not fit together"),
        (SPARSE | {"train_shape": np.array([2])}, "shape [2] must be two numbers"),
        (SPARSE | {"train_shape": np.array([2, -3])}, "shape [2, -3] must be two numbers"),
        (SPARSE | {"train_query_ids": np.array([1, 2, 3])}, "train_query_ids has the shape (3,)"),
    ],
)
def test_an_archive_that_does_not_fit_is_named(tmp_path, arrays, told):
    path = archive(tmp_path, **arrays)
    with pytest.raises(DataFileError) as caught:
        read_npz(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_part_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"there is no 'test' part; it has 'train'"):
        read(archive(tmp_path, **DENSE), part="test")
    with pytest.raises(DataFileError, match=r"svmlight text has no 'test' part"):
        read(put(tmp_path, GOOD), part="test")
    with pytest.raises(ValueError, match=r"part='all'"):
        read(archive(tmp_path, **DENSE), part="all")


def test_a_damaged_archive_is_an_error(tmp_path, rng):
    write_npz(tmp_path / "a.npz", Table(as_rows(rng.standard_normal((200, 20))), np.arange(200)))
    whole = (tmp_path / "a.npz").read_bytes()
    altered = bytearray(whole)
    altered[len(whole) // 2] ^= 0xFF
    for content in (whole[: len(whole) // 2], whole[:-10], bytes(altered), b"", b"1 1:1\n", pickle.dumps([1])):
        with pytest.raises(DataFileError, match=r"a\.npz: (the archive is damaged|this is no NumPy archive)"):
            read_npz(put(tmp_path, content, "a.npz"))


def test_a_single_array_is_no_archive(tmp_path):
    with open(tmp_path / "a.npz", "wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(DataFileError, match="a single NumPy array"):
        read_npz(tmp_path / "a.npz")


# ----------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.svm.bz2", "a.svm.xz", "a.npz"])
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_writing_that_is_broken_off_leaves_the_old_file(tmp_path, monkeypatch, name, stop):
    old = Table(as_rows(np.eye(3)), np.array([1.0, 2.0, 3.0]))
    write(tmp_path / name, old)
    before = (tmp_path / name).read_bytes()

    def broken_off(descriptor):
        raise stop

    monkeypatch.setattr(os, "fsync", broken_off)
    with pytest.raises(type(stop)) as caught:
        write(tmp_path / name, Table(as_rows(np.ones((2, 2))), np.array([1.0, 2.0])))
    if isinstance(stop, OSError):
        assert str(caught.value) == f"cannot write {tmp_path / name}: No space left on device"
        assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / name).read_bytes() == before
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
def test_ctrl_c_between_two_blocks_leaves_no_file(tmp_path, monkeypatch, name):
    monkeypatch.setattr(svmlight_writing, "_BLOCK_ENTRIES", 10)
    lines, calls = svmlight_writing._lines, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return lines(*arguments)

    monkeypatch.setattr(svmlight_writing, "_lines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_svmlight(tmp_path / name, np.ones((100, 5)), np.ones(100))
    assert len(calls) == 3
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.svm", "a.npz"])
def test_a_missing_folder_is_named(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=r"^cannot write .*: there is no folder "):
        write(tmp_path / "nowhere" / name, Table(as_rows(np.eye(2)), np.array([1, 2])))
