"""Scalings: the parameters of other programs, and the exchange with the slack-constrained form, at reference optima."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from problems import dense, optimum, random_problem
from slackwater.objective import hinge, squared_hinge
from slackwater.objective.scaling import (
    cost_of_cvm,
    cost_of_lambda,
    cost_of_larank,
    cost_of_perf,
    cvm_of_cost,
    gamma_of_optimum,
    gamma_of_sigma2,
    lambda_of_cost,
    lambda_of_simplex,
    larank_of_cost,
    nu_of_optimum,
    perf_of_cost,
    sigma2_of_gamma,
    simplex_bound,
    weights_per_direction,
)

pytestmark = pytest.mark.interpreted

positive = st.floats(1e-6, 1e6)
SEEDS = range(4)


@given(positive, st.integers(1, 10**9))
def test_conversions_are_undone_by_their_inverses(C, n):
    assert cost_of_lambda(lambda_of_cost(C, n), n) == pytest.approx(C, rel=1e-14)
    assert cost_of_perf(perf_of_cost(C, n), n) == pytest.approx(C, rel=1e-14)
    assert cost_of_cvm(cvm_of_cost(C)) == C
    assert cost_of_larank(larank_of_cost(C)) == C
    assert sigma2_of_gamma(gamma_of_sigma2(C)) == pytest.approx(C, rel=1e-14)


def test_lambda_is_the_problems_own():
    problem = random_problem(0, hinge(), C=0.7)
    assert lambda_of_cost(0.7, problem.n_rows) == pytest.approx(problem.regularisation, rel=1e-14)


def test_the_two_widths_name_one_kernel():
    squared_distance, sigma2 = 3.7, 0.6
    assert math.exp(-gamma_of_sigma2(sigma2) * squared_distance) == pytest.approx(
        math.exp(-squared_distance / (2.0 * sigma2))
    )


def hinges(problem, w) -> np.ndarray:
    return np.maximum(0.0, 1.0 - problem.labels * (dense(problem) @ w))


def test_the_one_slack_cost_scales_the_same_objective(rng):
    problem = random_problem(1, hinge())
    w, C = rng.normal(size=problem.n_weights), problem.costs[0]
    ours = w @ w / 2.0 + C * hinges(problem, w).sum()
    assert w @ w / 2.0 + perf_of_cost(C, problem.n_rows) * hinges(problem, w).mean() == pytest.approx(ours, rel=1e-13)


def test_larank_splits_the_machine_between_two_vectors(rng):
    problem = random_problem(1, hinge())
    w, C = rng.normal(size=problem.n_weights), problem.costs[0]
    ours = w @ w / 2.0 + C * hinges(problem, w).sum()
    plus, minus = w / 2.0, -w / 2.0  # margins <plus - minus, y x> are ours
    theirs = (plus @ plus + minus @ minus) / 2.0 + larank_of_cost(C) * hinges(problem, plus - minus).sum()
    assert theirs == pytest.approx(ours / 2.0, rel=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_core_vector_machines_ball_gives_the_squared_hinges_optimum(seed):
    problem = random_problem(seed, squared_hinge())
    best = optimum(problem)
    Z = dense(problem) * problem.labels[:, None]
    p = best.alpha / best.alpha.sum()
    h = p @ (Z @ Z.T + np.eye(len(p)) / cvm_of_cost(problem.costs[0])) @ p
    assert problem.regularisation / (2.0 * h) == pytest.approx(best.primal, rel=1e-9)


class Exchange:
    """The optimum of P and what the exchange rules make of it in the slack-constrained form."""

    def __init__(self, seed, bias):
        self.problem = random_problem(seed, hinge(), bias, C=0.15)
        self.lam, self.n = self.problem.regularisation, self.problem.n_rows
        best = optimum(self.problem)
        self.w, self.b, self.alpha = best.w[:-1], best.b, best.alpha
        self.Z = dense(self.problem)[:, :-1] * self.problem.labels[:, None]
        self.norm = float(np.linalg.norm(self.w))
        self.slacks = np.maximum(0.0, 1.0 - self.Z @ self.w - self.problem.labels * self.b)
        self.nu = nu_of_optimum(self.slacks.mean(), self.norm)
        self.gamma = gamma_of_optimum(self.norm)
        self.p = self.alpha / self.alpha.sum()

    def length(self, p) -> float:
        return float(np.linalg.norm(p @ self.Z))


@pytest.fixture(scope="module", params=[(seed, bias) for seed in SEEDS for bias in ("none", "free")], ids=str)
def exchange(request):
    return Exchange(*request.param)


def test_the_scaled_optimum_is_feasible_and_reaches_gamma(exchange):
    xi = exchange.slacks / exchange.norm
    assert xi.sum() == pytest.approx(exchange.n * exchange.nu, rel=1e-12)
    responses = (exchange.Z @ exchange.w + exchange.problem.labels * exchange.b) / exchange.norm
    assert (responses + xi).min() == pytest.approx(exchange.gamma, rel=1e-7)


def test_the_simplex_bound_is_tight_at_the_optimum_and_valid_elsewhere(exchange, rng):
    best = simplex_bound(exchange.length(exchange.p), exchange.p.max(), exchange.n, exchange.nu)
    assert best == pytest.approx(exchange.gamma, rel=1e-7)
    positives = exchange.problem.labels > 0.0
    for _ in range(50):
        p = rng.dirichlet(np.full(exchange.n, 0.5))
        if exchange.problem.bias == "free":
            p = 0.5 * p / np.where(positives, p[positives].sum(), p[~positives].sum())
        assert simplex_bound(exchange.length(p), p.max(), exchange.n, exchange.nu) >= exchange.gamma * (1.0 - 1e-9)


def test_an_optimal_pair_gives_back_lambda_and_the_weights(exchange):
    s, q = exchange.length(exchange.p), exchange.p.max()
    assert lambda_of_simplex(exchange.gamma, s, q, exchange.n) == pytest.approx(exchange.lam, rel=1e-7)
    factor = weights_per_direction(exchange.gamma, s)
    assert factor * (exchange.p @ exchange.Z) == pytest.approx(exchange.w, rel=1e-6, abs=1e-9)
    assert factor * exchange.p == pytest.approx(exchange.alpha, rel=1e-6, abs=1e-9)


def test_golden_exchange():
    svm, n = golden.SVM, 4
    alpha = np.array(svm.alpha)
    p = alpha / alpha.sum()
    s = float(np.linalg.norm(p @ np.array(svm.z)))
    assert nu_of_optimum(svm.mean_hinge, svm.norm) == pytest.approx(svm.nu, rel=1e-14)
    assert gamma_of_optimum(svm.norm) == pytest.approx(svm.gamma, rel=1e-14)
    assert simplex_bound(s, p.max(), n, svm.nu) == pytest.approx(svm.gamma, rel=1e-14)
    assert lambda_of_simplex(svm.gamma, s, p.max(), n) == pytest.approx(svm.lam, rel=1e-14)
    assert weights_per_direction(svm.gamma, s) * p == pytest.approx(alpha, rel=1e-14)
    assert lambda_of_cost(svm.C, n) == pytest.approx(svm.lam, rel=1e-15)
