"""The faces that scikit-learn's users know."""

from slackwater.estimators.linear_svc import LinearSVC
from slackwater.estimators.linear_svr import LinearSVR
from slackwater.estimators.svc import SVC

__all__ = ["SVC", "LinearSVC", "LinearSVR"]
