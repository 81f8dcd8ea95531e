"""The faces that scikit-learn's users know."""

from slackwater.estimators.linear_svc import LinearSVC
from slackwater.estimators.linear_svr import LinearSVR
from slackwater.estimators.svc import SVC
from slackwater.estimators.svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR"]
