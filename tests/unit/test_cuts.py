"""Cuts lie below the loss and touch it where they were made; bundles keep D whatever they forget."""

import numpy as np
import pytest

from problems import LOSSES, dense, loss_id, random_problem
from reference.qp_reference import loss_value
from slackwater.objective import BoxPoint, CutPoint, hinge, lower_bound, squared_hinge
from slackwater.objective.losses import slope
from slackwater.solvers import cuts
from slackwater.solvers.cuts import Aggregate, Bundle, CutMaker
from slackwater.solvers.sweeps import add_rows, margins_at

interpreted = pytest.mark.interpreted


def mean_loss(problem, w):
    margins = problem.labels * (dense(problem) @ w)
    return problem.regularisation * (problem.costs @ loss_value(problem.loss, margins))


def slopes_at(problem, w):
    return np.array([slope(problem.loss, m) for m in problem.labels * (dense(problem) @ w)])


def points(problem, rng, count, size=1.0):
    return size * rng.normal(size=(count, problem.n_weights))


def some_cuts(problem, rng, count, size=1.0):
    """Cuts made one after the other at random points, with copies of their arrays."""
    maker = CutMaker.of(problem, 1)
    for w in points(problem, rng, count, size):
        made = maker.make(problem, slopes_at(problem, w))
        yield w, made._replace(gradient=made.gradient.copy(), slopes=made.slopes.copy())


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("bias", ["none", "penalised"])
def test_cuts_are_below_the_loss_everywhere_and_tight_where_they_were_made(loss, bias, rng):
    problem = random_problem(11, loss, bias, weighted=True, sparse=bias == "none")
    for w, cut in some_cuts(problem, rng, 6):
        assert cut.gradient @ w + cut.offset == pytest.approx(mean_loss(problem, w), rel=1e-12, abs=1e-14)
        for other in points(problem, rng, 20, size=3.0):
            assert cut.gradient @ other + cut.offset <= mean_loss(problem, other) + 1e-12


@interpreted
@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=loss_id)
def test_differences_lead_where_all_rows_do(loss, rng):
    problem = random_problem(12, loss, "penalised", n=60, weighted=True)
    maker, w = CutMaker.of(problem, 1), rng.normal(size=problem.n_weights)
    differences = 0
    for _ in range(60):
        w = w + 0.02 * rng.normal(size=w.size)
        slopes = slopes_at(problem, w)
        cut = maker.make(problem, slopes)
        wanted = -problem.regularisation * (problem.costs * problem.labels * slopes) @ dense(problem)
        assert cut.gradient == pytest.approx(wanted, rel=1e-12, abs=1e-14)
        differences += maker.rows_added > 0
    assert differences > 20 or loss != hinge()


@interpreted
@pytest.mark.parametrize("threads", [2, 3, 100])
def test_threads_change_sums_by_rounding_only(threads, rng):
    problem = random_problem(13, hinge(), "penalised", n=40, sparse=True)
    w, ids = rng.normal(size=problem.n_weights), np.flatnonzero(rng.random(40) < 0.6).astype(np.uint32)
    terms = rng.normal(size=ids.size)
    one, many = np.empty(40), np.empty(40)
    margins_at(problem, w, one)
    margins_at(problem, w, many, threads)
    assert np.array_equal(one, many)
    assert one == pytest.approx(problem.labels * (dense(problem) @ w), rel=1e-13, abs=1e-14)
    for count in (1, threads):
        total = np.ones(problem.n_weights)
        add_rows(problem, ids, terms, total, count)
        assert total == pytest.approx(1.0 + terms @ dense(problem)[ids], rel=1e-12, abs=1e-13)


# -------------------------------------------------------------------------------------------------------- bundles


def points_of(bundle):
    """Its point by rule C3."""
    live = slice(1, bundle.count + 1)
    return CutPoint(bundle.gradients[: bundle.count].copy(), bundle.offsets[live].copy(), bundle.beta[live].copy())


def gram_is_right(bundle):
    G = np.vstack((np.zeros(bundle.gradients.shape[1]), bundle.gradients[: bundle.count]))
    size = bundle.count + 1
    return bundle.gram[:size, :size] == pytest.approx(G @ G.T / bundle.lam, rel=1e-11, abs=1e-13)


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
@pytest.mark.parametrize("most", [2, 3, 5, 100])
def test_a_bundle_never_loses_what_it_has_proven(loss, most, monkeypatch, rng):
    """Cuts are dropped or merged; D rises, by rules C3 and C1 alike, and stays a bound."""
    monkeypatch.setattr(cuts, "_IDLE", 4)
    monkeypatch.setattr(cuts, "_ROOM", 4)
    problem = random_problem(14, loss, "penalised", weighted=True)
    bundle, w, before, counts = Bundle.of(problem, most), np.zeros(problem.n_weights), 0.0, []
    for _, cut in some_cuts(problem, rng, 25, size=0.5):
        bundle.add(cut)
        dual = bundle.solve(w)
        assert dual >= before - 1e-13
        assert dual == pytest.approx(lower_bound(problem, points_of(bundle)), rel=1e-11, abs=1e-13)
        assert lower_bound(problem, BoxPoint(problem.costs * bundle.mixture())) >= dual - 1e-7 * max(dual, 1e-3)
        assert w == pytest.approx(-points_of(bundle).beta @ bundle.gradients[: bundle.count] / bundle.lam)
        assert bundle.beta[: bundle.count + 1].sum() == pytest.approx(1.0)
        assert gram_is_right(bundle)
        assert bundle.count == len(bundle.slopes) <= most
        before = dual
        counts.append(bundle.count)
    assert max(counts) == most or most == 100
    assert max(counts) < 25


@interpreted
def test_the_hinges_slopes_take_one_bit(rng):
    problem = random_problem(15, hinge(), n=40)
    bundle = Bundle.of(problem, 10)
    for _, cut in some_cuts(problem, rng, 3):
        bundle.add(cut)
    assert [kept.nbytes for kept in bundle.slopes] == [5, 5, 5]


@interpreted
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_the_aggregate_is_the_best_mixture_of_two(loss, rng):
    """D on the line to the new cut, against a fine grid; the first step mixes with the zero cut."""
    problem = random_problem(16, loss, "penalised", weighted=True)
    aggregate, w, before, lam = Aggregate.of(problem), np.zeros(problem.n_weights), 0.0, problem.regularisation
    for _, cut in some_cuts(problem, rng, 12, size=0.3):
        old, offset = aggregate.gradient.copy(), aggregate.offset
        aggregate.add(cut)
        dual = aggregate.solve(w)
        eta = np.linspace(0.0, 1.0, 1001)[:, None]
        lines = old + eta * (cut.gradient - old)
        grid = offset + eta[:, 0] * (cut.offset - offset) - (lines**2).sum(axis=1) / (2.0 * lam)
        assert grid.max() - 1e-14 <= dual <= grid.max() + 1e-5 * max(1.0, abs(dual))
        assert dual >= before
        assert lower_bound(problem, BoxPoint(problem.costs * aggregate.mixture())) >= dual - 1e-12
        before = dual
    assert before > 0.0
