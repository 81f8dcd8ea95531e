"""SVM-perf, BMRM and OCAS: step by step as their twin, and the facts of their papers."""

import numpy as np
import pytest

import golden
from problems import LOSSES, dense, loss_id, optimum, random_problem
from reference.cutting_planes_twin import cutting_planes_twin
from slackwater.compiled import JIT
from slackwater.objective import certify, hinge, linear_problem, primal_value, squared_hinge
from slackwater.rows import as_rows
from slackwater.solvers.linear import cutting_planes
from slackwater.solvers.linear.bmrm import BMRM, VARIANTS
from slackwater.solvers.linear.ocas import OCAS
from slackwater.solvers.linear.svm_perf import SVMPerf
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
HINGE_SOLVERS = [SVMPerf(), OCAS(), OCAS(mu=1.0), *(BMRM(variant=variant) for variant in VARIANTS)]


def name_of(solver) -> str:
    return "-".join([solver.name, *(str(value) for value in solver.settings().values() if isinstance(value, str))])


@pytest.fixture
def one_cut(monkeypatch):
    """Rounds of one cut, on tiny problems too."""
    monkeypatch.setattr(cutting_planes, "_MOST_CUTS", 1)


def rounds(problem, solver, count, alpha=None):
    """The state after 1, 2, .. rounds: one and the same object, moved on."""
    state = solver.start(problem, np.random.default_rng(0), alpha)
    for _ in range(count):
        solver.advance(problem, state)
        yield state


def certificate(problem, solver, state):
    weights = solver.model(problem, state).weights(problem.rows.bias)
    return certify(problem, weights, solver.dual_point(problem, state)).certificate


def values(problem, solver, count):
    """P of the model and D of its dual point after every round, by the certificate's own code."""
    found = [certificate(problem, solver, state) for state in rounds(problem, solver, count)]
    return np.array([(c.primal, c.dual) for c in found]).T


def uneven(loss, n=200):
    """Many rounds of work: columns of several sizes, little regularisation."""
    problem = random_problem(21, loss, "penalised", n=n, d=10, C=2.0)
    X = dense(problem)[:, :-1] * 2.0 ** np.arange(-3, 7)[:10]
    return linear_problem(as_rows(X), problem.labels, loss, C=2.0, bias="penalised")


# ------------------------------------------------------------------------------------------------ step by step


@interpreted
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize(
    ("solver", "mu"), [(OCAS(), 0.1), (OCAS(mu=0.6), 0.6), (SVMPerf(), None), (BMRM(), None)], ids=str
)
def test_every_round_is_the_twins(one_cut, solver, mu, bias):
    problem = random_problem(20, hinge(), bias, weighted=True, C=0.3, sparse=bias == "none")
    Z, lam = dense(problem) * problem.labels[:, None], problem.regularisation
    twin = cutting_planes_twin(Z, lam * problem.costs, lam, 7, mu)
    best = np.inf
    for state, (w, primal, dual) in zip(rounds(problem, solver, 7), twin, strict=True):
        best = min(best, primal, 1.0)
        assert state.primal == pytest.approx(best, rel=1e-9)
        assert state.dual == pytest.approx(dual, rel=1e-8, abs=1e-12)
        if primal == best:
            assert state.w == pytest.approx(w, rel=1e-6, abs=1e-7)


@interpreted
def test_golden_machine():
    svm = golden.SVM
    problem = linear_problem(as_rows(np.array(svm.z)), np.ones(4), hinge(), C=svm.C)
    for solver in HINGE_SOLVERS:
        if solver == BMRM(variant="dual-line-search"):
            continue  # comes close like 1/t
        done = run(problem, solver, Limits(tol=1e-13, max_rounds=100))
        assert done.certificate.primal == pytest.approx(svm.optimum, rel=1e-12)
        assert done.certificate.dual == pytest.approx(svm.optimum, rel=1e-12)
        assert done.model.coef[0] == pytest.approx(svm.w, rel=1e-6)


# -------------------------------------------------------------------------------------------- the papers' facts


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.9])
def test_ocas_goes_down_and_up_in_every_round(one_cut, mu):
    primal, dual = values(uneven(hinge()), OCAS(mu=mu), 40)
    assert (np.diff(primal) <= 1e-13).all()
    assert (np.diff(dual) >= -1e-13).all()
    assert (np.diff(dual) > 0.0).sum() > 5


def test_bmrm_goes_up_in_every_round_but_not_down(one_cut):
    """The model's minimum rises and falls; its dual rises only."""
    problem = uneven(hinge())
    solver = BMRM()
    primal, dual = [], []
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(40):
        state.primal = 1e9  # whatever comes is the best
        solver.advance(problem, state)
        primal.append(primal_value(problem, state.w))
        dual.append(certificate(problem, solver, state).dual)
    assert (np.diff(dual) >= -1e-13).all()
    assert (np.diff(primal) > 1e-3).any()
    assert (np.diff(primal) < 0.0).any()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_id)
def test_every_variants_dual_rises_to_the_optimum(loss, variant):
    problem = random_problem(22, loss, "penalised", n=60, C=0.1, weighted=True)
    _, dual = values(problem, BMRM(variant=variant), 30)
    assert (np.diff(dual) >= -1e-13).all()
    best = optimum(problem).primal
    assert dual[-1] <= best * (1.0 + 1e-12)
    assert dual[-1] >= best * (1.0 - (2e-3 if variant == "dual-line-search" else 1e-8))


def test_the_dual_line_search_gets_there():
    """Frank and Wolfe's rate: 3,000 cuts and more for three digits or four."""
    problem = random_problem(22, hinge(), n=60, C=0.1)
    done = run(problem, BMRM(variant="dual-line-search"), Limits(tol=1e-4, max_rounds=2000))
    assert done.status.converged
    assert done.certificate.primal == pytest.approx(optimum(problem).primal, rel=1e-4)


@interpreted
@pytest.mark.parametrize("solver", HINGE_SOLVERS, ids=name_of)
def test_the_estimate_is_the_gap(one_cut, solver):
    """So that the end of a run, P(w) - D <= eps, is that of the papers."""
    problem = random_problem(23, hinge(), "penalised", weighted=True)
    for state in rounds(problem, solver, 10):
        found = certificate(problem, solver, state)
        assert state.primal == pytest.approx(found.primal, rel=1e-11)
        assert state.dual == pytest.approx(found.dual, rel=1e-9, abs=1e-12)
        if found.dual > 0.0:
            assert solver.estimate(problem, state) == pytest.approx(found.relative_gap, rel=1e-6, abs=1e-9)


@interpreted
@pytest.mark.parametrize("tol", [0.1, 1e-3, 1e-6])
def test_at_the_stop_the_gap_is_the_tolerance(tol):
    problem = random_problem(24, hinge(), C=0.5)
    done = run(problem, SVMPerf(), Limits(tol=tol, max_rounds=200))
    assert done.status.converged
    assert done.certificate.gap <= tol * done.certificate.dual * (1.0 + 1e-12)
    assert done.certificate.primal <= optimum(problem).primal * (1.0 + tol)


def test_fewer_rounds_than_without_the_line_search(one_cut):
    problem = uneven(hinge(), n=400)
    taken = {
        solver.name: run(problem, solver, Limits(tol=0.01, max_rounds=2000, certify_every=1)).rounds
        for solver in (OCAS(), SVMPerf())
    }
    assert 2 * taken["ocas"] < taken["svm-perf"]


def test_svm_perf_and_bmrm_are_one_method_for_the_hinge(one_cut):
    problem = random_problem(25, hinge(), "penalised", weighted=True)
    for left, right in zip(rounds(problem, SVMPerf(), 10), rounds(problem, BMRM(), 10), strict=True):
        assert np.array_equal(left.w, right.w)
        assert left.dual == right.dual


# ---------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("most", [2, 4, 10])
@pytest.mark.parametrize("loss", [hinge(), squared_hinge()], ids=loss_id)
def test_few_cuts_are_enough(one_cut, loss, most):
    """A small buffer keeps P and D monotone, and leads to the optimum nevertheless."""
    problem = random_problem(26, loss, n=60, C=0.1)
    solver = OCAS(buffer=most) if loss == hinge() else BMRM(variant="primal-line-search", cuts=most)
    primal, dual = values(problem, solver, 150)
    assert (np.diff(primal) <= 1e-13).all()
    assert (np.diff(dual) >= -1e-7).all()
    assert primal[-1] - dual[-1] <= (0.02 if most == 2 else 1e-3) * dual[-1]


@pytest.mark.parametrize("solver", [OCAS(threads=3), SVMPerf(threads=2), BMRM(threads=4)], ids=name_of)
def test_threads_change_nothing_but_rounding(one_cut, solver):
    problem = random_problem(27, hinge(), "penalised", n=300, d=8, sparse=True)
    alone = type(solver)()
    for left, right in zip(rounds(problem, alone, 8), rounds(problem, solver, 8), strict=True):
        assert left.primal == pytest.approx(right.primal, rel=1e-9)
        assert left.dual == pytest.approx(right.dual, rel=1e-9)


@interpreted
@pytest.mark.parametrize("solver", HINGE_SOLVERS, ids=name_of)
def test_a_warm_start_at_the_optimum_is_there_in_one_round(one_cut, solver):
    problem = random_problem(28, hinge(), "penalised", weighted=True)
    best = optimum(problem)
    for state in rounds(problem, solver, 1, alpha=best.alpha):
        assert state.dual == pytest.approx(best.primal, rel=1e-7)
        assert state.primal == pytest.approx(best.primal, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: OCAS(mu=0.0), r"mu must lie in \(0, 1\], got 0.0"),
        (lambda: OCAS(mu=1.5), r"mu must lie in \(0, 1\], got 1.5"),
        (lambda: OCAS(buffer=1), "buffer must be at least 2, got 1"),
        (lambda: OCAS(threads=0), "threads must be at least 1, got 0"),
        (lambda: SVMPerf(cuts=1), "cuts must be at least 2, got 1"),
        (lambda: SVMPerf(threads=-1), "threads must be at least 1, got -1"),
        (lambda: BMRM(cuts=0), "cuts must be at least 2, got 0"),
        (lambda: BMRM(variant="best"), "variant='best' is not known; the variants are qp, dual-line-search, primal-"),
    ],
)
def test_settings_are_checked(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.skipif(not JIT, reason="needs many rounds")
def test_arrays_stay_where_they_are(one_cut):
    """Rounds write into the arrays of the start: no fresh memory for n numbers."""
    problem = uneven(hinge())
    names = ("slopes", "margins", "margins_t", "room", "w", "w_t", "kinks")
    seen = set()
    for state in rounds(problem, OCAS(), 20):
        seen.add(frozenset(id(getattr(state, name)) for name in names))
    assert len(seen) == 1
