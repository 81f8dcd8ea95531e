"""``slackwater export``: a model's file into C, ONNX, JSON, or the text of LIBSVM and LIBLINEAR."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli.errors import WrongUsage
from slackwater.cli.files import Part, base_of, check_output, read_table
from slackwater.cli.info import is_model
from slackwater.cli.output import count, fact, say_json, size

if TYPE_CHECKING:
    from slackwater.export import Exported


class Format(StrEnum):
    """What a model can be exported as."""

    c99 = "c99"
    onnx = "onnx"
    json = "json"
    libsvm = "libsvm"
    liblinear = "liblinear"


class Numbers(StrEnum):
    """The numbers of C and ONNX."""

    float32 = "float32"
    float64 = "float64"
    int16 = "int16"
    int8 = "int8"


def export(
    model: Annotated[Path, typer.Argument(help="A model's file.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write, whole or not at all.")],
    format: Annotated[
        Format | None,
        typer.Option(help="What to write.", show_default="by the ending: .h .onnx .json .libsvm .liblinear"),
    ] = None,
    numbers: Annotated[
        Numbers | None,
        typer.Option(help="C: float32, int16 or int8; ONNX: float64 or float32.", show_default="float32; float64"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Prefix of the C functions.", show_default="the output's name")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Examples that tell the range of whole numbers, and on which their error is measured.",
            show_default="the support vectors",
        ),
    ] = None,
    span: Annotated[
        tuple[float, float] | None,
        typer.Option(help="The lowest and the highest value of the data, for whole numbers.", show_default=False),
    ] = None,
    part: Annotated[Part, typer.Option(help="The part of an npz archive of examples.")] = Part.train,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Write a model for another home: C for microcontrollers, ONNX, JSON, or the text of LIBSVM and LIBLINEAR.

    C tells its bytes of flash, which are those of its tables, and of RAM, which are those of the arrays on the stack.

    \b
    [bold]Examples[/]
      slackwater export a9a.model -o a9a.h
      slackwater export a9a.model -o a9a.h --numbers int8 --data a9a.svm
      slackwater export a9a.model -o a9a.onnx
    """
    from slackwater.export import ExportError
    from slackwater.export import export as write
    from slackwater.models import load

    check_output(output, str(model), data)
    machine = load(model)
    X = None if data is None else read_table(data, machine.n_columns, part, base_of(machine)).table.rows
    kind = None if format is None else format.value
    try:
        written = write(machine, output, kind, numbers=numbers and numbers.value, name=name, X=X, span=span)
    except ExportError as error:
        raise WrongUsage(str(error)) from error
    if json:
        say_json(_facts(written))
    else:
        _tell(written)


def _facts(written: Exported) -> dict[str, Any]:
    return {
        "file": written.path, "format": written.format, "bytes": written.n_bytes, "flash_bytes": written.flash,
        "ram_bytes": written.ram, "largest_error": written.error, "rows_measured": written.measured,
    }  # fmt: skip


def _tell(written: Exported) -> None:
    fact(written.format, f"{written.path} ({size(written.n_bytes)})")
    if written.flash is not None and written.ram is not None:
        fact("flash", f"{count(written.flash, 'byte')} of tables, without code")
        fact("RAM", f"{count(written.ram, 'byte')} of arrays on the stack")
    if written.error is not None:
        fact("error", f"decision values within {written.error:.2g} of the model's on {count(written.measured, 'row')}")


# ------------------------------------------------------------------------------------------------------ convert


def convert(
    file: Annotated[
        str,
        typer.Argument(help="A model of LIBSVM or LIBLINEAR or in JSON, or examples.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write, whole or not at all.")],
    columns: Annotated[
        int | None,
        typer.Option(min=1, help="How many columns there are.", show_default="up to the last that occurs"),
    ] = None,
    part: Annotated[Part, typer.Option(help="The part of an npz archive of examples.")] = Part.train,
) -> None:
    """Make a model's file of what LIBSVM, LIBLINEAR or `export` wrote; or write examples in another format.

    Examples are svmlight text or npz archives; the ending of the output tells which is written.

    \b
    [bold]Examples[/]
      slackwater convert a9a.libsvm -o a9a.model --columns 123
      slackwater convert a9a.json -o a9a.model
      slackwater convert a9a.svm.xz -o a9a.npz
    """
    from slackwater.export import import_model, kind_of
    from slackwater.models import save

    check_output(output, file)
    if is_model(file):
        raise WrongUsage(f"{file} is a model's file as it should be; `slackwater export` writes it for others")
    kind = kind_of(file)
    if kind is None:
        _convert_data(file, output, columns, part)
        return
    machine = import_model(file, columns)
    save(machine, output)
    fact("model", f"{output}: {_what(machine)} from {kind} ({size(output.stat().st_size)})")


def _what(machine: Any) -> str:
    outputs = f"{count(machine.n_outputs, 'output')}, {count(machine.n_columns, 'column')}"
    if hasattr(machine, "kernel"):
        return f"{machine.kernel.name} kernel, {count(machine.n_support, 'support vector')}, {outputs}"
    return f"linear, {outputs}"


def _convert_data(file: str, output: Path, columns: int | None, part: Part) -> None:
    from slackwater.data import write

    if output.suffix.lower() == ".model":
        raise WrongUsage(f"{file} is no model of LIBSVM or LIBLINEAR nor one in JSON; examples become .svm or .npz")
    reading = read_table(file, columns, part)
    write(output, reading.table)
    fact("data", f"{file}: {reading}")
    fact("written", f"{output} ({size(output.stat().st_size)})")
