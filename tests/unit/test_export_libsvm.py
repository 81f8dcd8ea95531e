"""LIBSVM's and LIBLINEAR's files: their programs predict with ours, we with theirs, on rows of real data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from slackwater import SVC, SVR, LinearSVC, LinearSVR, export, import_model
from slackwater.export import ExportError
from slackwater.export.liblinear import from_liblinear, liblinear_bytes
from slackwater.export.libsvm import from_libsvm, libsvm_bytes
from slackwater.models import KernelModel, LinearModel, LinearRegressionModel
from slackwater.models.kernel import votes
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_digits(return_X_y=True)
X = X / 16.0
TRAIN, TEST = slice(0, 200), slice(200, 400)


@pytest.fixture(scope="module")
def svm():
    return pytest.importorskip("libsvm.svmutil")


@pytest.fixture(scope="module")
def linear():
    return pytest.importorskip("liblinear.liblinearutil")


def by_libsvm(svm, path, rows) -> tuple[np.ndarray, np.ndarray]:
    """Labels and decision values (n, outputs) that LIBSVM computes."""
    labels, _, values = svm.svm_predict([], sp.csr_matrix(rows), svm.svm_load_model(str(path)), "-q")
    return np.array(labels), np.array(values)


def by_liblinear(linear, path, rows) -> tuple[np.ndarray, np.ndarray]:
    labels, _, values = linear.predict([], sp.csr_matrix(rows), linear.load_model(str(path)), "-q")
    return np.array(labels), np.array(values)


def columns(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


def without_ties(model: KernelModel, rows: np.ndarray) -> np.ndarray:
    """Rows for which no two classes have the most votes: LIBSVM takes the first of them, we look at the values."""
    if model.blocks is None:
        return np.ones(len(rows), dtype=bool)
    whole = np.sort(np.rint(votes(model.decision_values(rows), model.blocks.size)), axis=1)
    return whole[:, -1] > whole[:, -2]


# ------------------------------------------------------------------------------------------------ ours to LIBSVM

MACHINES = {
    "rbf": SVC(gamma=0.3), "poly": SVC(kernel="poly", degree=2, coef0=0.5),
    "sigmoid": SVC(kernel="sigmoid", gamma=0.01),
    "linear": SVC(kernel="linear", C=0.1),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("classes", [2, 10])
def test_libsvm_predicts_with_our_file(tmp_path, svm, name, classes):
    machine = MACHINES[name].fit(X[TRAIN], Y[TRAIN] % classes)
    export(machine, tmp_path / "m.libsvm")
    labels, values = by_libsvm(svm, tmp_path / "m.libsvm", X[TEST])
    assert np.abs(values - columns(machine.model_.decision_values(X[TEST]))).max() <= 1e-9
    sure = without_ties(machine.model_, X[TEST])
    assert (labels == machine.predict(X[TEST]))[sure].all() and sure.mean() > 0.9
    again = from_libsvm(tmp_path / "m.libsvm", 64)
    assert (again.coef != 0).sum() == (machine.model_.coef != 0).sum()
    assert again.decision_values(X[TEST]) == pytest.approx(machine.model_.decision_values(X[TEST]), abs=1e-12)
    assert (again.predict(X[TEST]) == machine.predict(X[TEST])).all()


def test_regressions_and_linear_models_go_to_libsvm(tmp_path, svm):
    for machine in (SVR(C=1.0), LinearSVR(C=0.1, random_state=0), LinearSVC(C=0.1, random_state=0)):
        labels = Y[TRAIN] % 2 if isinstance(machine, LinearSVC) else Y[TRAIN].astype(float)
        export(machine.fit(X[TRAIN], labels), tmp_path / "m.libsvm")
        found, values = by_libsvm(svm, tmp_path / "m.libsvm", X[TEST])
        assert np.abs(values[:, 0] - machine.model_.decision_values(X[TEST])).max() <= 1e-9
        assert found == pytest.approx(machine.predict(X[TEST]), abs=1e-9)
        assert import_model(tmp_path / "m.libsvm").predict(X[TEST]) == pytest.approx(machine.predict(X[TEST]), abs=1e-9)


def test_a_penalised_intercept_goes_along(tmp_path, svm):
    model = KernelModel(Kernel("rbf", gamma=0.1), as_rows(X[:20]), np.ones((1, 20)), np.array([-3.0]), np.arange(20),
                        shift=0.5)  # fmt: skip
    export(model, tmp_path / "m.libsvm")
    assert by_libsvm(svm, tmp_path / "m.libsvm", X[TEST])[1][:, 0] == pytest.approx(model.decision_values(X[TEST]))
    assert from_libsvm(tmp_path / "m.libsvm").intercept == pytest.approx([7.0])


# ------------------------------------------------------------------------------------------------ LIBSVM to ours


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("options", ["-t 0", "-t 1 -g 0.1 -r 1 -d 2", "-t 2 -g 0.3", "-t 3 -g 0.01", "-s 1 -n 0.1"])
def test_we_predict_with_libsvms_file(tmp_path, svm, options, classes):
    if "-s 1" in options and classes > 2:
        pytest.skip("libsvm-official gives its own nu_svc room for one decision value only")
    labels = (Y[TRAIN] % classes) * 3 - 1
    theirs = svm.svm_train(labels, X[TRAIN], f"{options} -q")
    svm.svm_save_model(str(tmp_path / "m.model"), theirs)
    model = import_model(tmp_path / "m.model", 64)
    found, values = by_libsvm(svm, tmp_path / "m.model", X[TEST])
    assert np.abs(values - columns(model.decision_values(X[TEST]))).max() <= 1e-9 * max(1.0, np.abs(values).max())
    sure = without_ties(model, X[TEST])
    assert (model.predict(X[TEST]) == found)[sure].all() and sure.mean() > 0.9


@pytest.mark.parametrize("options", ["-s 3 -t 2", "-s 4 -t 2 -n 0.3"])
def test_we_predict_with_libsvms_regression(tmp_path, svm, options):
    svm.svm_save_model(str(tmp_path / "m.model"), svm.svm_train(Y[TRAIN].astype(float), X[TRAIN], f"{options} -q"))
    found, _ = by_libsvm(svm, tmp_path / "m.model", X[TEST])
    assert import_model(tmp_path / "m.model", 64).predict(X[TEST]) == pytest.approx(found, abs=1e-9)


# ------------------------------------------------------------------------------------------------------ LIBLINEAR


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 10])
def test_liblinear_predicts_with_our_file(tmp_path, linear, classes, intercept):
    machine = LinearSVC(C=0.1, fit_intercept=intercept, random_state=0).fit(X[TRAIN], Y[TRAIN] % classes)
    export(machine, tmp_path / "m.liblinear")
    labels, values = by_liblinear(linear, tmp_path / "m.liblinear", X[TEST])
    assert values == pytest.approx(columns(machine.decision_function(X[TEST])), abs=1e-9)
    assert (labels == machine.predict(X[TEST])).all()
    again = from_liblinear(tmp_path / "m.liblinear")
    assert (again.coef == machine.model_.coef).all() and (again.intercept == machine.model_.intercept).all()
    assert (again.predict(X[TEST]) == machine.predict(X[TEST])).all()


def test_liblinear_takes_regressions_and_linear_kernels(tmp_path, linear):
    machine = LinearSVR(C=0.1, random_state=0).fit(X[TRAIN], Y[TRAIN].astype(float))
    export(machine, tmp_path / "m.model")
    assert by_liblinear(linear, tmp_path / "m.model", X[TEST])[0] == pytest.approx(machine.predict(X[TEST]), abs=1e-9)
    again = import_model(tmp_path / "m.model")
    assert isinstance(again, LinearRegressionModel)
    assert again.predict(X[TEST]) == pytest.approx(machine.predict(X[TEST]), abs=1e-12)
    kernel = SVC(kernel="linear", C=0.1).fit(X[TRAIN], Y[TRAIN] % 2)
    export(kernel, tmp_path / "k.liblinear")
    assert (by_liblinear(linear, tmp_path / "k.liblinear", X[TEST])[0] == kernel.predict(X[TEST])).all()


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("options", ["-s 0", "-s 1 -B 2", "-s 3 -B 1", "-s 4", "-s 5"])
def test_we_predict_with_liblinears_file(tmp_path, linear, options, classes):
    if "-s 4" in options and classes == 2:
        pytest.skip("liblinear-official gives its own MCSVM_CS of two classes room for one decision value only")
    labels = (Y[TRAIN] % classes) * 3 - 1
    linear.save_model(str(tmp_path / "m.model"), linear.train(labels, X[TRAIN], f"{options} -q"))
    found, values = by_liblinear(linear, tmp_path / "m.model", X[TEST])
    model = import_model(tmp_path / "m.model", 64)
    assert columns(model.decision_values(X[TEST])) == pytest.approx(values, abs=1e-9)
    assert (model.predict(X[TEST]) == found).all()


@pytest.mark.parametrize("options", ["-s 11", "-s 13 -B 1"])
def test_we_predict_with_liblinears_regression(tmp_path, linear, options):
    linear.save_model(str(tmp_path / "m.model"), linear.train(Y[TRAIN].astype(float), X[TRAIN], f"{options} -q"))
    found, _ = by_liblinear(linear, tmp_path / "m.model", X[TEST])
    assert import_model(tmp_path / "m.model").predict(X[TEST]) == pytest.approx(found, abs=1e-9)


# ------------------------------------------------------------------------------------------------------- refusals


def test_what_the_formats_cannot_say_is_one_sentence():
    rows = as_rows(np.eye(3))
    many = KernelModel(Kernel("rbf"), rows, np.ones((3, 3)), np.zeros(3), np.arange(3))
    with pytest.raises(ExportError, match="pairs of classes, not each class against the rest"):
        libsvm_bytes(many)
    with pytest.raises(ExportError, match="not each class against the rest: use liblinear"):
        libsvm_bytes(LinearModel(np.eye(3), np.zeros(3)))
    with pytest.raises(ExportError, match="cannot say the kernel chi2; it can say linear, polynomial, rbf, sigmoid"):
        libsvm_bytes(KernelModel(Kernel("chi2"), rows, np.ones((1, 3)), np.zeros(1), np.arange(3)))
    with pytest.raises(ExportError, match="cannot say the kernel rbf; it can say linear"):
        liblinear_bytes(many)
    words = LinearModel(np.ones((1, 2)), np.zeros(1), np.array(["no", "yes"]))
    for write in (liblinear_bytes, libsvm_bytes):
        with pytest.raises(ExportError, match="whole numbers; this model's are 'no', 'yes'"):
            write(words)
    pairs = SVC(kernel="linear", C=0.1).fit(X[:100], Y[:100])
    with pytest.raises(ExportError, match="no pairs of classes"):
        liblinear_bytes(pairs.model_)


def test_two_classes_of_crammer_and_singer_have_two_outputs(tmp_path):
    text = "solver_type MCSVM_CS\nnr_class 2\nlabel 5 3\nnr_feature 2\nbias -1\nw\n1 0 \n0 1 \n"
    (tmp_path / "m.model").write_text(text)
    model = import_model(tmp_path / "m.model")
    assert model.predict(np.array([[2.0, 1.0], [1.0, 2.0]])).tolist() == [5, 3]


def test_models_without_vectors_are_read(tmp_path):
    model = KernelModel(Kernel("rbf"), as_rows(np.zeros((0, 4))), np.zeros((1, 0)), np.array([2.0]), np.arange(0))
    export(model, tmp_path / "m.libsvm")
    again = from_libsvm(tmp_path / "m.libsvm", 4)
    assert (again.decision_values(np.ones((3, 4))) == 2.0).all() and again.classes.tolist() == [-1, 1]
