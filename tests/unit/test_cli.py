"""The command, run in this process: what it prints, what it writes, what it answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from slackwater.cli import main
from slackwater.cli.files import default_model
from slackwater.cli.labels import class_numbers, label_texts
from slackwater.cli.output import count, gap_text, seconds, size
from slackwater.models import load
from slackwater.objective import certify, hinge, linear_problem
from slackwater.rows import as_rows
from slackwater.solvers.registry import solver_classes

SOURCES = Path(__file__).resolve().parents[2] / "src"


def write_lines(path: Path, X: np.ndarray, labels) -> Path:
    """svmlight text, by no code of the project."""
    lines = [
        f"{label} {' '.join(f'{j + 1}:{value:.6g}' for j, value in enumerate(row) if value)}\n"
        for label, row in zip(labels, X, strict=True)
    ]
    path.write_text("".join(lines))
    return path


def two_blobs(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    return (rng.standard_normal((n, 4)) + 0.8 * y[:, None]).round(4), y


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder with ``two.svm`` and ``three.svm`` in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    X, y = two_blobs()
    write_lines(tmp_path / "two.svm", X, y)
    words = np.where(X[:, 0] > 0.8, "tea", np.where(X[:, 1] > 0, "milk", "rum"))
    write_lines(tmp_path / "three.svm", X, words)
    return tmp_path


def ran(capsys, *arguments: str, code: int = 0) -> str:
    """stdout of the command, which must exit with ``code`` and, if that is 0, say nothing on stderr."""
    capsys.readouterr()
    assert main(arguments) == code
    told = capsys.readouterr()
    if code == 0:
        assert told.err == ""
    return told.out


# -------------------------------------------------------------------------------------------------------- train


def test_train_saves_a_model_whose_certificate_holds(folder, capsys):
    out = ran(capsys, "train", "two.svm", "--C", "0.5", "--tol", "0.01", "--bias", "none")
    model = load("two.model")
    (saved,) = model.meta["certificates"]
    X, y = two_blobs()
    problem = linear_problem(as_rows(X.astype(np.float32)), y, hinge(), C=0.5)
    primal = certify(problem, np.append(model.coef[0], 0.0)).certificate.primal
    assert primal == pytest.approx(saved["primal"], rel=1e-9)
    assert saved["dual"] <= primal <= 1.01 * saved["dual"]
    assert "proven lower bound" in out and "<= 0.01" in out and "dcd: " in out
    assert "120 rows, 4 columns" in out and "train error" in out and "two.model" in out


def test_train_prints_a_certificate_for_each_class(folder, capsys):
    out = ran(capsys, "train", "three.svm", "--test", "three.svm", "-o", "drinks")
    assert load("drinks").classes.tolist() == ["milk", "rum", "tea"]
    assert [line.split()[0] for line in out.splitlines() if line.strip().endswith("converged")] == [
        "milk",
        "rum",
        "tea",
    ]
    assert "the worst of 3" in out
    errors = [line.split()[2] for line in out.splitlines() if line.startswith(("train error", "test error"))]
    assert len(errors) == 2 and errors[0] == errors[1]


def test_columns_are_counted_in_other_files_as_in_the_training_file(folder, capsys):
    Path("from0.svm").write_text("1 0:1 1:1\n-1 1:1 2:2\n")
    Path("no0.svm").write_text("-1 1:1 2:2\n1 1:1\n")  # read by itself it would count from 1
    ran(capsys, "train", "from0.svm", "-o", "model")
    assert load("model").meta["trained"]["base"] == 0
    values = [
        float(line.split()[1])
        for line in ran(capsys, "predict", "model", "no0.svm", "--decision-values").split("\n")[:2]
    ]
    model = load("model")
    expected = model.decision_values(np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 0.0]], dtype=np.float32))
    assert values == pytest.approx(expected.tolist())
    for order in (("no0.svm", "from0.svm"), ("from0.svm", "no0.svm")):
        ran(capsys, "train", order[0], "--test", order[1], "-o", "both")
        assert load("both").meta["trained"]["base"] == 0
    ran(capsys, "train", "no0.svm", "--base", "0", "-o", "told")
    assert load("told").meta["trained"]["base"] == 0 and load("told").n_columns == 3


def test_train_as_json(folder, capsys):
    answer = json.loads(ran(capsys, "train", "three.svm", "--json", "--seed", "3"))
    assert [problem["class"] for problem in answer["problems"]] == ["milk", "rum", "tea"]
    for problem in answer["problems"]:
        assert problem["lower_bound"] <= problem["primal"] and problem["relative_gap"] <= 1e-3
    worst = max(problem["relative_gap"] for problem in answer["problems"])
    assert answer["certificate"]["relative_gap"] == worst
    assert (
        answer["data"]["rows"] == 120 and answer["status"]["code"] == "converged" and answer["model"] == "three.model"
    )


def test_train_is_reproducible_and_quiet(folder, capsys):
    first = ran(capsys, "train", "two.svm", "-q", "-o", "a", "--seed", "5")
    second = ran(capsys, "train", "two.svm", "-q", "-o", "b", "--seed", "5")
    assert first == second and len(first.splitlines()) == 2
    assert np.array_equal(load("a").coef, load("b").coef)


def test_a_limit_reached_is_said_and_no_error(folder, capsys):
    out = ran(capsys, "train", "two.svm", "--tol", "0", "--max-rounds", "1", "--C", "100")
    assert "limit of 1 rounds" in out.replace("round,", "rounds,") and "would help" in out
    assert load("two.model").n_columns == 4


def test_settings_reach_the_solver_and_the_model(folder, capsys):
    ran(
        capsys,
        "train",
        "two.svm",
        "--solver",
        "dcd",
        "--set",
        "shrinking=off",
        "--loss",
        "huber:0.25",
        "--bias",
        "free",
    )
    meta = load("two.model").meta
    assert meta["trained"]["settings"] == {"shrinking": False}
    assert (meta["loss"], meta["intercept"], meta["solver"]) == ("huber:0.25", "free", "dcd")


def test_class_weights_validation_and_columns(folder, capsys):
    ran(capsys, "train", "two.svm", "--class-weight", "balanced", "--validation", "0.2", "--columns", "9", "-q")
    assert load("two.model").n_columns == 9


def test_a_wider_test_file_widens_the_model(folder, capsys):
    X, y = two_blobs(30, seed=1)
    write_lines(folder / "wide.svm", np.hstack([X, np.ones((30, 2))]), y)
    assert "test error" in ran(capsys, "train", "two.svm", "--test", "wide.svm")
    assert load("two.model").n_columns == 6


def test_the_parts_of_an_archive(folder, capsys):
    (X, y), (X_test, y_test) = two_blobs(), two_blobs(40, seed=1)
    np.savez("two.npz", train_X=X, train_y=y, test_X=X_test, test_y=y_test)
    trained = json.loads(ran(capsys, "train", "two.npz", "--test", "two.npz", "--json"))
    tested = json.loads(ran(capsys, "evaluate", "two.model", "two.npz", "--json"))
    again = json.loads(ran(capsys, "evaluate", "two.model", "two.npz", "--json", "--part", "train"))
    assert (trained["data"]["rows"], tested["rows"], again["rows"]) == (120, 40, 120)
    assert trained["errors"] == {"train": again["error"], "test": tested["error"]}
    assert "40 rows, 4 columns" in ran(capsys, "info", "two.npz", "--part", "test")
    assert len(ran(capsys, "predict", "two.model", "two.npz").splitlines()) == 40


def test_query_ids_are_counted(folder, capsys):
    (folder / "ranked.svm").write_text("1 qid:1 1:1\n2 qid:1 1:2\n1 qid:7 1:3\n")
    assert json.loads(ran(capsys, "info", "ranked.svm", "--json"))["queries"] == 2
    assert "queries" in ran(capsys, "info", "ranked.svm")


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("a9a", "a9a.model"),
        ("x/a9a.svm", "a9a.model"),
        ("b.txt.gz", "b.model"),
        ("news20.binary", "news20.binary.model"),
        (".gz", ".gz.model"),
    ],
)
def test_the_name_of_the_model(data, model):
    assert str(default_model(data)) == model


# -------------------------------------------------------------------------------------------- predict, evaluate


def test_predict_writes_labels_as_in_training(folder, capsys):
    ran(capsys, "train", "three.svm")
    out = ran(capsys, "predict", "three.model", "three.svm")
    ran(capsys, "predict", "three.model", "three.svm", "-o", "labels.txt")
    assert (folder / "labels.txt").read_text() == out
    assert len(out.splitlines()) == 120 and set(out.split()) <= {"milk", "rum", "tea"}


def test_predicted_numbers_are_written_as_numbers(folder, capsys):
    ran(capsys, "train", "two.svm")
    assert set(ran(capsys, "predict", "two.model", "two.svm").split()) == {"-1", "1"}


@pytest.mark.parametrize(("data", "values"), [("two", 1), ("three", 3)])
def test_decision_values_are_those_of_the_model(folder, capsys, data, values):
    ran(capsys, "train", f"{data}.svm")
    lines = ran(capsys, "predict", f"{data}.model", f"{data}.svm", "--decision-values").splitlines()
    printed = np.array([line.split()[1:] for line in lines], dtype=float)
    X = two_blobs()[0].astype(np.float32)
    assert printed.shape == (120, values)
    assert np.allclose(printed.squeeze(), load(f"{data}.model").decision_values(X), rtol=1e-12, atol=1e-12)


def test_evaluate_counts_what_was_taken_for_what(folder, capsys):
    ran(capsys, "train", "three.svm")
    answer = json.loads(ran(capsys, "evaluate", "three.model", "three.svm", "--json"))
    predicted = np.array(ran(capsys, "predict", "three.model", "three.svm").split())
    true = np.array([line.split()[0] for line in (folder / "three.svm").read_text().splitlines()])
    names = ["milk", "rum", "tea"]
    expected = [[int(((true == a) & (predicted == b)).sum()) for b in names] for a in names]
    assert answer["confusion"] == expected
    assert answer["error"] == (true != predicted).mean() and answer["unseen"] == 0
    for k, line in enumerate(answer["classes"]):
        assert line["recall"] == pytest.approx(expected[k][k] / sum(expected[k]))
        assert line["precision"] == pytest.approx(expected[k][k] / sum(row[k] for row in expected))


def test_evaluate_as_tables(folder, capsys):
    ran(capsys, "train", "three.svm")
    out = ran(capsys, "evaluate", "three.model", "three.svm")
    assert "precision" in out and "true \\ predicted" in out and all(len(line) <= 80 for line in out.splitlines()[2:])


def test_unseen_labels_count_as_errors_and_are_named(folder, capsys):
    ran(capsys, "train", "two.svm")
    X, y = two_blobs(10, seed=2)
    write_lines(folder / "new.svm", X, [7, "+1", *y[2:]])
    capsys.readouterr()
    assert main(["evaluate", "two.model", "new.svm", "--json"]) == 0
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert answer["unseen"] == 1 and answer["wrong"] >= 1 and sum(map(sum, answer["confusion"])) == 9
    assert told.err.count("\n") == 1 and "(7)" in told.err and "not trained on" in told.err


def test_labels_that_mean_the_same_are_the_same():
    assert class_numbers(np.array(["+1", "-1", "x"]), np.array([-1.0, 1.0])).tolist() == [1, 0, -1]
    assert class_numbers(np.array([1.0, 2.5]), np.array(["1", "2.5"])).tolist() == [0, 1]
    assert label_texts(np.array([1.0, 2.5, -3.0])).tolist() == ["1", "2.5", "-3"]


# -------------------------------------------------------------------------------------------------- info, solvers


def test_info_of_a_model_tells_its_certificate(folder, capsys):
    ran(capsys, "train", "two.svm", "--C", "0.5")
    out = ran(capsys, "info", "two.model")
    facts = json.loads(ran(capsys, "info", "two.model", "--json"))
    (problem,) = facts["problems"]
    assert problem["text"] in out and "C 0.5" in out and "two.svm: 120 rows" in out
    assert facts["columns"] == 4 and facts["meta"]["solver"] == "dcd"
    ran(capsys, "train", "three.svm")
    assert [line["class"] for line in json.loads(ran(capsys, "info", "three.model", "--json"))["problems"]] == [
        "milk", "rum", "tea",
    ]  # fmt: skip
    assert "milk" in ran(capsys, "info", "three.model")


def test_info_of_data_tells_the_labels(folder, capsys):
    facts = json.loads(ran(capsys, "info", "three.svm", "--json"))
    assert {line["label"] for line in facts["labels"]} == {"milk", "rum", "tea"}
    assert sum(line["rows"] for line in facts["labels"]) == facts["rows"] == 120
    out = ran(capsys, "info", "three.svm")
    assert "120 rows, 4 columns" in out and "milk" in out


def test_the_table_of_solvers_is_the_registry(capsys):
    table = json.loads(ran(capsys, "solvers", "--json"))
    assert [line["name"] for line in table] == list(solver_classes())
    out = ran(capsys, "solvers")
    assert all(name in out for name in solver_classes())


@pytest.mark.parametrize("name", list(solver_classes()))
def test_a_solver_shows_its_algorithm(capsys, name):
    out = ran(capsys, "solvers", name)
    header = sys.modules[solver_classes()[name].__module__].__doc__
    assert header.strip().splitlines()[0] in out
    for setting in solver_classes()[name]().settings():
        assert setting in out


# --------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("command", ["", "train", "predict", "evaluate", "info", "solvers", "demo"])
def test_help_teaches_within_80_columns(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    out = ran(capsys, *command.split(), "--help")
    assert "Examples" in out and f"slackwater {command}".strip() in out
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())


def test_version(capsys):
    from slackwater import __version__

    assert ran(capsys, "--version") == f"slackwater {__version__}\n"


def test_help_starts_without_the_compiler():
    code = (
        "import sys; from slackwater.cli import main; code = main(['train', '--help']);"
        "print([m for m in ('numba', 'sklearn', 'scipy') if m in sys.modules], code, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.strip() == "[] 0"


def test_numbers_for_people():
    assert count(1, "row") == "1 row" and count(32561, "row") == "32,561 rows"
    assert gap_text(0.00987) == "0.987%" and gap_text(float("inf")) == "unbounded"
    assert size(812) == "812 bytes" and size(1_250_000) == "1.2 MB" and size(3e12) == "3.0 TB"
    assert seconds(0.01234) == "0.0123 s" and seconds(123.4) == "123 s"


# ------------------------------------------------------------------------------------------------------ the demo


@pytest.mark.slow
def test_the_demo_at_a_small_size(capsys, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))  # of the other process
    out = ran(capsys, "demo", "--rows", "2000", "--columns", "3000")
    assert "200 of 200 predictions are the same" in out
    assert "ratio" in out and "LinearSVC(C=1.0, tol=0.01)" in out
    certified = re.findall(r"^certificate +primal ([\d.]+), proven lower bound ([\d.]+),", out, re.MULTILINE)
    assert len(certified) == 1 and float(certified[0][1]) <= float(certified[0][0]) <= 1.011 * float(certified[0][1])


def test_the_generated_set_is_what_it_says():
    from slackwater.cli.textlike import text_like

    rows, labels = text_like(1500, 5000, seed=4)
    again, same = text_like(1500, 5000, seed=4)
    assert np.array_equal(rows.values, again.values) and np.array_equal(labels, same)
    lengths = np.diff(rows.indptr)
    assert rows.values.dtype == np.float32 and lengths.min() > 0 and 40 < lengths.mean() < 80
    sums = np.add.reduceat(rows.values.astype(float) ** 2, rows.indptr[:-1])
    assert np.allclose(sums, 1.0, atol=1e-5)
    steps = np.diff(rows.indices.astype(np.int64))
    inside = np.ones(steps.size, dtype=bool)
    inside[rows.indptr[1:-1] - 1] = False
    assert (steps[inside] > 0).all() and rows.indices.max() < 5000
    assert abs(labels.mean()) < 0.01 and not np.array_equal(labels, text_like(1500, 5000, seed=5)[1])
    frequency = np.sort(np.bincount(rows.indices, minlength=5000))[::-1]
    assert frequency[0] > 10 * frequency[100]
