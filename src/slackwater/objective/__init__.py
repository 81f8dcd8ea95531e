"""What is minimised: losses, the problem, its parameters, the bias, and the certificates of how close an answer is."""

from slackwater.objective.bias import Interval, optimal_bias
from slackwater.objective.certificate import (
    BoxPoint,
    Certificate,
    CountPoint,
    CutPoint,
    DirectionPoint,
    DualPoint,
    Evaluation,
    GradientPoint,
    certify,
    epoch_bound,
    lower_bound,
    primal_value,
)
from slackwater.objective.losses import (
    LOSSES,
    Loss,
    hinge,
    huber,
    loss_family,
    loss_name,
    parse_loss,
    smoothed_hinge,
    squared_hinge,
)
from slackwater.objective.multiclass import MulticlassProblem, multiclass_problem
from slackwater.objective.problem import BiasKind, LinearProblem, Problem, linear_problem

__all__ = [
    "LOSSES",
    "BiasKind",
    "BoxPoint",
    "Certificate",
    "CountPoint",
    "CutPoint",
    "DirectionPoint",
    "DualPoint",
    "Evaluation",
    "GradientPoint",
    "Interval",
    "LinearProblem",
    "Loss",
    "MulticlassProblem",
    "Problem",
    "certify",
    "epoch_bound",
    "hinge",
    "huber",
    "linear_problem",
    "loss_family",
    "loss_name",
    "lower_bound",
    "multiclass_problem",
    "optimal_bias",
    "parse_loss",
    "primal_value",
    "smoothed_hinge",
    "squared_hinge",
]
