"""One entry for all formats: by the ending, of estimators, models and files; and the two commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import slackwater
from slackwater import LinearSVC, export, import_model, load, save
from slackwater.cli import main
from slackwater.data import read, write_svmlight
from slackwater.export import ExportError, kind_of
from slackwater.models import KernelModel, LinearModel, VotedModel
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

RNG = np.random.default_rng(4)
ROWS = RNG.uniform(-1.0, 1.0, (40, 3))
LINEAR = LinearModel(np.array([[1.0, -2.0, 0.5]]), np.array([0.25]), np.array([0, 1]))
KERNEL = KernelModel(
    Kernel("rbf", 0.5), as_rows(ROWS[:8]), RNG.standard_normal((1, 8)), np.zeros(1), np.arange(8), np.array([0, 1])
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    save(LINEAR, "linear.model")
    save(KERNEL, "kernel.model")
    write_svmlight("rows.svm", ROWS, LINEAR.predict(ROWS))
    return tmp_path


def ran(capsys, *arguments: str, code: int = 0) -> str:
    """stdout of the command, or its line on stderr where it must fail."""
    capsys.readouterr()
    assert main(arguments) == code
    told = capsys.readouterr()
    assert (told.err == "") == (code == 0) and told.err.count("\n") <= 1
    return told.err if code else told.out


# -------------------------------------------------------------------------------------------------- the function


@pytest.mark.parametrize("ending", [".h", ".json", ".libsvm", ".liblinear", ".model"])
def test_the_ending_tells_the_format(folder, ending):
    written = export(LINEAR, f"out{ending}")
    assert written.n_bytes == os.path.getsize(f"out{ending}") and str(written).startswith(f"out{ending}: ")
    assert written.format == {".h": "c99", ".model": "liblinear"}.get(ending, ending[1:])
    if ending == ".h":
        assert "out_predict" in Path("out.h").read_text() and kind_of("out.h") is None
    else:
        assert kind_of(f"out{ending}") == written.format
        assert import_model(f"out{ending}").decision_values(ROWS) == pytest.approx(LINEAR.decision_values(ROWS))


def test_models_estimators_and_files_are_taken(folder):
    machine = LinearSVC(C=1.0, random_state=0).fit(ROWS, LINEAR.predict(ROWS))
    for source in (machine, machine.model_):
        export(source, "a.json")
        assert (import_model("a.json").coef == machine.coef_).all()
    export("kernel.model", "b.model")
    assert kind_of("b.model") == "libsvm"


def test_the_package_can_be_called_like_its_function(folder):
    import_module("slackwater.export.c99")
    assert slackwater.export(LINEAR, "a.h").flash == export(LINEAR, "b.h").flash
    command = "from slackwater import export; from slackwater.export import c99_text; import slackwater; " \
              "assert callable(export) and callable(slackwater.export)"  # fmt: skip
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", command], check=True, env=environment)


def test_whole_numbers_are_measured(folder):
    X = ROWS.astype(np.float32)
    on_vectors, on_rows = export(KERNEL, "m.h", numbers="int8"), export(KERNEL, "m.h", numbers="int8", X=X)
    assert on_vectors.measured == 8 and on_rows.measured == 40
    assert 0.0 < on_rows.error < 0.1 and "decision values within" in str(on_rows)
    assert export(KERNEL, "m.h", numbers="int16", X=X).error < 0.02 * on_rows.error
    assert export(LINEAR, "m.h", numbers="int8", span=(-1.0, 1.0)).error is None
    assert export(LINEAR, "m.h").error is None
    assert on_rows.flash < export(KERNEL, "m.h").flash


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"path": "m.txt"}, "names no format; say format=, or end it with .h"),
        ({"format": "pmml"}, "the formats are c99, onnx, json, libsvm, liblinear"),
        ({"format": "json", "numbers": "float32"}, "holds the very numbers of the model"),
        ({"format": "json", "span": (0.0, 1.0)}, "for the whole numbers of c99"),
        ({"name": "über"}, "a letter, then letters"),
        ({"numbers": "float64"}, "C has float32, int16, int8|C has float32, int8, int16"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_no_file(folder, arguments, sentence):
    with pytest.raises(ExportError, match=sentence):
        export(LINEAR, **{"path": "m.h", **arguments})
    assert not Path("m.h").exists()


def test_models_that_do_not_export_are_named(folder):
    voted = VotedModel(KERNEL, np.arange(3), np.ones(3), np.ones(3), np.array([3]))
    with pytest.raises(ExportError, match="a VotedModel cannot be exported"):
        export(voted, "m.h")
    with pytest.raises(ExportError, match="fit it first"):
        export(LinearSVC(), "m.h")
    with pytest.raises(ValueError, match="X has 2 columns"):
        export(KERNEL, "m.h", numbers="int8", X=ROWS[:, :2])


# -------------------------------------------------------------------------------------------------- the commands


def test_export_tells_flash_and_ram(folder, capsys):
    out = ran(capsys, "export", "kernel.model", "-o", "k.h", "--name", "svm")
    assert "svm_predict" in Path("k.h").read_text()
    flash = export(KERNEL, "again.h").flash
    assert f"{flash:,} bytes of tables" in out and "bytes of arrays on the stack" in out
    facts = json.loads(
        ran(capsys, "export", "kernel.model", "-o", "k.h", "--numbers", "int8", "--data", "rows.svm", "--json")
    )
    assert facts["rows_measured"] == 40 and 0.0 < facts["largest_error"] < 0.1 and facts["flash_bytes"] < flash
    assert "within" in ran(capsys, "export", "kernel.model", "-o", "k.h", "--numbers", "int16")
    assert "flash" in ran(capsys, "export", "linear.model", "-o", "l.h", "--numbers", "int8", "--span", "-1", "1")


@pytest.mark.parametrize("ending", ["json", "libsvm", "liblinear"])
def test_models_go_out_and_come_back(folder, capsys, ending):
    ran(capsys, "export", "linear.model", "-o", f"out.{ending}")
    assert "3 columns" in ran(capsys, "convert", f"out.{ending}", "-o", "back.model", "--columns", "3")
    assert load("back.model").decision_values(ROWS) == pytest.approx(LINEAR.decision_values(ROWS))
    ran(capsys, "predict", "back.model", "rows.svm", "-o", "a.txt")
    ran(capsys, "predict", "linear.model", "rows.svm", "-o", "b.txt")
    assert Path("a.txt").read_text() == Path("b.txt").read_text()


def test_examples_are_converted(folder, capsys):
    assert "40 rows" in ran(capsys, "convert", "rows.svm", "-o", "rows.npz")
    ran(capsys, "convert", "rows.npz", "-o", "again.svm")
    first, last = read("rows.svm"), read("again.svm")
    assert (first.X != last.X).nnz == 0 and (first.y == last.y).all()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("export", "kernel.model", "-o", "k.liblinear"), 2, "cannot say the kernel rbf; it can say linear"),
        (("export", "kernel.model", "-o", "k.foo"), 2, "names no format"),
        (("export", "kernel.model", "-o", "kernel.model"), 2, "is the input"),
        (("export", "linear.model", "-o", "l.h", "--numbers", "int8"), 2, "need the range of the data"),
        (("export", "rows.svm", "-o", "l.h"), 1, "not a slackwater model"),
        (("convert", "kernel.model", "-o", "k.npz"), 2, "slackwater export"),
        (("convert", "rows.svm", "-o", "k.model"), 2, "no model of LIBSVM"),
        (("convert", "nothing.svm", "-o", "k.model"), 1, "there is no file"),
    ],
)
def test_what_cannot_be_is_one_line(folder, capsys, arguments, code, sentence):
    assert sentence in ran(capsys, *arguments, code=code)
