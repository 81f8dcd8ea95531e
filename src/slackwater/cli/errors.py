"""From exceptions to one line on stderr and an exit code; no traceback unless it is asked for."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import typer

FINE, FAILED, WRONG_USAGE, INTERRUPTED, NOBODY_READS = 0, 1, 2, 130, 141

_CLICK_EXCEPTION = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")
_EXPECTED = (ValueError, OSError, MemoryError, UnicodeError)


class WrongUsage(Exception):
    """What was asked for cannot be; the sentence says why."""


class _Debug:
    """Whether errors keep their traceback: ``--debug`` or SLACKWATER_DEBUG=1."""

    asked = False

    @classmethod
    def wanted(cls) -> bool:
        return cls.asked or os.environ.get("SLACKWATER_DEBUG", "") not in ("", "0")


def ask_for_tracebacks() -> None:
    """From now on, until the command ends, an error shows where it came from."""
    _Debug.asked = True


def guarded(command: Callable[[], Any]) -> int:
    """Run ``command``; the exit code."""
    _Debug.asked = False
    try:
        with _plain_warnings():
            code = command()
            sys.stdout.flush()
        if code == INTERRUPTED:
            complain("interrupted")
        return code if isinstance(code, int) else FINE
    except BaseException as error:
        code, line = _judged(error)
        if code == NOBODY_READS:
            _forget_stdout()
        if line:
            complain(line)
        if code == FAILED and _Debug.wanted():
            raise
        return code


def complain(line: str) -> None:
    """One line on stderr."""
    with contextlib.suppress(OSError):
        print(f"slackwater: {' '.join(line.split())}", file=sys.stderr, flush=True)


def _judged(error: BaseException) -> tuple[int, str]:
    """The exit code and the line that tell of ``error``."""
    # Without its standalone mode the parser exits by itself only where a pipe was closed; so does rich.
    if isinstance(error, BrokenPipeError | SystemExit):
        return NOBODY_READS, ""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, "interrupted"
    if isinstance(error, WrongUsage):
        return WRONG_USAGE, str(error)
    if isinstance(error, _CLICK_EXCEPTION):
        return WRONG_USAGE, _usage_line(error)
    if isinstance(error, OSError):
        return FAILED, _file_line(error)
    if isinstance(error, MemoryError):
        return FAILED, f"not enough memory: {error}" if str(error) else "not enough memory"
    if isinstance(error, _EXPECTED) and str(error):
        return FAILED, str(error)
    return FAILED, f"unexpected {type(error).__name__}: {error} (SLACKWATER_DEBUG=1 shows where it came from)"


def _usage_line(error: Any) -> str:
    """What was wrong with the arguments, and which help to read."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "slackwater"
    message = error.format_message().strip()
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see {path} --help"


def _file_line(error: OSError) -> str:
    """``file: what is wrong``, without the number of the error."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror


def _forget_stdout() -> None:
    """Let what is still in the buffer go nowhere, or the interpreter complains when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as lines of the command, each text once."""
    told: set[str] = set()

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        text = str(message)
        if text not in told:
            told.add(text)
            complain(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show
        yield
