"""ONNX graphs: onnxruntime gives what the model gives."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from slackwater import SVC, SVR, LinearSVC, LinearSVR
from slackwater.export.onnx_graph import onnx_bytes
from slackwater.export.plain import ExportError
from slackwater.models import LinearModel

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_digits(return_X_y=True)
X = X / 16.0
WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
TRAIN, TEST = slice(0, 300), slice(300, None)


def run(data: bytes, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs by name, each as for one row at a time."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"x": rows}), strict=True))
    alone = dict(zip(names, session.run(None, {"x": rows[:1]}), strict=True))
    assert all(np.allclose(alone[name], found[name][:1]) for name in names if found[name].dtype.kind == "f")
    return found


CASES = {
    "binary": (SVC(gamma=0.3), Y % 2),
    "binary-words": (LinearSVC(C=0.1, random_state=0), np.where(Y % 2, "odd", "even")),
    "pairs": (SVC(gamma=0.3, C=10.0), Y),
    "pairs-words": (SVC(kernel="poly", degree=3), WORDS[Y]),
    "pairs-linear": (SVC(kernel="linear", C=0.1), Y.astype(float)),
    "sigmoid": (SVC(kernel="sigmoid", gamma=0.01, coef0=-0.5), Y > 4),
    "ovr": (LinearSVC(C=0.1, random_state=0), Y),
    "ovr-kernel": (SVC(gamma=0.3, multi_class="ovr"), Y),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("numbers", ["float64", "float32"])
def test_onnxruntime_gives_what_the_model_gives(case, numbers):
    machine, labels = CASES[case]
    model = machine.fit(X[TRAIN], labels[TRAIN]).model_
    rows = X[TEST].astype(numbers)
    found = run(onnx_bytes(model, numbers), rows)
    expected = model.decision_values(rows.astype(np.float64))
    assert found["decision"].shape == expected.shape and found["decision"].dtype == numbers
    scale = np.abs(model.coef).sum(axis=1).max()
    assert np.abs(found["decision"] - expected).max() <= (1e-10 if numbers == "float64" else 3e-6 * max(1.0, scale))
    ours = model.predict(rows.astype(np.float64))
    if numbers == "float64":
        assert (found["label"] == ours).all()
    else:
        assert (found["label"] == ours).mean() > 0.999


@pytest.mark.parametrize("machine", [SVR(C=1.0), LinearSVR(C=0.1, random_state=0)], ids=["kernel", "linear"])
def test_regressions_have_no_label(machine):
    model = machine.fit(X[TRAIN], Y[TRAIN].astype(float)).model_
    found = run(onnx_bytes(model), X[TEST])
    assert list(found) == ["decision"]
    assert found["decision"] == pytest.approx(machine.predict(X[TEST]), abs=1e-9)


def test_what_cannot_be_is_one_sentence(monkeypatch):
    machine = SVC(kernel="laplacian").fit(X[:100], Y[:100] % 2)
    with pytest.raises(
        ExportError, match="cannot say the kernel laplacian; it can say linear, rbf, polynomial, sigmoid"
    ):
        onnx_bytes(machine.model_)
    with pytest.raises(ExportError, match="float64, float32"):
        onnx_bytes(machine.model_, "int8")
    with pytest.raises(ExportError, match="too large for float32"):
        onnx_bytes(LinearModel(np.array([[1e300]]), np.zeros(1)), "float32")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExportError, match=r"pip install 'slackwater\[onnx\]'"):
        onnx_bytes(machine.model_)
