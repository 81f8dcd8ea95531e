"""``slackwater evaluate``: error, precision and recall of a model on labelled examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from slackwater.cli.errors import complain
from slackwater.cli.files import Part, base_of, read_table
from slackwater.cli.labels import class_numbers, label_text, label_texts
from slackwater.cli.output import count, fact, percent, say_json, show_table
from slackwater.cli.predict import decisions

_CONFUSION_SHOWN = 12  # classes
_UNSEEN_SHOWN = 5


def evaluate(
    model: Annotated[Path, typer.Argument(help="A model's file.", show_default=False)],
    data: Annotated[str, typer.Argument(help="Labelled examples.", show_default=False)],
    part: Annotated[Part, typer.Option(help="The part of an npz archive.")] = Part.test,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Measure a model on labelled examples: error, precision and recall of every class, and what was taken for what.

    Of a regression: the root of the mean square error, the mean absolute error and R2, the share of the variance that
    it explains. Rows with a label that the model was not trained on count as errors; they are named on stderr.

    \b
    [bold]Examples[/]
      slackwater evaluate a9a.model a9a.t
      slackwater evaluate digits.model digits.t --json | jq .error
    """
    from slackwater.models import KernelRegressionModel, LinearRegressionModel, load

    machine = load(model)
    reading = read_table(data, machine.n_columns, part, base_of(machine))
    if isinstance(machine, LinearRegressionModel | KernelRegressionModel):
        _tell_residuals(machine, reading, json)
        return
    score = scored(machine, reading.table)
    _complain_of_unseen(score, reading.table)
    if json:
        say_json({"data": reading.facts, **_as_json(score)})
        return
    fact("data", f"{data}: {reading}")
    fact("error", f"{percent(score.wrong / score.n_rows)} ({count(score.wrong)} of {count(score.n_rows)})")
    show_table(("class", "rows", "precision", "recall"), _class_lines(score))
    if len(score.names) <= _CONFUSION_SHOWN:
        _show_confusion(score)


def _tell_residuals(machine: Any, reading: Any, json: bool) -> None:
    """What a regression leaves of the targets."""
    targets = np.asarray(reading.table.labels)
    if targets.dtype.kind not in "biuf":
        raise ValueError(f"{reading.table.source} has labels that are no numbers, but the model is a regression")
    residuals = targets - decisions(machine, reading.table)
    squares, spread = float(np.mean(residuals**2)), float(np.var(targets))
    measured = {
        "rmse": math.sqrt(squares),
        "mae": float(np.mean(np.abs(residuals))),
        "r2": 1.0 - squares / spread if spread > 0.0 else math.nan,
    }
    if json:
        say_json({"data": reading.facts, "rows": len(residuals), **measured})
        return
    fact("data", f"{reading.table.source}: {reading}")
    for name, value in measured.items():
        fact(name, f"{value:.6g}")


@dataclass(frozen=True)
class Score:
    """What was taken for what: ``confusion[true class, predicted class]``, unseen labels in the last row."""

    names: list[str]
    confusion: np.ndarray

    @property
    def n_rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def wrong(self) -> int:
        return self.n_rows - int(np.trace(self.confusion))

    @property
    def unseen(self) -> int:
        return int(self.confusion[-1].sum())

    @property
    def of_class(self) -> np.ndarray:
        """Rows of every class."""
        return self.confusion[:-1].sum(axis=1)

    @property
    def recall(self) -> np.ndarray:
        """NaN for a class without rows."""
        return _ratio(np.diagonal(self.confusion), self.of_class)

    @property
    def precision(self) -> np.ndarray:
        """NaN for a class that was never predicted."""
        return _ratio(np.diagonal(self.confusion), self.confusion.sum(axis=0))


def scored(machine: Any, table: Any) -> Score:
    """The model's labels against those of the table."""
    classes = np.array([-1.0, 1.0]) if machine.classes is None else machine.classes
    predicted = class_numbers(machine.labels_of(decisions(machine, table)), classes)
    true = class_numbers(table.labels, classes)
    if (true < 0).all():
        raise ValueError(
            f"{table.source} holds none of the model's labels: it has {_some(table.labels)}, the model {_some(classes)}"
        )
    k = len(classes)
    cells = np.where(true < 0, k, true) * k + predicted
    confusion = np.bincount(cells, minlength=(k + 1) * k).reshape(k + 1, k)
    return Score([label_text(label) for label in classes.tolist()], confusion)


def _some(labels: np.ndarray) -> str:
    """The first few different labels."""
    names = label_texts(np.unique(labels))
    more = ", ..." if len(names) > _UNSEEN_SHOWN else ""
    return ", ".join(names[:_UNSEEN_SHOWN]) + more


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


def _complain_of_unseen(score: Score, table: Any) -> None:
    if not score.unseen:
        return
    unseen = _some(table.labels[class_numbers(table.labels, np.array(score.names)) < 0])
    rows = count(score.unseen, "row has a label", "rows have labels")
    complain(f"warning: {rows} that the model was not trained on ({unseen}); counted as errors")


def _class_lines(score: Score) -> list[tuple[str, ...]]:
    return [
        (name, count(int(rows)), _share(precision), _share(recall))
        for name, rows, precision, recall in zip(
            score.names, score.of_class, score.precision, score.recall, strict=True
        )
    ]


def _share(value: float) -> str:
    return "-" if np.isnan(value) else percent(value)


def _show_confusion(score: Score) -> None:
    names = [*score.names, *(["(unseen)"] if score.unseen else [])]
    lines = [(name, *map(count, line)) for name, line in zip(names, score.confusion.tolist(), strict=False)]
    show_table(("true \\ predicted", *score.names), lines)


def _as_json(score: Score) -> dict[str, Any]:
    classes = [
        {"class": name, "rows": int(rows), "precision": precision, "recall": recall}
        for name, rows, precision, recall in zip(
            score.names, score.of_class, score.precision, score.recall, strict=True
        )
    ]
    return {
        "rows": score.n_rows,
        "wrong": score.wrong,
        "error": score.wrong / score.n_rows,
        "unseen": score.unseen,
        "classes": classes,
        "confusion": score.confusion[:-1],
    }
