"""Predictors of one row at a time: what they say is what models and estimators say of a table."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from problems import quarters
from slackwater import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR, OnlineSVC
from slackwater.models import KernelModel, KernelRegressionModel, LinearModel, LinearRegressionModel, VotedModel
from slackwater.models import single_row_kernels as ready
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

D = 23
KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", 0.2),
    "polynomial": Kernel("polynomial", 0.5, 1.5, 3),
    "degree 0": Kernel("polynomial", 0.5, 1.5, 0),
    "sigmoid": Kernel("sigmoid", 0.1, -0.5),
    "laplacian": Kernel("laplacian", 0.1),
    "chi2": Kernel("chi2", 0.1),
}
FORMS = {
    "one": {"outputs": 1, "classes": np.array(["no", "yes"])},
    "bare": {"outputs": 1},
    "rest": {"outputs": 4, "classes": np.array([3, 5, 7, 9])},
    "bare rest": {"outputs": 3},
    "pairs": {"outputs": 3, "classes": np.array(list("abcd")), "blocks": np.array([2, 0, 5, 3])},
}


def machine(rng, kernel, form, layout=np.asarray, dtype=np.float64, kind=KernelModel, **more):
    """A model of ten vectors."""
    form = dict(FORMS[form])
    lines = form.pop("outputs")
    outputs = 6 if "blocks" in form else lines
    vectors = as_rows(layout(np.abs(quarters(rng, n=10, d=D)).astype(dtype)))
    coef, intercept = rng.normal(size=(lines, 10)), rng.normal(size=outputs)
    return kind(kernel, vectors, coef, intercept, np.arange(10), **form, **more)


def entries(x) -> tuple[np.ndarray, np.ndarray]:
    """A row as the columns and values of its entries."""
    return np.flatnonzero(x), x[np.flatnonzero(x)]


def check(found, X, predictor=None, rel=1e-5) -> None:
    """All rows of X, dense and sparse: the predictor is the model."""
    predictor = predictor or found.compile()
    values, labels = found.decision_values(X), found.predict(X)
    tolerance = rel * max(1.0, np.abs(values).max())
    for x, value, label in zip(X, values, labels, strict=True):
        for row in (x, entries(x)):
            decision = predictor.decision(row)
            assert decision == pytest.approx(value, abs=tolerance)
            assert isinstance(decision, float) == (values.ndim == 1)
            assert predictor(row) == (pytest.approx(label, abs=tolerance) if label.dtype.kind == "f" else label)


# ------------------------------------------------------------------------------------------------ kernel models


@pytest.fixture
def by_columns(monkeypatch):
    """Even small sparse models keep their vectors by columns."""
    monkeypatch.setattr(ready, "_MATRIX", 0)
    monkeypatch.setattr(ready, "_FILLED", 1.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_on_every_layout(kernel, layout, dtype, rng):
    X = np.abs(quarters(rng, n=6, d=D))
    check(machine(rng, KERNELS[kernel], "one", layout, dtype), X)
    check(machine(rng, KERNELS[kernel], "pairs", layout, dtype, shift=1.0), X)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_by_columns(kernel, dtype, rng, by_columns):
    found = machine(rng, KERNELS[kernel], "one", sp.csr_array, dtype)
    predictor = found.compile()
    assert kernel == "linear" or isinstance(predictor.values, ready.ColumnValues)
    check(found, np.abs(quarters(rng, n=6, d=D)), predictor)


@pytest.mark.interpreted
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_form_of_outputs(form, kernel, rng):
    check(machine(rng, KERNELS[kernel], form), np.abs(quarters(rng, n=9, d=D)))


def test_large_sparse_models_are_kept_by_columns(rng):
    vectors = as_rows(sp.random_array((50, 100_000), density=1e-3, rng=rng, format="csr"))
    found = KernelModel(KERNELS["rbf"], vectors, rng.normal(size=(1, 50)), np.zeros(1), np.arange(50))
    predictor, x = found.compile(), sp.random_array((1, 100_000), density=1e-3, rng=rng, format="csr")
    assert isinstance(predictor.values, ready.ColumnValues)
    expected = found.decision_values(x)[0]
    for row in ((x.indices, x.data), x.toarray()[0]):
        assert predictor.decision(row) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("columns", [0, 1, 31, 32, 33, 64, 130])
def test_every_number_of_columns(columns, rng):
    X, vectors = rng.normal(size=(3, columns)), rng.normal(size=(7, columns))
    for kernel in ("rbf", "polynomial", "laplacian"):
        check(KernelModel(KERNELS[kernel], as_rows(vectors), rng.normal(size=(1, 7)), np.ones(1), np.arange(7)), X)


def test_models_without_vectors_say_the_intercept(rng):
    for layout in (np.asarray, sp.csr_array):
        found = KernelModel(
            KERNELS["rbf"], as_rows(layout(np.zeros((0, 3)))), np.zeros((1, 0)), np.array([0.5]), np.arange(0)
        )
        assert found.compile().decision(np.ones(3)) == 0.5 and found.compile()(np.ones(3)) == 1.0


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_rows_far_from_the_origin_lose_nothing(offset, rng):
    """Where squared norms in float32 would be all rounding."""
    X, vectors = rng.normal(size=(5, 8)) + offset, rng.normal(size=(20, 8)) + offset
    found = KernelModel(KERNELS["rbf"], as_rows(vectors), rng.normal(size=(1, 20)), np.zeros(1), np.arange(20))
    exact = np.exp(-0.2 * ((X[:, None] - vectors) ** 2).sum(axis=2)) @ found.coef[0]
    assert [found.compile().decision(x) for x in X] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("name", ["precomputed", "callable"])
def test_kernels_without_rows_are_refused(name, rng):
    with pytest.raises(TypeError, match=f"the kernel '{name}' has no predictor of single rows"):
        machine(rng, Kernel(name), "one").compile()


def test_voted_models_are_refused(rng):
    found = machine(rng, KERNELS["rbf"], "one")
    voted = VotedModel(found, np.arange(10), np.ones(10), np.ones(10), np.array([10]))
    with pytest.raises(TypeError, match="a voted model has no predictor of single rows"):
        voted.compile()


# ------------------------------------------------------------------------------------- linear models, regression


@pytest.mark.interpreted
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", [LinearModel, LinearRegressionModel])
def test_linear_models(kind, outputs, rng):
    check(kind(rng.normal(size=(outputs, D)), rng.normal(size=outputs)), quarters(rng, d=D), rel=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_kernel_regression(kernel, rng):
    found = machine(rng, KERNELS[kernel], "bare", kind=KernelRegressionModel)
    x = np.abs(quarters(rng, n=6, d=D))[0]
    predictor = found.compile()
    assert predictor(x) == predictor.decision(x) == pytest.approx(found.predict(x[None])[0], abs=1e-5)


# -------------------------------------------------------------------------------------------------- how it is used


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_come_in_any_memory(kernel, dtype, rng):
    found = machine(rng, KERNELS[kernel], "rest")
    predictor, x = found.compile(), np.abs(quarters(rng, n=6, d=D))[0].astype(dtype)
    expected = found.decision_values(x[None])[0]
    locked, spread, wide = x.copy(), np.zeros((D, 2), dtype=dtype)[:, 0], np.zeros(D + 5, dtype=dtype)
    locked.flags.writeable = False
    spread[:], wide[3:-2] = x, x
    for row in (x, locked, spread, wide[3:-2], x.tolist(), memoryview(x), x[::-1].copy()[::-1], x.astype(">f8")):
        assert predictor.decision(row) == pytest.approx(expected, abs=1e-5)
    indices, values = entries(x)
    for row in ((indices.astype(np.int32), values), (indices.astype(np.uint32), values), (list(indices), list(values))):
        assert predictor.decision(row) == pytest.approx(expected, abs=1e-5)
    assert (x == locked).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_of_another_length_are_refused(kernel, rng):
    predictor = machine(rng, KERNELS[kernel], "one").compile()
    for row in (np.zeros(D - 1), np.zeros(D + 1), np.zeros((1, D)), 1.0):
        with pytest.raises(ValueError, match="but the model was fitted on 23 columns"):
            predictor(row)


def test_columns_that_are_not_there_are_refused(rng, by_columns):
    for layout in (np.asarray, sp.csr_array):
        for kernel in ("linear", "rbf"):
            predictor = machine(rng, KERNELS[kernel], "one", layout).compile()
            with pytest.raises(IndexError):
                predictor(([0, D], [1.0, 1.0]))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_copies_say_the_same(kernel, layout, rng, by_columns):
    predictor, X = machine(rng, KERNELS[kernel], "pairs", layout).compile(), np.abs(quarters(rng, d=D))
    for other in (pickle.loads(pickle.dumps(predictor)), copy.deepcopy(predictor)):
        assert all((other.decision(x) == predictor.decision(x)).all() and other(x) == predictor(x) for x in X)
        if isinstance(other.values, ready.MatrixValues):
            assert other.values.vectors.ctypes.data % 64 == 0


def test_a_predictor_stays_as_its_model_was(rng):
    found = machine(rng, KERNELS["rbf"], "one")
    predictor, x = found.compile(), np.abs(quarters(rng, n=6, d=D))[0]
    before = predictor.decision(x)
    found.coef[:], found.intercept[:] = 0.0, 0.0
    assert predictor.decision(x) == before


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_threads_share_a_predictor(layout, rng, by_columns):
    predictor, X = machine(rng, KERNELS["rbf"], "pairs", layout).compile(), np.abs(quarters(rng, n=50, d=D))
    expected = [predictor.decision(x).tolist() for x in X]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            assert list(pool.map(lambda x: predictor.decision(x).tolist(), X)) == expected


# ------------------------------------------------------------------------------------------------------ estimators


def blobs(rng, classes: int):
    X = rng.normal(size=(60, 5)) + 2.0 * np.arange(60)[:, None] % classes
    return X, np.array(["a", "b", "c", "d"])[np.arange(60) % classes]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(
    "svm",
    [
        LinearSVC(tol=0.1, random_state=0),
        LinearSVCCV([0.1, 1.0], cv=2, tol=0.1, random_state=0),
        SVC(tol=0.1),
        SVC(tol=0.1, decision_function_shape="ovo"),
        SVC(tol=0.1, multi_class="ovr", fit_intercept="penalised"),
        SVC(tol=0.1, kernel="linear"),
        OnlineSVC("forgetron", budget=20, random_state=0),
    ],
    ids=lambda svm: type(svm).__name__ + str(getattr(svm, "decision_function_shape", "")),
)
def test_classifiers(svm, classes, rng):
    X, y = blobs(rng, classes)
    predictor = svm.fit(X, y).compile()
    values, labels = svm.decision_function(X), svm.predict(X)
    assert [predictor.decision(x) for x in X] == pytest.approx(values, abs=1e-4)
    assert [predictor(x) for x in X] == labels.tolist()
    assert type(predictor(X[0])) is type(labels[0])


@pytest.mark.parametrize("svm", [LinearSVR(tol=0.1, random_state=0), SVR(tol=0.1)])
def test_regressions(svm, rng):
    X, _ = blobs(rng, 3)
    predictor = svm.fit(X, X[:, 0]).compile()
    assert [predictor(x) for x in X] == pytest.approx(svm.predict(X), abs=1e-4)


def test_what_is_not_fitted_cannot_be_compiled():
    for svm in (SVC(), LinearSVR(), OnlineSVC()):
        with pytest.raises(NotFittedError):
            svm.compile()
