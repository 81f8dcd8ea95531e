"""Every test that asks for a ``case``, ``storage`` or ``solver_class`` runs with all that the registry knows."""

import pytest

from conformance.problems import CASES, CLASSES, STORAGES, in_turn
from slackwater.solvers import contract

_ALL = {"case": CASES, "storage": STORAGES, "solver_class": list(CLASSES.values())}


def _name(value) -> str:
    return getattr(value, "name", None) if isinstance(value, type) else str(value)


def pytest_generate_tests(metafunc):
    """Parametrise what a test did not itself; ``stored`` is a storage where the cases need not meet all of them."""
    marks = metafunc.definition.iter_markers("parametrize")
    given = {name for mark in marks for name in mark.args[0].split(", ")}
    wanted = set(metafunc.fixturenames) - given
    if {"case", "stored"} <= wanted:
        metafunc.parametrize("case, stored", in_turn(CASES), ids=_name)
        wanted -= {"case", "stored"}
    for argument, values in _ALL.items():
        if argument in wanted:
            metafunc.parametrize(argument, values, ids=_name)


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(contract, "_EPOCHS_ON_TINY", 1)
