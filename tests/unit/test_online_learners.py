"""Online learners: step by step as their twins, and the facts of their papers."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import golden
from problems import random_table
from reference.online_twin import forgetron_twin, norma_twin, perceptron_twin
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.solvers.contract import UnsupportedError
from slackwater.solvers.online import learner as learning
from slackwater.solvers.online.forgetron import Forgetron, self_tuned
from slackwater.solvers.online.kernel_perceptron import KernelPerceptron
from slackwater.solvers.online.learner import FACTOR, MISTAKES, SQUARE, USED, Arrivals
from slackwater.solvers.online.norma import Norma, truncation
from slackwater.solvers.online.rbp import RandomizedBudgetPerceptron
from slackwater.solvers.registry import solver_classes

interpreted = pytest.mark.interpreted
RBF = Kernel("rbf", 0.5)
LEARNERS = [
    KernelPerceptron(),
    RandomizedBudgetPerceptron(7),
    Forgetron(7),
    Forgetron(7, "fixed"),
    Norma(lam=0.05, eta=0.8, budget=9),
    Norma(lam=0.05, schedule="pegasos", tau=11),
]


@pytest.fixture(params=LEARNERS, ids=lambda made: f"{made.name}-{list(made.settings().values())[-1]}")
def made(request):
    """A learner with a small budget."""
    return request.param


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks in small tables, and the oldest vectors a few at a time."""
    monkeypatch.setattr(learning, "_BLOCK", 16)
    monkeypatch.setattr("slackwater.solvers.online.forgetron._AHEAD", 2)


def table(n=90, seed=3, **options):
    X, y = random_table(np.random.default_rng(seed), n, 4, **options)
    return X, y


def arrivals_of(X, y, kernel=RBF, bias="none"):
    return Arrivals(kernel, as_rows(X), np.atleast_2d(y), np.arange(X.shape[0]), bias)


def learn(learner, arrivals, blocks=None, seed=0):
    """The state after the arrivals, or after these parts of them in turn."""
    state = learner.start(arrivals, np.random.default_rng(seed))
    for ids in blocks or [np.arange(arrivals.rows.n_rows)]:
        learner.advance(arrivals.part(ids), state)
    return state


def coefficients(learner, state, n):
    """Of all examples, the first output's."""
    out = np.zeros(n)
    np.add.at(out, state.numbers, learner.coefficients(state.outputs[0]))
    return out


def gram(X, shift=0.0, gamma=0.5):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2)) + shift


def separable(n=120, margin=0.3):
    """Points of norm at most 1 on both sides of a plane through 0, none nearer to it than the margin."""
    rng = np.random.default_rng(8)
    u = np.array([0.6, 0.8, 0.0])
    X = rng.normal(size=(4000, 3))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    X = X[np.abs(X @ u) >= margin][:n]
    return X, np.sign(X @ u)


# ------------------------------------------------------------------------------------------------ all learners


def test_all_learners_are_here():
    assert {made.name for made in LEARNERS} == set(solver_classes("online"))
    assert all(made.optimises is False and made.rule == "C5" for made in LEARNERS)


@interpreted
def test_blocks_of_any_size_are_as_example_by_example(made):
    arrivals = arrivals_of(*table())
    whole = learn(made, arrivals)
    for size in (1, 5, 40):
        parts = learn(made, arrivals, np.split(np.arange(90), np.arange(size, 90, size)))
        assert parts.numbers.tolist() == whole.numbers.tolist() and parts.mistakes == whole.mistakes
        assert coefficients(made, parts, 90) == pytest.approx(coefficients(made, whole, 90), rel=1e-9)


@interpreted
def test_dense_and_sparse_rows_are_learnt_alike(made):
    X, y = table()
    dense, sparse = (learn(made, arrivals_of(rows, y, bias="penalised")) for rows in (X, sp.csr_array(X)))
    assert dense.numbers.tolist() == sparse.numbers.tolist()
    assert coefficients(made, dense, 90) == pytest.approx(coefficients(made, sparse, 90), rel=1e-9)


def test_wide_sparse_rows_are_learnt_as_narrow_ones(made):
    X, y = table()
    wide = sp.lil_array((90, 600_000))
    wide[:, 7::170_000] = X
    narrow, wide = (learn(made, arrivals_of(rows, y)) for rows in (X, wide.tocsr()))
    assert coefficients(made, narrow, 90) == pytest.approx(coefficients(made, wide, 90), rel=1e-9)


@interpreted
def test_outputs_share_the_stored_rows_and_nothing_else(made):
    X, y = table()
    signs = np.stack([y, -np.sign(X[:, 0] + 0.1), np.where(np.arange(90) % 5, -1.0, 1.0)])
    together = learn(made, arrivals_of(X, signs))
    rng = np.random.default_rng(0)
    for number, line in enumerate(signs):
        start = made.start(arrivals_of(X, line), rng)
        made.advance(arrivals_of(X, line), start)
        alone, active = coefficients(made, start, 90), together.outputs[number]
        shared = np.zeros(90)
        np.add.at(shared, together.numbers, made.coefficients(active))
        assert shared == pytest.approx(alone, rel=1e-9)
        assert active.counts[MISTAKES] == start.outputs[0].counts[MISTAKES]


def test_a_seed_settles_everything(made):
    arrivals = arrivals_of(*table())
    a, b = (learn(made, arrivals, seed=4).outputs[0].beta for _ in range(2))
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("cls", [RandomizedBudgetPerceptron, Forgetron])
@interpreted
def test_without_a_bound_it_is_the_perceptron(cls):
    arrivals = arrivals_of(*table())
    perceptron = coefficients(KernelPerceptron(), learn(KernelPerceptron(), arrivals), 90)
    for budget in (None, 1000):
        assert coefficients(cls(budget), learn(cls(budget), arrivals), 90).tolist() == perceptron.tolist()


@pytest.mark.parametrize("budget", [1, 2, 7, 20])
def test_no_more_vectors_than_the_budget(made, budget):
    if made.name == "kernel-perceptron":
        made = Forgetron(budget, "fixed")
    bounded, arrivals = replace(made, budget=budget), arrivals_of(*table())
    state = bounded.start(arrivals, np.random.default_rng(0))
    for i in range(90):
        bounded.advance(arrivals.part(np.array([i])), state)
        assert state.rows.n_rows <= budget
    assert state.outputs[0].counts[MISTAKES] > budget


def test_mistakes_are_counted_before_learning():
    X, y = table()
    state = learn(KernelPerceptron(), arrivals_of(X, y))
    assert state.mistakes == state.outputs[0].counts[MISTAKES] == coefficients_sum(state)
    assert state.seen == 90


def coefficients_sum(state):
    return int(np.abs(state.outputs[0].beta).sum())


def test_kernel_values_are_counted():
    arrivals, evaluated = arrivals_of(*table()), []

    def kernel(A, B):
        if A is not B:  # as for the diagonal
            evaluated.append(len(A) * len(B))
        return gram(np.vstack((A, B)))[: len(A), len(A) :]

    state = learn(KernelPerceptron(), replace(arrivals, kernel=Kernel("callable", function=kernel)))
    M, n = state.outputs[0].counts[MISTAKES], 90
    assert state.counters.kernel_evaluations == sum(evaluated)
    assert state.counters.kernel_evaluations <= M * n + 16 * n


def test_what_cannot_be_is_refused_in_one_sentence():
    X, y = table()
    with pytest.raises(UnsupportedError, match="kernel='precomputed' is SVC's"):
        KernelPerceptron().check(arrivals_of(X @ X.T, y, Kernel("precomputed")))
    with pytest.raises(UnsupportedError, match=r"does not treat bias 'free'; solvers that can: .*norma"):
        Forgetron().check(arrivals_of(X, y, bias="free"))
    for cls in (Forgetron, RandomizedBudgetPerceptron, Norma):
        for wrong in (0, 2.5, True):
            with pytest.raises(ValueError, match="budget must be a whole number of vectors, at least 1, or None"):
                cls(budget=wrong)
    refused = [
        (lambda: KernelPerceptron("best"), "output='best' is not known; the kinds are last, averaged, voted, longest"),
        (lambda: Forgetron(shrinking="no"), "shrinking='no' is not known; the rules are self-tuned, fixed"),
        (lambda: Norma(lam=0.0), "lam must be positive and finite, got 0.0"),
        (lambda: Norma(eta=-1.0), "eta must be positive and finite, got -1.0"),
        (lambda: Norma(rho=-1.0), "rho must be finite and at least 0, got -1.0"),
        (lambda: Norma(tau=0), "tau must be a number of steps, at least 1, or None; got 0"),
        (lambda: Norma(schedule="slow"), "schedule='slow' is not known; the kinds are constant, sqrt, pegasos"),
        (lambda: Norma(lam=0.5, eta=2.0), "eta * lam must lie below 1, got 1"),
    ]
    for make, sentence in refused:
        with pytest.raises(ValueError) as refusal:
            make()
        assert str(refusal.value) == sentence


# -------------------------------------------------------------------------------------------------- perceptrons


@interpreted
def test_the_perceptron_and_its_outputs_are_those_of_the_twin():
    X, y = table()
    order = np.concatenate([np.random.default_rng(k).permutation(90) for k in range(3)])
    alphas, passes = perceptron_twin(gram(X), y, order), np.split(order, 3)
    lines = {"last": alphas[-1], "averaged": alphas.mean(axis=0)}
    survived = np.unique(alphas.sum(axis=1), return_counts=True)
    lines["longest"] = alphas[alphas.sum(axis=1) == survived[0][survived[1].argmax()]][0]
    for output, alpha in lines.items():
        learner = KernelPerceptron(output)
        state = learn(learner, arrivals_of(X, y), passes)
        assert coefficients(learner, state, 90) == pytest.approx(alpha * y, abs=1e-12)
        assert np.unique(state.numbers).size == state.numbers.size


@interpreted
def test_the_vote_is_that_of_all_hypotheses():
    X, y = table()
    signs = np.stack([y, np.sign(X[:, 1] - 0.2), np.where(np.arange(90) % 4, -1.0, 1.0)])
    learner = KernelPerceptron("voted")
    arrivals = arrivals_of(X, signs)
    values = learner.model(arrivals, learn(learner, arrivals)).decision_values(X[:40])
    for number, line in enumerate(signs):
        alphas = perceptron_twin(gram(X), line, range(90))
        assert values[:, number] == pytest.approx(np.sign((alphas * line) @ gram(X)[:, :40]).mean(axis=0), abs=1e-12)


def test_mistakes_are_bounded_on_separable_data():
    X, y = separable()
    learner, linear = KernelPerceptron(), Kernel("linear")
    state = learn(learner, arrivals_of(X, y, linear), [np.arange(120)] * 40)
    M, a = state.mistakes, coefficients(learner, state, 120)
    assert 0 < M <= 1.0 / 0.3**2
    assert a @ (X @ X.T) @ a <= M
    assert (y * (X @ X.T @ a) > 0.0).all()


def test_weights_of_the_budget_perceptron_are_signs():
    X, y = table()
    learner = RandomizedBudgetPerceptron(7)
    state = learn(learner, arrivals_of(X, y))
    assert state.numbers.size == 7
    assert learner.coefficients(state.outputs[0]).tolist() == y[state.numbers].tolist()
    others = {tuple(learn(learner, arrivals_of(X, y), seed=seed).numbers) for seed in range(8)}
    assert len(others) > 1


def test_each_stored_vector_is_as_likely_to_go():
    n = 12
    arrivals = arrivals_of(np.eye(n), np.ones(n), Kernel("linear"))
    kept = np.zeros(n)
    for seed in range(600):
        kept[learn(RandomizedBudgetPerceptron(n - 1), arrivals, seed=seed).numbers] += 1
    assert kept[-1] == 600 and (600 - kept[:-1]).sum() == 600
    assert (600 - kept[:-1]).min() > 25 and (600 - kept[:-1]).max() < 90


# ---------------------------------------------------------------------------------------------------- Forgetron


@interpreted
def test_the_golden_factor():
    assert self_tuned(0.5, 1.0, 0.1) == pytest.approx(golden.FORGETRON_PHI, rel=1e-15)


@interpreted
def test_the_factor_is_the_largest_that_is_allowed():
    rng, phis = np.random.default_rng(2), np.linspace(0.0, 1.0, 20_001)
    for _ in range(200):
        sigma, mu, slack = rng.uniform(1e-3, 1.0), 3.0 * rng.normal(), rng.exponential()
        phi = self_tuned(sigma, mu, slack)
        psi = (sigma * phis) ** 2 + 2.0 * sigma * phis * (1.0 - phis * mu)
        assert 0.0 < phi <= 1.0
        assert abs(phi - phis[psi <= slack].max()) <= 1e-4


@pytest.mark.parametrize("shrinking", ["self-tuned", "fixed"])
@pytest.mark.parametrize("budget", [1, 4, 12])
def test_the_forgetron_is_its_twin(shrinking, budget):
    X, y = table()
    learner, arrivals = Forgetron(budget, shrinking), arrivals_of(X, y)
    a, told = forgetron_twin(gram(X), y, budget, shrinking == "fixed")
    state = learn(learner, arrivals)
    assert coefficients(learner, state, 90) == pytest.approx(a, abs=2e-4)
    assert state.outputs[0].counts[MISTAKES] == len(told)
    assert state.outputs[0].sums[USED] == pytest.approx(told[-1][0], abs=1e-3)
    assert state.outputs[0].sums[SQUARE] == pytest.approx(a @ gram(X) @ a, abs=1e-3)
    assert any(phi < 1.0 for *_, phi in told)


def test_what_forgetting_costs_stays_below_its_share_of_the_mistakes():
    X, y = table(300, density=1.0)
    learner, arrivals = Forgetron(10), arrivals_of(X, y)
    state, before = learner.start(arrivals, np.random.default_rng(0)), 1.0
    for i in range(300):
        learner.advance(arrivals.part(np.array([i])), state)
        active = state.outputs[0]
        assert active.sums[USED] <= 15.0 / 32.0 * active.counts[MISTAKES] + 1e-9
        assert 0.0 < active.sums[FACTOR] <= before or before < 1e-6
        assert (np.abs(active.coefficients[active.order[active.listed]]) <= 1.0).all()
        before = active.sums[FACTOR]
    assert before < 0.9


# -------------------------------------------------------------------------------------------------------- NORMA


@pytest.mark.parametrize("schedule", ["constant", "sqrt", "pegasos"])
@pytest.mark.parametrize("limits", [{}, {"tau": 11}, {"budget": 6}], ids=str)
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
@interpreted
def test_lazy_scaling_is_explicit_scaling(schedule, limits, bias):
    X, y = table()
    lam, eta = 0.05, 0.7
    rate = {"constant": lambda t: eta, "sqrt": lambda t: eta / math.sqrt(t), "pegasos": lambda t: 1.0 / (lam * t)}
    learner = Norma(lam, eta, schedule, **({"budget": None} | limits))
    state = learn(learner, arrivals_of(X, y, bias=bias))
    K = gram(X, shift=float(bias == "penalised"))
    a, b = norma_twin(K, y, lam, rate[schedule], bias=bias == "free", **limits)
    assert coefficients(learner, state, 90) == pytest.approx(a, rel=1e-9, abs=1e-14)
    assert learner.model(arrivals_of(X, y, bias=bias), state).intercept[0] == pytest.approx(b)


def test_the_factor_is_renewed_before_it_vanishes():
    X, y = table()
    learner = Norma(0.9, 1.0, "constant", budget=None)
    state = learn(learner, arrivals_of(X, y))
    assert 1e-9 < state.outputs[0].sums[FACTOR] <= 1.0
    a, _ = norma_twin(gram(X), y, 0.9, lambda t: 1.0)
    assert coefficients(learner, state, 90) == pytest.approx(a, rel=1e-9)


def test_with_the_steps_of_pegasos_it_counts_margin_errors():
    X, y = table()
    lam, K, counts = 0.03, gram(X), np.zeros(90)
    for t in range(90):
        counts[t] += t == 0 or y[t] * (counts * y @ K[:, t]) / (lam * t) < 1.0
    learner = Norma(lam, schedule="pegasos", budget=None)
    state = learn(learner, arrivals_of(X, y))
    assert coefficients(learner, state, 90) == pytest.approx(counts * y / (lam * 90), rel=1e-9)


@pytest.mark.parametrize("limit", ["tau", "budget"])
def test_what_truncation_drops_is_small(limit):
    X, y = table(200)
    lam, eta = 0.1, 0.5
    arrivals, K = arrivals_of(X, y), gram(X)
    for size in (5, 20, 60):
        cut = Norma(lam, eta, "constant", **({"budget": None} | {limit: size}))
        state = learn(cut, arrivals)
        assert state.numbers.size <= size
        a = coefficients(cut, state, 200)
        full = explicit(K, y, lam, eta, cut, arrivals)
        dropped = full - a
        assert math.sqrt(dropped @ K @ dropped) <= (1.0 - eta * lam) ** size / lam


def explicit(K, y, lam, eta, cut, arrivals):
    """The coefficients with those kept that the learner dropped, its margin errors being what they were."""
    state, full = cut.start(arrivals, np.random.default_rng(0)), np.zeros(len(y))
    for i in range(len(y)):
        cut.advance(arrivals.part(np.array([i])), state)
        full *= 1.0 - eta * lam
        full[i] = eta * y[i] * (i in state.numbers)
    return full


def test_the_tau_of_an_error():
    lam, eta, error = 0.01, 0.5, 1e-3
    tau = truncation(lam, eta, error)
    assert (1.0 - eta * lam) ** tau / lam <= error < (1.0 - eta * lam) ** (tau - 1) / lam
    assert tau <= math.ceil(math.log(1.0 / (lam * error)) / (eta * lam))
