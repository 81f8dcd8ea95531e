"""Checkpoints: written at certified rounds and at the end, whole or not at all, and good to go on from."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from problems import random_problem
from scripted import Clock, Notes, Scripted, Step
from slackwater.models import LinearModel, ModelFileError, load, save
from slackwater.objective import hinge, lower_bound
from slackwater.objective.certificate import BoxPoint
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.sgd_s import SGDS
from slackwater.training import Checkpoint, Checkpoints, Limits, run

CHECKPOINT = importlib.import_module("slackwater.training.checkpoint")


def larger_problem():
    return random_problem(5, hinge(), "penalised", n=3000, d=40)


def test_a_checkpoint_reads_back_as_it_was(tmp_path):
    point = Checkpoint(np.array([0.0, 0.5, 1.0]), 0.75, 0.5, 17)
    save(point, tmp_path / "point.slackwater")
    back = load(tmp_path / "point.slackwater")
    assert (back.primal, back.dual, back.round) == (0.75, 0.5, 17)
    np.testing.assert_array_equal(back.alpha, point.alpha)


@pytest.mark.parametrize("alpha", [np.zeros(4), np.zeros((3, 1)), np.zeros(3, dtype=np.float32)])
def test_a_dual_point_that_does_not_fit_the_files_facts_is_refused(alpha, tmp_path, monkeypatch):
    right = Checkpoint(np.zeros(3), 1.0, 0.0, 1).parts()
    monkeypatch.setattr(Checkpoint, "parts", lambda checkpoint: right._replace(tensors={"alpha": alpha}))
    save(Checkpoint(alpha, 1.0, 0.0, 1), tmp_path / "wrong")
    with pytest.raises(ModelFileError, match=r"wrong.*alpha has the shape"):
        load(tmp_path / "wrong")


@pytest.mark.parametrize("solver", [DCD(), SGDS()], ids=lambda solver: solver.name)
def test_a_run_goes_on_from_where_another_was_ended(solver, tmp_path):
    problem, path = larger_problem(), tmp_path / "run.slackwater"
    first = run(problem, solver, Limits(tol=1e-9, max_rounds=20), rng=0, observers=[Checkpoints(path)])
    point = load(path)
    assert first.status.code == "max_rounds" and (point.primal, point.round) == (first.certificate.primal, 20)
    assert lower_bound(problem, BoxPoint(point.alpha)) == pytest.approx(point.dual) and point.dual > 0
    tol = 1.01 * first.certificate.relative_gap
    cold = run(problem, solver, Limits(tol=tol, certify_every=1), rng=1)
    warm = run(problem, solver, Limits(tol=tol, certify_every=1), rng=1, alpha=point.alpha)
    assert warm.status.converged and warm.rounds < cold.rounds


def test_checkpoints_keep_their_distance(tmp_path, monkeypatch):
    clock, path = Clock(), tmp_path / "run.slackwater"
    clock.module.monotonic = clock.module.perf_counter
    monkeypatch.setattr(CHECKPOINT, "time", clock.module)
    written = []
    monkeypatch.setattr(CHECKPOINT, "save", lambda checkpoint, to: written.append((checkpoint.round, to)))
    solver = Scripted([Step(0.5, 0.5)], each_round=lambda number: clock.pass_seconds(10.0))
    run(random_problem(3, hinge()), solver, Limits(max_rounds=14, certify_every=2), observers=[Checkpoints(path, 60.0)])
    assert written == [(6, path), (12, path), (14, path)]


def test_a_run_without_a_bound_leaves_no_file(tmp_path):
    path, notes = tmp_path / "run.slackwater", Notes()
    observers = [Checkpoints(path, 0.0), notes]
    run(random_problem(3, hinge()), Scripted([Step(-1.0, -1.0)]), Limits(max_rounds=3), observers=observers)
    assert notes.finished[0].alpha is None and list(tmp_path.iterdir()) == []


def test_a_checkpoint_is_no_model(tmp_path):
    save(Checkpoint(np.zeros(3), 1.0, 0.0, 1), tmp_path / "point")
    assert isinstance(load(tmp_path / "point"), Checkpoint) and not isinstance(load(tmp_path / "point"), LinearModel)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        run(larger_problem(), DCD(), rng=0, observers=[Checkpoints(tmp_path / "nowhere" / "run")])
