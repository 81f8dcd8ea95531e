"""``slackwater demo``: certificates on real digits and on a large generated set, the time beside LIBLINEAR's, a model
saved and used by another process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from slackwater.cli.output import count, fact, gap_text, heading, percent, say, seconds, show_table, size

if TYPE_CHECKING:
    import numpy as np

    from slackwater.estimators import LinearSVC

_TOL = 0.01
_HELD_OUT = 20_000
_LIBLINEAR_ITERATIONS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40, 60)
_FITS = 2  # of which the faster one counts, here and there
_LIBLINEAR_SECONDS = 10.0  # after which no more iterations are tried

_SNIPPET = """\
from slackwater import LinearSVC, read

table = read("train.svm")
svm = LinearSVC(C=1.0, tol=0.01).fit(table.X, table.y)
print(svm.certificate_)   # primal, proven lower bound, gap
print(svm.status_)        # why training ended
svm.predict(table.X[:5])
"""


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the generated set.")] = 200_000,
    columns: Annotated[int, typer.Option(min=100, help="Its columns.")] = 50_000,
    seed: Annotated[int, typer.Option(min=0, help="Of what is generated.")] = 0,
) -> None:
    """A tour in under a minute: digits, a large set of texts beside LIBLINEAR, a model that is saved and used again.

    The first run compiles machine code and keeps it; the next one starts at once. Nothing is left behind.

    \b
    [bold]Examples[/]
      slackwater demo
      slackwater demo --rows 1000000
    """
    begin = time.perf_counter()
    _digits()
    texts = _generated(rows, columns, seed)
    svm = _certified(texts)
    _beside_liblinear(texts, svm)
    _saved_and_used(texts, svm)
    heading("Your turn")
    say(_SNIPPET)
    say("or, in the shell:  slackwater train train.svm --tol 0.01")
    fact("tour", seconds(time.perf_counter() - begin))


# ------------------------------------------------------------------------------------------------------- digits


def _digits() -> None:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from slackwater.cli.results import show_classes
    from slackwater.estimators import LinearSVC

    heading("Handwritten digits: ten classes, one against the rest, a certificate for each")
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=0.25, random_state=0, stratify=y)
    fact("data", f"{count(len(X), 'row')}, {count(X.shape[1], 'column')}; {count(len(X_test))} more held out")
    svm = LinearSVC(C=1.0, tol=_TOL, random_state=0, n_jobs=-1)
    fact("time", f"{seconds(_timed_fit(svm, X, y))}; machine code is made on first use and then kept")
    show_classes(svm)
    fact("error", f"{percent(1.0 - svm.score(X_test, y_test))} of the digits held out")


def _timed_fit(svm: Any, X: Any, y: np.ndarray) -> float:
    begin = time.perf_counter()
    svm.fit(X, y)
    duration = time.perf_counter() - begin
    if hasattr(svm, "status_") and svm.status_.code == "interrupted":
        raise KeyboardInterrupt  # Ctrl-C means the tour, not only this fit
    return duration


# -------------------------------------------------------------------------------------------------------- texts


class _Texts(NamedTuple):
    """The generated set, as matrices."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def _generated(n_rows: int, n_columns: int, seed: int) -> _Texts:
    from slackwater.cli.textlike import text_like
    from slackwater.rows import as_matrix

    held_out = min(_HELD_OUT, n_rows // 10)
    heading(f"{count(n_rows)} generated texts over {count(n_columns)} words")
    begin = time.perf_counter()
    rows, labels = text_like(n_rows + held_out, n_columns, seed)
    matrix = as_matrix(rows)
    fact("data", f"{count(rows.n_entries // rows.n_rows)} entries per row, {rows.dtype}, "
                 f"{size(rows.n_entries * 8)}; made in {seconds(time.perf_counter() - begin)}")  # fmt: skip
    return _Texts(matrix[:n_rows], labels[:n_rows], matrix[n_rows:], labels[n_rows:])


def _machine() -> LinearSVC:
    from slackwater.estimators import LinearSVC

    return LinearSVC(C=1.0, loss="hinge", fit_intercept=False, tol=_TOL, random_state=0)


def _certified(texts: _Texts) -> _Fitted:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the short fit ends before its gap
        compiling = _timed_fit(_machine().set_params(max_rounds=1), texts.X[:1000], texts.y[:1000])
    svm = _machine()
    duration = min(_timed_fit(svm, texts.X, texts.y) for _ in range(_FITS))
    fact("solver", svm.solver_)
    fact("reason", svm.solver_reason_)
    fact("certificate", str(svm.certificate_))
    fact("status", str(svm.status_))
    fact("time", f"{seconds(duration)}, the faster of two; making machine code ready took {seconds(compiling)} before")
    fact("error", f"{percent(1.0 - svm.score(texts.X_test, texts.y_test))} of the texts held out")
    _show_history(texts)
    return _Fitted(svm, duration)


def _show_history(texts: _Texts) -> None:
    """The same fit once more, with a look after every round."""
    say("\nThe same fit with a certificate after every round:")
    svm = _machine().set_params(certify_every=1).fit(texts.X, texts.y)
    lines = [
        (str(r.round), f"{r.seconds:.2f}", f"{r.primal:.5f}", f"{r.dual:.5f}", gap_text(r.relative_gap))
        for r in svm.history_
    ]
    show_table(("round", "seconds", "primal", "lower bound", "gap"), lines)


class _Fitted(NamedTuple):
    """A machine and the seconds of its fit."""

    svm: LinearSVC
    seconds: float


def _beside_liblinear(texts: _Texts, ours: _Fitted) -> None:
    """LIBLINEAR with more and more iterations, until the proven lower bound says that it is as near the optimum."""
    heading("The same problem by LIBLINEAR, through sklearn.svm.LinearSVC")
    texts = texts._replace(X=texts.X.astype("float64"))  # what it takes without a copy
    bound, begin = ours.svm.certificate_.dual, time.perf_counter()
    excess, duration, iterations = float("inf"), 0.0, 0
    for iterations in _LIBLINEAR_ITERATIONS:
        excess, duration = _liblinear(texts, iterations, bound)
        if excess <= _TOL or time.perf_counter() - begin > _LIBLINEAR_SECONDS:
            break
    duration = min(duration, *(_liblinear(texts, iterations, bound)[1] for _ in range(_FITS - 1)))
    verdict = "reaches" if excess <= _TOL else "has only reached"
    fact("LIBLINEAR", f"{seconds(duration)} with {count(iterations, 'iteration')}, where it {verdict} "
                      f"{gap_text(excess)} above our lower bound")  # fmt: skip
    fact("Slackwater", f"{seconds(ours.seconds)} to {gap_text(ours.svm.certificate_.relative_gap)}, proven")
    fact("ratio", f"{duration / ours.seconds:.1f}, LIBLINEAR's time over Slackwater's; LIBLINEAR itself cannot tell "
                  "how near it is")  # fmt: skip


def _liblinear(texts: _Texts, iterations: int, bound: float) -> tuple[float, float]:
    """How far its primal value lies above ``bound``, relatively, and the seconds of the fit."""
    import numpy as np
    from sklearn.svm import LinearSVC

    from slackwater.objective import hinge, linear_problem, primal_value
    from slackwater.rows import as_rows

    peer = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, max_iter=iterations, tol=1e-12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it stops before its own tolerance is what is asked for
        duration = _timed_fit(peer, texts.X, texts.y)
    problem = linear_problem(as_rows(texts.X), texts.y, hinge())
    return primal_value(problem, np.append(peer.coef_[0], 0.0)) / bound - 1.0, duration


# ------------------------------------------------------------------------------------------- saved and used again


def _saved_and_used(texts: _Texts, ours: _Fitted) -> None:
    """The model in a file, the texts held out in another; a new process writes the labels."""
    import numpy as np

    from slackwater.data import write_svmlight
    from slackwater.models import save

    heading("The model in a file, used by another process")
    with tempfile.TemporaryDirectory(prefix="slackwater-") as name:
        model, data, labels = (Path(name) / part for part in ("texts.model", "new.svm", "labels.txt"))
        save(ours.svm.model_, model)
        write_svmlight(data, texts.X_test, texts.y_test)
        fact("model", f"texts.model, {size(model.stat().st_size)}")
        fact("data", f"new.svm, {count(len(texts.y_test), 'row')}, {size(data.stat().st_size)}")
        fact("command", "slackwater predict texts.model new.svm -o labels.txt")
        begin = time.perf_counter()
        arguments = [sys.executable, "-m", "slackwater", "predict", str(model), str(data), "-o", str(labels)]
        subprocess.run(arguments, check=True)
        duration = time.perf_counter() - begin
        theirs = np.loadtxt(labels)
    same = int((theirs == ours.svm.predict(texts.X_test)).sum())
    fact("result", f"{count(same)} of {count(len(theirs))} predictions are the same; {seconds(duration)} with start-up")
    if same < len(theirs):
        raise ValueError("the saved model does not predict what the fitted one does")
