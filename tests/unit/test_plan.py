"""``plan`` and the choice of a solver: facts, reasons, forecasts that grow with what makes fits longer."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater import LinearSVC, plan
from slackwater.cli import main
from slackwater.objective import loss_family, parse_loss
from slackwater.rows import as_rows
from slackwater.solvers.choice import Facts, choose_linear, facts_of
from slackwater.solvers.forecast import PACES, forecast
from slackwater.solvers.registry import solver_classes


def facts(**changes) -> Facts:
    known = Facts(30_000, 100, 400_000, True, 4, 14.0, 1.0, parse_loss("hinge"), "penalised", 1e-3, None, 1)
    return known._replace(**changes)


def clouds(n=400, d=5, classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    return rng.normal(size=(n, d)) + y[:, None], y


def test_facts_are_those_of_the_rows():
    X, _ = clouds()
    known = facts_of(as_rows(X), C=2, loss=parse_loss("hinge"), bias="free", tol=0.1, max_time=3.0, n_outputs=4)
    assert known[:5] == (400, 5, 2000, False, 8) and known.mean_square == pytest.approx((X**2).sum(axis=1).mean())
    assert known[6:] == (2.0, parse_loss("hinge"), "free", 0.1, 3.0, 4)
    long = np.repeat(X, 20, axis=0)  # looked at in a sample
    sampled = facts_of(as_rows(sp.csr_array(long)), C=1, loss=parse_loss("hinge"), bias="none", tol=0.1)
    assert sampled.sparse and sampled.mean_square == pytest.approx((X**2).sum(axis=1).mean(), rel=0.1)


def test_the_choice_is_a_solver_that_can_with_a_reason():
    for loss in ("hinge", "squared_hinge", "smoothed_hinge", "huber:0.1"):
        for bias in ("none", "penalised", "free"):
            name, reason = choose_linear(facts(loss=parse_loss(loss), bias=bias))
            solver = solver_classes()[name]
            assert loss_family(parse_loss(loss)) in solver.losses and bias in solver.biases
            assert "30,000 rows" in reason and loss.split(":")[0] in reason
    assert set(PACES) <= set(solver_classes())


@pytest.mark.parametrize(
    "harder",
    [{"C": 10.0}, {"tol": 1e-4}, {"n_rows": 60_000, "n_entries": 800_000}, {"mean_square": 140.0}, {"n_outputs": 5}],
)
def test_forecasts_grow_with_what_makes_fits_longer(harder):
    assert forecast("dcd", facts(**harder)).seconds > 1.2 * forecast("dcd", facts()).seconds


def test_threads_share_the_outputs_and_a_limit_bounds_the_seconds():
    one, two = (forecast("dcd", facts(n_outputs=6), threads) for threads in (1, 2))
    assert two.seconds == pytest.approx(one.seconds / 2) and two.n_bytes == 2 * one.n_bytes
    assert forecast("dcd", facts(max_time=0.01)).seconds == 0.01
    extreme = forecast("dcd", facts(C=1e300, tol=0.0))
    assert math.isfinite(extreme.seconds)


def test_nothing_is_said_of_what_was_not_measured():
    expected = forecast("sgd-s", facts())
    assert math.isnan(expected.seconds) and math.isnan(expected.epochs) and expected.n_bytes > 0
    assert "unknown seconds" in str(plan(*clouds(), solver="sgd-s"))


# The measured epochs of benchmarks/forecast_constants.py: rows, mean squared norm, C, tol, epochs.
MEASURED = [
    (49749, 11.65, 0.1, 0.01, 3), (49749, 11.65, 10, 0.001, 69), (32561, 13.869, 1, 0.001, 25),
    (32561, 13.869, 10, 0.01, 56), (11314, 1.0, 10, 0.001, 23), (60000, 87.81, 1, 0.01, 47),
    (60000, 87.81, 10, 0.001, 1374), (581012, 22.744, 10, 0.01, 128),
]  # fmt: skip


@pytest.mark.parametrize("n, square, C, tol, epochs", MEASURED)
def test_epochs_are_as_measured_within_a_factor_of_three(n, square, C, tol, epochs):
    expected = forecast("dcd", facts(n_rows=n, mean_square=square, C=C, tol=tol)).epochs
    assert epochs / 3.0 < expected < epochs * 3.0


def test_a_plan_is_what_a_fit_does():
    X, y = clouds(classes=3)
    answer = plan(X, y, C=0.1, tol=0.01)
    svm = LinearSVC(C=0.1, tol=0.01).fit(X, y)
    assert (answer.solver, answer.reason) == (svm.solver_, svm.solver_reason_)
    text = str(answer)
    assert text.splitlines()[0].split() == ["data", "400", "rows,", "5", "columns,", "dense,", "100%", "stored"]
    assert "dcd: fewest passes" in text and "for each of 3 classes" in text and "memory beside the data" in text
    assert ", the limit" in str(plan(X, y, C=1e6, tol=1e-9, max_time=0.1))


def test_memory_counts_copies_of_the_data():
    X, y = clouds()
    assert plan(X.astype(np.int64), y).n_bytes == plan(X, y).n_bytes + X.size * 8
    assert plan(sp.csc_array(X), y).n_bytes > plan(sp.csr_array(X), y).n_bytes - 1


@pytest.mark.parametrize(
    "options, words",
    [
        ({"C": -1.0}, "C must be positive and finite"),
        ({"tol": -1.0}, "tol must be"),
        ({"loss": "log"}, "log"),
        ({"solver": "none"}, "solver='none' is not known"),
        ({"max_time": 0}, "max_time must be positive"),
    ],
)
def test_wrong_parameters(options, words):
    with pytest.raises(ValueError, match=words):
        plan(*clouds(), **options)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    X, y = clouds(n=40)
    lines = [
        f"{label} {' '.join(f'{j + 1}:{v:.4g}' for j, v in enumerate(x))}\n" for label, x in zip(y, X, strict=True)
    ]
    (tmp_path / "two.svm").write_text("".join(lines))
    assert main(["plan", "two.svm"]) == 0
    text = capsys.readouterr().out
    assert "40 rows, 5 columns" in text and "dcd: fewest passes" in text and "about" in text
    assert main(["plan", "two.svm", "--json", "--max-time", "1", "--bias", "free", "--solver", "sgd-s"]) == 2
    assert "does not treat bias 'free'" in capsys.readouterr().err
    assert main(["plan", "two.svm", "--json", "--C", "10"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["solver"] == "dcd" and answer["forecast"]["seconds"] > 0 and answer["data"]["rows"] == 40
    assert not list(tmp_path.glob("*.model"))


def test_cutting_planes_are_chosen_for_filled_rows_at_a_large_C():
    """And nowhere else: small data, wide rows, other losses and a free intercept stay with coordinate descent."""
    X = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    y = np.where(X[:, 0] > 0.0, 1, 0)
    assert plan(X, y, C=10.0).solver == "ocas"
    assert "well filled" in plan(X, y, C=10.0).reason
    assert plan(X, y, C=0.01).solver == "dcd"
    assert plan(X[:1000], y[:1000], C=10.0).solver == "dcd"
    assert plan(X, y, C=10.0, loss="squared_hinge").solver == "dcd"
    assert plan(X, y, C=10.0, fit_intercept="free").solver == "dcd"
    sparse = sp.random_array((20_000, 2000), density=0.01, rng=np.random.default_rng(1), format="csr")
    assert plan(sparse, y, C=10.0).solver == "dcd"
