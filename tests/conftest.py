"""What all tests share: a seeded generator, the folder of real data, and how Hypothesis draws its examples."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from problems import KINDS, loss_id, random_problem
from slackwater.compiled import JIT
from slackwater.objective import LinearProblem
from slackwater.solvers.linear import descent, pegasos

# The same examples in every run, and fewer where the loops are interpreted.
settings.register_profile("slackwater", deadline=None, derandomize=True, max_examples=100 if JIT else 15)
settings.load_profile("slackwater")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator that starts at the same place in every test."""
    return np.random.default_rng(20130419)


@pytest.fixture
def one_epoch(monkeypatch) -> None:
    """Rounds of one epoch for the stochastic descents, on tiny problems too."""
    for module in (descent, pegasos):
        monkeypatch.setattr(module, "epochs_per_round", lambda problem: 1)


@pytest.fixture(scope="session", params=KINDS, ids=lambda kind: f"{loss_id(kind[0])}-{kind[1]}")
def problem(request) -> LinearProblem:
    """A small problem of every loss with every bias."""
    loss, bias, weighted, sparse = request.param
    return random_problem(7, loss, bias, weighted=weighted, sparse=sparse, scale=1.0 if weighted else 2.0)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that ask for it are skipped where there is none."""
    folder = os.environ.get("SLACKWATER_DATA")
    if not folder:
        pytest.skip("SLACKWATER_DATA names no folder of real data")
    return Path(folder)
