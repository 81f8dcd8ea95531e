"""The rules of the house: file sizes, who may import whom, what the head of a file says."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import slackwater
from slackwater.compiled import JIT
from slackwater.solvers import contract
from slackwater.solvers.registry import solver_classes

PACKAGE = Path(slackwater.__file__).parent
ROOT = PACKAGE.parent.parent
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 400


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def sources() -> list[Path]:
    folders = [ROOT / folder for folder in ("src", "tests", "benchmarks", "examples", "docs")]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def test_the_house_is_found():
    assert len(MODULES) > 20
    assert PACKAGE / "compiled.py" in MODULES


@pytest.mark.parametrize("path", sources(), ids=name)
def test_no_file_is_longer_than_one_reads(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_every_module_begins_with_what_is_inside(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        assert path.name == "__init__.py"
        return
    first = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    assert len(first) > 10


def test_only_one_file_touches_the_compiler():
    touching = {p for p in MODULES if any(m.split(".")[0] in ("numba", "llvmlite") for m in imported_modules(p))}
    assert touching == {PACKAGE / "compiled.py"}


def test_nothing_is_left_for_later():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b|except[^\n]*:\s*pass\b")
    left = [name(p) for p in sources() if p != Path(__file__) and marks.search(p.read_text(encoding="utf-8"))]
    assert left == []


def test_types_are_published():
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.skipif(find_spec("importlinter") is None, reason="import-linter is not installed")
def test_imports_only_point_up():
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert f"Contracts: {len(contracts)} kept, 0 broken" in done.stdout


@pytest.mark.parametrize("solver", solver_classes().values(), ids=lambda cls: cls.name)
def test_a_solvers_head_says_what_it_solves_and_what_it_costs(solver):
    family = [inspect.getmodule(cls) for cls in solver.__mro__ if cls.__module__.startswith("slackwater.solvers.")]
    head = "\n".join(inspect.getdoc(module) for module in family if module is not contract)
    for word in ("Problem", "Update", "State", "Cost", "Certificate"):
        assert re.search(rf"^{word}\b", head, re.MULTILINE), f"the head of {solver.__module__} has no {word}"
    assert re.search(r"\b(19|20)\d\d\b", solver.paper)
    assert solver.name == solver.name.lower()
    assert inspect.getdoc(solver)


@pytest.mark.skipif(not JIT, reason="the compiler's own modules are loaded either way")
def test_the_package_itself_imports_nothing_heavy():
    text = "import sys, slackwater; print([m for m in ('numba', 'scipy', 'sklearn', 'numpy') if m in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
