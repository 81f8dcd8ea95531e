"""Every test that asks for a ``case``, ``storage`` or ``solver_class`` runs with all that the registry knows."""

import pytest

from conformance.problems import CASES, CLASSES, STORAGES
from slackwater.solvers import contract

_ALL = {"case": CASES, "storage": STORAGES, "solver_class": list(CLASSES.values())}


def _name(value) -> str:
    return getattr(value, "name", None) if isinstance(value, type) else str(value)


def pytest_generate_tests(metafunc):
    """Parametrise what a test did not itself."""
    given = {name for mark in metafunc.definition.iter_markers("parametrize") for name in str(mark.args[0]).split(",")}
    for argument, values in _ALL.items():
        if argument in metafunc.fixturenames and argument not in given:
            metafunc.parametrize(argument, values, ids=_name)


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds of one epoch, on tiny problems too."""
    monkeypatch.setattr(contract, "_EPOCHS_ON_TINY", 1)
