"""When training ends: the limits a user sets and the status a run ends with."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

from slackwater.objective.certificate import Certificate


def is_number(value: Any) -> bool:
    """An int or a float, NumPy's own among them."""
    return isinstance(value, Real)


@dataclass(frozen=True)
class Limits:
    """Budgets of a run; None is no limit. ``tol`` is the certified relative gap to reach."""

    tol: float = 1e-3
    max_time: float | None = None  # seconds of wall clock
    max_rounds: int | None = None
    max_kernel_evaluations: int | None = None
    patience: int | None = None  # looks at the holdout without a smaller error
    certify_every: int | None = None  # rounds; None lets the loop choose

    def __post_init__(self) -> None:
        if not (is_number(self.tol) and 0.0 <= self.tol < math.inf):
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}")
        if self.max_time is not None and not (is_number(self.max_time) and self.max_time > 0.0):
            raise ValueError(f"max_time must be positive or None, got {self.max_time!r}")
        for name in ("max_rounds", "max_kernel_evaluations", "patience", "certify_every"):
            limit = getattr(self, name)
            if limit is not None and not (is_number(limit) and limit >= 1):
                raise ValueError(f"{name} must be at least 1 or None, got {limit!r}")


@dataclass(frozen=True)
class Status:
    """Why a run ended: a code for programs, a sentence for people."""

    code: str
    sentence: str

    @property
    def converged(self) -> bool:
        """The certified gap is what was asked for."""
        return self.code == "converged"

    @property
    def limited(self) -> bool:
        """A budget ran out or nothing moved any more before the gap was reached: worth a warning."""
        return self.code in ADVICE

    def __str__(self) -> str:
        return self.sentence


#: What would help after each kind of early end.
ADVICE = {
    "max_time": "a larger max_time, a larger tol or a smaller C would help",
    "max_rounds": "a larger max_rounds, a larger tol or a smaller C would help",
    "max_kernel_evaluations": "a larger max_kernel_evaluations or a larger tol would help",
    "stalled": "scaling the features to a similar size or another solver would help",
    "diverged": "scaling the features to a similar size or a smaller C would help",
}


def gap_text(certificate: Certificate) -> str:
    """The relative gap in few digits, or the absolute one where the bound is not positive yet."""
    relative = certificate.relative_gap
    return f"gap {relative:.2g}" if math.isfinite(relative) else f"absolute gap {certificate.gap:.3g}"


def counted(number: int, what: str) -> str:
    """1 round, 2 rounds."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def seconds_text(seconds: float) -> str:
    """0.25 s, 3600 s."""
    return f"{seconds:.3g} s" if seconds < 100.0 else f"{seconds:.0f} s"


def converged(certificate: Certificate, tol: float, rounds: int) -> Status:
    """The gap was reached."""
    return Status("converged", f"{gap_text(certificate)} <= {tol:g} after {counted(rounds, 'round')}")


@contextlib.contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """The first Ctrl-C sets ``stop``, so that the loop ends after its round; a second one interrupts at once.

    Signals reach the main thread only: elsewhere this does nothing, and whoever started the thread sets ``stop``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number, frame):
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.default_int_handler, signal.SIG_DFL):
        yield  # the caller has its own way of treating Ctrl-C
        return
    signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
