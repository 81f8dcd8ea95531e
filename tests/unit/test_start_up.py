"""What is loaded when: the package alone next to nothing, names as they are used, machine code from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import slackwater
from slackwater.compiled import JIT


def run_python(text: str) -> str:
    """What a new process prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(slackwater.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def foreign_modules(text: str) -> set[str]:
    """Top-level modules from outside the standard library that these lines load."""
    show = "print(*{name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    return set(run_python(f"import sys\nbefore = set(sys.modules)\n{text}\n{show}").split())


def test_the_package_alone_loads_nothing_but_itself():
    loaded = foreign_modules("import slackwater\nslackwater.__version__, dir(slackwater)")
    assert loaded == {"slackwater"}


@pytest.mark.parametrize("name", ["LinearModel", "load", "save", "solvers", "read", "write"])
def test_only_estimators_load_scikit_learn(name):
    loaded = foreign_modules(f"from slackwater import {name}")
    assert {"slackwater", "numba", "numpy"} <= loaded and "sklearn" not in loaded


def test_an_estimator_loads_no_more_of_scikit_learn_than_it_needs():
    text = "import sys; from slackwater import LinearSVC; print(*[m for m in sys.modules if m.startswith('sklearn.')])"
    loaded = run_python(text).split()
    assert "sklearn.base" in loaded and "sklearn.model_selection" not in loaded and "sklearn.svm" not in loaded


def test_every_public_name_is_there():
    for name in slackwater.__all__:
        assert getattr(slackwater, name) is not None and name in dir(slackwater)
    with pytest.raises(AttributeError, match="module 'slackwater' has no attribute 'LinearSVD'"):
        slackwater.LinearSVD  # noqa: B018


FITS = """
import gc
import numpy as np, scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from slackwater import LinearSVC
draws = np.random.default_rng(0)
X = draws.normal(size=(200, 10)).astype(np.float32)
y = X[:, 0] + draws.normal(size=200) > 0
for rows in (X, sp.csr_array(X)):
    svm = LinearSVC(random_state=0).fit(rows, y)
    svm.predict(rows)
used = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.signatures]
ours = [d for d in used if d.py_func.__module__.startswith("slackwater.")]
hits, misses = (sum(sum(getattr(d.stats, kind).values()) for d in ours) for kind in ("cache_hits", "cache_misses"))
print(hits, misses)
"""


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="there is no machine code when the compiler is off")
def test_a_second_process_compiles_nothing():
    run_python(FITS)
    hits, misses = map(int, run_python(FITS).split())
    assert hits >= 8 and misses == 0
