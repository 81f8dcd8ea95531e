"""The driver of sparsifiers: what it measures, what it chooses, when it ends."""

import os
import signal
import threading
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from slackwater.models.several import Frame, Output, outputs_of
from slackwater.objective.kernels import Kernel
from slackwater.rows import DenseRows, as_rows, take
from slackwater.sparsify import contract, driver
from slackwater.sparsify.contract import Small, Sparsifier, Teacher
from slackwater.sparsify.curve import Curve, Point
from slackwater.sparsify.driver import Budget, bytes_of, sparsify
from slackwater.sparsify.holdout import Across, Holdout
from slackwater.sparsify.refit import refit
from slackwater.sparsify.registry import make_sparsifier, sparsifier_classes, sparsifiers
from slackwater.sparsify.several import sparsify_together
from slackwater.sparsify.slant import Slant
from slackwater.sparsify.slant_aggressive import SlantAggressive
from sparsifying import RBF, clouds, matrix_of, teacher, teacher_of, values_of


@pytest.fixture(autouse=True)
def _only_for_this_test(monkeypatch):
    """What a test defines is forgotten after it."""
    sparsifier_classes()
    monkeypatch.setattr(contract, "_REGISTERED", dict(contract._REGISTERED))


@pytest.fixture(scope="module")
def found() -> Teacher:
    return teacher(n=120)


def held_out(n=90, seed=6, weights=None) -> Holdout:
    table = clouds(n, 4, seed, weighted=False)
    return Holdout(as_rows(table.X), table.labels, weights)


def scripted(sizes, after=lambda: None):
    """A method that passes by predictors of these sizes: of its first rows, all with the coefficient 1."""

    @dataclass(frozen=True)
    class Scripted(Sparsifier):
        name: ClassVar[str] = "scripted"
        paper: ClassVar[str] = "Nobody, 2001"

        def sequence(self, teacher, most, rng):
            for size in sizes:
                if size <= most:
                    yield Small(np.ones(size), 0.0, np.arange(size))
                after()

    return Scripted()


def test_points_are_what_they_say(found):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 90)
    holdout = held_out(weights=weights)
    result = sparsify(found, Slant(), holdout, settings=[Slant()])
    K, y = matrix_of(found), found.problem.labels
    smalls = {small.size: small for small in Slant().sequence(found, 120, None)}
    assert len(result.curve) > 5 and result.curve[0].support == 0
    for point in result.curve[1:]:
        small = smalls[point.support]
        own, held = values_of(found, small), small.model(found).decision_values(holdout.rows)
        assert point.train_error == pytest.approx(np.mean((own > 0) != (y > 0)))
        wrong = (held > 0) != (holdout.labels > 0)
        assert point.holdout_error == pytest.approx(weights @ wrong / weights.sum())
        assert point.n_bytes == small.model(found).n_bytes
        heights = np.minimum(1.0, y * found.values)
        assert point.shortfall == pytest.approx((heights - y * own)[y * found.values > 0].max(), abs=1e-9)
    assert result.before.support == found.model.n_support and result.before.shortfall <= 1e-9
    assert result.before.n_bytes == found.model.n_bytes
    assert [p.evaluations for p in result.curve] == sorted(p.evaluations for p in result.curve)
    assert result.point.evaluations <= 120 * 120 + 120 * 90
    columns = result.curve.columns()
    assert set(columns) == set(Point._fields) and columns["support"].dtype.kind == "i"
    assert K.shape == (120, 120)


def test_looks_lie_on_a_ladder(found):
    result = sparsify(found, scripted(range(30)), held_out(), settings=[scripted(range(30))])
    assert [p.support for p in result.curve] == [0, 0, 1, 2, 3, 4, 6, 8, 12, 16, 23, 29]
    few = sparsify(found, scripted(range(30)), held_out(), Budget(max_support=7), settings=[scripted(range(30))])
    assert [p.support for p in few.curve][-2:] == [6, 7]
    gaps = sparsify(found, scripted([5, 20]), held_out(), settings=[scripted([5, 20])])
    assert [p.support for p in gaps.curve] == [0, 5, 20]


def test_the_fewest_errors_within_the_limits_are_chosen(found):
    result = sparsify(found, SlantAggressive(), held_out(), Budget(max_support=15), rng=0)
    assert result.point.holdout_error == min(p.holdout_error for p in result.curve)
    assert result.point.support == result.small.size <= 15 and max(p.support for p in result.curve) <= 15
    assert result.method == SlantAggressive().grid(found)[result.point.setting]
    assert str(result.status).startswith(f"holdout error {result.point.holdout_error:.2%} with ")
    assert result.status.code == "chosen"


def test_the_smallest_within_the_increase_is_chosen(found):
    holdout = held_out()
    result = sparsify(found, Slant(), holdout, Budget(max_error_increase=0.05), rng=0)
    allowed = [p for p in result.curve if p.holdout_error <= result.before.holdout_error + 0.05 + 1e-12]
    assert result.point.support == min(p.support for p in allowed)
    never = sparsify(found, Slant(), holdout, Budget(max_support=0, max_error_increase=0.0), rng=0)
    assert never.status.code == "missed" and "no error is within 0.00% of the dense" in str(never.status)


def test_bytes_are_kept_to_and_are_those_of_the_model(found):
    result = sparsify(found, Slant(), held_out(), Budget(max_bytes=700), settings=[Slant()])
    assert result.small.model(found).n_bytes == result.point.n_bytes <= 700
    assert max(p.n_bytes for p in result.curve) > 600
    for rows in (found, teacher_of(_sparse(), found.problem.labels[:40])):
        ids = np.array([1, 4, 7])
        assert bytes_of(rows, ids, 1) == Small(np.ones(3), 0.0, ids).model(rows).n_bytes


def _sparse():
    import scipy.sparse as sp

    wide = sp.random_array((40, 200_000), density=1e-4, rng=np.random.default_rng(0), format="csr")
    return sp.csr_array(wide)


def test_kernel_values_with_the_holdout_are_computed_once(found):
    holdout, calls = held_out(), []
    across = Across(found, holdout.rows)
    small = Small(np.array([1.0, -2.0]), 0.5, np.array([3, 50]))
    for _ in range(2):
        assert across.values(small) == pytest.approx(small.model(found).decision_values(holdout.rows), abs=1e-12)
        calls.append(across.evaluations)
    assert calls == [180, 180]
    across._most = 64  # narrow room
    for start in range(0, 110, 10):
        ids = np.arange(start, start + 10)
        part = Small(np.ones(10), 0.0, ids)
        assert across.values(part) == pytest.approx(part.model(found).decision_values(holdout.rows), abs=1e-12)
    everything = Small(np.ones(120), 0.0, np.arange(120))
    expected = everything.model(found).decision_values(holdout.rows)
    assert across.values(everything) == pytest.approx(expected, abs=1e-11)


def test_rows_far_from_the_origin_keep_their_place():
    table = clouds(60, 4, 5, weighted=False)
    far = table.X + 1e4  # such rows are kept around their mean
    found = teacher_of(far, table.labels, dtype=np.float32)
    assert isinstance(found.gram.points.centre, np.ndarray)
    assert found.values == pytest.approx(teacher_of(table.X, table.labels).values, abs=1e-3)
    small = list(Slant().sequence(found, 5, None))[-1]
    assert values_of(found, small) == pytest.approx(small.model(found).decision_values(far), abs=1e-5)
    across = Across(found, as_rows(far))
    assert across.values(small) == pytest.approx(values_of(found, small), abs=1e-5)


def test_virtual_vectors(found):
    rows = take(found.given, np.array([2, 3]))

    @dataclass(frozen=True)
    class Virtual(Sparsifier):
        name: ClassVar[str] = "virtual"
        paper: ClassVar[str] = "Nobody, 2001"
        virtual: ClassVar[bool] = True

        def sequence(self, teacher, most, rng):
            yield Small(np.array([1.0, -1.0]), 0.25, None, DenseRows(rows.values + 0.1, 0.0))

    result = sparsify(found, Virtual(), held_out(), settings=[Virtual()])
    assert result.curve[-1].support == 2 and result.curve[-1].n_bytes == 2 * (4 * 8 + 8 + 8) + 8


def test_time_runs_out_with_the_best_so_far(found):
    result = sparsify(found, Slant(), held_out(), Budget(max_time=1e-9), rng=0)
    assert result.status.code == "max_time" and str(result.status).startswith("time limit of ")
    assert result.small.size == 0 and result.point is result.curve[0]


def test_ctrl_c_returns_the_best_so_far(found):
    pressed = []

    def press():
        if len(pressed) == 0:
            os.kill(os.getpid(), signal.SIGINT)
        pressed.append(1)

    method = scripted(range(1, 100), press)
    result = sparsify(found, method, held_out(), settings=[method])
    assert result.status.code == "interrupted" and len(pressed) <= 2 and len(result.curve) >= 2


def test_watchers_see_every_point_and_may_stop(found):
    seen = []
    stop = threading.Event()
    result = sparsify(
        found, Slant(), held_out(), settings=[Slant()], stop=stop,
        watchers=[lambda p: seen.append(p), lambda p: p.support >= 4],
    )  # fmt: skip
    assert seen == list(result.curve) and result.curve[-1].support == 4
    assert str(result.status).startswith("stopped by an observer: ")


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"max_support": -1}, "max_support must be a whole number of at least 0 or None, got -1"),
        ({"max_bytes": 2.5}, "max_bytes must be a whole number"),
        ({"max_error_increase": 1.5}, "max_error_increase must be a share between 0 and 1 or None, got 1.5"),
        ({"max_time": 0.0}, "max_time must be positive or None, got 0.0"),
    ],
)
def test_wrong_limits(limits, sentence):
    with pytest.raises(ValueError, match=sentence):
        Budget(**limits)


def test_the_front_of_a_curve():
    def point(support, error):
        return Point(support, 0, 0.0, error, 0.0, 0, 0.0, 0)

    curve = Curve([point(8, 0.2), point(2, 0.5), point(4, 0.2), point(16, 0.1), point(4, 0.3)])
    assert [(p.support, p.holdout_error) for p in curve.front()] == [(2, 0.5), (4, 0.2), (16, 0.1)]


def test_the_registry():
    assert {"slant", "slant-aggressive"} <= set(sparsifier_classes())
    assert [line["name"] for line in sparsifiers()] == list(sparsifier_classes())
    assert make_sparsifier("slant", eps=0.25).eps == 0.25
    with pytest.raises(ValueError, match="method='slent' is not known; the methods are "):
        make_sparsifier("slent")
    with pytest.raises(ValueError, match="method 'slant' has no setting 'epsilon'; its settings are eta, eps, bias"):
        make_sparsifier("slant", epsilon=0.1)
    with pytest.raises(TypeError, match="two sparsifiers are called 'slant': "):
        type("Other", (Sparsifier,), {"name": "slant", "__module__": "third.party"})
    assert driver.describe(Point(1, 0, 0, 0.25, 0, 0, 0, 0), Point(9, 0, 0, 0.2, 0, 0, 0, -1)) == (
        "holdout error 25.00% with 1 support vector, 20.00% with 9"
    )


# ------------------------------------------------------------------------------------------ several outputs, refits


@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
def test_the_refit_is_optimal_in_its_span(bias):
    found = teacher(n=60, bias=bias)
    ids = np.arange(0, 60, 5)
    small = refit(found, ids)
    K, y, costs = matrix_of(found), found.problem.labels, found.problem.costs

    def objective(beta, b):
        short = np.maximum(0.0, 1.0 - y * (K[:, ids] @ beta + b))
        return 0.5 * beta @ K[np.ix_(ids, ids)] @ beta + costs @ short**2

    best, rng = objective(small.coefficients, small.bias), np.random.default_rng(0)
    for _ in range(50):
        other = small.coefficients + 0.1 * rng.normal(size=ids.size)
        assert objective(other, small.bias + 0.1 * rng.normal() * (bias == "free")) >= best * (1.0 - 1e-12)
    twice = refit(found, np.repeat(ids, 2))  # equal vectors add nothing
    assert np.array_equal(np.unique(twice.ids), small.ids) and twice.size == small.size


@pytest.mark.parametrize("paired", [False, True])
def test_outputs_are_put_together_and_taken_apart(paired):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(12, 3)), np.repeat([0, 1, 2], 4)
    rows = as_rows(X)
    frame = Frame(RBF, 0.0, np.array(["a", "b", "c"]), codes, paired, lambda ids: take(rows, ids))
    allowed = [np.arange(8), np.r_[0:4, 8:12], np.arange(4, 12)] if paired else [np.arange(12)] * 3
    outputs = [Output(rng.choice(of, 5, replace=False), rng.normal(size=5), float(rng.normal())) for of in allowed]
    model = frame.together(outputs)
    values = model.decision_values(X)
    for number, (output, alone) in enumerate(zip(outputs, outputs_of(model), strict=True)):
        expected = np.exp(-0.3 * ((X[:, None] - X[output.ids]) ** 2).sum(-1)) @ output.coefficients + output.bias
        assert values[:, number] == pytest.approx(expected, abs=1e-9)
        assert alone.decision_values(X) == pytest.approx(expected, abs=1e-9)
        assert sorted(alone.support) == sorted(output.ids)


def test_virtual_vectors_are_not_shared():
    class Virtual(Slant):
        name: ClassVar[str] = "virtual"
        virtual: ClassVar[bool] = True

    with pytest.raises(ValueError, match="method 'virtual' makes vectors of its own"):
        sparsify_together([], None, Virtual(), Budget())


def test_a_precomputed_kernel_has_no_rows_to_show():
    plain = teacher(n=40)
    K = matrix_of(plain)
    found = teacher_of(K, plain.problem.labels, Kernel("precomputed"))
    assert found.squared_norm == pytest.approx(plain.squared_norm, rel=1e-4)
    for first, second in zip(Slant().sequence(found, 9, None), Slant().sequence(plain, 9, None), strict=True):
        assert first.size == second.size
        assert first.model(found).decision_values(K) == pytest.approx(values_of(found, first), abs=1e-9)


def test_values_of_a_teacher_that_was_trained_on_the_same_matrix_come_from_its_rows():
    dense = teacher()
    here = replace(dense, trained_here=True)
    evaluations = here.gram.evaluations
    assert here.values == pytest.approx(dense.values, rel=1e-6, abs=1e-6)
    assert here.gram.evaluations == evaluations  # the rows are still there
