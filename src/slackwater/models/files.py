"""Model files: numbers and text in safetensors, nothing that could run; with a checksum; written whole or not at all.

The safetensors metadata hold the format's name and version, the kind of model, its facts as JSON and a SHA-256 of all
of it. A kind is a class with ``parts`` and ``from_parts``, made known by ``@saved_as("its name")``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from slackwater.atomic import atomic_file

FORMAT = "slackwater-model"
FORMAT_VERSION = 1
_MAX_HEADER = 2**26  # bytes: classes and facts, never the numbers
_HEADER_LENGTH = 8  # the bytes before the header, which hold its length
_MOST_TENSORS = 64
_LONGEST_REASON = 200  # characters of a file's own text that go into an error
_GREATEST = float(np.finfo(np.float32).max)  # of a kernel's parameters, which meet float32 values


class ModelFileError(ValueError):
    """A file that cannot be read as a model, with the reason in one sentence."""


class MissingModelFile(ModelFileError, FileNotFoundError):
    """There is no file of that name."""


class Parts(NamedTuple):
    """What a model consists of: arrays by name, and facts that JSON can hold."""

    tensors: dict[str, np.ndarray]
    facts: dict[str, Any]


class Saved(Protocol):
    """A kind of model that goes into files."""

    def parts(self) -> Parts: ...

    @classmethod
    def from_parts(cls, parts: Parts) -> Self: ...


_KINDS: dict[str, type[Saved]] = {}
Kind = TypeVar("Kind", bound=type[Saved])


def saved_as(kind: str) -> Callable[[Kind], Kind]:
    """Make a class of models known to ``save`` and ``load`` under this name."""

    def register(model_class: Kind) -> Kind:
        _KINDS[kind] = model_class
        return model_class

    return register


# ------------------------------------------------------------------------------------------------------ saving


def save(model: Saved, path: str | os.PathLike[str]) -> None:
    """Write a model, or that of a fitted estimator, to one file: an old file stays until the new one is complete."""
    model = getattr(model, "model_", model)
    kind = next((name for name, known in _KINDS.items() if type(model) is known), None)
    if kind is None:
        raise TypeError(f"a {type(model).__name__} cannot be saved; what can: {', '.join(_KINDS)} models")
    parts = model.parts()
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in parts.tensors.items()}
    strange = _not_finite(tensors)
    if strange is not None:
        raise ValueError(f"{strange} holds a value that is not finite; such a model is not saved")
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "facts": json.dumps(parts.facts, default=_plain, sort_keys=True),
        "written_by": f"slackwater {_own_version()}",
    }
    metadata["sha256"] = _checksum(tensors, metadata)
    data = _in_order(to_bytes(tensors, metadata), metadata)
    if int.from_bytes(data[:_HEADER_LENGTH], "little") > _MAX_HEADER:
        raise ValueError(f"the model's classes and facts are longer than the {_MAX_HEADER} bytes that a file may hold")
    with atomic_file(path, mode="wb") as file:
        file.write(data)


def _in_order(data: bytes, metadata: Mapping[str, str]) -> bytes:
    """The same file, our name first in its header: one model always gives the same bytes."""
    end = _HEADER_LENGTH + int.from_bytes(data[:_HEADER_LENGTH], "little")
    tensors = json.loads(data[_HEADER_LENGTH:end])
    header = {"__metadata__": metadata} | {name: tensors[name] for name in sorted(tensors) if name != "__metadata__"}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8 bytes
    return len(text).to_bytes(_HEADER_LENGTH, "little") + text + data[end:]


def _plain(value: Any) -> Any:
    """What JSON writes instead of NumPy's numbers and arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be saved in a model's facts: only numbers, text and lists can")


def _own_version() -> str:
    try:
        return version("slackwater")
    except PackageNotFoundError:  # run from a source tree
        return "(not installed)"


def _checksum(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(metadata):
        if name != "sha256":
            digest.update(json.dumps([name, metadata[name]]).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, tensor.dtype.name, tensor.shape]).encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _not_finite(tensors: Mapping[str, np.ndarray]) -> str | None:
    """The name of a tensor with NaN or infinity in it, None when there is none."""
    return next((name for name, tensor in tensors.items() if not np.isfinite(tensor).all()), None)


# ----------------------------------------------------------------------------------------------------- loading


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that ``save`` has written. A ModelFileError says in one sentence why a file is not one."""
    path = Path(path)
    header = _header(path)
    try:
        _check_header(header)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a mapping
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _unreadable(path, error) from error
    if metadata.get("sha256") != _checksum(tensors, metadata):
        raise ModelFileError(f"{path} is damaged: its checksum does not fit its content")
    return _assembled(path, metadata, tensors)


def _header(path: Path) -> bytes:
    """The header; what is no safetensors file is refused before anything is made of its size."""
    if path.exists() and not path.is_file():
        raise ModelFileError(f"{path} is {'a folder' if path.is_dir() else 'a device or a pipe'}, not a model file")
    try:
        with path.open("rb") as file:
            start, size = file.read(_HEADER_LENGTH), os.fstat(file.fileno()).st_size
            length = int.from_bytes(start, "little")
            fits = len(start) == _HEADER_LENGTH and length <= min(_MAX_HEADER, size - _HEADER_LENGTH)
            header = file.read(length) if fits else b""
    except FileNotFoundError as error:
        raise MissingModelFile(f"there is no file {path}") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    if not fits:
        raise _unreadable(path, "the length of its header does not fit")
    return header


def _check_header(header: bytes) -> None:
    """What safetensors lets pass: names that occur twice, of which the last would count, and endless lists of names."""
    names = json.loads(header, object_pairs_hook=_distinct)
    if len(names) > _MOST_TENSORS:
        raise ValueError(f"{len(names)} parts are too many for a model")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object none of whose names occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _unreadable(path: Path, reason: object) -> ModelFileError:
    """Tell a file of ours that is cut or damaged from a file of another kind."""
    try:
        with path.open("rb") as file:
            ours = FORMAT.encode() in file.read(2**20)
    except OSError:  # it was there a moment ago
        ours = False
    verdict = "is a slackwater model that is damaged or cut short" if ours else "is not a slackwater model"
    return ModelFileError(f"{path} {verdict}: {_brief(reason)}")


def _brief(reason: object) -> str:
    """One line of something that may quote the file."""
    text = " ".join(str(reason)[: 2 * _LONGEST_REASON].split())
    return text[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode()


def _check_format(path: Path, metadata: Mapping[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but not a slackwater model")
    written = metadata.get("format_version", "")
    if not written.isdecimal() or int(written[:9]) < 1:
        raise ModelFileError(f"{path} is damaged: its format version reads {written[:20]!r}")
    if int(written[:9]) > FORMAT_VERSION:
        raise ModelFileError(
            f"{path} was written by a newer slackwater (format {written[:9]}; this one reads up to {FORMAT_VERSION}): "
            "upgrade to read it"
        )


def _assembled(path: Path, metadata: Mapping[str, str], tensors: dict[str, np.ndarray]) -> Saved:
    kind = metadata.get("kind", "")
    if kind not in _KINDS:
        raise ModelFileError(
            f"{path} holds a model of the kind {_brief(kind)!r}; this slackwater reads: {', '.join(_KINDS)}, "
            "and a newer one perhaps more"
        )
    strange = _not_finite(tensors)
    if strange is not None:
        raise ModelFileError(f"{path}: {_brief(strange)} holds a value that is not finite")
    try:
        facts = json.loads(metadata["facts"], object_pairs_hook=_distinct)
        return _KINDS[kind].from_parts(Parts(tensors, facts))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path}: the parts of the model do not fit together ({_brief(error)})") from error


# ---------------------------------------------------------------------------------- checks that kinds of models share


def real(tensor: np.ndarray) -> np.ndarray:
    """Real numbers, as float64."""
    if tensor.dtype.kind not in "fiu":
        raise ValueError(f"numbers of the type {tensor.dtype}")
    return tensor.astype(np.float64, copy=False)


def whole(tensor: np.ndarray) -> np.ndarray:
    """Counts and places: whole numbers, none negative, as int64."""
    if tensor.dtype.kind not in "iu" or (tensor.size and (tensor.min() < 0 or tensor.max() >= 2**62)):
        raise ValueError("a count or a place that is no whole number, or negative")
    return tensor.astype(np.int64, copy=False)


def number(fact: Any, name: str, lowest: float = -_GREATEST) -> float:
    """A fact that is a finite number."""
    if isinstance(fact, bool) or not isinstance(fact, int | float) or not lowest <= fact <= _GREATEST:
        raise ValueError(f"{name} is no number of the size that it can have")
    return float(fact)


def count(fact: Any, name: str, most: int = 2**32 - 1) -> int:
    """A fact that is a whole number of at least 0."""
    if isinstance(fact, bool) or not isinstance(fact, int) or not 0 <= fact <= most:
        raise ValueError(f"{name} is no whole number from 0 to {most}")
    return fact


def told(facts: Any) -> dict[str, Any]:
    """The facts about the fit."""
    if not isinstance(facts, dict):
        raise ValueError("the facts about the fit are no names with values")
    return facts
