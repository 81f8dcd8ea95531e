"""The first rounds of every solver on every storage, and the same from a process that runs without the compiler."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import slackwater
from conformance.problems import CASES, SMALL, STORAGES, build
from conformance.running import weights_on_the_way
from slackwater.solvers import contract


def ways() -> dict[str, np.ndarray]:
    """The weights after each of three rounds, by case and storage."""
    return {
        f"{case}-{storage}": weights_on_the_way(case, build(case, SMALL, storage), 3)
        for case in CASES
        for storage in STORAGES
    }


def save(file: str) -> None:
    """The ways of short rounds in a file."""
    contract._EPOCHS_ON_TINY = 1
    np.savez(file, **ways())


def interpreted_ways(file: Path) -> dict[str, np.ndarray]:
    """The ways as Python alone finds them."""
    folders = [str(Path(module).parents[1]) for module in (slackwater.__file__, __file__)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(folders)}
    text = "import sys; from conformance.ways import save; save(sys.argv[1])"
    subprocess.run([sys.executable, "-W", "error", "-c", text, str(file)], env=environment, check=True)
    with np.load(file) as found:
        return dict(found)
