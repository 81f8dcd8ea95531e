"""What every solver certifies: bounds on both sides of the optimum at every round, and the optimum in the end."""

import math
from functools import cache

import numpy as np
import pytest
from sklearn.svm import SVC, LinearSVC

from conformance.problems import CASES, CLASSES, STORAGES, TABLES, WEIGHTED, build, in_turn, variants
from conformance.running import (
    EXACT,
    ROUNDING,
    at_zero,
    close,
    dual_by_definition,
    limits,
    path,
    primal_by_definition,
    reach,
    settle,
)
from problems import dense, optimum
from slackwater.compiled import JIT
from slackwater.objective import hinge, l1, l2, penalty_family, squared_hinge

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

#: All storages of the first table; they take turns on the others.
STORED = [("weighted", storage) for storage in STORAGES]
STORED += in_turn(name for name in TABLES if name != "weighted")


@cache
def reference(loss, bias, penalty, name):
    """The problem with its optimum, in full precision."""
    case = next(case for case in CASES if (case.loss, case.bias, case.penalty) == (loss, bias, penalty))
    problem = build(case, TABLES[name])
    return problem, optimum(problem)


def assert_bounds_hold(case, name, trained):
    """On both sides of the optimum at every round; the best of them close in on it."""
    _, best = reference(case.loss, case.bias, case.penalty, name)
    slack = ROUNDING * at_zero(case.loss)
    assert [record.round for record in trained.history] == list(range(1, trained.rounds + 1))
    gap = math.inf
    for record in trained.history:
        assert record.dual <= record.primal + slack
        assert record.dual <= best.primal + slack
        assert record.primal >= best.dual - slack
        assert record.gap <= gap
        gap = record.gap


@interpreted
@short_rounds
@pytest.mark.parametrize("name, storage", STORED, ids=str)
def test_bounds_hold_at_every_round(case, name, storage):
    problem = build(case, TABLES[name], storage)
    trained = path(case, problem, 25 if JIT else 4)
    assert_bounds_hold(case, name, trained)
    assert trained.status.code in ("max_rounds", "converged", "stalled")
    found = trained.certificate
    assert found.primal <= at_zero(case.loss) * (1.0 + ROUNDING)
    assert found.dual >= 0.0
    weights = trained.model.weights(problem.rows.bias)
    assert found.primal == close(primal_by_definition(problem, weights))
    if trained.alpha is not None:
        assert (trained.alpha >= 0.0).all()
        assert (trained.alpha <= case.loss.cap * problem.costs).all()
        assert found.dual == close(dual_by_definition(problem, trained.alpha))
        if case.bias == "free":
            assert abs(trained.alpha @ problem.labels) <= 1e-12 * trained.alpha.sum()


@pytest.mark.parametrize("case", variants(CLASSES), ids=str)
def test_other_settings_keep_the_bounds(case):
    trained = path(case, build(case, WEIGHTED), 25, tol=limits(case).tol)
    assert_bounds_hold(case, "weighted", trained)
    # Without a cap plain subgradient steps may grow: only the bounds are promised then.
    if case.cls.optimises and math.isfinite(case.loss.cap):
        assert trained.status.converged, trained.status


# ------------------------------------------------------------------------------------- the optimum, independently


@pytest.mark.parametrize("name", TABLES)
def test_the_optimum_is_the_reference_solvers(case, name):
    problem, best = reference(case.loss, case.bias, case.penalty, name)
    found = settle(case, problem).certificate
    gap = max(found.gap, ROUNDING)
    assert best.primal - best.dual <= ROUNDING
    assert best.primal - gap - ROUNDING <= found.dual <= best.primal + ROUNDING
    assert best.dual - ROUNDING <= found.primal <= best.primal + gap + ROUNDING
    if reach(case) <= EXACT:
        assert found.primal == pytest.approx(best.primal, rel=1e-6, abs=1e-9)


def peers_weights(problem):
    """The weights of LIBLINEAR or LIBSVM through scikit-learn, None where neither treats the problem."""
    X, bias = dense(problem)[:, :-1], problem.bias
    if problem.loss == hinge() and bias == "free":
        peer = SVC(kernel="linear", tol=1e-10)
    elif problem.loss in (hinge(), squared_hinge()) and bias != "free":
        loss = "hinge" if problem.loss == hinge() else "squared_hinge"
        options = {"loss": loss, "fit_intercept": bias == "penalised", "penalty": penalty_family(problem.penalty)}
        dual = problem.penalty == l2()
        peer = LinearSVC(dual=dual, tol=1e-10, max_iter=100_000, random_state=0, **options)
    else:
        return None
    peer.fit(X, problem.labels, sample_weight=problem.costs)
    return np.append(peer.coef_[0], peer.intercept_[0] if bias != "none" else 0.0)


PEERED = [
    case
    for case in CASES
    if (case.penalty == l2() and (case.loss == hinge() or (case.loss == squared_hinge() and case.bias != "free")))
    or (case.penalty == l1() and case.loss == squared_hinge() and case.bias != "free")
]


@pytest.mark.parametrize("case", PEERED, ids=str)
def test_the_optimum_is_that_of_other_libraries(case):
    problem = build(case, WEIGHTED)
    theirs = primal_by_definition(problem, peers_weights(problem))
    found = settle(case, problem).certificate
    assert found.dual <= theirs * (1.0 + 1e-6)
    assert theirs - found.gap - 1e-6 * theirs <= found.primal <= theirs * (1.0 + reach(case) + 1e-6)
