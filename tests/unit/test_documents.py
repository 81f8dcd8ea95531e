"""README.md and CONTRIBUTING.md say what is so: their code runs, their output is real, their table is the registry."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> list[tuple[str, str]]:
    """The code blocks in these languages, in order: language and content."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, content) for language, content in found if language in languages]


def shape(text: str) -> list[str]:
    """The lines that matter of some output, with every number and the space between words made the same."""
    text = re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", re.sub("─+", "─", text))
    text = re.sub(r"# rounds?\b", "# rounds", text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line]


def check_python(code: str, names: dict, capsys) -> None:
    """Run it; where a printed line has a comment, that is what it prints."""
    capsys.readouterr()
    exec(compile(code, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert shape(printed) == shape("\n".join(promised))


def check_console(session: str, capsys) -> None:
    """Run the commands; their output is what stands below them."""
    for command, promised in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        words = shlex.split(command)
        assert words[0] == "slackwater"
        capsys.readouterr()
        assert main(words[1:]) == 0
        assert shape(capsys.readouterr().out) == shape(promised), command


def test_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    names: dict = {}
    ran = blocks(README, "python", "console")
    assert {language for language, _ in ran} == {"python", "console"}
    for language, content in ran:
        if language == "python":
            check_python(content, names, capsys)
        else:
            check_console(content, capsys)


def test_the_table_of_solvers_is_the_registry(capsys):
    assert main(["solvers", "--markdown"]) == 0
    table = capsys.readouterr().out
    shown = re.search(r"<!-- solvers -->\n(.*?)<!-- end -->", README, re.DOTALL)
    assert shown is not None and shown[1].strip() == table.strip(), "put `slackwater solvers --markdown` into README.md"


def test_the_certificate_that_is_explained_is_the_one_printed():
    (explained,) = re.findall(r"^    (primal .*)$", README, re.MULTILINE)
    assert f"print(svm.certificate_)  # {explained}\n" in README


def test_links_and_make_targets_exist():
    for text in (README, CONTRIBUTING):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / target).exists(), target
        makefile = (ROOT / "Makefile").read_text()
        for target in re.findall(r"\bmake (\w+)", "".join(content for _, content in blocks(text, "sh"))):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert "proven lower bound" in capsys.readouterr().out


@pytest.fixture(scope="module")
def third_party(tmp_path_factory):
    """A folder with a package that has CONTRIBUTING.md's solver, as an installation would leave it."""
    folder = tmp_path_factory.mktemp("site")
    ((_, code),) = blocks(CONTRIBUTING, "python")
    ((_, entry_point),) = blocks(CONTRIBUTING, "toml")
    found = re.search(r'entry-points\."(.*)"\]\n(.*) = "(.*)\.(.*)"', entry_point)
    assert found is not None
    group, name, package, module = found.groups()
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("")
    (folder / package / f"{module}.py").write_text(code)
    facts = folder / f"{package}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = {package}.{module}\n")
    return folder


SCRIPT = """
import json, sys
import numpy as np
from scipy.sparse import csr_array
from slackwater.objective import hinge, linear_problem
from slackwater.rows import as_rows
from slackwater.solvers.registry import make_solver, solvers
from slackwater.training import Limits, run

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 5))
y = np.where(X @ rng.standard_normal(5) + 0.5 * rng.standard_normal(200) > 0, 1.0, -1.0)
solver = make_solver("batch-subgradient")
answers = []
for table in (X, csr_array(X)):
    for bias in ("none", "penalised"):
        problem = linear_problem(as_rows(table), y, hinge(), 0.1, bias=bias)
        wanted = run(problem, make_solver("dcd"), Limits(tol=1e-6), rng=0).certificate
        got = run(problem, solver, Limits(tol=0.02, max_rounds=5000), rng=0)
        c = got.certificate
        answers.append([c.primal, c.dual, wanted.primal, wanted.dual, got.status.code])
names = [line["name"] for line in solvers()]
print(json.dumps({"answers": answers, "names": names}))
"""


def test_the_solver_of_contributing_is_found_and_certified(third_party):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(third_party)])}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "batch-subgradient" in told["names"]
    for primal, dual, best_primal, best_dual, status in told["answers"]:
        assert status == "converged" and primal <= 1.02 * dual
        assert dual <= best_primal and best_dual <= primal


def test_the_solver_of_contributing_keeps_the_style(third_party):
    """As ruff has it, where that is installed."""
    pytest.importorskip("ruff")
    (source,) = third_party.glob("*/batch_subgradient.py")
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", str(ROOT / "pyproject.toml"), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
