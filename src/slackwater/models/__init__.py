"""What fitting returns: models that give decision values and labels, and that save to files of numbers."""

from slackwater.models.files import ModelFileError, load, save
from slackwater.models.kernel import Expansion, KernelModel, KernelRegressionModel
from slackwater.models.linear import LinearModel, LinearRegressionModel
from slackwater.models.of_problem import model_of
from slackwater.models.voted import VotedModel

__all__ = [
    "Expansion",
    "KernelModel",
    "KernelRegressionModel",
    "LinearModel",
    "LinearRegressionModel",
    "ModelFileError",
    "VotedModel",
    "load",
    "model_of",
    "save",
]
