"""Training that can end at any time: a few rounds, the gap that they bought, and going on from there."""

import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from slackwater import LinearSVC

X, y = make_classification(20_000, 100, n_informative=40, flip_y=0.2, random_state=0)
X = X.astype(np.float32)  # used in place, without a copy

svm = LinearSVC(C=1e-4, tol=0.01, warm_start=True, random_state=0)
for budget in ({"max_rounds": 2}, {"max_rounds": 3}, {"max_rounds": None, "max_time": 10.0}):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status says it, too
        svm.set_params(**budget).fit(X, y)
    print(f"{svm.status_}\n    {svm.certificate_}")

print("\nround  seconds   primal    bound     gap")
svm.set_params(warm_start=False, certify_every=1).fit(X, y)
for record in svm.history_:
    print(f"{record.round:5d} {record.seconds:8.3f} {record.primal:8.4f} {record.dual:8.4f} {record.relative_gap:7.2%}")
