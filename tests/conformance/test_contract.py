"""What every solver promises besides its answer: declared abilities, settings, counters, estimates, warm starts."""

import json
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import get_args

import numpy as np
import pytest

from conformance.problems import CASES, CLASSES, CLOUDS, SMALL, WEIGHTED, Case, build, matrix
from conformance.running import agree, limits, settle
from problems import optimum
from slackwater.models import LinearModel
from slackwater.objective import BiasKind, certify
from slackwater.objective.losses import LOSSES
from slackwater.solvers import contract
from slackwater.solvers.contract import Counters, UnsupportedError
from slackwater.solvers.registry import make_solver, solver_classes
from slackwater.training import Limits, run

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

# -------------------------------------------------------------------------------------------------- the matrix


def test_every_solver_is_in_the_matrix_with_all_that_it_declares():
    assert {case.name for case in CASES} == set(solver_classes("classification"))
    for name, cls in CLASSES.items():
        assert sum(case.name == name for case in CASES) == len(cls.losses) * len(cls.biases) > 0


def test_a_solver_in_a_new_file_joins_the_matrix(monkeypatch):
    monkeypatch.setattr(contract, "_REGISTERED", dict(contract._REGISTERED))
    parent = CLASSES["dcd"]
    abilities = {"name": "newcomer", "losses": ("hinge", "huber"), "biases": ("none",), "__module__": "new.file"}
    newcomer = type("Newcomer", (parent,), abilities)
    joined = [case for case in matrix(solver_classes("classification")) if case not in CASES]
    assert joined == [Case("newcomer", newcomer, LOSSES[family](), "none") for family in ("hinge", "huber")]


# ---------------------------------------------------------------------------------------------------- abilities


def able(ability: str, wanted: str) -> list[str]:
    return [name for name, cls in CLASSES.items() if wanted in getattr(cls, ability)]


def test_abilities_are_known_names(solver_class):
    assert solver_class.losses
    assert set(solver_class.losses) <= set(LOSSES)
    assert solver_class.biases
    assert set(solver_class.biases) <= set(get_args(BiasKind))
    assert re.fullmatch(r"C[1-7]", solver_class.rule)
    assert solver_class.beta >= 1.0
    assert isinstance(solver_class.optimises, bool)


def test_undeclared_losses_are_refused_with_the_solvers_that_treat_them(solver_class):
    solver, table = solver_class(), SMALL
    for family, make in LOSSES.items():
        problem = build(Case(solver.name, solver_class, make(), solver.biases[0]), table)
        if family in solver.losses:
            solver.check(problem)
            continue
        with pytest.raises(UnsupportedError) as refusal:
            run(problem, solver)
        others = f"solvers that can: {', '.join(able('losses', family))}" if able("losses", family) else "no solver can"
        assert str(refusal.value) == f"solver '{solver.name}' does not treat loss '{family}'; {others}"


def test_undeclared_biases_are_refused_with_the_solvers_that_treat_them(solver_class):
    solver = solver_class()
    for bias in get_args(BiasKind):
        problem = build(Case(solver.name, solver_class, LOSSES[solver.losses[0]](), bias), SMALL)
        if bias in solver.biases:
            solver.check(problem)
            continue
        with pytest.raises(UnsupportedError) as refusal:
            run(problem, solver)
        others = f"solvers that can: {', '.join(able('biases', bias))}" if able("biases", bias) else "no solver can"
        assert str(refusal.value) == f"solver '{solver.name}' does not treat bias '{bias}'; {others}"


# ----------------------------------------------------------------------------------------------------- settings


def test_settings_make_the_same_solver_again(solver_class):
    solver = solver_class()
    assert make_solver(solver.name, **solver.settings()) == solver
    assert make_solver(solver.name, **json.loads(json.dumps(solver.settings()))) == solver
    assert is_dataclass(solver)
    assert set(solver.settings()) == {field.name for field in fields(solver)}
    for setting, value in solver.settings().items():
        with pytest.raises(FrozenInstanceError):
            setattr(solver, setting, value)
        if isinstance(value, bool):
            changed = make_solver(solver.name, **{setting: not value})
            assert changed != solver
            assert changed.settings() == solver.settings() | {setting: not value}


def test_unknown_settings_are_refused_with_the_known_ones(solver_class):
    with pytest.raises(ValueError) as refusal:
        make_solver(solver_class.name, surely_unknown=1)
    expected = f"solver '{solver_class.name}' has no setting 'surely_unknown'; its settings are "
    assert str(refusal.value) == expected + ", ".join(solver_class().settings())


# ----------------------------------------------------------------------------------------------- round by round


def work(counters: Counters) -> tuple[int, ...]:
    return tuple(getattr(counters, field.name) for field in fields(Counters))


@interpreted
@short_rounds
def test_counters_only_grow(case, storage):
    problem, solver = build(case, SMALL, storage), case.new()
    state = solver.start(problem, np.random.default_rng(0))
    assert all(isinstance(count, int) for count in work(state.counters))
    before = work(state.counters)
    for done in range(6):
        solver.advance(problem, state)
        after = work(state.counters)
        assert all(isinstance(count, int | np.integer) for count in after)
        assert all(later >= earlier for later, earlier in zip(after, before, strict=True))
        if done == 0:
            assert state.counters.epochs >= 1
            assert state.counters.updates >= 1
            assert state.counters.inner_products >= problem.n_rows
        before = after


@short_rounds
def test_looking_does_not_touch(case, stored):
    """Models, dual points and estimates can be asked for at any time: the way is the same."""
    problem, solver = build(case, WEIGHTED, stored), case.new()
    quiet, watched = (solver.start(problem, np.random.default_rng(1)) for _ in range(2))
    for _ in range(5):
        for _ in range(2):
            solver.model(problem, watched)
            weights = solver.model(problem, watched).weights(problem.rows.bias)
            certify(problem, weights, solver.dual_point(problem, watched))
        solver.advance(problem, watched)
        solver.advance(problem, quiet)
        estimate = solver.estimate(problem, watched)
        assert estimate >= 0.0
        assert solver.estimate(problem, watched) == estimate
    ends = [solver.model(problem, state).weights(problem.rows.bias) for state in (quiet, watched)]
    assert np.array_equal(*ends)


def test_models_fit_their_problem(case, stored):
    problem, solver = build(case, CLOUDS, stored), case.new()
    state = solver.start(problem, np.random.default_rng(0))
    for _ in range(2):
        model = solver.model(problem, state)
        assert isinstance(model, LinearModel)
        assert (model.n_outputs, model.n_columns) == (1, 5)
        assert case.bias != "none" or model.intercept[0] == 0.0
        solver.advance(problem, state)
    assert np.abs(model.coef).max() > 0.0 or state.counters.epochs > 0
    better = certify(problem, solver.model(problem, state).weights(problem.rows.bias)).certificate.primal
    assert better < certify(problem, np.zeros(problem.n_weights)).certificate.primal


# -------------------------------------------------------------------------------------------------- warm starts


@pytest.mark.parametrize("start", ["zero", "optimum", "top of the box", "outside the box"])
def test_warm_starts_lead_to_the_same_optimum(case, start):
    problem = build(case, WEIGHTED)
    top = np.minimum(case.loss.cap * problem.costs, 2.0)
    alpha = {
        "zero": np.zeros(problem.n_rows),
        "optimum": optimum(problem).alpha,
        "top of the box": top,
        "outside the box": np.random.default_rng(0).normal(scale=10.0, size=problem.n_rows),
    }[start]
    assert agree(settle(case, problem), settle(case, problem, alpha=alpha))


@short_rounds
def test_a_warm_start_at_the_optimum_is_worth_something(case):
    """One epoch from there proves more than one epoch from nothing."""
    problem = build(case, WEIGHTED)
    limits = Limits(tol=0.0, max_rounds=1, certify_every=1)
    cold = run(problem, case.new(), limits, rng=0).certificate
    warm = run(problem, case.new(), limits, rng=0, alpha=optimum(problem).alpha).certificate
    assert warm.gap < cold.gap
    assert warm.dual <= optimum(problem).primal * (1.0 + 1e-9)


def test_the_dual_point_of_a_run_warm_starts_another(case):
    problem = build(case, CLOUDS)
    first = settle(case, problem)
    assert first.alpha.shape == (problem.n_rows,)
    again = run(problem, case.new(), limits(case), rng=1, alpha=first.alpha)
    assert again.status.converged or not case.cls.optimises
    assert agree(first, again)
