"""Who watches a run: the contract of observers, and the progress line with the gap and a forecast."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

import numpy as np

from slackwater.models.linear import LinearModel
from slackwater.objective.certificate import Certificate
from slackwater.training.history import Record, forecast
from slackwater.training.stopping import Limits


class Progress(NamedTuple):
    """What observers are told after every round."""

    round: int
    seconds: float  # since the start
    estimate: float  # the solver's own guess of the relative gap, infinite without one
    certificate: Certificate  # the best so far
    record: Record | None  # of this round, where it was certified
    model: Callable[[], LinearModel]  # builds the best model so far
    alpha: np.ndarray | None  # the dual point of the best bound
    limits: Limits


class Observer:
    """Base class: every method may be left as it is. Observers are called from the thread that trains."""

    def begin(self, limits: Limits) -> None:
        """Training starts."""

    def after_round(self, progress: Progress) -> bool | None:
        """A round is over; True asks the loop to stop."""

    def finish(self, run: Any) -> None:
        """Training is over; ``run`` is what the caller gets."""


class ProgressLine(Observer):
    """One line on the terminal: rounds, seconds, the gap, and when it is expected to be small enough.

    ``screen`` is shared by the lines of several runs side by side.
    """

    def __init__(self, label: str, screen: Screen) -> None:
        self.label, self.screen = label, screen
        self._points: list[tuple[float, float]] = []

    def begin(self, limits: Limits) -> None:
        self.screen.show(self.label, "starting")

    def after_round(self, progress: Progress) -> None:
        certified = progress.certificate.relative_gap
        gap = min(certified, progress.estimate) if progress.estimate > 0.0 else certified
        self._points.append((progress.seconds, gap))
        self.screen.show(self.label, self._text(progress, gap))

    def finish(self, run: Any) -> None:
        self.screen.show(self.label, str(run.status), force=True)

    def _text(self, progress: Progress, gap: float) -> str:
        parts = [f"round {progress.round}", f"{progress.seconds:.1f} s"]
        certified = progress.certificate.relative_gap
        if math.isfinite(certified):
            parts.append(f"certified gap {certified:.2g}")
        if math.isfinite(gap) and gap < certified:
            parts.append(f"estimated {gap:.2g}")
        if not math.isfinite(gap):
            parts.append(f"primal {progress.certificate.primal:.4g}")
        left = forecast(self._points[-64:], progress.limits.tol)
        if progress.limits.max_time is not None and math.isfinite(left):
            left = min(left, progress.limits.max_time - progress.seconds)
        if math.isfinite(left) and left > 0.0:
            parts.append(f"about {left:.1f} s to gap {progress.limits.tol:g}")
        return ", ".join(parts)


class Screen:
    """Where progress lines appear: a live display of ``rich`` on a terminal, now and then a plain line elsewhere."""

    _SECONDS_BETWEEN_PLAIN_LINES = 5.0

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._last: dict[str, float] = {}
        self._tasks: dict[str, Any] = {}
        self._live = _live_display(self._stream)

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, label: str, text: str, force: bool = False) -> None:
        """Replace the line of ``label``."""
        with self._lock:
            if self._live is not None:
                self._show_live(label, text)
                return
            now = time.monotonic()
            if force or now - self._last.setdefault(label, now) >= self._SECONDS_BETWEEN_PLAIN_LINES:
                self._last[label] = now
                print(f"{label}: {text}", file=self._stream)

    def _show_live(self, label: str, text: str) -> None:
        if label not in self._tasks:
            self._tasks[label] = self._live.add_task(label, total=None, text=text)
        self._live.update(self._tasks[label], text=text)


def _live_display(stream: TextIO) -> Any:
    """A ``rich`` display, None where it is not installed or nobody looks."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress as Lines
        from rich.progress import SpinnerColumn, TextColumn
    except ImportError:
        return None
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[text]}"))
    return Lines(*columns, console=Console(file=stream), transient=False, refresh_per_second=5)
