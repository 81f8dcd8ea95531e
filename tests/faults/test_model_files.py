"""Model files that are cut, altered, foreign or hostile: one sentence each, never a crash and never a wrong model."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes

from slackwater.cli import main
from slackwater.models import LinearModel, ModelFileError, load, save
from slackwater.models.files import FORMAT, MissingModelFile, _checksum

MODEL = LinearModel(np.array([[0.5, -1.25, 3.0]]), np.array([0.25]), np.array(["no", "yes"]), {"loss": "hinge"})


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.slack"


@pytest.fixture
def whole(path) -> bytes:
    """The bytes of a good file."""
    save(MODEL, path)
    return path.read_bytes()


def refused(path: Path, data: bytes | None = None) -> str:
    """The one sentence with which a file is refused."""
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ModelFileError) as refusal:
        load(path)
    sentence = str(refusal.value)
    assert sentence.count("\n") == 0
    assert str(path) in sentence
    assert len(sentence) < 600
    return sentence


# ----------------------------------------------------------------------------------------------- cut and altered


def test_a_whole_file_is_read(path, whole):
    assert (load(path).coef == MODEL.coef).all()


def test_every_truncation_is_refused(path, whole):
    for length in range(len(whole)):
        sentence = refused(path, whole[:length])
        if length > 60:
            assert "damaged or cut short" in sentence


@pytest.mark.parametrize("extra", [b"\0", b"x" * 100])
def test_more_bytes_than_there_should_be_are_refused(path, whole, extra):
    assert "damaged" in refused(path, whole + extra)


def test_every_altered_byte_is_refused(path, whole):
    """One bit of every byte; the bits take turns."""
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        try:
            model = load(path)
        except ModelFileError as error:
            assert str(path) in str(error)
            assert "\n" not in str(error)
        else:
            # An altered blank or letter case of the header's own text may leave its meaning as it was.
            assert place < len(whole) - MODEL.coef.nbytes - MODEL.intercept.nbytes
            assert (model.coef == MODEL.coef).all()
            assert model.classes.tolist() == MODEL.classes.tolist()
            assert model.meta == MODEL.meta


def test_every_altered_number_is_noticed(path, whole):
    numbers = MODEL.coef.nbytes + MODEL.intercept.nbytes
    for place in range(len(whole) - numbers, len(whole)):
        for bit in range(8):
            data = bytearray(whole)
            data[place] ^= 1 << bit
            assert "is damaged: its checksum does not fit its content" in refused(path, bytes(data))


def test_swapped_halves_are_refused(path, whole):
    middle = len(whole) // 2
    assert refused(path, whole[middle:] + whole[:middle])


# ------------------------------------------------------------------------------------------------- foreign files


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0" * 8,
        b"\0" * 10_000,
        b"PK\x03\x04" + b"\0" * 100,
        b"\x80\x04\x95" + b"pickle" * 50,
        b"+1 1:0.5 3:2\n-1 2:1\n" * 20,
        b'{"coef": [1, 2, 3]}',
        "日本語".encode() * 30,
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 5) + b"[[[[[",
        struct.pack("<Q", 4) + b"null",
    ],
    ids=["empty", "byte", "zero", "zeros", "zip", "pickle", "svmlight", "json", "text", "bare", "brackets", "null"],
)
def test_foreign_files_are_refused(path, data):
    assert "not a slackwater model" in refused(path, data)


def test_safetensors_of_others_are_refused(path):
    tensors = {"coef": np.zeros((1, 2))}
    for metadata in (None, {}, {"format": "pt"}):
        assert "is a safetensors file, but not a slackwater model" in refused(path, to_bytes(tensors, metadata))


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 2**62, 2**40, 2**27, 10**6])
def test_absurd_header_lengths_are_refused_before_memory_is_taken(path, whole, length):
    assert "the length of its header does not fit" in refused(path, struct.pack("<Q", length) + whole[8:])


def test_folders_and_missing_files(tmp_path):
    assert "is a folder, not a model file" in refused(tmp_path)
    assert "there is no file" in refused(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    assert issubclass(MissingModelFile, ModelFileError)


# ------------------------------------------------------------------------------- well-formed files of wrong content


def crafted(changes=None, tensors=None, facts=None, seal=True) -> bytes:
    """A file with a checksum that fits: what someone could write who knows the format."""
    tensors = {"coef": MODEL.coef, "intercept": MODEL.intercept} if tensors is None else tensors
    known = {"shape": [1, 3], "classes": None, "meta": {}}
    metadata = {
        "format": FORMAT,
        "format_version": "1",
        "kind": "linear",
        "facts": json.dumps(known | facts) if isinstance(facts, dict) else facts or json.dumps(known),
    }
    metadata |= changes or {}
    metadata = {name: text for name, text in metadata.items() if text is not None}
    if seal:
        metadata["sha256"] = _checksum(tensors, metadata)
    return to_bytes(tensors, metadata)


def test_a_crafted_file_is_read(path):
    path.write_bytes(crafted())
    assert (load(path).coef == MODEL.coef).all()


def test_newer_formats_ask_for_an_upgrade(path):
    sentence = refused(path, crafted({"format_version": "2"}))
    assert "was written by a newer slackwater (format 2; this one reads up to 1): upgrade to read it" in sentence
    assert "newer slackwater" in refused(path, crafted({"format_version": "9" * 5000}))


@pytest.mark.parametrize("version", ["", "0", "-1", "1.5", "one", "²", None])
def test_broken_versions_are_refused(path, version):
    assert "its format version reads" in refused(path, crafted({"format_version": version}))


def test_a_missing_checksum_is_refused(path):
    assert "its checksum does not fit" in refused(path, crafted(seal=False))


@pytest.mark.parametrize("kind", ["forest", "", None, "os.system"])
def test_unknown_kinds_are_refused(path, kind):
    sentence = refused(path, crafted({"kind": kind}))
    assert f"holds a model of the kind {kind or ''!r}" in sentence
    assert "linear" in sentence.partition("this slackwater reads: ")[2]


@pytest.mark.parametrize("missing", ["coef", "intercept"])
def test_missing_numbers_are_refused(path, missing):
    tensors = {"coef": MODEL.coef, "intercept": MODEL.intercept}
    del tensors[missing]
    sentence = refused(path, crafted(tensors=tensors))
    assert "the parts of the model do not fit together" in sentence
    assert missing in sentence


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["coef", "intercept", "classes"])
def test_numbers_that_are_not_finite_are_refused(path, name, number):
    tensors = {"coef": MODEL.coef.copy(), "intercept": MODEL.intercept.copy(), "classes": np.array([0.0, 1.0])}
    tensors[name].flat[-1] = number
    facts = {"classes": {"stored_as": "numbers"}}
    assert f"{name} holds a value that is not finite" in refused(path, crafted(tensors=tensors, facts=facts))


@pytest.mark.parametrize(
    "tensors",
    [
        {"coef": np.zeros(3), "intercept": np.zeros(1)},
        {"coef": np.zeros((1, 3)), "intercept": np.zeros(2)},
        {"coef": np.zeros((0, 3)), "intercept": np.zeros(0)},
        {"coef": np.zeros((2, 3)), "intercept": np.zeros(2)},
        {"coef": np.zeros((1, 3, 1)), "intercept": np.zeros(1)},
    ],
    ids=["flat", "intercepts", "no-outputs", "shape", "cube"],
)
def test_shapes_that_do_not_fit_are_refused(path, tensors):
    assert "do not fit together" in refused(path, crafted(tensors=tensors))


@pytest.mark.parametrize(
    "facts",
    [
        "",
        "{",
        "[]",
        "null",
        "17",
        '"text"',
        "{}",
        "[" * 100_000,
        '{"shape": [1, 3]}',
        '{"shape": [1, 3], "classes": null, "meta": 5}',
        '{"shape": null, "classes": null, "meta": {}}',
        '{"shape": [1, 3], "classes": 5, "meta": {}}',
    ],
    ids=lambda text: text[:20] or "empty",
)
def test_broken_facts_are_refused(path, facts):
    assert "do not fit together" in refused(path, crafted({"facts": facts}))


@pytest.mark.parametrize(
    "classes",
    [
        {},
        {"stored_as": "pickle", "values": ["a", "b"]},
        {"stored_as": "numbers"},
        {"stored_as": "text", "width": 4},
        {"stored_as": "text", "width": "wide", "values": ["a", "b"]},
        {"stored_as": "text", "width": 4, "values": ["a"]},
        {"stored_as": "text", "width": 4, "values": 5},
        {"stored_as": "objects", "values": ["a", "b", "c"]},
        {"stored_as": ["text"], "values": ["a", "b"]},
    ],
    ids=str,
)
def test_broken_classes_are_refused(path, classes):
    assert "do not fit together" in refused(path, crafted(facts={"classes": classes}))


def test_absurd_widths_of_labels_take_no_memory(path):
    classes = {"stored_as": "text", "width": 2**31, "values": ["a", "b"]}
    assert "characters" in refused(path, crafted(facts={"classes": classes}))
    assert "no whole number" in refused(path, crafted(facts={"classes": classes | {"width": 2**62}}))


def test_nothing_in_a_file_is_run(path, tmp_path):
    """A class label that would be dangerous to evaluate is a text like any other."""
    label = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()"
    save(LinearModel(MODEL.coef, MODEL.intercept, np.array(["a", label], dtype=object)), path)
    assert load(path).classes.tolist() == ["a", label]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "meta",
    [
        {"certificates": 5},
        {"certificates": [{}]},
        {"certificates": [{"primal": "x", "dual": 1, "rule": 2}]},
        {"certificates": [{"primal": 1.0, "dual": 0.5, "rule": "C1"}], "statuses": [{"code": "x"}]},
        {"trained": 7},
        {"trained": {"rows": "many"}},
    ],
    ids=str,
)
def test_the_command_refuses_facts_that_no_fit_leaves(path, meta, capsys):
    save(LinearModel(MODEL.coef, MODEL.intercept, None, meta), path)
    assert main(["info", str(path)]) == 1
    assert capsys.readouterr().err == f"slackwater: {path}: its facts about the fit are not what a fit leaves\n"


def test_a_file_that_may_not_be_read_is_named(path, whole, monkeypatch):
    def forbidden(self, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(ModelFileError, match="cannot be read: Permission denied"):
        load(path)
