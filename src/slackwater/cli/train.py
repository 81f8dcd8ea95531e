"""``slackwater train``: a file goes in, a certified model comes out."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.cli import kernels, options
from slackwater.cli.errors import INTERRUPTED, WrongUsage
from slackwater.cli.files import Part, Reading, check_output, default_model, read_table
from slackwater.cli.output import count, fact, percent, say_json, seconds, size
from slackwater.cli.results import certificate_facts, problem_labels, show_classes
from slackwater.cli.settings import check_penalty, checked_settings

if TYPE_CHECKING:
    from slackwater.estimators import SVC, LinearSVC


def train(
    data: Annotated[str, typer.Argument(help="Examples to learn from.", show_default=False)],
    output: options.Output = None,
    test: options.Test = None,
    columns: options.Columns = None,
    base: options.FirstColumn = options.Base.auto,
    json: options.Json = False,
    quiet: options.Quiet = False,
    C: options.Cost = 1.0,
    loss: options.LossName = "hinge",
    penalty: options.PenaltyName = options.Penalty.l2,
    l1_ratio: options.L1Ratio = 0.5,
    bias: options.BiasOrUsual = None,
    class_weight: options.ClassWeight = options.Weights.none,
    multi_class: kernels.MultiClass = None,
    kernel: kernels.Kernel = None,
    gamma: kernels.Gamma = None,
    degree: kernels.Degree = None,
    coef0: kernels.Coef0 = None,
    cache_mb: kernels.CacheMb = None,
    nu: kernels.Nu = None,
    solver: options.SolverName = "auto",
    settings: options.Settings = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    tol: options.Tolerance = 1e-3,
    max_time: options.MaxTime = None,
    max_rounds: options.MaxRounds = None,
    validation: options.Validation = None,
) -> None:
    """Train a classifier, linear or with a kernel, and save it with its certificate.

    More than two classes are trained one against the rest, with a kernel pair by pair, a certificate for each, or with
    --multi-class crammer_singer all in one problem. Ctrl-C ends training, saves the best model so far and exits with
    code 130. A limit reached before the wanted gap is no error: the model is saved and the gap that was reached is
    printed.

    \b
    [bold]Examples[/]
      slackwater train a9a.svm                           writes a9a.model
      slackwater train a9a.svm --C 0.1 --test a9a.t      and the error on a9a.t
      slackwater train a9a.svm --penalty l1 --loss squared_hinge
      slackwater train big.svm.gz --max-time 60          what a minute allows
      slackwater train big.svm --tol 0.01 --validation 0.1
      slackwater train a9a.svm --solver pegasos --set batch=64
      slackwater train a9a.svm --kernel rbf --gamma 0.05 --tol 0.01
      slackwater train a9a.svm --kernel rbf --gamma 0.05 --solver sbp --nu 0.011
    """
    chosen = kernels.Chosen(kernel, gamma, degree, coef0, cache_mb, multi_class)
    bias = bias or (options.Bias.free if chosen.task == "kernel" else options.Bias.penalised)
    wanted = {
        "C": C, "loss": loss, "solver": solver, "tol": tol, "max_time": max_time, "max_rounds": max_rounds,
        "class_weight": class_weight.class_weight, "random_state": seed,
        "verbose": int(sys.stderr.isatty() and not (quiet or json)), **chosen.settings(validation, penalty.value),
    }  # fmt: skip
    if kernel is None:
        wanted |= {
            "fit_intercept": bias.fit_intercept, "n_jobs": jobs, "validation_fraction": validation,
            "penalty": penalty.value, "l1_ratio": l1_ratio,
        }  # fmt: skip
    else:
        wanted["fit_intercept"] = bias.of_kernels
    pairs = [*(settings or []), *kernels.nu_setting(nu, solver)]
    wanted["solver_options"] = checked_settings(solver, loss, bias.value, pairs, chosen.task)
    check_penalty(solver, penalty.value, l1_ratio)
    output = output or default_model(data)
    check_output(output, data, test)
    speak = not (quiet or json)
    readings = _read(data, test, columns, base.number)
    if speak:
        fact("data", f"{data}: {readings[0]}")
    answer = replace(_fit(readings[0], wanted), output=output)
    _save(answer, wanted)
    answer = replace(answer, errors=_errors(answer.svm, readings))
    if json:
        say_json(_as_json(answer, readings))
    else:
        _tell(answer, brief=quiet)
    if answer.svm.status_.code == "interrupted":
        raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class _Answer:
    svm: LinearSVC | SVC
    seconds: float
    data: Reading
    errors: tuple[tuple[str, int, int], ...] = ()  # of what, wrong labels, rows
    output: Path = Path()


def _read(data: str, test: str | None, columns: int | None, base: Any) -> list[Reading]:
    """The training and the test examples, their columns counted alike, made equally wide."""
    readings = [read_table(data, columns, base=base)]
    if test is not None:
        readings.append(read_table(test, columns, Part.test, base))
        if {reading.table.base for reading in readings} == {0, 1}:  # one of them just happens to have no column 0
            readings = [read_table(data, columns, base=0), read_table(test, columns, Part.test, 0)]
    if columns is None and len(readings) == 2:
        width = max(reading.table.n_columns for reading in readings)
        readings = [replace(reading, table=_widened(reading.table, width)) for reading in readings]
    return readings


def _widened(table: Any, width: int) -> Any:
    """Sparse rows may end with columns that they do not show."""
    return replace(table, rows=table.rows._replace(columns=width)) if hasattr(table.rows, "columns") else table


def _fit(reading: Reading, wanted: dict[str, Any]) -> _Answer:
    from sklearn.exceptions import ConvergenceWarning

    from slackwater.estimators import SVC, LinearSVC
    from slackwater.solvers.contract import UnsupportedError

    table, begin = reading.table, time.perf_counter()
    svm = SVC(**wanted) if "kernel" in wanted else LinearSVC(**wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status line tells the same
        try:
            svm.fit(table.X, table.y)
        except UnsupportedError as error:
            raise WrongUsage(str(error)) from error
    return _Answer(svm, time.perf_counter() - begin, reading)


def _errors(svm: Any, readings: list[Reading]) -> tuple[tuple[str, int, int], ...]:
    from slackwater.cli.evaluate import scored

    names = ("train error", "test error")
    return tuple(
        (name, scored(svm.model_, reading.table).wrong, reading.table.n_rows)
        for name, reading in zip(names, readings, strict=False)
    )


def _save(answer: _Answer, wanted: dict[str, Any]) -> None:
    from slackwater.models import save

    table = answer.data.table
    trained = {
        "data": table.source, "rows": table.n_rows, "columns": table.n_columns, "seconds": answer.seconds,
        "base": table.base, "tol": wanted["tol"], "seed": wanted["random_state"], "settings": wanted["solver_options"],
    }  # fmt: skip
    model = answer.svm.model_
    save(replace(model, meta={**model.meta, "trained": trained}), answer.output)


def _tell(answer: _Answer, brief: bool) -> None:
    from slackwater.training import ADVICE

    svm = answer.svm
    several = len(svm.certificates_) > 1
    if not brief:
        fact("solver", f"{svm.solver_}: {svm.solver_reason_}")
        if several:
            show_classes(svm)
    fact("certificate", f"{svm.certificate_}" + (f", the worst of {len(svm.certificates_)}" if several else ""))
    advice = ADVICE.get(svm.status_.code)
    fact("status", f"{svm.status_}" + (f"; {advice}" if advice else ""))
    if brief:
        return
    fact("time", seconds(answer.seconds))
    for name, wrong, rows in answer.errors:
        fact(name, f"{percent(wrong / rows)} ({count(wrong)} of {count(rows)})")
    fact("model", f"{answer.output} ({size(answer.output.stat().st_size)})")


def _as_json(answer: _Answer, readings: list[Reading]) -> dict[str, Any]:
    svm = answer.svm
    problems = [
        {"class": label, **certificate_facts(c), "status": s.code, "sentence": s.sentence, "rounds": h[-1].round}
        for label, c, s, h in zip(
            problem_labels(svm.model_, len(svm.certificates_)), svm.certificates_, svm.statuses_, svm.histories_,
            strict=True,
        )
    ]  # fmt: skip
    return {
        "data": readings[0].facts,
        "solver": svm.solver_,
        "solver_reason": svm.solver_reason_,
        "certificate": certificate_facts(svm.certificate_),
        "status": {"code": svm.status_.code, "sentence": svm.status_.sentence},
        "problems": problems,
        "seconds": answer.seconds,
        "errors": {name.partition(" ")[0]: wrong / rows for name, wrong, rows in answer.errors},
        "model": answer.output,
    }
