"""Headers of C99: compiled with all warnings, and compared with the model row by row."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits

from exported import STRICT, built, bytes_of_tables, compiler, run_c
from slackwater import SVC, SVR, LinearSVC, LinearSVR
from slackwater.data import read
from slackwater.export.c99 import c99
from slackwater.export.fixed_point import HALVING, Factor, halves
from slackwater.export.plain import ExportError
from slackwater.models import KernelModel, LinearModel
from slackwater.objective.kernels import KERNELS, Kernel
from slackwater.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_digits(return_X_y=True)
X = (X / 16.0).astype(np.float32)
TRAIN, TEST = slice(0, 300), slice(300, None)
_OF_KERNEL = {"polynomial": {"gamma": 0.05, "coef0": 1.0, "degree": 3}, "sigmoid": {"gamma": 0.01, "coef0": -0.5},
              "chi2": {"gamma": 0.2}, "laplacian": {"gamma": 0.1}, "rbf": {"gamma": 0.3}}  # fmt: skip


def random_model(kernel: str, outputs: int = 1, blocks=None, sparse: bool = False, m: int = 60, d: int = 20, **more):
    """A kernel model of random vectors; of sparse ones a tenth is not 0."""
    rng = np.random.default_rng(5)
    vectors = rng.uniform(0.0, 1.0, (m, d)) * (rng.random((m, d)) < (0.1 if sparse else 1.0))
    coef = rng.standard_normal((outputs if blocks is None else len(blocks) - 1, m))
    count = outputs if blocks is None else len(blocks) * (len(blocks) - 1) // 2
    return KernelModel(
        Kernel(kernel, **_OF_KERNEL.get(kernel, {})), as_rows(vectors.astype(np.float32)), coef,
        rng.standard_normal(count), np.arange(m), None, None if blocks is None else np.array(blocks), **more,
    )  # fmt: skip


def new_rows(n: int = 200, d: int = 20) -> np.ndarray:
    rng = np.random.default_rng(6)
    return (rng.uniform(0.0, 1.0, (n, d)) * (rng.random((n, d)) < 0.5)).astype(np.float32)


def truth(model, rows: np.ndarray) -> np.ndarray:
    """Decision values (n, outputs) in float64 of the rows as C sees them."""
    return model.decision_values(rows.astype(np.float32).astype(np.float64)).reshape(len(rows), -1)


# ------------------------------------------------------------------------------------------------------- float32


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k not in ("precomputed", "linear")])
def test_float32_agrees_for_every_kernel(tmp_path, kernel, sparse):
    model, rows = random_model(kernel, outputs=3, sparse=sparse, shift=0.25), new_rows()
    header = c99(model, "m")
    assert ("m_vectors_columns" in header.text) == sparse
    got = run_c(tmp_path, header.text, rows)
    assert np.abs(got.values - truth(model, rows)).max() <= 1e-5
    assert (got.labels == truth(model, rows).argmax(axis=1)).all()


@pytest.mark.parametrize("numbers", ["float32", "int16"])
def test_pairs_vote_as_the_model_does(tmp_path, numbers):
    model, rows = random_model("rbf", blocks=[10, 20, 0, 30]), new_rows()
    got = run_c(tmp_path, c99(model, "m", numbers).text, rows)
    assert np.abs(got.values - truth(model, rows)).max() <= (1e-5 if numbers == "float32" else 2e-3)
    assert (got.labels == model.labels_of(got.values.astype(np.float64))).all()


def test_ties_of_votes_go_to_the_larger_sum(tmp_path):
    """Three classes, each of which beats one other: a linear model of pairs with values that are its columns."""
    rows = np.array([[1.0, -2.0, 1.5], [3.0, -1.0, 2.0], [2.0, -2.0, 2.0], [0.0, 0.0, 0.0]], dtype=np.float32)
    vectors = np.vstack([np.eye(3)])
    model = KernelModel(
        Kernel("linear"), as_rows(vectors), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), np.zeros(3), np.arange(3),
        None, np.array([2, 1, 0]),
    )  # fmt: skip
    assert (model.decision_values(rows) == rows).all()
    got = run_c(tmp_path, c99(model, "m").text, rows)
    assert (got.labels == model.predict(rows)).all()


@pytest.mark.parametrize(
    "machine",
    [
        SVC(C=10.0, gamma=0.3), SVC(kernel="poly", degree=2), SVC(kernel="linear", C=0.1),
        LinearSVC(C=0.1, random_state=0), LinearSVC(C=0.1, penalty="l1", tol=0.05, random_state=0),
    ],
    ids=["rbf", "poly", "linear-kernel", "linear", "l1"],
)  # fmt: skip
def test_float32_agrees_for_fitted_classifiers(tmp_path, machine):
    model = machine.fit(X[TRAIN], Y[TRAIN]).model_
    got = run_c(tmp_path, c99(model, "m").text, X[TEST])
    assert np.abs(got.values - truth(model, X[TEST])).max() <= 1e-5
    assert (model.classes[got.labels.astype(int)] == machine.predict(X[TEST].astype(np.float64))).all()


@pytest.mark.parametrize("machine", [SVR(C=1.0), LinearSVR(C=0.1, random_state=0)], ids=["kernel", "linear"])
def test_regressions_predict_their_value(tmp_path, machine):
    model = machine.fit(X[TRAIN], Y[TRAIN].astype(float)).model_
    got = run_c(tmp_path, c99(model, "m").text, X[TEST])
    assert np.abs(got.labels - truth(model, X[TEST])[:, 0]).max() <= 1e-5
    assert (got.values[:, 0] == got.labels).all()


def test_coefficients_stay_double_where_float32_would_show(tmp_path):
    model, rows = random_model("rbf"), new_rows()
    assert "static const float m_coef" in c99(model, "m").text
    large = KernelModel(model.kernel, model.vectors, model.coef * 1e4, model.intercept, model.support)
    header = c99(large, "m").text
    assert "static const double m_coef" in header
    got = run_c(tmp_path, header, rows)
    assert (np.abs(got.values - truth(large, rows)) <= 1e-5 + 1.2e-7 * np.abs(truth(large, rows))).all()


# --------------------------------------------------------------------------------------------------- fixed point

ALLOWED = {"int8": 0.05, "int16": 2e-3}


WAYS = {
    "int8-dense-signed": ("int8", False, True), "int8-sparse-unsigned": ("int8", True, False),
    "int16-dense-unsigned": ("int16", False, False), "int16-sparse-signed": ("int16", True, True),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "sigmoid", "laplacian"])
def test_whole_numbers_are_those_of_the_twin(tmp_path, kernel, way):
    numbers, sparse, signed = WAYS[way]
    model, rows = random_model(kernel, outputs=3, sparse=sparse), new_rows()
    if signed:
        rows = rows * np.where(np.arange(20) % 2, -1.0, 1.0).astype(np.float32)
    header = c99(model, "m", numbers, rows=as_rows(rows))
    assert ("m_vectors_columns" in header.text) == sparse
    got = run_c(tmp_path, header.text, rows)
    twin = header.fixed.values(as_rows(rows))
    assert np.abs(got.values - twin).max() <= 1e-6 * max(1.0, np.abs(twin).max())
    assert np.abs(got.values - truth(model, rows)).max() <= ALLOWED[numbers] * np.abs(model.coef).sum() / 100
    assert (got.labels == got.values.argmax(axis=1)).all()


@pytest.mark.parametrize("numbers", ["int8", "int16"])
def test_linear_whole_numbers(tmp_path, numbers):
    model = LinearSVC(C=0.1, random_state=0).fit(X[TRAIN], Y[TRAIN]).model_
    header = c99(model, "m", numbers, span=(0.0, 1.0))
    got = run_c(tmp_path, header.text, X[TEST])
    assert np.abs(got.values - header.fixed.values(as_rows(X[TEST]))).max() <= 1e-6
    steps = {"int8": (127, 255), "int16": (32767, 65535)}[numbers]
    worst = (np.abs(model.coef).max(axis=1) / steps[0] / 2 * 64 + np.abs(model.coef).sum(axis=1) / steps[1]).max()
    assert np.abs(got.values - truth(model, X[TEST])).max() <= worst


def test_sums_at_the_end_of_the_range_do_not_overflow(tmp_path):
    """The row farthest from every vector, in as many columns as 32 bits just do not hold."""
    d = 40000
    vectors = np.vstack([np.full(d, 1.0), np.full(d, -1.0)])
    gamma = 1.0 / (4.0 * d)
    model = KernelModel(Kernel("rbf", gamma=gamma), as_rows(vectors), np.array([[1.0, 2.0]]), np.zeros(1), np.arange(2))
    header = c99(model, "m", "int8")
    assert "typedef int64_t m_sum" in header.text
    got = run_c(tmp_path, header.text, vectors)
    assert got.values[:, 0] == pytest.approx(truth(model, vectors)[:, 0], abs=1e-3)
    assert "typedef int32_t m_sum" in c99(random_model("rbf"), "m", "int8").text


def test_values_beyond_the_span_are_taken_for_its_ends(tmp_path):
    model = LinearModel(np.array([[1.0, 2.0]]), np.zeros(1))
    rows = np.array([[3.0, -1.0], [1.0, 0.0], [np.nan, 1.0]], dtype=np.float32)
    got = run_c(tmp_path, c99(model, "m", "int16", span=(0.0, 1.0)).text, rows)
    assert got.values[:, 0] == pytest.approx([1.0, 1.0, 2.0], abs=1e-3)


def test_halving_errs_by_less_than_it_says():
    u = np.linspace(0, 31.5 * 2**30, 200_001).astype(np.int64)
    assert np.abs(halves(u) / 2**30 - 2.0 ** -(u / 2**30)).max() < 2e-9 + 2.0**-30
    # Every product in the polynomial is of a value of at most c_k and a fraction below 2^30.
    assert list(HALVING) == sorted(HALVING, reverse=True)


def test_factors_leave_room_for_the_largest_sum():
    for factor, offset, bound in ((3.0, 0.0, 2**29), (1e-9, 5.0, 100), (1e-12, 0.0, 2**50), (0.0, 0.0, 1)):
        found = Factor.of(factor, offset, bound)
        assert found.factor * bound + abs(found.offset) < 2**62
        u = int(found.apply(np.array([bound]))[0])
        assert u / 2**30 == pytest.approx(factor * bound + offset, rel=1e-3, abs=1e-9)
    with pytest.raises(ExportError, match="too much for whole numbers"):
        Factor.of(1.0, 0.0, 2**40)


# ------------------------------------------------------------------------------------------------- sizes, dialects


@pytest.mark.parametrize("numbers", ["float32", "int16", "int8"])
def test_flash_is_what_the_tables_take(tmp_path, numbers):
    model = SVC(gamma=0.3).fit(X[TRAIN], Y[TRAIN]).model_
    header = c99(model, "m", numbers)
    program = built(tmp_path, header.text, flags=("-std=c99", "-O0", "-fkeep-static-consts"))
    assert bytes_of_tables(tmp_path, program) == header.flash
    assert f"Flash  {header.flash} bytes" in header.text and f"#define m_RAM_BYTES {header.ram}" in header.text


def test_whole_numbers_take_less(tmp_path):
    model = random_model("rbf", m=200)
    sizes = [c99(model, "m", numbers).flash for numbers in ("float32", "int16", "int8")]
    assert sizes == sorted(sizes, reverse=True) and sizes[2] < 0.4 * sizes[0]


@pytest.mark.parametrize("numbers", ["float32", "int8"])
def test_the_header_is_cpp_too(tmp_path, numbers):
    model, rows = random_model("rbf", outputs=3), new_rows()
    header = c99(model, "m", numbers).text
    ours = run_c(tmp_path, header, rows)
    assert (run_c(tmp_path, header, rows, "g++", ("-std=c++11", "-O2")).values == ours.values).all()
    assert "malloc" not in header and "stdio" not in header and "math.h" not in header


def test_float_sums_are_a_choice(tmp_path):
    model, rows = random_model("rbf", outputs=3), new_rows()
    got = run_c(tmp_path, c99(model, "m").text, rows, flags=("-std=c99", "-O2", "-Dm_real=float"))
    assert np.abs(got.values - truth(model, rows)).max() <= 1e-4


WORDS = """
#include <stdio.h>
#include "m.h"

int main(void)
{
    int c;
    for (c = 0; c < m_CLASSES; c++)
        puts(m_classes[c]);
    return m_predict((const float[m_COLUMNS]){0}) != 0;
}
"""


def test_words_as_classes_are_safe_in_c(tmp_path):
    words = np.array(['say "hi"', "back\\slash", "??/", "naïve */"])
    model = LinearModel(np.eye(4), np.zeros(4), words)
    (tmp_path / "m.h").write_text(c99(model, "m").text)
    (tmp_path / "words.c").write_text(WORDS)
    command = [compiler(), "-std=c99", *STRICT, str(tmp_path / "words.c"), "-o", str(tmp_path / "words")]
    subprocess.run(command, check=True)
    printed = subprocess.run([str(tmp_path / "words")], capture_output=True, check=True).stdout.decode()
    assert printed.splitlines() == words.tolist()


# ------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "2x"}, "a letter, then"),
        ({"numbers": "int4"}, "float32, int8, int16"),
        ({"numbers": "int8", "span": (1.0, 0.0)}, "the lower one first"),
        ({"numbers": "int8", "span": (0.0, np.inf)}, "finite"),
    ],
)
def test_what_cannot_be_is_refused(arguments, sentence):
    with pytest.raises(ExportError, match=sentence):
        c99(random_model("rbf"), **{"name": "m", **arguments})


def test_kernels_that_cannot_be_are_named():
    with pytest.raises(ExportError, match="cannot say the kernel chi2; it can say linear, rbf"):
        c99(random_model("chi2"), "m", "int8")
    function = KernelModel(Kernel("callable", function=lambda a, b: a @ b.T), as_rows(np.eye(2)), np.ones((1, 2)),
                           np.zeros(1), np.arange(2))  # fmt: skip
    with pytest.raises(ExportError, match="a function of your own"):
        c99(function, "m")
    with pytest.raises(ExportError, match="the range of the data"):
        c99(LinearModel(np.eye(2), np.zeros(2)), "m", "int8")
    with pytest.raises(ExportError, match="too large for float32"):
        c99(LinearModel(np.array([[1e300]]), np.zeros(1)), "m")


# ------------------------------------------------------------------------------------------------------ real data


@pytest.mark.slow
def test_every_test_row_of_usps(tmp_path, real_data):
    train, test = read(real_data / "usps.npz"), read(real_data / "usps.npz", "test")
    machine = SVC(C=10.0, gamma=0.01).fit(train.X[:1000], train.y[:1000])
    model, rows = machine.model_, np.asarray(test.X if isinstance(test.X, np.ndarray) else test.X.toarray())
    got = run_c(tmp_path, c99(model, "m").text, rows)
    assert len(rows) == 2007
    assert np.abs(got.values - truth(model, rows)).max() <= 1e-5
    assert (model.classes[got.labels.astype(int)] == model.predict(rows.astype(np.float64))).all()
    for numbers, allowed in (("int16", 1e-3), ("int8", 0.1)):
        fixed = run_c(tmp_path, c99(model, "m", numbers).text, rows)
        assert np.abs(fixed.values - truth(model, rows)).max() <= allowed
