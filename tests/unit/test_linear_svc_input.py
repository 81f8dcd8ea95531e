"""What LinearSVC takes: rows and labels of many kinds, in place where it can; and what it says where it cannot."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater import LinearSVC


@pytest.fixture(scope="module")
def table():
    """Integers between 0 and 9, which every number type holds exactly, and labels -1 and 1."""
    draws = np.random.default_rng(7)
    X = draws.integers(0, 10, size=(120, 6))
    return X, np.where(X[:, 0] + X[:, 1] + draws.normal(scale=3.0, size=120) > X[:, 2] + 5, 1, -1)


@pytest.fixture(scope="module")
def plain(table):
    """The fit that others are compared with."""
    return LinearSVC(random_state=0).fit(table[0].astype(np.float64), table[1])


# ------------------------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.uint64]
)
def test_every_number_type_is_the_same_data(dtype, table, plain):
    svm = LinearSVC(random_state=0).fit(table[0].astype(dtype), table[1])
    np.testing.assert_allclose(svm.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_array_equal(svm.predict(table[0].astype(dtype)), plain.predict(table[0]))


def test_booleans_are_zeros_and_ones(table):
    X, y = table[0] > 4, table[1]
    svm, other = (LinearSVC(random_state=0).fit(form, y) for form in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(svm.coef_, other.coef_)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.bsr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_sparse_form_is_the_same_data(form, dtype, table, plain):
    svm = LinearSVC(random_state=0).fit(form(table[0].astype(dtype)), table[1])
    np.testing.assert_allclose(svm.coef_, plain.coef_, rtol=1e-6)


def test_indices_of_64_bits(table, plain):
    X = sp.csr_array(table[0].astype(float))
    X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    np.testing.assert_allclose(LinearSVC(random_state=0).fit(X, table[1]).coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        np.ndarray.tolist,
    ],
    ids=["columns", "every second row", "every second column", "lists"],
)
def test_every_order_in_memory_is_the_same_data(form, table, plain):
    svm = LinearSVC(random_state=0).fit(form(table[0].astype(np.float64)), table[1])
    np.testing.assert_allclose(svm.coef_, plain.coef_, rtol=1e-6)


def test_read_only_data_stay_as_they_are(table):
    X, y = table[0].astype(np.float32), table[1].copy()
    X.flags.writeable = y.flags.writeable = False
    svm = LinearSVC(random_state=0).fit(X, y)
    assert svm.status_.converged
    np.testing.assert_array_equal(X, table[0])


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_data_frames_have_names(name, table, plain):
    library = pytest.importorskip(name)
    values_of = {"pandas": "data", "polars": "values"}
    names = [f"feature {k}" for k in range(6)]
    frame = library.DataFrame({name: table[0][:, k].astype(float) for k, name in enumerate(names)})
    svm = LinearSVC(random_state=0).fit(frame, library.Series(name="label", **{values_of[name]: table[1]}))
    np.testing.assert_array_equal(svm.coef_, plain.coef_)
    np.testing.assert_array_equal(svm.feature_names_in_, names)
    assert svm.model_.meta["feature_names"] == names
    np.testing.assert_array_equal(svm.predict(frame), plain.predict(table[0]))
    with pytest.raises(ValueError, match=r"(?s)feature names.*same order"):
        svm.predict(frame[names[::-1]])


def test_one_column_and_two_rows():
    svm = LinearSVC(random_state=0).fit([[0.0], [2.0]], ["a", "b"])
    np.testing.assert_array_equal(svm.predict([[-1.0], [3.0]]), ["a", "b"])


# ------------------------------------------------------------------------------------------------------------- memory


def peak_of(fit) -> int:
    """The most bytes that lived at once during a call, besides those before."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_are_used_in_place(kind, dtype):
    draws = np.random.default_rng(0)
    rows = 100_000 if dtype is np.float32 else 50_000
    y = draws.integers(2, size=rows)
    if kind == "dense":
        X = draws.standard_normal((rows, 100), dtype=np.float32).astype(dtype, copy=False)
        size = X.nbytes
    else:
        columns = 50 * draws.integers(0, 1000, size=(rows, 50), dtype=np.int32) + np.arange(50, dtype=np.int32)
        columns.sort(axis=1)
        starts = np.arange(0, 50 * rows + 1, 50, dtype=np.int32)
        X = sp.csr_array((np.ones(50 * rows, dtype), columns.ravel(), starts), shape=(rows, 50_000))
        size = X.data.nbytes + X.indices.nbytes
    svm = LinearSVC(max_rounds=1, random_state=0)

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            svm.fit(X, y)

    assert svm.set_params(tol=10.0).fit(X[:100], y[:100]).status_.converged  # everything is imported and compiled
    svm.set_params(tol=1e-9)
    assert size > 2.5e7
    assert peak_of(fit) < size / 2
    assert peak_of(lambda: svm.predict(X)) < size / 2


# ------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "names",
    [
        ["no", "yes"],
        np.array(["no", "yes"], dtype=object),
        [False, True],
        [0.5, 1.5],
        [np.int8(-3), np.int8(100)],
    ],
    ids=["text", "objects", "booleans", "floats", "bytes"],
)
def test_labels_of_every_kind(names, table, plain):
    X, y = table
    labels = np.asarray(names)[(y > 0).astype(int)]
    if np.asarray(names).dtype.kind == "f":
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            LinearSVC().fit(X, labels)
        return
    svm = LinearSVC(random_state=0).fit(X, labels)
    np.testing.assert_array_equal(svm.coef_, plain.coef_)
    assert svm.classes_.tolist() == sorted(np.asarray(names).tolist()) and svm.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(svm.predict(X), np.asarray(names)[(plain.predict(X) > 0).astype(int)])


def test_labels_in_a_column_are_taken_with_a_warning(table, plain):
    with pytest.warns(match="column-vector y was passed"):
        svm = LinearSVC(random_state=0).fit(table[0], table[1][:, None])
    np.testing.assert_array_equal(svm.coef_, plain.coef_)


def test_rows_without_weight_may_hold_a_class_that_is_never_seen(table):
    X, y = table
    weights = (y > 0).astype(float)
    svm = LinearSVC(random_state=0).fit(X, y, sample_weight=weights)
    assert (svm.predict(X) == 1).all() and svm.classes_.tolist() == [-1, 1]


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"C": 0}, "C must be positive and finite, got 0"),
        ({"C": -1.0}, "C must be positive and finite, got -1"),
        ({"C": np.inf}, "C must be positive and finite, got inf"),
        ({"C": "1"}, "C must be positive and finite, got '1'"),
        ({"tol": -1.0}, "tol must be a number of at least 0, got -1.0"),
        ({"tol": np.nan}, "tol must be a number of at least 0, got nan"),
        ({"tol": "x"}, "tol must be a number of at least 0, got 'x'"),
        ({"loss": "logistic"}, "loss='logistic' is not known; the losses are hinge, squared_hinge"),
        ({"loss": "huber:x"}, "loss='huber:x': the width 'x' is not a number"),
        ({"loss": "hinge:2"}, "loss='hinge:2': hinge has no width"),
        ({"loss": "huber:3"}, "the half width of the Huber loss must lie in"),
        ({"max_time": 0}, "max_time must be positive or None, got 0"),
        ({"max_time": "1 h"}, "max_time must be positive or None, got '1 h'"),
        ({"max_rounds": 0}, "max_rounds must be at least 1 or None, got 0"),
        ({"certify_every": 0}, "certify_every must be at least 1 or None, got 0"),
        ({"fit_intercept": "x"}, "fit_intercept='x' is not known; it is True, False or 'free'"),
        ({"multi_class": "ovo"}, "multi_class='ovo' is not known; the kinds are ovr, crammer_singer"),
        (
            {"multi_class": "crammer_singer", "loss": "huber"},
            "multi_class='crammer_singer' needs loss='hinge', got 'huber'",
        ),
        (
            {"multi_class": "crammer_singer", "fit_intercept": "free"},
            "bias='free' is not treated for crammer_singer; the kinds are none, penalised",
        ),
        (
            {"multi_class": "crammer_singer", "solver": "dcd"},
            "solver 'dcd' does not treat task 'multiclass'; solvers that can: .*crammer-singer",
        ),
        (
            {"solver": "crammer-singer"},
            "'crammer-singer' does not treat task 'classification'; solvers that can: .*dcd",
        ),
        ({"intercept_scaling": 0.0}, "intercept_scaling must be positive and finite, got 0.0"),
        ({"intercept_scaling": -2.0}, "intercept_scaling must be positive and finite, got -2.0"),
        ({"solver": "simplex"}, "solver='simplex' is not known; the solvers are .*dcd"),
        ({"solver_options": {"beta2": 1}}, "solver 'dcd' has no setting 'beta2'; its settings are .*shrinking"),
        (
            {"solver": "sgd-s", "loss": "squared_hinge"},
            "solver 'sgd-s' does not treat loss 'squared_hinge'; solvers that",
        ),
        ({"solver": "pegasos", "fit_intercept": "free"}, "does not treat bias 'free'|"),
        ({"validation_fraction": 2}, "validation_fraction must lie between 0 and 1, or be None; got 2"),
        ({"validation_fraction": 0.0}, "validation_fraction must lie between 0 and 1, or be None; got 0.0"),
        ({"validation_fraction": 0.1, "patience": 0}, "patience must be at least 1 or None, got 0"),
        ({"class_weight": "heavy"}, "class_weight"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=str,
)
def test_a_parameter_out_of_range_is_named_in_one_sentence(settings, sentence, table):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        LinearSVC(**settings).fit(*table)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_values_that_are_not_finite_are_refused(bad, form, table):
    X = table[0].astype(float)
    X[17, 3] = bad
    with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "infinity"):
        LinearSVC().fit(form(X), table[1])


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (np.zeros((3, 2)), [1, 1, 1], "one class only, 1"),
        (np.zeros((3, 2)), ["a"] * 3, "one class only, 'a'"),
        (np.zeros((3, 2)), [1, 2], "inconsistent numbers of samples: .3, 2."),
        (np.zeros(3), [1, 2, 1], "Expected 2D array, got 1D array"),
        (np.zeros((2, 2, 2)), [1, 2], "3"),
        (np.zeros((0, 2)), [], "0 sample"),
        (np.zeros((3, 0)), [1, 2, 1], "0 feature"),
        (np.zeros((3, 2)), None, "y"),
        (np.zeros((3, 2)), [1, 2, np.nan], "NaN"),
        (np.zeros((3, 2)), [[1, 0], [0, 1], [1, 1]], "bad input shape|1d array|Unknown label|y should be"),
        (np.zeros((3, 2)) + 1j, [1, 2, 1], "Complex data not supported"),
        ([["a", "b"], ["c", "d"]], [1, 2], "could not convert string|numeric"),
    ],
)  # fmt: skip
def test_data_of_the_wrong_shape_or_kind_are_refused(X, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        LinearSVC().fit(X, y)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(5), "sample_weight.shape == .5,., expected .120,."),
        (np.full(120, -1.0), "Negative values"),
        (np.full(120, np.nan), "NaN"),
        (np.zeros(120), "zero"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, sentence, table):
    with pytest.raises(ValueError, match=sentence):
        LinearSVC().fit(*table, sample_weight=weights)


def test_a_class_without_any_weight_cannot_be_balanced(table):
    X, y = table
    with pytest.raises(ValueError, match="class_weight='balanced': all rows of class -1 have the weight 0"):
        LinearSVC(class_weight="balanced").fit(X, y, sample_weight=(y > 0).astype(float))


def test_rows_of_another_width_are_refused(plain, table):
    with pytest.raises(ValueError, match="X has 5 features, but LinearSVC is expecting 6 features"):
        plain.predict(table[0][:, :5])


def test_a_holdout_that_leaves_no_row_of_a_class_is_refused(table):
    X, y = table[0][:6], np.array([0, 0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="class"):
        LinearSVC(validation_fraction=0.5).fit(X, y)
