"""From a solver's weights to the model of the problem's kind."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from slackwater.models.kernel import KernelModel, KernelRegressionModel
from slackwater.models.linear import LinearModel
from slackwater.objective.kernel_multiclass import KernelMulticlassProblem
from slackwater.objective.kernel_problem import KernelProblem
from slackwater.objective.kernel_regression import KernelRegressionProblem
from slackwater.objective.one_class import OneClassProblem
from slackwater.objective.problem import Problem


@singledispatch
def model_of(problem: Problem, weights: np.ndarray) -> Any:
    """The model that these weights are on the problem's rows."""
    return LinearModel.from_weights(weights, problem.rows.bias)


@model_of.register(KernelProblem)
@model_of.register(OneClassProblem)
def _kernel_model(problem: KernelProblem | OneClassProblem, weights: np.ndarray) -> KernelModel:
    return KernelModel.from_points(problem.gram.points, weights[:-1], float(weights[-1]))


@model_of.register
def _kernel_multiclass_model(problem: KernelMulticlassProblem, weights: np.ndarray) -> KernelModel:
    return KernelModel.from_points(problem.gram.points, weights[:, :-1], weights[:, -1])


@model_of.register
def _kernel_regression_model(problem: KernelRegressionProblem, weights: np.ndarray) -> KernelRegressionModel:
    return KernelRegressionModel.from_points(problem.gram.points, weights[:-1], float(weights[-1]))
