"""dcd on several threads: nothing is lost between them, and the certificate does not depend on their timing."""

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater import LinearSVC
from slackwater.objective import linear_problem, parse_loss
from slackwater.rows import as_rows
from slackwater.solvers.linear import exchange as exchanges
from slackwater.solvers.linear.dcd import DCD
from slackwater.solvers.linear.exchange import begin_round, end_round, exchange, new_links
from slackwater.solvers.visits import dealt_visits, visit_all
from slackwater.training import Limits, run


@pytest.fixture
def small_shares(monkeypatch):
    """Threads share out small data too, and meet often."""
    monkeypatch.setattr(exchanges, "_LEAST_ENTRIES", 1)
    monkeypatch.setattr(exchanges, "_EXCHANGES", 1)
    monkeypatch.setattr(exchanges, "_LEAST_VISITS", 5)
    monkeypatch.setattr(exchanges, "_SHARE", 0)


def noisy(n: int, d: int, seed: int = 0, sparse: bool = False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (0.2 if sparse else 1.0))
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0, 1.0, -1.0)
    return (sp.csr_array(X.astype(np.float32)) if sparse else X), y


@pytest.mark.interpreted
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 63, 64, 200, 1000])
def test_rows_are_dealt_once_each(n, threads):
    dealt = dealt_visits(as_rows(np.ones((n, 1))), np.random.default_rng(0), threads)
    assert sorted(np.concatenate([visits.order for visits in dealt])) == list(range(n))
    for visits in dealt:
        before = visits.order.copy()
        visits.order[:] = 0
        assert visit_all(visits) == before.size
        assert (visits.order == before).all()


@pytest.mark.interpreted
def test_an_exchange_loses_nothing_whatever_the_turns():
    rng = np.random.default_rng(1)
    rows, w = as_rows(np.ones((10, 6))), rng.normal(size=7)
    links = new_links(rows, 7, 3)
    copies = [(link, np.empty(7)) for link in links]
    begin_round(copies, w)
    total, own = w.copy(), np.zeros((3, 7))
    for turn in rng.integers(0, 3, size=50):
        link, copy = copies[turn]
        change = rng.normal(size=7)
        copy += change
        own[turn] += change
        total += change
        if rng.random() < 0.5:
            exchange(link, copy)
    for link, copy in copies:  # once all have published, one more exchange tells each of them everything
        exchange(link, copy)
    for link, copy in copies:
        exchange(link, copy)
        assert copy == pytest.approx(total, rel=1e-5, abs=1e-5)  # what others told is in float32
    end_round(copies, w)
    assert w == pytest.approx(total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bias", ["none", "penalised"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_threads_lead_to_the_optimum_and_w_belongs_to_alpha(small_shares, loss, bias, sparse):
    X, y = noisy(400, 12, sparse=sparse)
    limits = Limits(tol=1e-7, max_rounds=2000)
    problem = linear_problem(as_rows(X), y, parse_loss(loss), 1.0, None, bias)
    solver = DCD(n_jobs=3)
    state = solver.start(problem, np.random.default_rng(0))
    assert len(state.workers) == 3
    for _ in range(5):
        solver.advance(problem, state)
        assert state.w == pytest.approx(problem.sum_of_rows(state.table[:, 0] * y), rel=1e-9, abs=1e-9)
        assert (state.table[:, 0] >= 0.0).all() and (state.table[:, 0] <= problem.loss.cap * problem.costs).all()
    several, one = (run(problem, DCD(n_jobs=threads), limits, rng=0) for threads in (3, 1))
    assert several.status.converged and one.status.converged
    allowed = several.certificate.gap + one.certificate.gap
    assert abs(several.certificate.primal - one.certificate.primal) <= allowed


def test_one_thread_where_threads_are_not_worth_it_or_the_bias_is_free():
    X, y = noisy(400, 12)
    for bias in ("none", "free"):
        problem = linear_problem(as_rows(X), y, parse_loss("hinge"), 1.0, None, bias)
        assert len(DCD(n_jobs=4).start(problem, np.random.default_rng(0)).workers) == 1


def test_n_jobs_of_the_face_reaches_the_solver(small_shares, monkeypatch):
    seen = []
    crew = DCD.crew
    monkeypatch.setattr(DCD, "crew", lambda self, *given: seen.append(crew(self, *given)) or seen[-1])
    X, y = noisy(3000, 12)
    svm = LinearSVC(solver="dcd", n_jobs=2, tol=0.05).fit(X, y)
    assert [len(state.workers) for state in seen] == [2]
    assert svm.certificate_.relative_gap <= 0.05


def test_threads_must_be_a_number():
    with pytest.raises(ValueError, match="threads=0"):
        DCD(n_jobs=0)
