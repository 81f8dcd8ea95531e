"""Compiled code does what its text says: the same way as without the compiler."""

import pytest

from conformance.problems import SMALL, build
from conformance.running import close, weights_on_the_way
from conformance.ways import interpreted_ways
from slackwater.compiled import JIT

pytestmark = [
    pytest.mark.skipif(not JIT, reason="compares with compiled code"),
    pytest.mark.usefixtures("short_rounds"),
]


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    """All ways, from one process."""
    return interpreted_ways(tmp_path_factory.mktemp("ways") / "ways.npz")


def test_interpreted_code_takes_the_same_way(case, storage, interpreted):
    here = weights_on_the_way(case, build(case, SMALL, storage), 3)
    assert abs(here).max() > 0.0
    assert interpreted[f"{case}-{storage}"] == close(here)
