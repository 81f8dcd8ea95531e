"""The faces that scikit-learn's users know."""

from slackwater.estimators.linear_svc import LinearSVC
from slackwater.estimators.linear_svc_cv import LinearSVCCV
from slackwater.estimators.linear_svr import LinearSVR
from slackwater.estimators.one_class_svm import OneClassSVM
from slackwater.estimators.online_svc import OnlineSVC
from slackwater.estimators.planning import Plan, plan
from slackwater.estimators.regularisation_path import RegularisationPath, path
from slackwater.estimators.sparse_svc import SparseSVC
from slackwater.estimators.sparsifying import SparseModel, sparsify
from slackwater.estimators.svc import SVC
from slackwater.estimators.svr import SVR

__all__ = [
    "SVC",
    "SVR",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "OneClassSVM",
    "OnlineSVC",
    "Plan",
    "RegularisationPath",
    "SparseModel",
    "SparseSVC",
    "path",
    "plan",
    "sparsify",
]
