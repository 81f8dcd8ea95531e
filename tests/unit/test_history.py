"""The history of a run: one record per certificate, as columns, and the forecast that is read off it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from problems import random_problem
from slackwater.objective import hinge
from slackwater.solvers.linear.dcd import DCD
from slackwater.training import History, Holdout, Limits, Record, run
from slackwater.training.history import forecast


@pytest.fixture(scope="module")
def answer():
    """A run of several dozen certified rounds."""
    problem = random_problem(5, hinge(), "penalised", n=4000, d=60)
    holdout = Holdout(problem.rows, problem.labels)
    return run(problem, DCD(), Limits(tol=1e-6, certify_every=1), rng=0, holdout=holdout)


def test_it_grows_in_time_and_work_and_its_gap_falls(answer):
    columns = answer.history.columns()
    for name in ("round", "epochs", "updates", "inner_products", "seconds", "seconds_outside"):
        assert (np.diff(columns[name]) >= 0).all(), name
    for name in ("gap", "relative_gap"):
        assert (np.diff(columns[name]) <= 0).all(), name
    assert (columns["round"] == np.arange(1, answer.rounds + 1)).all() and answer.rounds > 5
    assert columns["seconds"][0] > 0 and columns["seconds_outside"][0] > 0
    assert columns["updates"][0] > 0 and (columns["updates"] <= columns["inner_products"]).all()


def test_every_record_is_of_its_own_round(answer):
    columns = answer.history.columns()
    assert (columns["dual"] <= answer.certificate.primal).all() and (columns["primal"] >= answer.certificate.dual).all()
    best = np.minimum.accumulate(columns["primal"]) - np.maximum.accumulate(columns["dual"])
    np.testing.assert_allclose(columns["gap"], best, rtol=0, atol=1e-15)
    assert columns["relative_gap"][-1] == answer.certificate.relative_gap
    assert columns["epochs"][-1] == answer.epochs


def test_the_columns_make_a_data_frame(answer):
    frame = pd.DataFrame(answer.history.columns())
    assert list(frame.columns) == list(Record.__dataclass_fields__) and len(frame) == len(answer.history)
    assert frame["round"].dtype == np.int64 and frame["primal"].dtype == np.float64
    assert frame["holdout_error"].between(0.0, 1.0).all()
    assert frame.iloc[3].to_dict() == vars(answer.history[3])


def test_without_a_holdout_its_error_is_not_a_number():
    answer = run(random_problem(5, hinge()), DCD(), rng=0)
    assert all(math.isnan(record.holdout_error) for record in answer.history)


def test_no_records_are_columns_without_lines():
    columns = History().columns()
    assert list(columns) == list(Record.__dataclass_fields__) and all(len(c) == 0 for c in columns.values())
    assert math.isnan(History().seconds_to(1e-3))


# ------------------------------------------------------------------------------------------------- the forecast


@pytest.mark.parametrize("count", [2, 3, 4, 10])
def test_a_gap_that_falls_evenly_is_forecast_exactly(count):
    points = [(2.0 * k, 10.0**-k) for k in range(count)]
    assert forecast(points, 10.0 ** -(count + 4)) == pytest.approx(2.0 * 5)


def test_a_gap_that_is_reached_needs_no_more_time():
    assert forecast([(0.0, 1.0), (1.0, 1e-4)], 1e-3) == 0.0


def test_the_rate_is_that_of_the_later_half():
    early, late = [(k, 10.0**-k) for k in range(4)], [(4.0 + 10 * k, 10.0 ** -(4 + k)) for k in range(4)]
    assert forecast(early + late, 1e-8) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("points", "tol"),
    [
        ([], 1e-3),
        ([(1.0, 0.5)], 1e-3),
        ([(1.0, 0.5), (2.0, 0.5)], 1e-3),  # no progress
        ([(1.0, 0.5), (2.0, 0.7)], 1e-3),
        ([(1.0, 0.5), (1.0, 0.1)], 1e-3),  # no time
        ([(1.0, 0.5), (2.0, 0.1)], 0.0),  # never
        ([(1.0, math.inf), (2.0, 0.1)], 1e-3),  # no bound yet
        ([(1.0, math.nan), (2.0, 0.1)], 1e-3),
    ],
)
def test_what_cannot_be_known_is_not_forecast(points, tol):
    assert math.isnan(forecast(points, tol))


def test_gaps_that_are_no_numbers_yet_are_left_out():
    assert forecast([(0.0, math.inf), (1.0, 1e-1), (2.0, 1e-2)], 1e-4) == pytest.approx(2.0)


def test_a_history_forecasts_by_both_clocks():
    records = [Record(k, k, 2.0 * k, 1.0 * k, 1.0, 0.0, 1.0, 10.0**-k, math.nan, 0, 0) for k in range(4)]
    assert History(records).seconds_to(1e-5) == pytest.approx(3.0 * 2)
