"""Model files of every kind, mutated by someone who knows the format: refused in one sentence, or a model that works.

The checksum is made anew after each mutation, so that the checks behind it are reached.
"""

import json
import os
import struct
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as to_bytes

from slackwater.models import (
    KernelModel,
    KernelRegressionModel,
    LinearModel,
    LinearRegressionModel,
    ModelFileError,
    VotedModel,
    load,
    save,
)
from slackwater.models.files import _MOST_TENSORS, FORMAT, _checksum
from slackwater.objective.kernels import Kernel
from slackwater.rows import DenseRows, as_rows

X = np.array([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0], [0.25, 0.0, 0.0], [1.0, 1.0, 0.5]])
NOTHING = DenseRows(np.zeros((4, 0)), 0.0)
LINES, THREE = np.array([[1.0, -1.0, 0.5, -0.5]]), np.array(list("abc"))
PLACES = np.array([0, 2, 3, 7])


def kernel_model(name="rbf", layout=np.asarray, outputs=1, kind=KernelModel, **more):
    vectors = NOTHING if name == "precomputed" else as_rows(layout(X))
    intercept = np.arange(3.0 if "blocks" in more else outputs)
    return kind(Kernel(name, 0.5, 1.0), vectors, np.tile(LINES, (outputs, 1)), intercept, PLACES, **more)


MODELS = {
    "linear": LinearModel(X[:1], np.array([0.5]), np.array(["no", "yes"]), {"loss": "hinge"}),
    "many": LinearModel(X[:3], np.arange(3.0), np.array([2, 5, 7])),
    "linear-regression": LinearRegressionModel(X[:1], np.array([0.5])),
    "dense": kernel_model(classes=np.array(["no", "yes"], dtype=object), shift=1.0),
    "csr": kernel_model("polynomial", sp.csr_array, classes=np.array([0.5, 1.5])),
    "chi2": kernel_model("chi2", outputs=3, classes=THREE),
    "laplacian": kernel_model("laplacian", sp.csr_array),
    "pairs": kernel_model("sigmoid", sp.csr_array, 2, classes=THREE, blocks=np.array([1, 1, 2])),
    "precomputed": kernel_model("precomputed"),
    "kernel-regression": kernel_model("linear", kind=KernelRegressionModel),
    "voted": VotedModel(
        kernel_model(outputs=2), np.array([0, 1, 3, 2]), np.array([1.0, -1.0, 1.0, 1.0]), np.arange(4.0),
        np.array([3, 1]),
    ),
}  # fmt: skip
KINDS = {"dense": "kernel", "csr": "kernel", "chi2": "kernel", "laplacian": "kernel", "pairs": "kernel",
         "precomputed": "kernel", "many": "linear"}  # fmt: skip


def sealed(name: str, tensors: dict, facts, **changes) -> bytes:
    """A file of these parts with a checksum that fits."""
    tensors = {key: np.ascontiguousarray(tensor).reshape(np.shape(tensor)) for key, tensor in tensors.items()}
    text = facts if isinstance(facts, str) else json.dumps(facts)
    metadata = {"format": FORMAT, "format_version": "1", "kind": KINDS.get(name, name), "facts": text} | changes
    metadata["sha256"] = _checksum(tensors, metadata)
    return to_bytes(tensors, metadata)


def outcome(path, data: bytes):
    """The model in these bytes, or None where they are refused as they should be, without much memory."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        return load(path)
    except ModelFileError as error:
        sentence = str(error)
        assert "\n" not in sentence and str(path) in sentence and len(sentence) < 600 + len(str(path))
        sentence.encode()
        return None
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 2**21 + 50 * len(data)


def numbers_of(model) -> list[np.ndarray]:
    """All that a model computes with."""
    parts = model.parts()
    kernel = parts.facts.get("kernel", {})
    told = [parts.facts.get("shift", 0.0), *(kernel[key] for key in ("gamma", "coef0", "degree") if key in kernel)]
    return [np.asarray(tensor, dtype=float) for key, tensor in parts.tensors.items() if key != "classes"] + [
        np.array(told, dtype=float)
    ]


def check_works(model) -> None:
    """Its numbers are finite, and from rows that fit it makes finite values and labels that it knows."""
    numbers = numbers_of(model)
    assert all(np.isfinite(part).all() for part in numbers)
    if model.n_columns > 2**16 or getattr(model, "support", np.zeros(1)).max(initial=0) > 2**16:
        return  # rows as wide as that were claimed, and nothing else was
    columns = 8 if getattr(getattr(model, "kernel", None), "name", "") == "precomputed" else model.n_columns
    rows = np.resize(X, (4, columns))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        values, labels = model.decision_values(rows), model.predict(rows)
    assert values.shape[0] == len(labels) == 4
    if max(np.abs(part).max(initial=0.0) for part in numbers) < 1e9:
        degree = getattr(getattr(model, "kernel", None), "degree", 3)
        assert degree > 20 or np.isfinite(values).all()
        if model.classes is not None:
            assert set(labels.tolist()) <= set(model.classes.tolist())
        if degree <= 20 and not isinstance(model, VotedModel) and columns == model.n_columns:
            assert np.isfinite(model.compile().decision(rows[0])).all()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_works(tmp_path, name):
    save(MODELS[name], tmp_path / "model")
    check_works(load(tmp_path / "model"))
    parts = MODELS[name].parts()
    again = outcome(tmp_path / "model", sealed(name, parts.tensors, parts.facts))
    check_works(again)
    assert all((a == b).all() for a, b in zip(numbers_of(again), numbers_of(MODELS[name]), strict=True))


# ------------------------------------------------------------------------------------------- bytes of whole files


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("whole") / "model"
    found = {}
    for name, model in MODELS.items():
        save(model, path)
        found[name] = path.read_bytes()
    return found


def unchanged(name: str, model) -> bool:
    """Whether a file that loads in spite of all holds the very model."""
    expected = MODELS[name]
    same = type(model) is type(expected) and (model.classes is None) == (expected.classes is None)
    pairs = zip(numbers_of(model), numbers_of(expected), strict=True)
    return same and all(a.shape == b.shape and (a == b).all() for a, b in pairs)


@pytest.mark.parametrize("name", MODELS)
def test_truncations_and_flips_change_no_model(tmp_path, files, name):
    """Every seventh length; a bit of every third byte, the bits taking turns: all regions, all kinds."""
    whole, path = files[name], tmp_path / "model"
    for length in range(0, len(whole), 7):
        assert outcome(path, whole[:length]) is None
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 1 << (place // 3 % 8)
        model = outcome(path, bytes(data))
        assert model is None or unchanged(name, model)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_inserted_and_overwritten_bytes_change_no_model(tmp_path, files, data):
    name = data.draw(st.sampled_from(sorted(MODELS)))
    whole = files[name]
    place, extra = data.draw(st.integers(0, len(whole))), data.draw(st.binary(min_size=1, max_size=40))
    skipped = data.draw(st.integers(0, 40))
    model = outcome(tmp_path / "model", whole[:place] + extra + whole[place + skipped :])
    assert model is None or unchanged(name, model)


# --------------------------------------------------------------------------------- mutations with a fitting checksum

ODD_NUMBERS = st.sampled_from(
    [0, 1, -1, 2**31, 2**32 - 1, 2**32, 2**61, 2**62, 2**63 - 1, -(2**63), 0.5, 1e300, 1e-300]
)
DTYPES = st.sampled_from(["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4", "u8", "?", "c8"])
HUGE = st.sampled_from([10**400, 2**62, -1])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | HUGE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@st.composite
def tensors_mutated(draw, tensors: dict) -> dict:
    """One of the tensors with another number, type or shape, gone, doubled, or under another's name."""
    name = draw(st.sampled_from(sorted(tensors)))
    tensor, how = tensors[name].copy(), draw(st.sampled_from(["number", "type", "shape", "gone", "longer", "swapped"]))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if how == "number" and tensor.size:
            place, number = draw(st.integers(0, tensor.size - 1)), draw(ODD_NUMBERS | st.floats(allow_nan=True))
            tensor = tensor.astype(float) if isinstance(number, float) and draw(st.booleans()) else tensor
            tensor.flat[place] = np.array(number).astype(tensor.dtype)
        elif how == "type":
            tensor = tensor.astype(draw(DTYPES))
        elif how == "shape":
            shapes = [(), (tensor.size,), (tensor.size, 1), (1, tensor.size), (tensor.size, 0), (0, 2**40), (0,)]
            shape = draw(st.sampled_from(shapes))
            tensor = np.resize(tensor, shape) if tensor.size else np.zeros(shape, tensor.dtype)
        elif how == "longer":
            tensor = np.concatenate((np.atleast_1d(tensor),) * 2)
    rest = {key: other for key, other in tensors.items() if key != name}
    if how == "gone":
        return rest
    if how == "swapped":
        other = draw(st.sampled_from(["blocks", "classes", "vectors", "indptr", *sorted(tensors)]))
        return tensors | {name: tensors.get(other, tensor), other: tensor}
    return rest | {name: tensor}


@st.composite
def facts_mutated(draw, facts):
    """Some place in the facts with something else in it, without it, or with a name more."""
    if not isinstance(facts, dict | list) or not facts or draw(st.integers(0, 3)) == 0:
        return draw(JSON | ODD_NUMBERS)
    copy = facts.copy()
    place = draw(st.sampled_from(sorted(facts) if isinstance(facts, dict) else range(len(facts))))
    how = draw(st.sampled_from(["deeper", "deeper", "gone", "more"]))
    if how == "gone":
        del copy[place]
    elif how == "more" and isinstance(copy, dict):
        copy[draw(st.text(max_size=300))] = draw(JSON)
    else:
        copy[place] = draw(facts_mutated(facts[place]))
    return copy


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutations_behind_the_checksum(tmp_path, data):
    name = data.draw(st.sampled_from(sorted(MODELS)))
    tensors, facts = MODELS[name].parts()
    for _ in range(data.draw(st.integers(1, 2))):
        if data.draw(st.booleans()) and tensors:
            tensors = data.draw(tensors_mutated(tensors))
        else:
            facts = data.draw(facts_mutated(facts))
    kind = data.draw(st.sampled_from([KINDS.get(name, name)] * 4 + ["voted", "kernel", "linear"]))
    model = outcome(tmp_path / "model", sealed(name, tensors, facts, kind=kind))
    if model is not None:
        check_works(model)


# ------------------------------------------------------------------------------------ what a generator seldom finds


def refused(path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(ModelFileError) as refusal:
        load(path)
    return str(refusal.value)


def raw(header: str, body: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header.encode())) + header.encode() + body


@pytest.mark.parametrize("name", ["linear", "dense", "pairs"])
def test_names_that_occur_twice_are_refused(tmp_path, name):
    parts = MODELS[name].parts()
    doubled = json.dumps(parts.facts)[:-1] + ', "meta": {"solver": "another"}}'
    assert "a name occurs twice" in refused(tmp_path / "model", sealed(name, parts.tensors, doubled))
    good = sealed(name, parts.tensors, parts.facts)
    end = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:end])
    text = json.dumps(header).rstrip("}") + '}, "coef":' + json.dumps(header["coef"]) + "}"
    assert "a name occurs twice" in refused(tmp_path / "model", raw(text, good[end:]))


def test_counts_that_overflow_to_their_total_are_refused(tmp_path):
    most = 2**62 - 1  # four of these, and 8, are 4 in 64 bits
    tensors, facts = kernel_model(outputs=4, kind=KernelModel).parts()
    tensors |= {"blocks": np.array([most, most, most, most, 8]), "intercept": np.zeros(10)}
    assert "blocks of support vectors do not fit" in refused(tmp_path / "model", sealed("dense", tensors, facts))
    tensors, facts = MODELS["voted"].parts()
    for name, outputs in (("coef", (5, 4)), ("intercept", 5)):
        tensors[name] = np.zeros(outputs)
    tensors["lengths"] = np.array([most, most, most, most, 8])
    assert "do not fit its outputs" in refused(tmp_path / "model", sealed("voted", tensors, facts))


@pytest.mark.parametrize(
    "facts",
    [
        {"kernel": {"name": "rbf", "gamma": 10**400, "coef0": 0, "degree": 3}},
        {"kernel": {"name": "rbf", "gamma": -1.0, "coef0": 0, "degree": 3}},
        {"kernel": {"name": "rbf", "gamma": True, "coef0": 0, "degree": 3}},
        {"kernel": {"name": "polynomial", "gamma": 1, "coef0": 0, "degree": 2**40}},
        {"kernel": {"name": "polynomial", "gamma": 1, "coef0": 0, "degree": True}},
        {"kernel": {"name": "polynomial", "gamma": 1, "coef0": 0, "degree": 3, "x" * 10_000 + "\n\ud800": 1}},
        {"shift": 10**400},
        {"shift": "1"},
        {"shape": [float("inf"), 3]},
        {"shape": [4.0, 3]},
        {"shape": "43"},
        {"classes": {"stored_as": "text", "width": float("inf"), "values": ["a", "b"]}},
        {"classes": {"stored_as": "text", "width": 1, "values": ["aa", "ab"]}},
        {"classes": {"stored_as": "text", "width": 2, "values": "ab"}},
        {"classes": {"stored_as": "objects", "values": [1, 2]}},
        {"meta": [["loss", "hinge"]]},
    ],
    ids=lambda facts: json.dumps(facts)[:60],
)
def test_facts_of_other_types_and_sizes_are_refused(tmp_path, facts):
    parts = MODELS["dense"].parts()
    sentence = refused(tmp_path / "model", sealed("dense", parts.tensors, parts.facts | facts))
    assert "do not fit together" in sentence and "\n" not in sentence and len(sentence.encode()) < 700


def test_wide_labels_by_the_million_take_no_memory(tmp_path):
    labels = {"stored_as": "text", "width": 2**20, "values": ["a"] * 20_000}
    tensors = {"coef": np.zeros((20_000, 0)), "intercept": np.zeros(20_000)}
    facts = {"shape": [20_000, 0], "classes": labels, "meta": {}}
    assert outcome(tmp_path / "model", sealed("linear", tensors, facts)) is None


@pytest.mark.parametrize("shape", [[2**62, 0], [0, 2**62, 2**62], [1] * 80, [2**33, 2**33]])
@pytest.mark.parametrize("dtype", ["F64", "BF16", "F8_E4M3", "F4"])
def test_shapes_that_claim_more_than_there_is_are_refused(tmp_path, shape, dtype):
    header = {"__metadata__": {"format": FORMAT, "format_version": "1"}}
    header["coef"] = {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
    assert outcome(tmp_path / "model", raw(json.dumps(header))) is None


def test_endless_lists_of_parts_are_refused(tmp_path):
    parts = MODELS["linear"].parts()
    tensors = parts.tensors | {f"more {n}": np.zeros(0) for n in range(_MOST_TENSORS)}
    assert "are too many for a model" in refused(tmp_path / "model", sealed("linear", tensors, parts.facts))


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a":' * 10**6, '"' + "x" * 10**6, "\ud800"], ids=["[", "{", '"', "?"])
def test_facts_without_end_are_refused(tmp_path, text):
    parts = MODELS["linear"].parts()
    if text == "\ud800":
        text = '{"shape": "\\ud800", "classes": null, "meta": {}}'
    sentence = refused(tmp_path / "model", sealed("linear", parts.tensors, text))
    assert "do not fit together" in sentence and len(sentence.encode()) < 700
    header = '{"__metadata__":{"format":"slackwater-model"},"a":' + text
    assert "damaged or cut short" in refused(tmp_path / "model", raw(header))


@pytest.mark.parametrize("kind", ["x" * 10**6, "a\nb", "\u2028"])
def test_kinds_are_told_in_a_line(tmp_path, kind):
    parts = MODELS["linear"].parts()
    sentence = refused(tmp_path / "model", sealed("linear", parts.tensors, parts.facts, kind=kind))
    assert "holds a model of the kind" in sentence and len(sentence) < 600 and len(sentence.splitlines()) == 1


def test_negative_vectors_of_the_chi2_kernel_are_refused(tmp_path):
    parts = MODELS["chi2"].parts()
    tensors = parts.tensors | {"vectors": -X}
    assert "needs values of at least 0" in refused(tmp_path / "model", sealed("chi2", tensors, parts.facts))


@pytest.mark.parametrize("indices", [[2, 0, 1, 0, 0, 1, 2], [0, 0, 1, 0, 0, 1, 2]])
def test_columns_that_do_not_rise_are_refused(tmp_path, indices):
    """Compiled loops would count an entry twice, or not at all, by the way that they take."""
    parts = MODELS["csr"].parts()
    tensors = parts.tensors | {"indices": np.array(indices, dtype=np.uint32)}
    assert "columns do not rise" in refused(tmp_path / "model", sealed("csr", tensors, parts.facts))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_pipes_and_devices_do_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="is a device or a pipe, not a model file"):
            load(path)


def test_headers_that_could_not_be_read_are_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("slackwater.models.files._MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="longer than the 1000 bytes that a file may hold"):
        save(LinearModel(X[:1], np.zeros(1), None, {"history": ["x" * 2000]}), tmp_path / "model")
    assert not (tmp_path / "model").exists()
