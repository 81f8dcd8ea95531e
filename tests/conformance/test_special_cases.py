"""Problems whose optimum can be written down: disjoint rows, one row, one class, rows of zeros, one column."""

import numpy as np
import pytest

from conformance.problems import CASES, CLOUDS, DISJOINT, ONE_ROW, TABLES, Table, build, in_turn
from conformance.running import ROUNDING, at_zero, path, primal_by_definition, settle
from problems import dense
from slackwater.compiled import JIT
from slackwater.objective import l2

interpreted = pytest.mark.interpreted
UNBIASED = [case for case in CASES if case.bias == "none"]
PLAIN_L2 = [case for case in CASES if case.penalty == l2()]  # the closed forms below are those of ||w||^2 / 2
PLAIN_L2_UNBIASED = [case for case in UNBIASED if case.penalty == l2()]


def row_optima(problem):
    """alpha_i and P* where no row shares a column with another: D falls apart into parabolas, cut by the box."""
    loss, costs = problem.loss, problem.costs
    norms = (dense(problem) ** 2).sum(axis=1)
    with np.errstate(divide="ignore"):
        alpha = np.minimum(loss.target / (norms + loss.width / costs), loss.cap * costs)
    terms = loss.target * alpha - 0.5 * alpha**2 * (norms + loss.width / costs)
    return alpha, problem.regularisation * terms.sum()


def optimal(trained, problem, alpha, best):
    """Whether the run encloses P* = D(alpha), and w is as near to w(alpha) as strong convexity demands."""
    found = trained.certificate
    weights = (alpha * problem.labels) @ dense(problem)
    # lambda/2 ||w - w*||^2 <= P(w) - P*
    furthest = np.sqrt(2.0 * max(found.gap, 1e-15) / problem.regularisation)
    distance = np.linalg.norm(trained.model.weights(problem.rows.bias) - weights)
    return found.dual - ROUNDING <= best <= found.primal + ROUNDING and distance <= furthest + ROUNDING


@pytest.mark.parametrize("case", PLAIN_L2_UNBIASED, ids=str)
def test_disjoint_rows_have_a_closed_form(case, storage):
    problem = build(case, DISJOINT, storage)
    alpha, best = row_optima(problem)
    assert len(set(alpha)) > 5
    assert optimal(settle(case, problem), problem, alpha, best)


@interpreted
@pytest.mark.parametrize("case", PLAIN_L2, ids=str)
@pytest.mark.parametrize("C, storage", in_turn([0.7, 50.0, 0.7, 0.02]))
def test_one_row_has_a_closed_form(case, storage, C):
    problem = build(case, ONE_ROW, storage, C=C)
    trained = settle(case, problem) if JIT else path(case, problem, 2)
    if case.bias == "free":  # the intercept alone reaches the target
        assert (trained.certificate.primal, trained.certificate.dual) == (0.0, 0.0)
        assert trained.model.decision_values(ONE_ROW.X) == pytest.approx([-case.loss.target])
    else:
        alpha, best = row_optima(problem)
        assert optimal(trained, problem, alpha, best)


@pytest.mark.parametrize("label, storage", in_turn([-1.0, 1.0, 1.0, -1.0]))
def test_one_class_only(case, storage, label):
    table = CLOUDS._replace(labels=np.full(30, label))
    problem = build(case, table, storage)
    trained = settle(case, problem)
    found = trained.certificate
    if case.bias == "free":
        assert (found.primal, found.dual) == (0.0, 0.0)
        assert (trained.model.coef == 0.0).all()
        assert trained.model.intercept[0] == label * case.loss.target
    else:
        assert 0.0 < found.dual <= found.primal * (1.0 + ROUNDING)
        assert found.primal < at_zero(case.loss)
        if case.bias == "penalised":
            assert trained.model.intercept[0] * label > 0.0


@interpreted
def test_nothing_but_zero_rows(case, stored):
    """No weight helps; a bias does as well as it can."""
    table = TABLES["nothing but zeros"] if JIT else Table(np.zeros((3, 2)), np.array([1.0, -1.0, -1.0]))
    problem = build(case, table, stored)
    trained = settle(case, problem) if JIT else path(case, problem, 2)
    assert (trained.model.coef == 0.0).all()
    assert (trained.model.intercept == 0.0).all() or case.bias != "none"
    if case.bias == "none":
        assert trained.certificate.primal == pytest.approx(at_zero(case.loss), rel=1e-12)
        assert trained.certificate.dual == pytest.approx(at_zero(case.loss), rel=1e-12 if JIT else 0.02)
    if case.bias == "free" and case.loss.width == 0.0:  # the hinge pays two for every example of the smaller class
        share = np.mean(problem.labels > 0.0)
        assert trained.certificate.primal == pytest.approx(2.0 * min(share, 1.0 - share), rel=1e-9)


def test_zero_rows_among_others_pay_what_they_must(case, stored):
    """Half of them on either side: (l(b) + l(-b)) / 2 >= l(0), so P* is at least a mean, and that without a bias."""
    zeros = Table(np.zeros((10, 5)), np.resize([1.0, -1.0], 10))
    both = Table(np.vstack((CLOUDS.X, zeros.X)), np.append(CLOUDS.labels, zeros.labels))
    found, alone = (settle(case, build(case, table, stored)).certificate for table in (both, CLOUDS))
    assert found.primal >= 0.75 * alone.dual + 0.25 * at_zero(case.loss) - ROUNDING
    if case.bias == "none":
        assert found.dual <= 0.75 * alone.primal + 0.25 * at_zero(case.loss) + ROUNDING


@pytest.mark.parametrize("case", PLAIN_L2_UNBIASED, ids=str)
def test_two_rows_that_contradict_each_other(case, storage):
    """The same row with both labels: w = 0 is optimal."""
    problem = build(case, Table(np.array([[0.5, 2.0], [0.5, 2.0]]), np.array([1.0, -1.0])), storage)
    assert optimal(settle(case, problem), problem, np.zeros(2), at_zero(case.loss))


@pytest.mark.parametrize("case", UNBIASED, ids=str)
def test_one_column_is_a_search_on_a_line(case, storage):
    """P is convex in one variable: a fine grid around the answer holds nothing below the bound."""
    problem = build(case, TABLES["one column"], storage)
    trained = settle(case, problem)
    w = float(trained.model.coef[0, 0])
    values = [primal_by_definition(problem, np.array([v, 0.0])) for v in np.linspace(w - 0.5, w + 0.5, 101)]
    assert trained.certificate.primal == pytest.approx(values[50], rel=ROUNDING)
    assert trained.certificate.dual - ROUNDING <= min(values) <= trained.certificate.primal + ROUNDING
    assert values[0] > values[50] < values[-1]
