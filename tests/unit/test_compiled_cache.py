"""The cache of machine code notices every edit and finds a folder to lie in; all runs without machine code too."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import slackwater
from slackwater import compiled as house
from slackwater.compiled import JIT, cache_folder, compiled, shuffle

needs_compiler = pytest.mark.skipif(not JIT, reason="there is no machine code when the compiler is off")

PACKAGE = Path(slackwater.__file__).parent


# --------------------------------------------------------------------------------------------------- the cache

LOSS_OF_ZERO = """
import numpy as np
from slackwater.objective import hinge
from slackwater.objective.certificate import total_loss
print(total_loss(hinge(), np.zeros(1), np.ones(1), np.ones(1)), sum(total_loss.stats.cache_hits.values()))
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the package that a test may edit."""
    target = tmp_path / "src" / "slackwater"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def run_python(text, sources, **variables) -> str:
    """What a new process prints that imports the package from ``sources``."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": str(sources), "XDG_CACHE_HOME": str(sources.parent / "home"), **variables}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], env=environment, cwd=sources, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_compiler
def test_an_edit_of_another_file_is_seen_in_a_new_process(copied):
    def loss() -> tuple[float, bool]:
        value, hits = run_python(LOSS_OF_ZERO, copied.parent).split()
        return float(value), int(hits) > 0

    assert loss() == (1.0, False)
    assert loss() == (1.0, True)  # from the cache
    losses = copied / "objective" / "losses.py"  # total_loss itself lies in certificate.py
    text = losses.read_text()
    before = "return loss.cap * (r - 0.5 * knee)"
    assert text.count(before) == 1
    losses.write_text(text.replace(before, "return 3.0 * loss.cap * (r - 0.5 * knee)"))
    assert loss() == (3.0, False)
    assert loss() == (3.0, True)
    losses.write_text(text)
    assert loss()[0] == 1.0
    assert list((copied / "__pycache__" / "machine-code").rglob("*.nbi"))


@needs_compiler
def test_a_package_folder_that_cannot_be_written_uses_the_users_cache(copied):
    (copied / "__pycache__").mkdir()
    (copied / "__pycache__" / "machine-code").touch()  # no folder can be made there, not even by root
    for hits in (False, True):
        value, found = run_python(LOSS_OF_ZERO, copied.parent).split()
        assert (float(value), int(found) > 0) == (1.0, hits)
    home = copied.parent.parent / "home"
    assert list((home / "slackwater" / "machine-code").rglob("*.nbi"))


@needs_compiler
def test_numbas_own_variable_names_the_cache(copied, tmp_path):
    run_python(LOSS_OF_ZERO, copied.parent, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert list((tmp_path / "chosen" / "slackwater").rglob("*.nbi"))
    assert not (copied / "__pycache__" / "machine-code").exists()


@needs_compiler
def test_without_any_folder_everything_is_compiled_anew(copied, tmp_path):
    (copied / "__pycache__").mkdir()
    (copied / "__pycache__" / "machine-code").touch()
    (tmp_path / "file").touch()
    for _ in range(2):
        text = run_python(LOSS_OF_ZERO, copied.parent, XDG_CACHE_HOME=str(tmp_path / "file"))
        assert text.split() == ["1.0", "0"]


def test_the_folder_is_a_function_of_all_compiled_sources(copied, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def folder() -> Path:
        house._fingerprint.cache_clear()
        cache_folder.cache_clear()
        return cache_folder(copied)

    try:
        first = folder()
        assert first.is_relative_to(tmp_path / "cache" / "slackwater")
        assert folder() == first
        (copied / "plain.py").write_text("x = 1\n")
        assert folder() == first  # nothing in it takes part in machine code
        (copied / "rows" / "layouts2.py").write_text("# takes part: compiled\n")
        second = folder()
        (copied / "rows" / "layouts2.py").write_text("# takes part still: compiled\n")
        assert len({first, second, folder()}) == 3
        assert first.parent == second.parent
    finally:
        house._fingerprint.cache_clear()
        cache_folder.cache_clear()


def test_old_folders_are_removed_but_not_the_latest_ones(tmp_path):
    now = time.time()
    for days in range(10):
        (tmp_path / f"f{days}").mkdir()
        os.utime(tmp_path / f"f{days}", (now, now - 86_400 * days - 5))
    house._forget_old(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f0", "f1", "f2", "f3"]
    for name in "abcdefg":
        (tmp_path / name).mkdir()
    house._forget_old(tmp_path)
    assert {*"abcdefg"} <= {p.name for p in tmp_path.iterdir()}  # of today: a running process may use them


def test_functions_belong_to_their_outermost_package(tmp_path):
    def source_folder(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def f():\n    pass\n")
        names = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return house._source_folder(names["f"])

    package = tmp_path / "theirs"
    (package / "deep").mkdir(parents=True)
    for folder in (package, package / "deep"):
        (folder / "__init__.py").touch()
    assert source_folder(package / "deep" / "solver.py") == package
    assert source_folder(tmp_path / "script.py") == tmp_path
    assert house._source_folder(shuffle.py_func if JIT else shuffle.__wrapped__) == PACKAGE
    # A script's hash does not walk the tree below it, which may be a home folder.
    before = house._hash_sources(tmp_path)
    (package / "deep" / "solver.py").write_text("# compiled\n")
    assert house._hash_sources(tmp_path) == before
    (tmp_path / "other.py").write_text("# compiled\n")
    assert house._hash_sources(tmp_path) != before


@needs_compiler
def test_the_compilers_own_settings_are_left_alone():
    import numba

    before = numba.config.CACHE_DIR
    compiled(_nothing)
    assert numba.config.CACHE_DIR == before


def _nothing():
    return 0


# -------------------------------------------------------------------------------------------- without a compiler

INTERPRETED = """
import importlib, pkgutil
import numpy as np
import slackwater
from slackwater.compiled import JIT
assert not JIT
import slackwater.solvers, slackwater.objective, slackwater.rows, slackwater.models, slackwater.data
for module in pkgutil.walk_packages(slackwater.__path__, "slackwater."):
    if not module.name.startswith("slackwater.cli") and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from slackwater.objective import certify, hinge, linear_problem
from slackwater.rows import as_rows
from slackwater.solvers.registry import make_solver
z = np.array([(1.0, 0.0), (0.6, 0.8), (-0.2, 0.4), (0.5, -0.5)])
problem = linear_problem(as_rows(z), np.ones(4), hinge(), C=2.5)
solver = make_solver("dcd")
state = solver.start(problem, np.random.default_rng(0))
solver.advance(problem, state)
print(certify(problem, state.w, solver.dual_point(problem, state)).certificate.primal)
"""


def test_the_whole_package_runs_without_the_compiler():
    assert float(run_python(INTERPRETED, PACKAGE.parent, NUMBA_DISABLE_JIT="1")) == pytest.approx(0.496875, rel=1e-9)
