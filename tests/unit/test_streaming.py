"""``partial_fit``: near the optimum of all rows after one look at each, true certificates, clear refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from slackwater import LinearSVC
from slackwater.objective import linear_problem, parse_loss, primal_value
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes

STREAMING = [name for name, cls in solver_classes("classification").items() if cls.streams]
BLOCKS = 20


def adult_like(n=20_000, d=60, seed=0):
    """Few ones in every row, two overlapping classes, labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.2).astype(np.float32)
    score = X @ rng.normal(size=d) + rng.normal(scale=0.7, size=n)
    return X, (score > np.quantile(score, 0.7)).astype(int)


@pytest.fixture(scope="module")
def table():
    return adult_like()


def streamed(svm, X, y, blocks=BLOCKS, classes=(0, 1), weights=None):
    for ids in np.array_split(np.arange(len(y)), blocks):
        svm.partial_fit(X[ids], y[ids], classes=classes, sample_weight=None if weights is None else weights[ids])
    return svm


def excess(svm, X, y, loss="hinge", bias="penalised", weights=None):
    """How far the model is above the optimum of all rows, relatively."""
    problem = linear_problem(
        as_rows(X), np.where(y == 1, 1.0, -1.0), parse_loss(loss), svm.C, weights, bias, None if bias == "none" else 1.0
    )
    intercept = {"none": False, "penalised": True, "free": "free"}[bias]
    best = LinearSVC(C=svm.C, loss=loss, fit_intercept=intercept, tol=1e-3, random_state=0).fit(X, y, weights)
    return primal_value(problem, np.append(svm.coef_[0], svm.intercept_)) / best.certificate_.dual - 1.0


def test_these_solvers_stream():
    assert {"sgd-s", "sgd-m", "sgd-r", "pegasos", "svm-sgd"} <= set(STREAMING)


@pytest.mark.parametrize("solver", ["sgd-s", "sgd-m", "sgd-r", "pegasos", "svm-sgd"])
@pytest.mark.parametrize("C", [0.001, 0.1, 1.0])
def test_one_look_at_each_row_ends_within_a_few_percent_of_the_optimum_of_all(solver, C, table):
    svm = streamed(LinearSVC(C=C, solver=solver, random_state=0), *table)
    assert excess(svm, *table) < (0.1 if C == 0.001 else 0.05)  # where w grows with every row, its average lags


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge", "huber"])
def test_other_losses(loss, table):
    svm = streamed(LinearSVC(C=0.01, loss=loss, random_state=0), *table)
    assert svm.solver_ == "pegasos" and excess(svm, *table, loss) < 0.06


@pytest.mark.parametrize("bias", ["none", "free"])
def test_other_intercepts(bias, table):
    svm = streamed(LinearSVC(C=0.01, fit_intercept=bias if bias == "free" else False, random_state=0), *table)
    assert svm.solver_ == ("svm-sgd" if bias == "free" else "sgd-s")
    assert excess(svm, *table, bias=bias) < 0.06
    assert (svm.intercept_[0] == 0.0) == (bias == "none")


def test_more_rows_come_nearer(table):
    X, y = table
    svm = LinearSVC(C=0.1, random_state=0)
    far = excess(streamed(svm, X[:1000], y[:1000], 1), X, y)
    assert excess(streamed(svm, X[1000:], y[1000:]), X, y) < 0.5 * far


def test_the_certificate_is_true_for_the_latest_rows(table):
    X, y = table[0][:2000], table[1][:2000]
    for intercept, bias in ((True, "penalised"), ("free", "free")):
        svm = streamed(LinearSVC(C=0.05, fit_intercept=intercept, solver="svm-sgd", random_state=0), X, y, 4)
        C = 0.05 * 2000 / 500  # 500 rows standing for 2000
        last = linear_problem(as_rows(X[1500:]), np.where(y[1500:] == 1, 1.0, -1.0), parse_loss("hinge"), C, bias=bias)
        best = LinearSVC(C=C, fit_intercept=intercept, tol=1e-4, random_state=0).fit(X[1500:], y[1500:])
        certificate = svm.certificate_
        assert 0.0 < certificate.dual <= best.certificate_.primal and best.certificate_.dual <= certificate.primal
        losses = np.maximum(0.0, 1.0 - last.labels * svm.decision_function(X[1500:])).mean()
        square = float(svm.coef_[0] @ svm.coef_[0]) + (svm.intercept_[0] ** 2 if bias == "penalised" else 0.0)
        assert certificate.primal == pytest.approx(losses + 0.5 * square / (0.05 * 2000), rel=1e-9)
    assert svm.status_.code == "streaming" and "2000 rows seen in 4 calls" in str(svm.status_)


def test_the_same_seed_gives_the_same_model_and_sparse_rows_that_of_dense_ones(table):
    X, y = table[0][:3000], table[1][:3000]
    first, again, other = (streamed(LinearSVC(random_state=seed), X, y) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not np.array_equal(first.coef_, other.coef_)
    sparse = streamed(LinearSVC(random_state=1), sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, first.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("solver", STREAMING)
def test_a_pickled_stream_goes_on(solver, table):
    X, y = table[0][:1000], table[1][:1000]
    whole = streamed(LinearSVC(solver=solver, random_state=0), X, y, 2)
    half = LinearSVC(solver=solver, random_state=0).partial_fit(X[:500], y[:500], classes=[0, 1])
    half = pickle.loads(pickle.dumps(half)).partial_fit(X[500:], y[500:])
    np.testing.assert_array_equal(half.coef_, whole.coef_)


def test_more_than_two_classes(table):
    X = table[0]
    y = np.array(["a", "b", "c"])[(X[:, :20].sum(axis=1) > 4).astype(int) + (X[:, 20:].sum(axis=1) > 8)]
    svm = streamed(LinearSVC(C=0.1, random_state=0), X, y, classes=["c", "a", "b"])
    best = LinearSVC(C=0.1, tol=1e-2, random_state=0).fit(X, y)
    assert svm.coef_.shape == (3, 60) and len(svm.certificates_) == 3
    assert svm.score(X, y) > best.score(X, y) - 0.03


def test_one_row_at_a_time_and_one_class_at_a_time():
    rng = np.random.default_rng(0)
    y = np.sort(np.arange(200) % 2)
    X = rng.normal(size=(200, 2)) + 3.0 * y[:, None] - 1.5
    svm = LinearSVC(C=0.1, random_state=0)
    for _ in range(3):
        for i in rng.permutation(200):
            svm.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert svm.score(X, y) > 0.95 and np.isfinite(svm.certificate_.primal)
    LinearSVC().partial_fit(X[:100], y[:100], classes=[0, 1])  # all of one class


def test_weights_of_zero_are_rows_left_out(table):
    X, y = table[0][:600], table[1][:600]
    weights = np.where(np.arange(600) % 3 == 0, 0.0, 1.0)
    kept = weights > 0.0
    svm = LinearSVC(random_state=0).partial_fit(X, y, classes=[0, 1], sample_weight=weights)
    alone = LinearSVC(random_state=0).partial_fit(X[kept], y[kept], classes=[0, 1])
    np.testing.assert_array_equal(svm.coef_, alone.coef_)


def test_weights_of_examples_and_classes_count(table):
    X, y = table
    weights = np.where(y == 1, 3.0, 1.0)
    svm = streamed(LinearSVC(C=0.01, random_state=0), X, y, weights=weights)
    assert excess(svm, X, y, weights=weights) < 0.06
    by_class = streamed(LinearSVC(C=0.01, class_weight={0: 1.0, 1: 3.0}, random_state=0), X, y)
    np.testing.assert_array_equal(by_class.coef_, svm.coef_)


def test_balanced_classes_are_those_of_the_rows_seen(table):
    X, y = table
    svm = streamed(LinearSVC(C=0.01, class_weight="balanced", random_state=0), X, y)
    weights = (len(y) / (2.0 * np.bincount(y)))[y]
    assert excess(svm, X, y, weights=weights) < 0.06
    assert excess(svm, X, y, weights=weights) < 0.5 * excess(streamed(LinearSVC(C=0.01), X, y), X, y, weights=weights)


def test_fit_ends_a_stream(table):
    X, y = table[0][:500], table[1][:500]
    svm = LinearSVC(C=0.01, random_state=0).partial_fit(X, y, classes=[0, 1])
    svm.fit(X, y)
    np.testing.assert_array_equal(svm.coef_, LinearSVC(C=0.01, random_state=0).fit(X, y).coef_)
    first = LinearSVC(C=0.01, random_state=0).partial_fit(X, y, classes=[0, 1])
    np.testing.assert_array_equal(svm.partial_fit(X, y).coef_, first.coef_)  # fit has shown the classes
    assert not hasattr(clone(svm), "coef_")


def test_refusals(table):
    X, y = table[0][:50], table[1][:50]
    first = LinearSVC(random_state=0).partial_fit(X, y, classes=[0, 1])
    before = first.coef_.copy()
    able = "solver 'dcd' does not learn from streams; solvers that can: .*sgd-s"
    refused = [
        (LinearSVC(), {}, "classes must be given in the first call of partial_fit"),
        (LinearSVC(), {"classes": [1]}, r"classes must hold at least two labels, got \[1\]"),
        (LinearSVC(), {"classes": [1, 2]}, r"labels that are none of the classes \(1, 2\): 0"),
        (first, {"classes": [0, 2]}, "classes must be those of the first call of partial_fit"),
        (LinearSVC(solver="dcd"), {"classes": [0, 1]}, able),
        (LinearSVC(solver="sgd-s", loss="huber"), {"classes": [0, 1]}, "does not treat loss 'huber'"),
        (LinearSVC(solver="sgd-s", fit_intercept="free"), {"classes": [0, 1]}, "does not treat bias 'free'"),
        (LinearSVC(class_weight="fair"), {"classes": [0, 1]}, "class_weight"),
        (LinearSVC(C=-1.0), {"classes": [0, 1]}, "C must be positive and finite"),
        (LinearSVC(), {"classes": [0, 1], "sample_weight": np.zeros(50)}, "(?i)sample weights? "),
    ]  # fmt: skip
    for svm, options, words in refused:
        with pytest.raises(ValueError, match=words):
            svm.partial_fit(X, y, **options)
    for rows, labels, words in ((X[:, :-1], y, "features"), (X, y[:-1], "inconsistent"), (X, y + 5, "none of the")):
        with pytest.raises(ValueError, match=words):
            first.partial_fit(rows, labels)
    np.testing.assert_array_equal(first.coef_, before)
    with pytest.raises(ValueError, match="C has changed since the first call of partial_fit"):
        first.set_params(C=2.0).partial_fit(X, y)


@pytest.mark.interpreted
@pytest.mark.parametrize("solver", STREAMING)
def test_without_the_compiler_too(solver):
    X, y = adult_like(n=150, d=5)
    svm = streamed(LinearSVC(C=0.1, solver=solver, random_state=0), X, y, 2)
    assert np.isfinite(svm.coef_).all() and svm.certificate_.dual <= svm.certificate_.primal
