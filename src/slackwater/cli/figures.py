"""Figures of the command: error against size. They need matplotlib, which nothing else does."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slackwater.cli.errors import WrongUsage

if TYPE_CHECKING:
    from slackwater.sparsify.curve import Curve, Point

ENDINGS = (".png", ".svg", ".pdf")
COLOURS = ("#1f6f8b", "#c8553d", "#588157", "#7b5ea7", "#b8860b", "#4a4e69", "#d36ba6", "#2a9d8f", "#8d6e63")
MARKS = "osD^vP*Xd"


def check_figure(path: Path) -> None:
    """Raise before the work begins when no figure could be drawn after it."""
    if path.suffix.lower() not in ENDINGS:
        raise WrongUsage(f"--figure {path}: the file must end in {', '.join(ENDINGS)}")
    if find_spec("matplotlib") is None:
        raise WrongUsage('--figure needs matplotlib: pip install "slackwater[plots]"')


def draw_trade_offs(path: Path, curves: Mapping[str, Curve], before: Point, chosen: Point | None, title: str) -> None:
    """Held-out error against support vectors: all that was looked at, and what is worth having."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.0, 4.4), layout="constrained")
    axes = drawing.add_subplot()
    for place, (name, curve) in enumerate(curves.items()):
        colour, front = COLOURS[place % len(COLOURS)], curve.front()
        sizes, errors = _line([p for p in curve if p.support > 0])
        axes.plot(sizes, errors, ".", color=colour, alpha=0.18, markersize=4, zorder=1)
        sizes, errors = _line([p for p in front if p.support > 0])
        axes.plot(
            sizes, errors, color=colour, marker=MARKS[place % len(MARKS)], markersize=4, linewidth=1.6, label=name,
            drawstyle="steps-post", zorder=2,
        )  # fmt: skip
    dense = 100.0 * before.holdout_error
    axes.axhline(dense, color="#555555", linewidth=1.0, linestyle="--", zorder=0)
    axes.annotate(
        f"dense: {before.support:,} vectors, {dense:.2f}%", (0.0, dense), xycoords=("axes fraction", "data"),
        xytext=(4, -4), textcoords="offset points", ha="left", va="top", color="#555555", fontsize=9,
    )  # fmt: skip
    if chosen is not None and chosen.support > 0:
        axes.plot([chosen.support], [100.0 * chosen.holdout_error], "o", markersize=10, fillstyle="none", color="black",
                  label=f"chosen: {chosen.support:,} vectors, {chosen.holdout_error:.2%}")  # fmt: skip
    worth = [100.0 * p.holdout_error for curve in curves.values() for p in curve.front() if p.support > 0]
    low, high = min([dense, *worth]), max([dense, *worth])
    room = max(0.1 * (high - low), 0.5)
    axes.set_ylim(max(0.0, low - 1.5 * room) if low > room else -room, high + room)
    finish(axes, title)
    save(drawing, path)


def finish(axes: Any, title: str) -> None:
    """Scales, names and the legend."""
    from matplotlib.ticker import FuncFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
    axes.set(xlabel="support vectors", ylabel="held-out error, %", title=title)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=9)


def save(drawing: Any, path: Path) -> None:
    """Whole or not at all; the same numbers make the same file."""
    from slackwater.atomic import atomic_file

    kind = path.suffix.lower()[1:]
    facts = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
    with atomic_file(path) as file:
        drawing.savefig(file, format=kind, dpi=160, metadata=facts)


def _line(points: list[Point]) -> tuple[list[int], list[float]]:
    return [p.support for p in points], [100.0 * p.holdout_error for p in points]
