"""JSON out and in: the same decisions, by the same classes, to the last bit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater import export, import_model
from slackwater.export import ExportError, from_json
from slackwater.export.json_file import json_text
from slackwater.models import KernelModel, KernelRegressionModel, LinearModel, LinearRegressionModel
from slackwater.objective.kernels import Kernel
from slackwater.rows import CSRRows, as_rows

RNG = np.random.default_rng(3)
ROWS = RNG.uniform(0.0, 1.0, (30, 4))
VECTORS = {
    "dense64": ROWS[:6], "dense32": ROWS[:6].astype(np.float32),
    "sparse": sp.csr_array(np.where(ROWS[:6] > 0.6, ROWS[:6], 0.0)),
}  # fmt: skip


def kernel_model(vectors="dense64", name="rbf", classes=None, blocks=None, outputs=1, kind=KernelModel, **more):
    lines = outputs if blocks is None else len(blocks) - 1
    count = outputs if blocks is None else len(blocks) * (len(blocks) - 1) // 2
    return kind(
        Kernel(name, 0.3, 0.7, 2), as_rows(VECTORS[vectors]), RNG.standard_normal((lines, 6)),
        RNG.standard_normal(count), np.arange(6), classes, None if blocks is None else np.array(blocks), **more,
    )  # fmt: skip


MODELS = {
    "binary": kernel_model(), "words": kernel_model(classes=np.array(["no", "ja – \"so\""])),
    "float32": kernel_model("dense32", classes=np.array([False, True])), "sparse": kernel_model("sparse"),
    "ovr": kernel_model(outputs=3, classes=np.array([2, 4, 9])), "pairs": kernel_model(blocks=[2, 1, 3]),
    "polynomial": kernel_model(name="polynomial"), "chi2": kernel_model(name="chi2"),
    "regression": kernel_model(kind=KernelRegressionModel), "linear": LinearModel(RNG.random((3, 4)), RNG.random(3)),
    "linear-binary": LinearModel(RNG.random((1, 4)), RNG.random(1), np.array([0.5, 1.5]), {"loss": "hinge"}),
    "linear-regression": LinearRegressionModel(RNG.random((1, 4)), RNG.random(1)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_as_it_was(tmp_path, name):
    model = MODELS[name]
    export(model, tmp_path / "m.json")
    again = import_model(tmp_path / "m.json")
    assert type(again) is type(model) and again.meta == model.meta
    rows = ROWS.astype(np.float32) if name == "float32" else ROWS
    assert (again.decision_values(rows) == model.decision_values(rows)).all()
    assert (again.predict(rows) == model.predict(rows)).all()
    if isinstance(model, KernelModel):
        assert type(again.vectors) is type(model.vectors) and again.vectors.dtype == model.vectors.dtype


def test_a_shift_of_kernel_values_becomes_part_of_the_intercept(tmp_path):
    for model in (kernel_model(shift=0.5), kernel_model(blocks=[3, 2, 1], shift=0.5)):
        export(model, tmp_path / "m.json")
        again = from_json(tmp_path / "m.json")
        assert again.shift == 0.0
        assert again.decision_values(ROWS) == pytest.approx(model.decision_values(ROWS), abs=1e-12)


def test_the_text_is_enough_for_other_languages():
    """Ten lines that know nothing of this project."""
    facts = json.loads(json_text(MODELS["pairs"]))
    assert facts["format"] == "slackwater-json" and facts["decide"] == "votes"
    kernel, own = facts["kernel"], [a for a, size in enumerate(facts["blocks"]) for _ in range(size)]
    pairs = [(a, b) for a in range(3) for b in range(a + 1, 3)]
    for x, expected in zip(ROWS.tolist(), MODELS["pairs"].decision_values(ROWS), strict=True):
        values = dict(zip(pairs, facts["intercept"], strict=True))
        for j, z in enumerate(facts["vectors"]):
            k = np.exp(-kernel["gamma"] * sum((u - v) ** 2 for u, v in zip(x, z, strict=True)))
            for c in range(2):
                other = c if c < own[j] else c + 1
                values[min(own[j], other), max(own[j], other)] += facts["coef"][c][j] * k
        assert list(values.values()) == pytest.approx(expected, abs=1e-12)


def test_sparse_vectors_are_written_sparse():
    facts = json.loads(json_text(MODELS["sparse"]))
    assert set(facts["vectors"]) == {"columns", "values"}
    assert isinstance(MODELS["sparse"].vectors, CSRRows)


def test_what_json_cannot_say_is_one_sentence():
    function = KernelModel(Kernel("callable", function=lambda a, b: a @ b.T), as_rows(ROWS[:6]), np.ones((1, 6)),
                           np.zeros(1), np.arange(6))  # fmt: skip
    with pytest.raises(ExportError, match="JSON cannot say the kernel a function of your own; it can say linear, rbf"):
        json_text(function)
