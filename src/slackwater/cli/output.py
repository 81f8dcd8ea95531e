"""How the command writes: lines that no terminal width breaks, tables, JSON, and numbers for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

_LABEL_WIDTH = 13


def say(text: str = "") -> None:
    """A line on stdout."""
    Console(file=sys.stdout, soft_wrap=True).print(text, markup=False, highlight=False)


def fact(label: str, text: str) -> None:
    """A labelled line on stdout."""
    line = Text(f"{label:<{_LABEL_WIDTH}}", style="bold")
    line.append(text, style="not bold")
    Console(file=sys.stdout, soft_wrap=True).print(line, highlight=False)


def heading(text: str) -> None:
    """The title of a part, on stdout."""
    Console(file=sys.stdout, soft_wrap=True).print(Text(f"\n{text}\n", style="bold"), highlight=False)


_NAME = 20  # characters of the first column that stay on one line


def show_table(columns: Sequence[str], lines: Iterable[Sequence[str]], text: Sequence[str] = ()) -> None:
    """A table on stdout: the first column and those named in ``text`` hold text, the others numbers."""
    grid, lines = Grid(box=SIMPLE_HEAD, pad_edge=False), list(lines)
    name = min(_NAME, max((len(line[0]) for line in lines), default=0))
    for place, column in enumerate(columns):
        words, least = place == 0 or column in text, name if place == 0 else None
        grid.add_column(
            column, justify="left" if words else "right", overflow="fold", no_wrap=not words, min_width=least
        )
    for line in lines:
        grid.add_row(*(Text(cell) for cell in line))
    Console(file=sys.stdout).print(grid)


def say_json(value: Any) -> None:
    """JSON on stdout; numbers that JSON has no word for become null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def count(number: int, thing: str = "", things: str = "") -> str:
    """``1 row``, ``32,561 rows``."""
    if not thing:
        return f"{number:,}"
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def percent(share: float) -> str:
    """A share, exact enough to tell two models apart."""
    return f"{100.0 * share:.2f}%"


def gap_text(relative_gap: float) -> str:
    """A relative gap in percent, three digits."""
    return f"{100.0 * relative_gap:.3g}%" if math.isfinite(relative_gap) else "unbounded"


def seconds(duration: float) -> str:
    """``0.0123 s``, ``1.23 s``, ``75 s``."""
    return f"{duration:.3g} s" if duration < 100.0 else f"{duration:.0f} s"


def size(n_bytes: float) -> str:
    """``812 bytes``, ``1.3 MB``."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000.0
        if n_bytes < 1000.0:
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000.0:.1f} TB"
