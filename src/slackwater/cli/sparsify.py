"""``slackwater sparsify``: from a model with many support vectors to one with few, and what that costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli import options
from slackwater.cli.errors import INTERRUPTED, WrongUsage
from slackwater.cli.figures import check_figure, draw_trade_offs
from slackwater.cli.files import Part, base_of, check_output, read_table
from slackwater.cli.labels import class_numbers
from slackwater.cli.output import count, fact, percent, say_json, seconds, show_table, size
from slackwater.cli.settings import method_settings

if TYPE_CHECKING:
    from slackwater.estimators import SparseModel


def _option(panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **more)


def _list_methods(asked: bool) -> None:
    if not asked:
        return
    from slackwater.sparsify.registry import sparsifiers

    lines = [
        (line["name"], line["paper"], ", ".join(line["kernels"]) or "all",
         "points of its own" if line["virtual"] else "training rows", ", ".join(line["settings"]))
        for line in sparsifiers()
    ]  # fmt: skip
    show_table(
        ("method", "paper", "kernels", "vectors", "settings"), lines, ("paper", "kernels", "vectors", "settings")
    )
    raise typer.Exit


_SIZE, _HOW, _FILES = "How small", "The method", "Files and output"


def sparsify(
    model: Annotated[Path, typer.Argument(help="The file of a model with a kernel.", show_default=False)],
    data: Annotated[str, typer.Argument(help="The examples that it was trained on.", show_default=False)],
    output: Annotated[
        Path | None, _option(_FILES, "-o", "--output", help="The small model's file.", show_default="MODEL, -small")
    ] = None,
    figure: Annotated[
        Path | None,
        _option(_FILES, "--figure", help="Draw error against size into this file, .png or .svg.", show_default=False),
    ] = None,
    json: options.Json = False,
    quiet: Annotated[bool, _option(_FILES, "-q", "--quiet", help="Print the status only.")] = False,
    max_support: Annotated[
        int | None, _option(_SIZE, "--max-support", min=1, help="Support vectors.", show_default="no limit")
    ] = None,
    max_bytes: Annotated[
        int | None, _option(_SIZE, "--max-bytes", min=1, help="Bytes of its numbers.", show_default="no limit")
    ] = None,
    max_error_increase: Annotated[
        float | None,
        _option(
            _SIZE,
            "--max-error-increase",
            min=0.0,
            max=1.0,
            show_default=False,
            help="Take the smallest model whose error is at most that much higher: 0.01 for one in a hundred.",
        ),
    ] = None,
    method: Annotated[str, _option(_HOW, "--method", metavar="NAME", help="See --list-methods.")] = "slant-aggressive",
    methods: Annotated[
        bool,
        _option(_HOW, "--list-methods", callback=_list_methods, is_eager=True, help="List the methods and exit."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        _option(
            _HOW,
            "--set",
            metavar="KEY=VALUE",
            show_default="those of the paper's comparison, all tried",
            help="A setting of the method; may be repeated.",
        ),
    ] = None,
    validation: Annotated[
        str, _option(_HOW, "--validation", metavar="SHARE|FILE", help="Rows to choose on: a share of DATA, or a file.")
    ] = "0.2",
    seed: Annotated[
        int, _option(_HOW, "--seed", min=0, max=2**32 - 1, metavar="N", help="Of the rows that are kept back.")
    ] = 0,
    max_time: Annotated[
        float | None, _option(_HOW, "--max-time", min=0.0, help="Seconds of search.", show_default="no limit")
    ] = None,
) -> None:
    """Replace a model by a small one that predicts like it, and show what each size costs.

    The table lists the models that are worth having: no smaller one has as few errors on the rows to choose on. A time
    limit, or Ctrl-C, leaves the best so far; after Ctrl-C the exit code is 130.

    \b
    [bold]Examples[/]
      slackwater sparsify a9a.model a9a.svm --max-support 200
      slackwater sparsify a9a.model a9a.svm --max-error-increase 0.005
      slackwater sparsify a9a.model a9a.svm --max-bytes 32000 --validation a9a.t
      slackwater sparsify a9a.model a9a.svm --max-support 500 --figure trade.svg
    """
    output = output or model.with_name(f"{model.stem}-small.model")
    chosen = method_settings(method, settings or [])
    if max_time == 0.0:
        raise WrongUsage("--max-time 0: a positive number of seconds was expected")
    share = _share(validation)
    inputs = [str(model), data, *([] if share is not None else [validation])]
    check_output(output, *inputs)
    if figure is not None:
        check_figure(figure)
        check_output(figure, *inputs, str(output))
    small = _sparsified(
        model, data, validation if share is None else share,
        {
            "max_support": max_support, "max_bytes": max_bytes, "max_error_increase": max_error_increase,
            "max_time": max_time, "method": method, "method_options": chosen, "random_state": seed,
            "verbose": int(sys.stderr.isatty() and not (quiet or json)),
        },
    )  # fmt: skip
    _save(small, output)
    if figure is not None:
        draw_trade_offs(figure, {small.method: small.curve}, small.before, small.point, Path(data).name)
    if json:
        say_json(_as_json(small, output))
    else:
        _tell(small, output, figure, quiet)
    if small.status.code == "interrupted":
        raise typer.Exit(INTERRUPTED)


def _share(text: str) -> float | None:
    """The share, None for a file."""
    try:
        share = float(text)
    except ValueError:
        return None
    if not 0.0 < share < 1.0:
        raise WrongUsage(f"--validation {text} is neither a share between 0 and 1 nor a file")
    return share


def _sparsified(path: Path, data: str, validation: str | float, wanted: dict[str, Any]) -> SparseModel:
    from slackwater.estimators import sparsify as find
    from slackwater.models import KernelModel, KernelRegressionModel, load

    machine = load(path)
    if not isinstance(machine, KernelModel) or isinstance(machine, KernelRegressionModel):
        raise WrongUsage(f"{path} is no classifier with a kernel: only support vectors can be made fewer")
    X, y = _examples(machine, data, Part.train)
    held = validation if isinstance(validation, float) else _examples(machine, validation, Part.test)
    return find(machine, X, y, validation=held, **wanted)


def _examples(machine: Any, source: str, part: Part) -> tuple[Any, Any]:
    """Rows, and labels as the model knows them."""
    import numpy as np

    table = read_table(source, machine.n_columns, part, base_of(machine)).table
    classes = np.array([-1.0, 1.0]) if machine.classes is None else machine.classes
    numbers = class_numbers(table.labels, classes)
    if (numbers < 0).any():
        unknown = table.labels[int(np.argmin(numbers))]
        raise ValueError(f"{source} has rows of the label {unknown}, which the model was not trained on")
    return table.rows, classes[numbers]


def _save(small: SparseModel, output: Path) -> None:
    from slackwater.models import save

    save(small.model, output)


def _tell(small: SparseModel, output: Path, figure: Path | None, brief: bool) -> None:
    fact("status", str(small.status))
    if brief:
        return
    given = ", ".join(f"{key} {value}" for key, value in small.settings.items() if value is not None)
    fact("method", f"{small.method}: {given}" if given else small.method)
    lines = [(f"{count(small.before.support)} (dense)", small.before)]
    lines += [(count(point.support), point) for point in small.curve.front()]
    show_table(
        ("vectors", "bytes", "error", "train error"),
        [(name, size(p.n_bytes), percent(p.holdout_error), percent(p.train_error)) for name, p in lines],
    )
    last = max(small.curve, key=lambda point: point.seconds)
    fact("work", f"{count(len(small.curve), 'model')} looked at, {count(last.evaluations, 'kernel value')}, "
                 f"{seconds(last.seconds)}")  # fmt: skip
    if figure is not None:
        fact("figure", str(figure))
    fact("model", f"{output} ({size(output.stat().st_size)})")


def _as_json(small: SparseModel, output: Path) -> dict[str, Any]:
    return {
        "method": small.method,
        "settings": dict(small.settings),
        "status": {"code": small.status.code, "sentence": small.status.sentence},
        "dense": small.before._asdict(),
        "small": small.point._asdict(),
        "curve": [point._asdict() for point in small.curve],
        "model": output,
    }
