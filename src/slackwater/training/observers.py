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
from slackwater.training.stopping import Limits, counted

_SHORTEST_FORECAST = 0.1  # seconds


class SoFar(NamedTuple):
    """A model and its certificate."""

    model: LinearModel
    certificate: Certificate


class Progress(NamedTuple):
    """What observers are told after every round."""

    round: int
    seconds: float  # since the start
    estimate: float  # the solver's own guess of the relative gap, infinite without one
    certificate: Certificate  # the best so far
    record: Record | None  # of this round, where it was certified
    so_far: Callable[[], SoFar]  # what the run would return now; costs a certificate where none was due
    alpha: np.ndarray | None  # the dual point of the best bound
    limits: Limits
    latest: Callable[[], Any] = lambda: None  # the solver's model as it stands; nothing is proven of it


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

    _SECONDS_BETWEEN_TEXTS = 0.1

    def __init__(self, label: str, screen: Screen) -> None:
        self.label, self.screen = label, screen
        self._path = _Path()
        self._shown = -math.inf

    def begin(self, limits: Limits) -> None:
        self.screen.show(self.label, "starting")

    def after_round(self, progress: Progress) -> None:
        certified, estimate = progress.certificate.relative_gap, progress.estimate
        gap = min(certified, estimate) if estimate > 0.0 else certified
        self._path.add(progress.seconds, gap)
        if progress.seconds - self._shown >= self._SECONDS_BETWEEN_TEXTS:
            self._shown = progress.seconds
            self.screen.show(self.label, self._text(progress, gap))

    def finish(self, run: Any) -> None:
        self.screen.close(self.label, str(run.status))

    def _text(self, progress: Progress, gap: float) -> str:
        parts = [counted(progress.round, "round"), f"{progress.seconds:.1f} s"]
        certified, limits = progress.certificate.relative_gap, progress.limits
        if math.isfinite(certified):
            parts.append(f"gap {certified:.2g}")
        if math.isfinite(gap) and gap < certified:
            parts.append(f"estimated {gap:.2g}")
        if not math.isfinite(gap):
            parts.append(f"primal {progress.certificate.primal:.4g}")
        left = forecast([*self._path.points, (progress.seconds, gap)], limits.tol)
        allowed = math.inf if limits.max_time is None else limits.max_time - progress.seconds
        if left >= allowed:
            parts.append(f"time limit in {max(allowed, 0.0):.1f} s")
        elif left >= _SHORTEST_FORECAST:
            parts.append(f"about {left:.1f} s to gap {limits.tol:g}")
        return ", ".join(parts)


class _Path:
    """The way of the gap in time: points that lie the farther apart the longer it is, so that few are enough."""

    _MOST = 128

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []
        self._distance = 0.0

    def add(self, seconds: float, gap: float) -> None:
        if self.points and seconds - self.points[-1][0] < self._distance:
            return
        self.points.append((seconds, gap))
        if len(self.points) > self._MOST:
            del self.points[::2]
            self._distance = (self.points[-1][0] - self.points[0][0]) / len(self.points)


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

    def show(self, label: str, text: str) -> None:
        """Replace the line of ``label``."""
        with self._lock:
            if self._live is not None:
                if label not in self._tasks:
                    self._tasks[label] = self._live.add_task(label, total=None, text=text)
                self._live.update(self._tasks[label], text=text)
                return
            now = time.monotonic()
            if now - self._last.setdefault(label, now) >= self._SECONDS_BETWEEN_PLAIN_LINES:
                self._last[label] = now
                self._print(label, text)

    def close(self, label: str, text: str) -> None:
        """The last word of ``label``: it stays, above the lines that still move."""
        with self._lock:
            if label in self._tasks:
                self._live.remove_task(self._tasks.pop(label))
                self._live.refresh()
            self._print(label, text)

    def _print(self, label: str, text: str) -> None:
        line = f"{label}: {text}"
        if self._live is None:
            print(line, file=self._stream, flush=True)
        else:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _live_display(stream: TextIO) -> Any:
    """A ``rich`` display, None where it is not installed or nobody looks."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress as Lines
        from rich.progress import SpinnerColumn, TextColumn
        from rich.table import Column
    except ImportError:
        return None
    line = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}: {task.fields[text]}", markup=False, table_column=line)
    console = Console(file=stream)
    return Lines(SpinnerColumn(), text, console=console, transient=True, expand=True, refresh_per_second=5)
