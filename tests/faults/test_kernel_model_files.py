"""Files of kernel models that are cut, altered or hostile: one sentence each, never a crash and never a wrong model."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import save as to_bytes

from slackwater.models import KernelModel, ModelFileError, load, save
from slackwater.models.files import FORMAT, _checksum
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

X = np.array([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]])
MODELS = {
    name: KernelModel(
        Kernel("rbf", 0.5), as_rows(layout(X)), np.array([[1.0, -1.0]]), np.array([0.25]), np.array([4, 7]),
        np.array(["no", "yes"]),
    )
    for name, layout in (("dense", np.asarray), ("csr", sp.csr_array))
}  # fmt: skip


def refused(path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as refusal:
        load(path)
    sentence = str(refusal.value)
    assert "\n" not in sentence and str(path) in sentence and len(sentence) < 600
    return sentence


@pytest.mark.parametrize("name", MODELS)
def test_every_truncation_is_refused(tmp_path, name):
    path = tmp_path / "model"
    save(MODELS[name], path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 3):
        assert refused(path, whole[:length])


@pytest.mark.parametrize("name", MODELS)
def test_every_altered_byte_is_noticed_or_changes_nothing(tmp_path, name):
    path = tmp_path / "model"
    save(MODELS[name], path)
    whole, expected = path.read_bytes(), MODELS[name].decision_values(X)
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        try:
            model = load(path)
        except ModelFileError as error:
            assert "\n" not in str(error)
        else:
            assert (model.decision_values(X) == expected).all()


def crafted(name: str, tensors=None, facts=None, without=()) -> bytes:
    """A file with a checksum that fits: what someone could write who knows the format."""
    parts = MODELS[name].parts()
    tensors = parts.tensors | (tensors or {})
    tensors = {key: np.ascontiguousarray(tensor) for key, tensor in tensors.items() if key not in without}
    known = {key: fact for key, fact in (parts.facts | (facts or {})).items() if key not in without}
    metadata = {"format": FORMAT, "format_version": "1", "kind": "kernel", "facts": json.dumps(known)}
    metadata["sha256"] = _checksum(tensors, metadata)
    return to_bytes(tensors, metadata)


@pytest.mark.parametrize("name", MODELS)
def test_a_crafted_file_is_read(tmp_path, name):
    (tmp_path / "model").write_bytes(crafted(name))
    assert (load(tmp_path / "model").decision_values(X) == MODELS[name].decision_values(X)).all()


KERNEL = {"name": "rbf", "gamma": 0.5, "coef0": 0.0, "degree": 3}


@pytest.mark.parametrize(
    "facts",
    [
        {"kernel": None},
        {"kernel": {}},
        {"kernel": KERNEL | {"name": "gauss"}},
        {"kernel": KERNEL | {"name": "callable"}},
        {"kernel": KERNEL | {"name": ["rbf"]}},
        {"kernel": KERNEL | {"function": "os.system"}},
        {"kernel": KERNEL | {"gamma": float("nan")}},
        {"kernel": KERNEL | {"gamma": "wide"}},
        {"kernel": KERNEL | {"coef0": float("inf")}},
        {"kernel": KERNEL | {"degree": -1}},
        {"kernel": KERNEL | {"degree": 2.5}},
        {"shape": [2, 2]},
        {"shape": [3, 3]},
        {"shape": [2, -3]},
        {"shape": [2]},
        {"shape": None},
        {"shift": "much"},
        {"shift": float("nan")},
        {"classes": {"stored_as": "text", "width": 3, "values": ["a"]}},
        {"meta": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MODELS)
def test_broken_facts_are_refused(tmp_path, name, facts):
    assert "do not fit together" in refused(tmp_path / "model", crafted(name, facts=facts))


@pytest.mark.parametrize("missing", ["coef", "intercept", "support", "kernel", "shape", "shift", "classes", "meta"])
def test_missing_parts_are_refused(tmp_path, missing):
    sentence = refused(tmp_path / "model", crafted("dense", without=(missing,)))
    assert "do not fit together" in sentence and missing in sentence


@pytest.mark.parametrize("missing", ["vectors", "indptr", "indices", "values"])
def test_missing_vectors_are_refused(tmp_path, missing):
    name = "dense" if missing == "vectors" else "csr"
    assert "do not fit together" in refused(tmp_path / "model", crafted(name, without=(missing,)))


@pytest.mark.parametrize(
    "tensors",
    [
        {"coef": np.zeros(2)},
        {"coef": np.zeros((1, 3))},
        {"coef": np.array([[True, False]])},
        {"intercept": np.zeros(2)},
        {"support": np.zeros(3, dtype=np.int64)},
        {"support": np.array([-1, 3])},
        {"support": np.array([0.5, 3.0])},
        {"support": np.array([2**64 - 1, 3], dtype=np.uint64)},
        {"blocks": np.array([2, 1])},
        {"blocks": np.array([1.0, 1.0])},
        {"indptr": np.array([0, 2])},
        {"indptr": np.array([0, 2, 4])},
        {"indptr": np.array([1, 2, 3])},
        {"indptr": np.array([0, 5, 3])},
        {"indptr": np.array([0, -2, 3])},
        {"indptr": np.array([0.0, 2.0, 3.0])},
        {"indices": np.array([0, 2, 3])},
        {"indices": np.array([0, -2, 1])},
        {"indices": np.array([0, 2])},
        {"indices": np.array([0.0, 2.0, 1.0])},
        {"values": np.array([1, 2, 3])},
        {"values": np.zeros((3, 1))},
    ],
    ids=str,
)
def test_numbers_that_would_lead_out_of_the_arrays_are_refused(tmp_path, tensors):
    assert "do not fit together" in refused(tmp_path / "model", crafted("csr", tensors))


@pytest.mark.parametrize("name", ["coef", "intercept", "vectors"])
def test_numbers_that_are_not_finite_are_refused(tmp_path, name):
    tensor = np.array(MODELS["dense"].parts().tensors[name], dtype=float)
    tensor.flat[0] = np.nan
    assert f"{name} holds a value that is not finite" in refused(tmp_path / "model", crafted("dense", {name: tensor}))
