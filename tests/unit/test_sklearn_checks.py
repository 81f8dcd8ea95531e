"""scikit-learn's own checks of estimators, none of them expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from slackwater import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR, OneClassSVM, OnlineSVC, SparseSVC


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        LinearSVC(random_state=0),
        LinearSVC(loss="squared_hinge", fit_intercept="free", n_jobs=2, random_state=0),
        LinearSVC(loss="huber", class_weight="balanced", random_state=0),
        LinearSVC(intercept_scaling=3.0, tol=1e-5, certify_every=1, random_state=0),
        LinearSVCCV(Cs=[0.1, 1.0], cv=3, random_state=0),
        LinearSVCCV(Cs=[0.01, 1.0], cv=2, scoring="accuracy", loss="squared_hinge", n_jobs=2, random_state=0),
        LinearSVR(random_state=0),
        LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, fit_intercept="free", random_state=0),
        SVC(),
        SVC(kernel="linear", multi_class="ovr", fit_intercept="penalised"),
        SVC(kernel="precomputed", class_weight="balanced"),
        SVC(kernel="laplacian", loss="squared_hinge", fit_intercept=False, gamma="auto"),
        SVC(max_support=1000, random_state=0),
        SparseSVC(random_state=0),
        SparseSVC(SVC(kernel="linear", multi_class="ovr"), method="slant", random_state=0),
        SVR(),
        SVR(kernel="precomputed", loss="squared_epsilon_insensitive"),
        SVR(kernel="linear", fit_intercept="penalised", epsilon=0.0),
        OneClassSVM(),
        OneClassSVM(kernel="poly", coef0=1.0, nu=0.1),
        OneClassSVM(kernel="laplacian", gamma="auto", nu=0.9, solver_options={"size": 8}),
        OnlineSVC(random_state=0),
        OnlineSVC("rbp", budget=50, kernel="laplacian", fit_intercept=True, random_state=0),
        OnlineSVC("norma", fit_intercept="free", epochs=2, random_state=0),
        OnlineSVC("kernel-perceptron", learner_options={"output": "voted"}, random_state=0),
    ]
)
def test_estimator(estimator, check):
    check(estimator)
    assert check is not None
