"""``slackwater info``: the facts of a model's file or of a data file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.files import Part, read_table
from slackwater.cli.kernels import kernel_text
from slackwater.cli.labels import label_text
from slackwater.cli.output import count, fact, gap_text, percent, say_json, seconds, show_table, size
from slackwater.cli.results import certificate_facts, problem_labels

if TYPE_CHECKING:
    import numpy as np

_LABELS_SHOWN = 20
_HEADER_LENGTH = 8


def info(
    file: Annotated[str, typer.Argument(help="A model or examples.", show_default=False)],
    part: Annotated[Part, typer.Option(help="The part of an npz archive.")] = Part.train,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Tell the facts of a model, its certificate among them, or those of a data file.

    \b
    [bold]Examples[/]
      slackwater info a9a.model
      slackwater info a9a.svm.xz --json
    """
    if is_model(file):
        with _facts_of_a_fit(file):
            _say(_model_facts(file), _tell_model, json)
    else:
        _say(_data_facts(file, part), _tell_data, json)


def _say(facts: dict[str, Any], tell: Callable[[dict[str, Any]], None], json: bool) -> None:
    if json:
        say_json(facts)
    else:
        tell(facts)


@contextlib.contextmanager
def _facts_of_a_fit(file: str) -> Iterator[None]:
    """A model's file may hold anything under the names of the facts that a fit leaves there."""
    from slackwater.models import ModelFileError

    try:
        yield
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{file}: its facts about the fit are not what a fit leaves") from error


def is_model(file: str) -> bool:
    """Whether it begins as models do: the length of a header, and the brace that opens it."""
    if not os.path.isfile(file):
        return file.endswith(".model")
    with open(file, "rb") as stream:
        start = stream.read(_HEADER_LENGTH + 1)
    return start[_HEADER_LENGTH:] == b"{" or (file.endswith(".model") and len(start) <= _HEADER_LENGTH)


# ------------------------------------------------------------------------------------------------------- models


def _model_facts(file: str) -> dict[str, Any]:
    from slackwater.models import load
    from slackwater.objective import Certificate

    machine = load(file)
    meta = dict(machine.meta)
    certificates = [
        Certificate(c["primal"], c["dual"], c["rule"], c.get("least", 0.0)) for c in meta.pop("certificates", [])
    ]
    statuses = meta.pop("statuses", [{"code": "unknown", "sentence": "unknown"}] * len(certificates))
    classes = None if machine.classes is None else machine.classes.tolist()
    return {
        "file": file,
        "bytes": Path(file).stat().st_size,
        "outputs": machine.n_outputs,
        **_numbers(machine),
        "columns": machine.n_columns,
        "classes": classes,
        "problems": [
            {"class": label, **certificate_facts(c), "text": str(c), "status": s["sentence"]}
            for label, c, s in zip(problem_labels(machine, len(certificates)), certificates, statuses, strict=False)
        ],
        "meta": meta,
    }


def _numbers(machine: Any) -> dict[str, Any]:
    """What the model's numbers are."""
    expansion = getattr(machine, "expansion", machine)  # a voted model's vectors
    if not hasattr(expansion, "kernel"):
        return {"nonzeros": int((machine.coef != 0.0).sum())}
    return {"kernel": kernel_text(expansion.kernel), "support_vectors": machine.n_support}


def _tell_model(facts: dict[str, Any]) -> None:
    meta, problems = facts["meta"], facts["problems"]
    outputs = count(facts["outputs"], "output")
    kind = "linear" if "nonzeros" in facts else "kernel"
    fact("model", f"{facts['file']}: {kind}, {outputs}, {count(facts['columns'], 'column')}, {size(facts['bytes'])}")
    if kind == "linear":
        fact("weights", f"{percent(facts['nonzeros'] / max(1, facts['outputs'] * facts['columns']))} not zero")
    else:
        fact("kernel", f"{facts['kernel']}, {count(facts['support_vectors'], 'support vector')}")
    if facts["classes"] is not None:
        fact("classes", " ".join(map(label_text, facts["classes"])))
    fit = [f"{name} {meta[name]}" for name in ("loss", "C", "nu", "intercept") if name in meta]
    if fit:
        fact("problem", ", ".join(fit))
    if "solver" in meta:
        fact("solver", str(meta["solver"]))
    if "trained" in meta:
        _tell_training(meta["trained"])
    if len(problems) == 1:
        fact("certificate", problems[0]["text"])
        fact("status", problems[0]["status"])
    elif problems:
        columns = ("class", "primal", "lower bound", "gap", "status")
        show_table(columns, [_problem_line(problem) for problem in problems], text=("status",))


def _tell_training(trained: dict[str, Any]) -> None:
    shape = f"{count(trained['rows'], 'row')}, {count(trained['columns'], 'column')}"
    fact("trained on", f"{trained['data']}: {shape}, in {seconds(trained['seconds'])}")
    settings = {"tol": f"{trained['tol']:g}", "seed": trained["seed"], **trained["settings"]}
    fact("settings", ", ".join(f"{key} {value}" for key, value in settings.items()))


def _problem_line(problem: dict[str, Any]) -> tuple[str, ...]:
    numbers = f"{problem['primal']:.6g}", f"{problem['lower_bound']:.6g}", gap_text(problem["relative_gap"])
    return (label_text(problem["class"]), *numbers, problem["status"])


# --------------------------------------------------------------------------------------------------------- data


def _data_facts(file: str, part: Part) -> dict[str, Any]:
    import numpy as np

    reading = read_table(file, part=part)
    table = reading.table
    labels, counts = np.unique(table.labels, return_counts=True)
    lengths = _lengths(table.rows)
    values = table.rows.values
    return {
        **reading.facts,
        "text": str(reading),
        "memory": sum(part.nbytes for part in table.rows if hasattr(part, "nbytes")),
        "lowest": float(values.min()) if values.size else 0.0,
        "highest": float(values.max()) if values.size else 0.0,
        "entries_per_row": {"least": int(lengths.min()), "mean": float(lengths.mean()), "most": int(lengths.max())},
        "labels": [{"label": label, "rows": int(n)} for label, n in zip(labels.tolist(), counts, strict=True)],
        "queries": None if table.query_ids is None else len(np.unique(table.query_ids)),
    }


def _lengths(rows: Any) -> np.ndarray:
    """Entries of every row."""
    import numpy as np

    return np.diff(rows.indptr) if hasattr(rows, "indptr") else np.full(rows.n_rows, rows.n_columns)


def _tell_data(facts: dict[str, Any]) -> None:
    fact("data", f"{facts['source']}: {facts['text']}")
    per_row = facts["entries_per_row"]
    density = facts["entries"] / max(1, facts["rows"] * facts["columns"])
    fact("entries", f"{per_row['least']} to {per_row['most']} per row, {per_row['mean']:.1f} on average, "
                    f"{percent(density)} of all")  # fmt: skip
    fact("values", f"{facts['lowest']:g} to {facts['highest']:g}, kept as {facts['values']}, {size(facts['memory'])}")
    if facts["queries"] is not None:
        fact("queries", count(facts["queries"]))
    shown = sorted(facts["labels"], key=lambda label: -label["rows"])[:_LABELS_SHOWN]
    lines = [(label_text(line["label"]), count(line["rows"]), percent(line["rows"] / facts["rows"])) for line in shown]
    show_table(("label", "rows", "share"), lines)
    hidden = len(facts["labels"]) - len(shown)
    if hidden:
        fact("", f"and {count(hidden, 'more label')}; --json lists all")
