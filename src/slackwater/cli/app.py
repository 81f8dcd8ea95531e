"""The commands put together; importing this imports neither the compiler nor scikit-learn."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from slackwater.cli.demo import demo
from slackwater.cli.errors import ask_for_tracebacks
from slackwater.cli.evaluate import evaluate
from slackwater.cli.export import convert, export
from slackwater.cli.info import info
from slackwater.cli.plan import plan
from slackwater.cli.predict import predict
from slackwater.cli.solvers import solvers
from slackwater.cli.sparsify import sparsify
from slackwater.cli.train import train

__all__ = ["app"]

app = typer.Typer(
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from slackwater import __version__

        print(f"slackwater {__version__}")
        raise typer.Exit


def slackwater(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; so does SLACKWATER_DEBUG=1.")
    ] = False,
) -> None:
    """Large-scale support vector machines. Every fit ends with a certificate: a primal value, a proven lower bound of
    the optimum, and the gap between them.

    \b
    [bold]Examples[/]
      slackwater train a9a.svm --C 0.1             train; writes a9a.model
      slackwater evaluate a9a.model a9a.t          error, precision and recall
      slackwater predict a9a.model new.svm -o out  one label per line
      slackwater sparsify a9a.model a9a.svm        few support vectors instead of many
      slackwater export a9a.model -o a9a.h         C for a microcontroller
      slackwater info a9a.model                    what it is, how it was made
      slackwater plan a9a.svm                      what training would cost
      slackwater demo                              a tour, in under a minute

    Files are svmlight text (LIBSVM's format), plain or packed with gzip, bzip2 or xz, or npz archives; labels may be
    numbers or words.

    \b
    [bold]Exit codes[/]
      0    fine; so is a limit reached before the wanted gap, which is then said
      1    wrong data or files
      2    wrong usage
      130  Ctrl-C; train saves the best model so far first
      141  the reader of the output has gone
    """
    if debug:
        ask_for_tracebacks()


def _paragraphs(text: str) -> str:
    """``text`` with every paragraph on one line, to fit any terminal; one after a backspace stays as it is."""
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else " ".join(part.split()) for part in parts)


app.callback(help=_paragraphs(slackwater.__doc__ or ""))(slackwater)
for command in (train, predict, evaluate, sparsify, export, convert, info, plan, solvers, demo):
    app.command(help=_paragraphs(command.__doc__ or ""))(command)
