"""What fitting returns: models that give decision values and labels, and that save to files of numbers."""

from slackwater.models.files import ModelFileError, load, save
from slackwater.models.linear import LinearModel, LinearRegressionModel

__all__ = ["LinearModel", "LinearRegressionModel", "ModelFileError", "load", "save"]
