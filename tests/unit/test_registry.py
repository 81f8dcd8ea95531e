"""The registry: solvers are found by being defined, here or by others, and refused in one sentence."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from problems import random_problem
from slackwater import registries
from slackwater.models import LinearModel
from slackwater.objective import GradientPoint, hinge, squared_hinge
from slackwater.solvers import contract
from slackwater.solvers.contract import Counters, Solver, State, UnsupportedError
from slackwater.solvers.registry import make_solver, solver_classes, solvers

pytestmark = pytest.mark.interpreted


@pytest.fixture(autouse=True)
def _only_for_this_test(monkeypatch):
    """What a test defines is forgotten after it."""
    solver_classes()
    monkeypatch.setattr(contract, "_REGISTERED", dict(contract._REGISTERED))


def define(solver_name="still", module=__name__, **abilities):
    """A solver that stays at w = 0, as a plug-in would define it."""

    def start(self, problem, rng, alpha=None):
        return State(Counters())

    def advance(self, problem, state):
        state.counters.epochs += 1

    def model(self, problem, state):
        return LinearModel.from_weights(np.zeros(problem.n_weights), problem.rows.bias)

    def dual_point(self, problem, state):
        return GradientPoint(np.zeros(problem.n_weights))

    body = {
        "__module__": module,
        "__annotations__": {"patience": int},
        "patience": 3,
        "name": solver_name,
        "paper": "Nobody, 2001",
        "rule": "C6",
        "start": start,
        "advance": advance,
        "model": model,
        "dual_point": dual_point,
    }
    return dataclass(frozen=True)(type("Still", (Solver,), body | abilities))


def test_the_walk_finds_the_packages_own_solvers():
    classes = solver_classes()
    assert "dcd" in classes
    assert list(classes) == sorted(classes)
    for solver_name, cls in classes.items():
        assert cls.name == solver_name
        assert dataclasses.is_dataclass(cls)
        assert cls.__module__.startswith("slackwater.solvers.")
        with pytest.raises(dataclasses.FrozenInstanceError):
            cls().beta = 2.0


def test_a_solver_defined_anywhere_is_found():
    cls = define("still")
    assert solver_classes()["still"] is cls
    solver = make_solver("still", patience=5)
    assert solver.settings() == {"patience": 5}
    (line,) = [line for line in solvers() if line["name"] == "still"]
    assert line == {
        "name": "still",
        "task": "classification",
        "paper": "Nobody, 2001",
        "losses": ["hinge", "squared_hinge", "smoothed_hinge", "huber"],
        "biases": ["none", "penalised"],
        "penalties": ["l2"],
        "rule": "C6",
        "settings": {"patience": 3},
    }


MARGIN_LOSSES = {"hinge", "squared_hinge", "smoothed_hinge", "huber"}
LOSSES_OF_TASK = {
    "classification": MARGIN_LOSSES,
    "multiclass": {"hinge"},
    "kernel": MARGIN_LOSSES,
    "kernel-multiclass": {"hinge"},
    "online": {"hinge"},
    "regression": {"epsilon_insensitive", "squared_epsilon_insensitive"},
    "one-class": {"hinge"},
    "kernel-regression": {"epsilon_insensitive", "squared_epsilon_insensitive"},
}


def test_the_table_of_solvers_is_complete():
    assert [line["name"] for line in solvers()] == list(solver_classes())
    for line in solvers():
        assert line["paper"]
        assert all(set(line["losses"]) <= LOSSES_OF_TASK[task] for task in line["task"].split(", "))
        assert set(line["biases"]) <= {"none", "penalised", "free"}


def test_unknown_solvers_are_refused_with_the_known_ones():
    with pytest.raises(ValueError) as refusal:
        make_solver("dca")
    assert str(refusal.value) == f"solver='dca' is not known; the solvers are {', '.join(solver_classes())}"


def test_unknown_settings_are_refused_with_the_known_ones():
    with pytest.raises(ValueError) as refusal:
        make_solver("dcd", shrink=True)
    assert str(refusal.value) == "solver 'dcd' has no setting 'shrink'; its settings are shrinking, inner, n_jobs"


def test_two_solvers_of_one_name_are_refused():
    define("still", module="first.place")
    with pytest.raises(TypeError) as refusal:
        define("still", module="second.place")
    assert str(refusal.value) == "two solvers are called 'still': first.place and second.place"


def test_a_name_of_the_packages_own_cannot_be_taken():
    with pytest.raises(TypeError, match=r"two solvers are called 'dcd': slackwater\.solvers\.linear\.dcd and"):
        define("dcd")


def test_a_module_that_is_loaded_again_replaces_its_solver():
    first, second = define("still"), define("still")
    assert first is not second
    assert solver_classes()["still"] is second


def test_a_base_class_without_a_name_is_no_solver():
    before = set(solver_classes())

    class Family(Solver):
        rule: ClassVar[str] = "C1"

    assert set(solver_classes()) == before
    with pytest.raises(TypeError, match="abstract"):
        Family()


class Entry:
    """An installed entry point, whose loading defines a solver."""

    loaded = 0

    def load(self):
        Entry.loaded += 1
        return define("elsewhere", module="third.party")


def test_entry_points_of_other_packages_are_loaded_once(monkeypatch):
    asked = []

    def entry_points(*, group):
        asked.append(group)
        return [Entry()]

    monkeypatch.setattr(registries, "entry_points", entry_points)
    registries.walk.cache_clear()
    try:
        assert "elsewhere" in solver_classes()
        assert make_solver("elsewhere").patience == 3
        assert "elsewhere" in [line["name"] for line in solvers()]
    finally:
        registries.walk.cache_clear()
        monkeypatch.undo()
        solver_classes()
    assert asked == ["slackwater.solvers"]
    assert Entry.loaded == 1


def test_a_lacking_ability_is_named_with_the_solvers_that_have_it():
    solver = define("narrow", losses=("hinge",), biases=("none",))()
    solver.check(random_problem(0, hinge()))
    with pytest.raises(UnsupportedError) as refusal:
        solver.check(random_problem(0, squared_hinge()))
    sentence = str(refusal.value)
    assert sentence.startswith("solver 'narrow' does not treat loss 'squared_hinge'; solvers that can: ")
    assert "dcd" in sentence
    assert "narrow" not in sentence.partition("solvers that can")[2]
    with pytest.raises(UnsupportedError, match="solver 'narrow' does not treat bias 'free'; solvers that can: "):
        solver.check(random_problem(0, hinge(), "free"))


def test_an_ability_nobody_has(monkeypatch):
    solver = define("narrow", losses=("hinge",))()
    with pytest.raises(UnsupportedError, match="does not treat loss 'logistic'; no solver can"):
        contract.require(solver, "losses", "logistic", "loss")


def test_rounds_of_tiny_problems_are_several_epochs():
    tiny, small = random_problem(0, hinge(), n=3, d=1), random_problem(0, hinge(), n=300, d=40)
    assert contract.epochs_per_round(tiny) == contract._EPOCHS_ON_TINY >= 100
    assert contract.epochs_per_round(small) == contract.ENTRIES_PER_ROUND // (300 * 41)
