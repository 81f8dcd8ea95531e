"""Every solver agrees with every other through its certificate: one optimum lies between all bounds and all values."""

import numpy as np
import pytest

import golden
from conformance import kernel_problems, kernel_running, problems, regressions, running
from conformance.problems import TABLES, WEIGHTED
from slackwater.objective import hinge, l2, loss_name, optimal_bias, tube_loss
from slackwater.objective.kernel_regression import kernel_regression_problem
from slackwater.objective.kernels import Kernel
from slackwater.solvers.contract import tasks_of
from slackwater.solvers.registry import solver_classes
from slackwater.training import Limits, run

LINEAR = Kernel("linear")
KINDS = sorted({(case.loss, case.bias) for case in (*problems.CASES, *kernel_problems.CASES)})
EXACT = ("C1", "C6")  # rules whose bounds come to the optimum itself


def answers(loss, bias, table):
    """Case, problem and run of every solver that treats this loss and bias, those with kernels over the linear one."""
    for case in problems.CASES:
        if (case.loss, case.bias, case.penalty) == (loss, bias, l2()):
            problem = problems.build(case, table)
            yield case, problem, run(problem, case.new(), running.limits(case), rng=0)
    for case in kernel_problems.CASES:
        if (case.loss, case.bias) == (loss, bias):
            problem = kernel_problems.build(case, table, LINEAR)
            yield case, problem, run(problem, case.new(), kernel_running.limits(case), rng=0)


GOLDEN = [case for case in kernel_problems.CASES if (case.loss, case.bias) == (hinge(), "none")]


@pytest.mark.parametrize("case", GOLDEN, ids=str)
def test_kernel_solvers_come_to_the_golden_machine(case):
    """Its optimum, and for the bounds that are exact its alpha."""
    svm = golden.SVM
    problem = kernel_problems.build(case, problems.Table(np.array(svm.z), np.ones(4)), LINEAR, C=svm.C)
    found = run(problem, case.new(), kernel_running.limits(case), rng=0)
    assert found.certificate.dual <= svm.optimum * (1.0 + 1e-12) and found.certificate.primal >= svm.optimum - 1e-12
    assert found.certificate.relative_gap <= kernel_running.reach(case)
    if case.cls.rule in EXACT:
        assert found.alpha == pytest.approx(svm.alpha, abs=1e-3)
        assert found.model.primal_weights()[0] == pytest.approx(svm.w, abs=1e-3)
        assert found.certificate.primal == pytest.approx(svm.optimum, rel=1e-7)


def linear_weights(model) -> np.ndarray:
    """w of either kind of model."""
    return model.primal_weights()[0] if hasattr(model, "kernel") else model.coef[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{loss_name(kind[0])}-{kind[1]}")
@pytest.mark.parametrize("table", ["weighted", "duplicates"])
def test_solvers_agree_within_their_gaps(kind, table):
    loss, bias = kind
    found = list(answers(loss, bias, TABLES[table]))
    assert {"classification", "kernel"} <= {task for case, _, _ in found for task in tasks_of(case.cls)}
    assert running.agree(*(answer for _, _, answer in found))
    exact = [(case, problem, answer) for case, problem, answer in found if case.cls.rule in EXACT]
    assert len({case.name for case, _, _ in exact}) >= 5
    for case, _, answer in exact:
        assert answer.certificate.relative_gap <= 1e-7, case
    lowest = min(exact, key=lambda entry: entry[2].certificate.primal)
    best = linear_weights(lowest[2].model)
    for case, problem, answer in found:
        gap = answer.certificate.gap + lowest[2].certificate.gap
        # lambda ||w - w*||^2 / 2 <= P(w) - P*
        furthest = np.sqrt(2.0 * max(gap, 1e-12) / problem.regularisation)
        distance = np.linalg.norm(linear_weights(answer.model) - best)
        assert distance <= 2.0 * furthest + 1e-6, case


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[1] == "free"], ids=lambda kind: loss_name(kind[0]))
def test_free_biases_are_the_best_for_their_weights(kind):
    for case, problem, answer in answers(*kind, WEIGHTED):
        scores = answer.model.decision_values(WEIGHTED.X) - answer.model.intercept[0]
        interval = optimal_bias(case.loss, scores, problem.labels, problem.costs)
        assert interval.low - 1e-9 <= answer.model.intercept[0] <= interval.high + 1e-9, case


@pytest.mark.parametrize("case", regressions.CASES, ids=str)
@pytest.mark.parametrize("name", ["weighted", "zero rows", "repeated targets"])
def test_solvers_of_regression_agree(case, name):
    table = regressions.TABLES[name]
    linear = regressions.settle(case, regressions.build(case, table))
    for cls in solver_classes("kernel-regression").values():
        margin = problems.Case(cls.name, cls, kernel_problems.CASES[0].loss, case.bias)
        like = kernel_problems.build(margin, problems.Table(table.X, np.ones(len(table.X)), table.weights), LINEAR)
        problem = kernel_regression_problem(
            like.gram, table.targets, tube_loss(case.loss, case.epsilon), 0.7, table.weights, case.bias
        )
        kernelised = run(problem, cls(), Limits(tol=1e-8, max_rounds=200))
        assert kernelised.status.converged and running.agree(linear, kernelised)
        assert kernelised.model.primal_weights()[0] == pytest.approx(linear.model.coef[0], abs=1e-3)
