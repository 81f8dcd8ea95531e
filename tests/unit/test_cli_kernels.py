"""The command with kernels: train, predict, evaluate, info, and what does not go together."""

import json

import numpy as np
import pytest

from slackwater import SVC
from slackwater.cli import main
from slackwater.models import KernelModel, load
from slackwater.solvers.contract import tasks_of
from slackwater.solvers.registry import solver_classes

from .test_cli import folder, ran, two_blobs, write_lines  # noqa: F401


@pytest.fixture
def data(folder):  # noqa: F811
    """The folder of the command's tests."""
    return folder


def test_train_with_a_kernel(data, capsys):
    out = ran(capsys, "train", "two.svm", "--kernel", "rbf", "--gamma", "0.5", "--C", "2", "--tol", "1e-5")
    model = load("two.model")
    assert isinstance(model, KernelModel) and model.kernel.name == "rbf" and model.kernel.gamma == 0.5
    assert "proven lower bound" in out and "blocked-smo: " in out and "train error" in out
    X, y = two_blobs()
    svm = SVC(gamma=0.5, C=2.0, tol=1e-5).fit(X.astype(np.float32), y)
    assert model.decision_values(X) == pytest.approx(svm.decision_function(X), abs=1e-2)
    assert model.meta["intercept"] == "free" and model.meta["trained"]["rows"] == 120


def test_every_option_reaches_the_estimator(data, capsys):
    ran(
        capsys, "train", "three.svm", "--kernel", "poly", "--gamma", "auto", "--degree", "2", "--coef0", "1.5",
        "--cache-mb", "3", "--multi-class", "ovr", "--bias", "penalised", "--loss", "huber", "--class-weight",
        "balanced", "--solver", "blocked-smo", "--set", "size=32",
    )  # fmt: skip
    model = load("three.model")
    assert (model.kernel.gamma, model.kernel.coef0, model.kernel.degree) == (0.25, 1.5, 2)
    assert model.blocks is None and model.shift == 1.0 and model.n_outputs == 3
    assert model.meta["trained"]["settings"] == {"size": 32} and model.meta["loss"].startswith("huber")


def test_nu_is_the_batch_perceptrons(data, capsys):
    kernel = ("--kernel", "rbf", "--gamma", "0.5")
    out = ran(capsys, "train", "two.svm", *kernel, "--solver", "sbp", "--nu", "0.05", "--max-rounds", "3")
    assert "sbp" in out and load("two.model").meta["trained"]["settings"] == {"nu": 0.05}


@pytest.mark.parametrize(("kind", "labels"), [("ovo", ["milk or rum", "milk or tea", "rum or tea"]),
                                              ("ovr", ["milk", "rum", "tea"])])  # fmt: skip
def test_models_of_several_classes(data, capsys, kind, labels):
    out = ran(capsys, "train", "three.svm", "--kernel", "rbf", "--gamma", "0.3", "--multi-class", kind)
    assert all(label in out for label in labels) and "the worst of 3" in out
    answer = json.loads(ran(capsys, "train", "three.svm", "--kernel", "rbf", "--gamma", "0.3", "--multi-class", kind,
                            "--json"))  # fmt: skip
    assert [problem["class"] for problem in answer["problems"]] == labels
    model, X = load("three.model"), two_blobs()[0]
    predicted = ran(capsys, "predict", "three.model", "three.svm").split()
    assert predicted == model.predict(X.astype(np.float32)).tolist()
    lines = ran(capsys, "predict", "three.model", "three.svm", "--decision-values").splitlines()
    values = np.array([line.split()[1:] for line in lines], dtype=float)
    assert values == pytest.approx(model.decision_values(X.astype(np.float32)), rel=1e-9, abs=1e-9)
    tested = json.loads(ran(capsys, "evaluate", "three.model", "three.svm", "--json"))
    assert tested["error"] == answer["errors"]["train"]
    facts = json.loads(ran(capsys, "info", "three.model", "--json"))
    assert [problem["class"] for problem in facts["problems"]] == labels
    assert facts["support_vectors"] == model.n_support
    told = ran(capsys, "info", "three.model")
    assert "rbf gamma=0.3" in told and "support vector" in told and labels[0] in told and "kernel, 3 outputs" in told


def test_limits_are_said(data, capsys):
    out = ran(capsys, "train", "two.svm", "--kernel", "rbf", "--solver", "blocked-smo", "--set", "size=2", "--tol",
              "0", "--max-rounds", "1")  # fmt: skip
    assert "limit of 1 round" in out and "would help" in out
    assert main(["train", "two.svm", "--kernel", "rbf", "--max-time", "0.0001", "--tol", "0", "-q"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--gamma", "1"), "--gamma needs a --kernel"),
        (("--degree", "2"), "--degree needs a --kernel"),
        (("--coef0", "0"), "--coef0 needs a --kernel"),
        (("--cache-mb", "10"), "--cache-mb needs a --kernel"),
        (("--multi-class", "ovo"), "--multi-class ovo needs a --kernel"),
        (("--kernel", "rbf", "--multi-class", "crammer_singer", "--solver", "smo"), "task 'kernel-multiclass'"),
        (("--kernel", "rbf", "--penalty", "l1"), "--penalty l1 is for linear classifiers"),
        (("--multi-class", "crammer_singer", "--solver", "dcd"), "solver 'dcd' does not treat task 'multiclass'"),
        (("--solver", "blocked-smo"), "solver 'blocked-smo' does not treat task 'classification'"),
        (("--kernel", "rbf", "--solver", "dcd"), "solver 'dcd' does not treat task 'kernel'; solvers that can: "),
        (("--kernel", "rbf", "--validation", "0.1"), "--validation is for linear classifiers"),
        (("--kernel", "rbf", "--gamma", "wide"), "'wide' is neither scale nor auto nor a number of at least 0"),
        (("--kernel", "rbf", "--gamma", "-1"), "is neither scale nor auto nor a number"),
        (("--kernel", "rbf", "--cache-mb", "nan"), "is neither auto nor a number"),
        (("--kernel", "precomputed"), "precomputed"),
        (("--kernel", "rbf", "--nu", "0.01"), "--nu is a setting of sbp: it needs --solver sbp"),
        (("--kernel", "rbf", "--loss", "logistic"), "loss='logistic' is not known"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together_is_refused_before_files_are_read(data, capsys, arguments, sentence):
    assert main(["train", "nothing.svm", *arguments]) == 2
    told = capsys.readouterr()
    assert sentence in " ".join(told.err.replace("│", " ").split()) and told.out == ""


def test_data_that_the_kernel_is_not_defined_for(data, capsys):
    assert main(["train", "two.svm", "--kernel", "chi2"]) == 1
    assert "kernel='chi2' needs values of at least 0" in capsys.readouterr().err


def test_solvers_show_their_tasks(capsys):
    out = ran(capsys, "solvers", "blocked-smo")
    assert "slackwater train DATA --kernel rbf --solver blocked-smo --set size=2048" in " ".join(out.split())
    table = json.loads(ran(capsys, "solvers", "--json"))
    assert {line["name"]: line["task"] for line in table} == {
        name: ", ".join(tasks_of(cls)) for name, cls in solver_classes().items()
    }
    assert "| task |" in ran(capsys, "solvers", "--markdown") and "kernel" in ran(capsys, "solvers")
