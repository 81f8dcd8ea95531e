"""What it costs to begin: imports and first fits, every one in a fresh process, the best of several.

    python benchmarks/start_up.py [--repeats 5] [--importtime]

The machine code of a first fit comes from the cache, that of one with an empty cache from the compiler.
``--importtime`` lists the modules that the import spends its time in.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"

DATA = """
import numpy as np, scipy.sparse as sp
draws = np.random.default_rng(0)
X = draws.normal(size=(500, 30)).astype(np.float32)
y = X[:, 0] + draws.normal(size=500) > 0
"""
FIT = "LinearSVC(random_state=0).fit(X, y)"


@dataclass(frozen=True)
class Case:
    """What is timed in a process, after what, and how long it may take."""

    name: str
    timed: str
    before: str = ""
    goal: float | None = None  # seconds
    cold: bool = False


IMPORT = "from slackwater import LinearSVC"
DENSE = f"{IMPORT}\n{DATA}"
CSR = f"{DENSE}\nX = sp.csr_array(X)"

CASES = (
    Case("import slackwater", "import slackwater", goal=0.4),
    Case("import sklearn.base", "import sklearn.base"),
    Case("import sklearn.svm.LinearSVC", "from sklearn.svm import LinearSVC"),
    Case("import slackwater.LinearSVC", IMPORT),
    Case("  after import sklearn.base", IMPORT, "import sklearn.base", goal=0.4),
    Case("first fit, CSR float32", FIT, CSR, goal=0.5),
    Case("first fit, dense float32", FIT, DENSE, goal=0.5),
    Case("second fit, dense float32", FIT, f"{DENSE}\n{FIT}"),
    Case("first fit, CSR, empty cache", FIT, CSR, goal=3.0, cold=True),
    Case("first fit, dense, empty cache", FIT, DENSE, goal=3.0, cold=True),
)


def run_python(text: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter that may keep its bytecode, as an installed one does."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(SOURCES), **variables}
    command = [sys.executable, *options, "-c", text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


CLOCKS = "import time\nwall, cpu = time.perf_counter(), time.process_time()"
REPORT = "print(time.perf_counter() - wall, time.process_time() - cpu)"


def seconds(case: Case) -> tuple[float, float]:
    """One process: seconds on the wall and of the processor."""
    text = "\n".join((case.before, CLOCKS, case.timed, REPORT))
    with tempfile.TemporaryDirectory() as folder:
        output = run_python(text, **({"NUMBA_CACHE_DIR": folder} if case.cold else {})).stdout
    wall, cpu = map(float, output.split())
    return wall, cpu


def importtime(count: int = 25) -> str:
    """The modules with the most time of their own while LinearSVC is imported."""
    lines = run_python("from slackwater import LinearSVC", "-X", "importtime").stderr.splitlines()
    found = [re.match(r"import time:\s+(\d+) \|\s+(\d+) \|\s*(\S+)", line) for line in lines]
    modules = sorted(((int(m[1]), int(m[2]), m[3]) for m in found if m), reverse=True)
    return "\n".join(
        f"{own / 1e3:8.1f} ms itself {total / 1e3:8.1f} ms in all  {name}" for own, total, name in modules[:count]
    )


def main() -> int:
    """Print the table; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--importtime", action="store_true")
    arguments = parser.parse_args()
    if arguments.importtime:
        print(importtime())
        return 0
    print(f"{'':34}{'wall':>9}{'processor':>12}")
    missed = 0
    for case in CASES:
        if not case.cold:
            seconds(case)  # fill the caches
        times = [seconds(case) for _ in range(arguments.repeats)]
        wall, cpu = (min(column) for column in zip(*times, strict=True))
        missed += case.goal is not None and wall > case.goal
        print(f"{case.name:<34}{wall:>7.3f} s{cpu:>10.3f} s{verdict(case, wall, cpu)}", flush=True)
    return 1 if missed else 0


def verdict(case: Case, wall: float, cpu: float) -> str:
    """Whether the goal is met; other work on the machine delays the wall clock alone."""
    if case.goal is None:
        return ""
    found = "met" if wall <= case.goal else "met by the processor alone" if cpu <= case.goal else "MISSED"
    return f"   goal {case.goal:g} s: {found}"


if __name__ == "__main__":
    sys.exit(main())
