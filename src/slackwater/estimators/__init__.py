"""The faces that scikit-learn's users know."""

from slackwater.estimators.linear_svc import LinearSVC

__all__ = ["LinearSVC"]
