"""A model as plain JSON, for browsers and other languages; read back as strictly as model files are.

One object, every number with the digits that name its float64 exactly:

    format, version    "slackwater-json", 1
    columns            how many numbers a row x has
    decide             "sign"     classes[1] where the one decision value is above 0, classes[0] elsewhere
                       "largest"  one decision value per class, the first of the largest wins
                       "votes"    one per pair of classes (0,1), (0,2), .., (1,2), ..: above 0 it is a vote for the
                                  first, else for the second; sums of values s, as s / (3 (|s| + 1)), decide ties
                       "value"    the decision value is what is predicted
    classes            numbers, texts or booleans; null where "decide" is "value"
    intercept          one number for each output c
    coef               a line for each output: without "kernel", f_c(x) = sum_j coef[c][j] x[j] + intercept[c]
    kernel             {name, gamma, coef0, degree}, then f_c(x) = sum_j coef[c][j] K(vectors[j], x) + intercept[c]
    vectors            lines of numbers, or {"columns": [[..], ..], "values": [[..], ..]} without those that are 0
    precision          "float32" or "float64", what the vectors were trained in
    blocks             with "votes": vectors of each class, one class after the other; coef[c][j] of a vector of class a
                       then counts for its pair with class c, or with class c + 1 from c = a on
    meta               facts about the fit; nothing that prediction needs
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from slackwater.export.plain import ExportError, check_kernel, decide_of
from slackwater.models import KernelModel, KernelRegressionModel, LinearModel, LinearRegressionModel, ModelFileError
from slackwater.models.classes import packed_classes
from slackwater.models.files import MissingModelFile, Parts
from slackwater.rows import CSRRows, as_matrix, dense_block

FORMAT, VERSION = "slackwater-json", 1
KERNELS = ("linear", "rbf", "polynomial", "sigmoid", "laplacian", "chi2")
_ALWAYS = ("format", "version", "columns", "decide", "classes", "intercept", "coef", "meta")
_WITH_KERNEL = ("kernel", "vectors", "precision")


class _Wrong(ValueError):
    """What is wrong with the content, without the file's name."""


# ------------------------------------------------------------------------------------------------------ writing


def json_text(model: LinearModel | KernelModel) -> str:
    """The file's content."""
    decide, classes = decide_of(model), model.classes
    facts = {
        "format": FORMAT, "version": VERSION, "columns": model.n_columns, "decide": decide,
        "classes": None if decide == "value" or classes is None else classes.tolist(), "coef": model.coef.tolist(),
        "meta": dict(model.meta),
    }  # fmt: skip
    facts |= _expansion(model) if isinstance(model, KernelModel) else {"intercept": model.intercept.tolist()}
    return json.dumps(facts, allow_nan=False, ensure_ascii=False, default=_plain) + "\n"


def _expansion(model: KernelModel) -> dict[str, Any]:
    """What a kernel model has besides."""
    check_kernel(model.kernel, KERNELS, "JSON")
    kernel = {name: getattr(model.kernel, name) for name in ("name", "gamma", "coef0", "degree")}
    facts = {"intercept": model.shifted_intercept().tolist(), "kernel": kernel, "vectors": _lines(model)}
    facts["precision"] = str(model.vectors.dtype)
    return facts if model.blocks is None else facts | {"blocks": model.blocks.tolist()}


def _plain(value: Any) -> Any:
    """What JSON writes instead of NumPy's numbers and arrays in ``meta``."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise ExportError(f"a {type(value).__name__} among the facts of the model cannot be written as JSON")


def _lines(model: KernelModel) -> Any:
    if not isinstance(model.vectors, CSRRows) or model.n_support == 0:
        return dense_block(model.vectors, np.arange(model.n_support)).astype(np.float64).tolist()
    matrix = as_matrix(model.vectors)
    cuts = matrix.indptr[1:-1]
    columns, values = np.split(matrix.indices, cuts), np.split(matrix.data.astype(np.float64), cuts)
    return {"columns": [line.tolist() for line in columns], "values": [line.tolist() for line in values]}


# ------------------------------------------------------------------------------------------------------ reading


def from_json(path: str | os.PathLike[str]) -> LinearModel | KernelModel:
    """The model in a file that was exported as JSON; a ModelFileError says in one sentence why it is none."""
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise MissingModelFile(f"there is no file {path}") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path} is not JSON: byte {error.start} is not UTF-8") from error
    try:
        return _model(_parsed(text))
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{path} is not JSON, or cut short: line {error.lineno}: {error.msg}") from error
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path}: {' '.join(str(error).split())}") from error


def _parsed(text: str) -> dict[str, Any]:
    facts = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise _Wrong(f'this is not a slackwater model in JSON: its "format" is not "{FORMAT}"')
    if not _is_whole(facts.get("version")) or facts["version"] < 1:
        raise _Wrong(f'the "version" is {facts.get("version")!r}')
    if facts["version"] > VERSION:
        raise _Wrong(f"it was written by a newer slackwater (version {facts['version']}): upgrade to read it")
    wanted = [*_ALWAYS, *(_WITH_KERNEL if "kernel" in facts else ())]
    wanted += ["blocks"] if "kernel" in facts and facts.get("decide") == "votes" else []
    for kind, names in (("missing", set(wanted) - set(facts)), ("not known", set(facts) - set(wanted))):
        if names:
            raise _Wrong(f"{', '.join(map(repr, sorted(names)))} {'is' if len(names) == 1 else 'are'} {kind}"[:200])
    return facts


def _no_number(word: str) -> NoReturn:
    raise _Wrong(f"{word} is not a number that a model can hold")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Wrong("a name occurs twice in one object")
    return found


def _model(facts: dict[str, Any]) -> LinearModel | KernelModel:
    """Lists become arrays here; that these fit together is for the model to check, as with model files."""
    decide, intercept = facts["decide"], _numbers("intercept", facts["intercept"])
    if decide not in ["sign", "largest", "votes", "value"] or ("kernel" not in facts and decide == "votes"):
        raise _Wrong(f'"decide" is {decide!r}'[:200])
    many = {"sign": False, "value": False, "largest": True, "votes": intercept.size > 1}[decide]
    if intercept.size == 0 or (intercept.size > 1) != many:
        raise _Wrong(f'"decide" is {decide!r}, but there are {intercept.size} intercepts')
    classes = _classes(facts["classes"])
    if (decide == "value" and classes is not None) or not isinstance(facts["meta"], dict):
        raise _Wrong('a regression has no classes, and "meta" is an object')
    labels, packed = packed_classes(classes)
    tensors = {"intercept": intercept} if labels is None else {"intercept": intercept, "classes": labels}
    known: dict[str, Any] = {"classes": packed, "meta": facts["meta"]}
    columns = _whole("columns", facts["columns"])
    if "kernel" not in facts:
        tensors["coef"] = _table("coef", facts["coef"], columns)
        linear = LinearRegressionModel if decide == "value" else LinearModel
        return linear.from_parts(Parts(tensors, known | {"shape": [intercept.size, columns]}))
    vectors = _vectors(facts["vectors"], columns, facts["precision"])
    count = vectors["vectors"].shape[0] if "vectors" in vectors else vectors["indptr"].size - 1
    tensors |= vectors | {"coef": _table("coef", facts["coef"], count), "support": np.arange(count)}
    if decide == "votes":
        tensors["blocks"] = np.array(_wholes("blocks", facts["blocks"]), dtype=np.int64)
    known |= {"kernel": _kernel(facts["kernel"]), "shape": [count, columns], "shift": 0.0}
    kind = KernelRegressionModel if decide == "value" else KernelModel
    return kind.from_parts(Parts(tensors, known))


def _kernel(facts: Any) -> dict[str, Any]:
    if not isinstance(facts, dict) or set(facts) != {"name", "gamma", "coef0", "degree"}:
        raise _Wrong('the "kernel" needs name, gamma, coef0 and degree, and nothing else')
    if facts["name"] not in KERNELS:
        raise _Wrong(f"the kernel {facts['name']!r} is not one of {', '.join(KERNELS)}"[:200])
    _numbers("gamma and coef0", [facts["gamma"], facts["coef0"]])
    return facts | {"degree": _whole("degree", facts["degree"])}


def _classes(labels: Any) -> np.ndarray | None:
    if labels is None:
        return None
    if not isinstance(labels, list) or not labels:
        raise _Wrong('"classes" is not a list of labels')
    kinds = {type(label) for label in labels}
    if kinds in ({bool}, {str}):
        return np.array(labels)
    if not kinds <= {int, float}:
        raise _Wrong('"classes" must be all numbers, all texts or all booleans')
    _numbers("classes", labels)
    return np.array(labels, dtype=np.float64 if float in kinds else np.int64)


def _vectors(lines: Any, columns: int, precision: Any) -> dict[str, np.ndarray]:
    """The tensors of the support vectors."""
    if precision not in ("float32", "float64"):
        raise _Wrong(f'the "precision" is {precision!r}'[:200])
    name = "values" if isinstance(lines, dict) else "vectors"
    found = _sparse(lines, columns) if isinstance(lines, dict) else {name: _table("vectors", lines, columns)}
    with np.errstate(over="ignore"):
        found[name] = found[name].astype(precision)
    if not np.isfinite(found[name]).all():
        raise _Wrong(f"vectors hold a number that is too large for {precision}")
    return found


def _sparse(lines: dict[str, Any], columns: int) -> dict[str, np.ndarray]:
    if set(lines) != {"columns", "values"} or not all(isinstance(part, list) for part in lines.values()):
        raise _Wrong('sparse "vectors" need lists of columns and values, and nothing else')
    if len(lines["columns"]) != len(lines["values"]):
        raise _Wrong('sparse "vectors" have more lines of one kind than of the other')
    places = [_wholes("columns of vectors", line) for line in lines["columns"]]
    values = [_numbers("values of vectors", line) for line in lines["values"]]
    for number, (place, value) in enumerate(zip(places, values, strict=True)):
        if len(place) != len(value) or any(a >= b for a, b in zip(place, [*place, columns][1:], strict=True)):
            raise _Wrong(f"columns of vector {number} do not rise, do not fit its values, or are not below {columns}")
    return {
        "indptr": np.cumsum([0, *map(len, places)]),
        "indices": np.array([column for place in places for column in place], dtype=np.int64),
        "values": np.concatenate([np.empty(0), *values]),
    }


def _table(name: str, lines: Any, width: int) -> np.ndarray:
    """A matrix with lines of this width."""
    if not isinstance(lines, list):
        raise _Wrong(f'"{name}" is not a list of lines')
    found = [_numbers(f"line {number} of {name}", line) for number, line in enumerate(lines)]
    wrong = next((number for number, values in enumerate(found) if values.size != width), None)
    if wrong is not None:
        raise _Wrong(f"line {wrong} of {name} has {found[wrong].size} numbers, expected {width}")
    return np.array(found).reshape(len(found), width)


def _numbers(name: str, values: Any) -> np.ndarray:
    """A list of finite numbers."""
    if not isinstance(values, list) or not {type(value) for value in values} <= {int, float}:
        raise _Wrong(f"{name} must be a list of numbers")
    found = np.array([float(value) for value in values])
    if not np.isfinite(found).all():
        raise _Wrong(f"{name} holds a number that is too large")
    return found


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _whole(name: str, value: Any) -> int:
    if not _is_whole(value):
        raise _Wrong(f"{name} must be a whole number of at least 0"[:200])
    return value


def _wholes(name: str, values: Any) -> list[int]:
    if not isinstance(values, list) or not all(map(_is_whole, values)):
        raise _Wrong(f"{name} must be a list of whole numbers of at least 0")
    return values
