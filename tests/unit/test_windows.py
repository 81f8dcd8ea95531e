"""Windows of epochs: which snapshots are kept, which window is found, and that its bound holds."""

import math

import numpy as np
import pytest

from problems import optimum, random_problem
from slackwater.objective import hinge, lower_bound
from slackwater.solvers.windows import Sums, Windows, squared_distance, window_bound, window_point

LAM, N = 0.1, 6


def sums(epochs, total=(0.0, 0.0), mass=None, counts=None, **others):
    counts = np.full(N, 0.5 * epochs) if counts is None else np.asarray(counts, dtype=float)
    mass = float(counts.sum()) if mass is None else mass
    return Sums(float(epochs), mass, np.asarray(total, dtype=float), counts, np.zeros(2), 0.0, **others)


def test_a_snapshot_stays_as_it_was():
    live = sums(3, (1.0, 2.0), draws=np.ones(N))
    kept = live.snapshot(np.float32)
    assert kept.counts.dtype == kept.draws.dtype == np.float32 and kept.total.dtype == np.float64
    for array in (live.total, live.counts, live.path, live.draws):
        array += 5.0
    assert kept.total.tolist() == [1.0, 2.0] and kept.path.tolist() == [0.0, 0.0]
    assert kept.counts.tolist() == [1.5] * N and kept.draws.tolist() == [1.0] * N


@pytest.mark.interpreted
def test_squared_distance(rng):
    x, y = rng.normal(size=(2, 37))
    assert squared_distance(x, y) == pytest.approx(((x - y) ** 2).sum(), rel=1e-14)


def test_no_bound_over_nothing_or_over_a_jump():
    assert window_bound(sums(2), sums(2), LAM) == -math.inf
    assert window_bound(sums(1), sums(2, jumps=1), LAM) == -math.inf
    assert window_bound(sums(1, jumps=1), sums(2, jumps=1), LAM) > 0.0


@pytest.mark.parametrize("window", [(0, 3), (1, 3), (2, 3), (0, 1)])
def test_the_bound_of_any_window_is_that_of_its_point(rng, window):
    problem = random_problem(31, hinge(), n=12)
    slopes = rng.random((3, 12))
    signed = slopes * problem.labels @ np.column_stack((problem.rows.values, np.zeros(12)))
    at = [
        Sums(float(e), slopes[:e].sum(), signed[:e].sum(axis=0), slopes[:e].sum(axis=0), np.zeros(5), 0.0)
        for e in range(4)
    ]
    earlier, later = at[window[0]], at[window[1]]
    bound = window_bound(earlier, later, problem.regularisation)
    assert bound == pytest.approx(lower_bound(problem, window_point(earlier, later)), rel=1e-12)
    assert bound <= optimum(problem).primal


def test_draws_divide_their_own_counts():
    point = window_point(
        sums(1, counts=[1, 0, 1, 0, 0, 0], draws=np.array([1.0, 1, 2, 1, 0, 1])),
        sums(3, counts=[4, 0, 2, 1, 0, 0], draws=np.array([4.0, 2, 4, 1, 0, 9])),
    )
    assert point.counts.tolist() == [1.0, 0.0, 0.5, 1.0, 0.0, 0.0]
    assert point.epochs == 1.0


def drifting(windows, epochs, drift):
    """Epoch after epoch with S growing by drift(e); the epochs at which snapshots were taken."""
    total, taken = np.zeros(2), []
    for epoch in range(1, epochs + 1):
        total = total + drift(epoch)
        now = sums(epoch, total)
        assert windows.until_next(epoch - 1) >= 1
        windows.after(now, epoch, LAM)
        if windows.snapshots[-1].epochs == epoch:
            taken.append(epoch)
        assert 1 <= len(windows.snapshots) <= 6
        yield now, taken


def test_snapshots_are_few_and_sparse():
    windows = Windows([sums(0)])
    *_, (_, taken) = drifting(windows, 2000, lambda e: np.array([1.0, 5.0 / e]))
    assert len(taken) < 200
    assert np.diff(taken).max() <= 0.6 * 2000


def test_what_is_forgotten_moves_on():
    """A start far from the optimum is left out; the bound found is that of the best snapshot."""
    windows = Windows([sums(0)])
    *_, (now, _) = drifting(windows, 100, lambda e: np.array([1.0, 30.0 / e**2]))
    bounds = [window_bound(earlier, now, LAM) for earlier in windows.snapshots]
    found = windows.find(now, LAM)
    assert found.bound == max(bounds) > window_bound(sums(0), now, LAM)
    assert windows.snapshots[0].epochs >= 10
    assert windows.promise(now, LAM)[0] == found.bound


def test_one_window_from_the_start_where_it_does_not_slide():
    windows = Windows([sums(0)], sliding=False)
    *_, (now, taken) = drifting(windows, 50, lambda e: np.array([1.0, 30.0 / e**2]))
    assert taken == []
    windows.pause(now, LAM)
    windows.resume(now, 50)
    assert [s.epochs for s in windows.snapshots] == [0.0] and not windows.paused
    assert windows.find(now, LAM).point.epochs == 50.0


def test_without_bounds_the_window_of_half_of_all_epochs():
    windows = Windows([sums(0)])
    for epoch in range(1, 41):
        windows.after(sums(epoch, jumps=epoch), epoch, LAM)
    found = windows.find(sums(41, jumps=41), LAM)
    assert found.bound == -math.inf and 20.5 <= found.point.epochs <= 30
    assert len(windows.snapshots) <= 6
    assert windows.promise(sums(41, jumps=41), LAM) == (-math.inf, math.inf)


def test_of_equal_bounds_the_latest_window():
    """Nothing is forgotten any more where the bound is the same over any window: but later iterates are better."""
    windows = Windows([sums(0)])
    *_, (now, _) = drifting(windows, 300, lambda e: np.array([1.0, 0.0]))
    assert window_bound(windows.snapshots[0], now, LAM) == pytest.approx(window_bound(sums(0), now, LAM), rel=1e-12)
    assert windows.find(now, LAM).point.epochs < 40


def test_lucky_draws_do_not_choose_the_window():
    windows = Windows([sums(0, draws=np.zeros(N))])
    for epoch in range(1, 31):
        now = sums(epoch, counts=np.full(N, 0.5 * epoch + (epoch > 28)), draws=np.full(N, float(epoch)))
        windows.after(now, epoch, LAM)
    shares = windows.find(now, LAM).point.counts
    assert np.all((shares > 0.5) & (shares < 0.6))


def test_a_pause_keeps_the_best_window():
    windows = Windows([sums(0)])
    *_, (now, _) = drifting(windows, 20, lambda e: np.array([1.0, 0.0]))
    now.path[:] = 20.0
    best = windows.find(now, LAM)
    windows.pause(now, LAM)
    disturbed = sums(25, now.total + 100.0)
    assert windows.until_next(25) > 10**9
    found = windows.find(disturbed, LAM)
    assert found.bound == best.bound and found.weights.tolist() == best.weights.tolist()
    assert windows.promise(disturbed, LAM) == (-math.inf, math.inf)
    windows.resume(disturbed, 21)
    assert windows.until_next(21) == 1 and [s.epochs for s in windows.snapshots] == [25.0]
    better, worse = sums(26, disturbed.total), sums(26, disturbed.total + 100.0)
    for calm, bound in (better, window_bound(disturbed, better, LAM)), (worse, best.bound):
        calm.path[:] = 7.0  # the weights are of now, whichever window proves more
        found = windows.find(calm, LAM)
        assert found.bound == bound and found.weights.tolist() == [7.0, 7.0]
    assert window_bound(disturbed, better, LAM) > best.bound > window_bound(disturbed, worse, LAM)
