"""What goes wrong on the command line: one line on stderr, the right exit code, nothing half written, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slackwater.cli import errors, main
from slackwater.models import LinearModel, load, save

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "slackwater"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"}
GOOD = "1 1:1 2:0.5\n-1 1:-1 3:2\n1 2:1\n-1 3:1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A current folder with good data, bad data and a model of three columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLACKWATER_DEBUG", raising=False)
    texts = {
        "good.svm": GOOD,
        "broken.svm": "1 1:1\n-1 2:oops\n",
        "nan.svm": "1 1:nan\n-1 1:1\n",
        "one.svm": "1 1:1\n1 2:1\n",
        "wide.svm": "1 1:1 9:1\n-1 2:1\n",
        "other.svm": "cat 1:1\ndog 2:1\n",
        "empty.svm": "",
        "text.model": "not a model\n",
        "short.model": "x",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sub").mkdir()
    save(LinearModel(np.ones((1, 3)), np.zeros(1), np.array([-1.0, 1.0])), tmp_path / "good.model")
    return tmp_path


CASES = [
    # arguments, exit code, what the line names
    ("train missing.svm", 1, "missing.svm"),
    ("train sub", 1, "sub"),
    ("train broken.svm", 1, "line 2"),
    ("train nan.svm", 1, "nan"),
    ("train one.svm", 1, "one class"),
    ("train empty.svm", 1, "empty.svm"),
    ("train good.svm --test missing.t", 1, "missing.t"),
    ("train good.svm -o nowhere/x.model", 1, "nowhere"),
    ("train good.svm -o sub", 1, "folder"),
    ("train good.svm -o good.svm", 2, "input"),
    ("train good.svm --solver nosuch", 2, "nosuch"),
    ("train good.svm --loss nosuch", 2, "nosuch"),
    ("train good.svm --loss hinge:2", 2, "hinge"),
    ("train good.svm --solver dcd --set nosuch=1", 2, "nosuch"),
    ("train good.svm --solver dcd --set shrinking=perhaps", 2, "shrinking"),
    ("train good.svm --solver dcd --set shrinking", 2, "key=value"),
    ("train good.svm --set shrinking=true", 2, "--solver"),
    ("train good.svm --C 0", 2, "--C"),
    ("train good.svm --C nan", 2, "--C"),
    ("train good.svm --C much", 2, "--C"),
    ("train good.svm --tol -1", 2, "--tol"),
    ("train good.svm --bias nosuch", 2, "nosuch"),
    ("train good.svm --validation 1.5", 2, "--validation"),
    ("train good.svm --jobs 0", 2, "--jobs"),
    ("train good.svm --nosuch", 2, "--nosuch"),
    ("train good.svm --columns 2", 1, "good.svm"),
    ("train", 2, "DATA"),
    ("nosuch", 2, "nosuch"),
    ("solvers nosuch", 2, "nosuch"),
    ("predict missing.model good.svm", 1, "missing.model"),
    ("predict text.model good.svm", 1, "text.model"),
    ("predict short.model good.svm", 1, "short.model"),
    ("predict good.svm good.svm", 1, "good.svm"),
    ("predict sub good.svm", 1, "sub"),
    ("predict good.model missing.svm", 1, "missing.svm"),
    ("predict good.model broken.svm", 1, "line 2"),
    ("predict good.model wide.svm", 1, "wide.svm"),
    ("predict good.model good.svm -o nowhere/x", 1, "nowhere"),
    ("predict good.model good.svm -o good.model", 2, "input"),
    ("evaluate good.model other.svm", 1, "other.svm"),
    ("evaluate good.model wide.svm", 1, "wide.svm"),
    ("info missing", 1, "missing"),
    ("info missing.model", 1, "missing.model"),
    ("info sub", 1, "sub"),
    ("info short.model", 1, "short.model"),
]


@pytest.mark.parametrize(("arguments", "code", "named"), CASES, ids=[case[0] for case in CASES])
def test_one_line_and_the_right_code(folder, capsys, arguments, code, named):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert main(arguments.split()) == code
    told = capsys.readouterr().err
    assert told.startswith("slackwater: ") and told.count("\n") == 1 and named.lower() in told.lower()
    assert "Traceback" not in told and "Errno" not in told and "unexpected" not in told
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_unsupported_bias_is_wrong_usage(folder, capsys):
    from slackwater.solvers.registry import solver_classes

    unable = [name for name, cls in solver_classes().items() if "free" not in cls.biases]
    for name in unable:
        assert main(["train", "good.svm", "--solver", name, "--bias", "free"]) == 2
        assert "solvers that can" in capsys.readouterr().err
    assert not list(folder.glob("good*.model.part")) and load(folder / "good.model").meta == {}


def test_a_cut_model_is_said_to_be_damaged(folder, capsys):
    whole = (folder / "good.model").read_bytes()
    (folder / "cut.model").write_bytes(whole[:-5])
    assert main(["info", "cut.model"]) == 1
    assert "cut.model" in capsys.readouterr().err
    changed = bytearray(whole)
    changed[-3] ^= 255
    (folder / "changed.model").write_bytes(changed)
    assert main(["predict", "changed.model", "good.svm"]) == 1
    assert "damaged" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", ["train good.svm -o /dev/full", "predict good.model good.svm -o /dev/full"])
def test_a_full_disk(folder, capsys, arguments):
    assert main(arguments.split()) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "/dev/full" in told and "No space left" in told


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="every folder can be written by this user")
def test_a_folder_without_permission_is_found_before_training(folder, capsys):
    (folder / "sub").chmod(0o500)
    assert main(["train", "missing.svm", "-o", "sub/x.model"]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_an_unexpected_error_is_one_line_and_can_show_its_traceback(folder, capsys, monkeypatch):
    def broken(*arguments, **more):
        raise RuntimeError("the\nunthinkable")

    monkeypatch.setattr("slackwater.cli.info.read_table", broken)
    assert main(["info", "good.svm"]) == 1
    told = capsys.readouterr().err
    assert told == (
        "slackwater: unexpected RuntimeError: the unthinkable (SLACKWATER_DEBUG=1 shows where it came from)\n"
    )
    with pytest.raises(RuntimeError):
        main(["--debug", "info", "good.svm"])
    monkeypatch.setenv("SLACKWATER_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["info", "good.svm"])


def test_errors_by_kind():
    def judged(error):
        return errors._judged(error)

    assert judged(MemoryError()) == (1, "not enough memory")
    assert judged(KeyboardInterrupt()) == (130, "interrupted")
    assert judged(BrokenPipeError()) == (141, "")
    assert judged(PermissionError(13, "Permission denied", "a.svm")) == (1, "a.svm: Permission denied")


def test_warnings_are_lines(capsys):
    import warnings

    def warn_twice():
        warnings.warn("look out", UserWarning, stacklevel=1)
        warnings.warn("look out", UserWarning, stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert errors.guarded(warn_twice) == 0
    assert capsys.readouterr().err == "slackwater: warning: look out\n"


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_a_missing_extra_is_named(module):
    code = f"import sys; sys.modules[{module!r}] = None; from slackwater.cli import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1
    assert done.stderr == "slackwater: the command needs typer and rich: pip install 'slackwater[cli]'\n"


# ------------------------------------------------------------------------------------------------ real processes


def test_exit_code_and_stderr_of_a_process(folder):
    done = subprocess.run([*COMMAND, "train", "broken.svm"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "broken.svm, line 2" in done.stderr


def test_a_closed_pipe_is_quiet(folder):
    (folder / "many.svm").write_text("1 1:1\n" * 200_000)
    process = subprocess.Popen(
        [*COMMAND, "predict", "good.model", "many.svm"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout.readline() == "1\n"
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


INTERRUPTED_IN_ROUND_3 = """
import os, signal, sys
from slackwater.cli import main
from slackwater.solvers.linear.dcd import DCD

advance, rounds = DCD.advance, []

def advance_and_press_ctrl_c(self, problem, state):
    advance(self, problem, state)
    rounds.append(1)
    if len(rounds) == 3:
        os.kill(os.getpid(), signal.SIGINT)

DCD.advance = advance_and_press_ctrl_c
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.parametrize(("classes", "jobs"), [(2, "1"), (4, "1"), (4, "2")])
def test_ctrl_c_saves_the_model_so_far(folder, classes, jobs):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)).round(3), rng.integers(0, classes, 300)
    lines = (
        f"{label} {' '.join(f'{j}:{value}' for j, value in enumerate(row, 1))}" for label, row in zip(y, X, strict=True)
    )
    (folder / "slow.svm").write_text("\n".join(lines) + "\n")
    arguments = ["train", "slow.svm", "--C", "1e6", "--tol", "0", "--jobs", jobs]
    command = [sys.executable, "-c", INTERRUPTED_IN_ROUND_3, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stdout and "certificate" in done.stdout
    assert done.stderr == "slackwater: interrupted\n"
    model = load(folder / "slow.model")
    assert {status["code"] for status in model.meta["statuses"]} == {"interrupted"}
    assert model.n_outputs == (1 if classes == 2 else classes)


@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_ctrl_c_before_training_leaves_nothing(folder, capsys, monkeypatch):
    def pressed(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("slackwater.cli.train.read_table", pressed)
    assert main(["train", "good.svm", "-o", "new.model"]) == 130
    assert capsys.readouterr().err == "slackwater: interrupted\n"
    assert not (folder / "new.model").exists()
