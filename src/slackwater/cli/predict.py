"""``slackwater predict``: the label of every row, one per line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.files import Part, base_of, check_output, read_table
from slackwater.cli.labels import label_texts

if TYPE_CHECKING:
    import numpy as np

_LINES_AT_ONCE = 10_000


def predict(
    model: Annotated[Path, typer.Argument(help="A model's file.", show_default=False)],
    data: Annotated[str, typer.Argument(help="Examples; their labels are not looked at.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to write, whole or not at all.", show_default="the terminal"),
    ] = None,
    decision_values: Annotated[
        bool,
        typer.Option(
            "--decision-values",
            help="After the label its decision value; with more than two classes those of all classes or pairs, in the "
            "order that `slackwater info MODEL` shows.",
        ),
    ] = False,
    part: Annotated[Part, typer.Option(help="The part of an npz archive.")] = Part.test,
) -> None:
    """Write the label of every row, as it was written in training, one per line.

    \b
    [bold]Examples[/]
      slackwater predict a9a.model new.svm > labels.txt
      slackwater predict a9a.model new.svm.gz -o labels.txt
      slackwater predict a9a.model new.svm --decision-values | sort -k 2 -g | head
    """
    from slackwater.atomic import atomic_file
    from slackwater.models import load

    if output is not None:
        check_output(output, str(model), data)
    machine = load(model)
    values = decisions(machine, read_table(data, machine.n_columns, part, base_of(machine)).table)
    lines = _lines(machine, values, decision_values)
    if output is None:
        sys.stdout.writelines(lines)
        return
    with atomic_file(output, mode="w") as file:
        file.writelines(lines)


def decisions(machine: Any, table: Any) -> np.ndarray:
    """The decision values of a table; a table of another width is named in the error."""
    if table.n_columns != machine.n_columns:
        raise ValueError(
            f"{table.source} has {table.n_columns} columns, but the model was trained on {machine.n_columns}"
        )
    return machine.decision_values(table.rows)


def _lines(machine: Any, values: np.ndarray, with_values: bool) -> Iterator[str]:
    """The output, some thousand lines at a time."""
    for start in range(0, len(values), _LINES_AT_ONCE):
        block = values[start : start + _LINES_AT_ONCE]
        labels = label_texts(machine.labels_of(block))
        if not with_values:
            yield "".join(f"{label}\n" for label in labels)
            continue
        columns = block.reshape(len(block), -1).tolist()
        yield "".join(f"{label} {' '.join(map(repr, line))}\n" for label, line in zip(labels, columns, strict=True))
