"""``slackwater plan``: what training on a file would cost, without training."""

from __future__ import annotations

from typing import Annotated

import typer

from slackwater.cli import options
from slackwater.cli.files import read_table
from slackwater.cli.output import fact, say_json
from slackwater.cli.settings import checked_settings


def plan(
    data: Annotated[str, typer.Argument(help="Examples to learn from.", show_default=False)],
    columns: options.Columns = None,
    base: options.FirstColumn = options.Base.auto,
    json: options.Json = False,
    C: options.Cost = 1.0,
    loss: options.LossName = "hinge",
    bias: options.BiasKind = options.Bias.penalised,
    solver: options.SolverName = "auto",
    jobs: options.Jobs = -1,
    tol: options.Tolerance = 1e-3,
    max_time: options.MaxTime = None,
) -> None:
    """Tell which solver train would take, why, and the seconds and memory it would need; nothing is trained.

    The forecast comes from measurements on one machine: expect it to be right within a factor of three mostly.

    \b
    [bold]Examples[/]
      slackwater plan a9a.svm
      slackwater plan a9a.svm --C 10 --tol 0.01 --json
    """
    checked_settings(solver, loss, bias.value, [])
    reading = read_table(data, columns, base=base.number)
    from slackwater.estimators import plan as planned

    answer = planned(
        reading.table.X, reading.table.y, C=C, loss=loss, solver=solver, tol=tol, max_time=max_time,
        fit_intercept=bias.fit_intercept, n_jobs=jobs,
    )  # fmt: skip
    if json:
        forecast = {"epochs": answer.epochs, "seconds": answer.seconds, "bytes": answer.n_bytes}
        facts = {"data": reading.facts, "solver": answer.solver, "solver_reason": answer.reason, "forecast": forecast}
        say_json(facts)
        return
    fact("data", f"{data}: {reading}")
    fact("solver", f"{answer.solver}: {answer.reason}")
    fact("forecast", answer.forecast)
