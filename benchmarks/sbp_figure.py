"""The picture of ``sbp_curves.py``: test error against what it cost, a panel for each data set.

python benchmarks/sbp_figure.py curves.csv curves.png [charged | evaluations | seconds | cpu_seconds]
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Any

LABELS = {
    "charged": "kernel values, n for each iteration",
    "evaluations": "kernel values computed",
    "seconds": "seconds",
    "cpu_seconds": "seconds of all threads",
}


def draw(points: list[dict[str, Any]], path: Path, axis: str) -> None:
    """Panels beside each other; of the kernel values a second line of panels shows those computed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    axes = [axis, "evaluations"] if axis == "charged" else [axis]
    sets, solvers = _distinct(points, "data"), _distinct(points, "solver")
    figure, panels = plt.subplots(
        len(axes), len(sets), figsize=(5.0 * len(sets), 3.8 * len(axes)), squeeze=False, layout="constrained"
    )
    for line, what in zip(panels, axes, strict=True):
        for panel, name in zip(line, sets, strict=True):
            for number, solver in enumerate(solvers):
                _curves(panel, [p for p in points if p["data"] == name and p["solver"] == solver], what, f"C{number}")
            panel.set(title=name, xlabel=LABELS[what], xscale="log", ylabel="test error, %", yscale="log")
            panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.yaxis.set_minor_formatter(NullFormatter())
            panel.grid(alpha=0.3, which="both")
            panel.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _curves(panel: Any, points: list[dict[str, Any]], axis: str, colour: str) -> None:
    """A curve per seed; a single point as a mark."""
    for seed in _distinct(points, "seed"):
        mine = [p for p in points if p["seed"] == seed]
        x, y = [float(p[axis]) for p in mine], [100.0 * float(p["error"]) for p in mine]
        if all(math.isnan(value) for value in x):
            continue
        label = mine[0]["solver"] if seed == points[0]["seed"] else None
        panel.plot(x, y, "*" if len(x) == 1 else "-", color=colour, label=label, markersize=12)


def _distinct(points: list[dict[str, Any]], name: str) -> list[Any]:
    return list(dict.fromkeys(p[name] for p in points))


if __name__ == "__main__":
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        draw(list(csv.DictReader(file)), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "charged")
