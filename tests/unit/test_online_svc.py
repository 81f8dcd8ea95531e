"""OnlineSVC: what users see of online learners, and what is proven of them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits

from problems import optimum_of
from slackwater import OnlineSVC, load, save
from slackwater.objective import hinge

LEARNERS = ("forgetron", "rbp", "norma", "kernel-perceptron")


def digits(n=400, classes=10):
    X, y = load_digits(return_X_y=True)
    kept = y < classes
    return X[kept][:n] / 16.0, y[kept][:n]


def gram(svm, X):
    kernel = svm.model_.kernel
    return np.exp(-kernel.gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("learner", LEARNERS)
def test_several_classes_are_learnt(learner):
    X, y = digits(1000)
    budget = 400 if learner == "norma" else 60  # NORMA stores whatever lacks the margin
    svm = OnlineSVC(learner, budget=budget, epochs=2, random_state=0).fit(X[:700], y[:700])
    assert svm.score(X[700:], y[700:]) > 0.85
    assert svm.decision_function(X).shape == (1000, 10) and svm.dual_coef_.shape == (10, svm.support_.size)
    assert svm.online_error_ == svm.mistakes_ / svm.n_seen_ < 0.5 and svm.n_seen_ == 1400
    assert (svm.support_vectors_ == X[svm.support_]).all()
    if learner != "kernel-perceptron":
        assert (np.count_nonzero(svm.dual_coef_, axis=1) <= budget).all()


def test_one_class_against_the_rest_is_as_each_alone():
    X, y = digits(300, 3)
    together = OnlineSVC("forgetron", budget=8, gamma=0.1, shuffle=False).fit(X, y)
    for k in range(3):
        alone = OnlineSVC("forgetron", budget=8, gamma=0.1, shuffle=False).fit(X, y == k)
        assert together.decision_function(X)[:, k] == pytest.approx(alone.decision_function(X), abs=1e-9)
        assert together.certificates_[k].primal == pytest.approx(alone.certificate_.primal, rel=1e-9)
        assert together.certificates_[k].dual == pytest.approx(alone.certificate_.dual, rel=1e-9)
        assert together.n_support_[k] == alone.n_support_[1]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("size", [1, 7, 150])
def test_calls_of_any_size_are_one_call(learner, size):
    X, y = digits(150, 4)
    options = {"budget": 20, "gamma": 0.05, "certify": False, "random_state": 3}
    whole = OnlineSVC(learner, shuffle=False, **options).fit(X, y)
    parts = OnlineSVC(learner, **options)
    for start in range(0, 150, size):
        known = np.unique(y) if start == 0 else None
        parts.partial_fit(X[start : start + size], y[start : start + size], known)
    assert parts.support_.tolist() == whole.support_.tolist() and parts.mistakes_ == whole.mistakes_
    assert parts.decision_function(X) == pytest.approx(whole.decision_function(X), rel=1e-7, abs=1e-12)


def test_the_kernel_is_settled_by_the_first_call():
    X, y = digits()
    svm = OnlineSVC(random_state=0).partial_fit(X[:100], y[:100], range(10))
    gamma = svm.model_.kernel.gamma
    svm.partial_fit(5.0 * X[100:], y[100:])
    assert svm.model_.kernel.gamma == gamma == OnlineSVC(random_state=0).fit(X[:100], y[:100]).model_.kernel.gamma


def test_sparse_and_dense_blocks_may_take_turns():
    X, y = digits(200)
    options = {"gamma": 0.05, "budget": 30, "random_state": 0}
    dense, mixed = OnlineSVC(**options), OnlineSVC(**options)
    for k, start in enumerate(range(0, 200, 50)):
        part, labels = X[start : start + 50], y[start : start + 50]
        dense.partial_fit(part, labels, range(10))
        mixed.partial_fit(sp.csr_array(part) if k % 2 == 0 else part, labels, range(10))
    assert mixed.decision_function(X) == pytest.approx(dense.decision_function(X), abs=1e-9)


def test_fit_forgets_and_seeds_repeat():
    X, y = digits()
    svm = OnlineSVC("rbp", budget=20, random_state=1).fit(X[:, ::2], y % 2)
    again = svm.fit(X, y).decision_function(X)
    assert (again == clone(svm).fit(X, y).decision_function(X)).all()
    assert (again != clone(svm).set_params(random_state=2).fit(X, y).decision_function(X)).any()


# ------------------------------------------------------------------------------------------------ the certificate


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_the_certificate_holds(learner, intercept):
    X, y = digits(120, 2)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    options = {"lam": 0.01} if learner == "norma" else {}
    svm = OnlineSVC(
        learner, budget=40, epochs=3, gamma=0.02, C=0.3, fit_intercept=intercept, learner_options=options,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    C = 1.0 / (0.01 * 120) if learner == "norma" else 0.3
    K, signs = gram(svm, X) + intercept, np.where(y == 1, 1.0, -1.0)
    features = np.linalg.cholesky(K + 1e-12 * np.eye(120))
    best = optimum_of(features, signs, np.full(120, C), hinge(), "none").primal
    a = np.bincount(svm.support_, svm.dual_coef_[0], minlength=120)
    primal = 0.5 * a @ K @ a + C * np.maximum(0.0, 1.0 - signs * (K @ a)).sum()
    assert svm.certificate_.primal == pytest.approx(primal / (C * 120), rel=1e-9)
    assert 0.0 < svm.certificate_.dual <= best * (1.0 + 1e-9) <= svm.certificate_.primal * (1.0 + 1e-9)
    assert svm.certificate_.rule == "C5"


def test_a_row_that_is_stored_twice_has_one_alpha():
    X, y = digits(60, 2)
    X, y = np.vstack((X[:1], X[:1], X)), np.append([0, 1], y)
    svm = OnlineSVC("rbp", budget=100, epochs=30, gamma=0.01, C=1e-3, random_state=0).fit(X, y)
    assert np.unique(svm.support_).size < svm.support_.size
    K, signs = gram(svm, X), np.where(y == 1, 1.0, -1.0)
    p = np.abs(np.bincount(svm.support_, svm.dual_coef_[0], minlength=len(y)))
    Q = K * np.outer(signs, signs)
    s = min(1e-3 / p.max(), p.sum() / (p @ Q @ p))
    assert svm.certificate_.dual == pytest.approx((s * p.sum() - 0.5 * s * s * p @ Q @ p) / (1e-3 * len(y)), rel=1e-9)


def test_the_certificate_is_of_the_last_call():
    X, y = digits(300, 2)
    svm = OnlineSVC("norma", budget=None, fit_intercept="free", random_state=0).partial_fit(X[:200], y[:200], [0, 1])
    svm.partial_fit(X[200:], y[200:])
    values, signs = svm.decision_function(X), np.where(y == 1, 1.0, -1.0)
    square = svm.dual_coef_[0] @ (values[svm.support_] - svm.intercept_)
    losses = np.maximum(0.0, 1.0 - signs * values)[200:].mean()
    assert svm.certificate_.primal == pytest.approx(0.5e-3 * square + losses, rel=1e-9)
    assert svm.certificate_.dual <= svm.certificate_.primal and svm.certificate_.rule in ("C5", "C5+C7")
    svm.set_params(certify=False).partial_fit(X[:5], y[:5])
    assert not hasattr(svm, "certificate_")


def test_nothing_learnt_proves_nothing():
    X, y = digits(100, 2)
    svm = OnlineSVC(random_state=0, epochs=30).fit(X, y)
    right = svm.predict(X) == y
    svm.partial_fit(X[right][:3], y[right][:3])
    assert svm.certificate_.dual == 0.0 and np.isinf(svm.certificate_.relative_gap)


# -------------------------------------------------------------------------------------------------- in and out


@pytest.mark.parametrize("output", ["averaged", "voted"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", [2, 10])
def test_saved_models_predict_the_same(tmp_path, output, storage, classes):
    X, y = digits(200, classes)
    X = storage(X)
    svm = OnlineSVC("kernel-perceptron", learner_options={"output": output}, random_state=0).fit(X, y)
    save(svm, tmp_path / "online.model")
    loaded = load(tmp_path / "online.model")
    assert (loaded.decision_values(X) == svm.decision_function(X)).all()
    assert (loaded.predict(X) == svm.predict(X)).all() and loaded.meta["solver"] == "kernel-perceptron"
    assert loaded.meta["certificates"][0]["primal"] == svm.certificates_[0].primal
    if output == "voted":
        assert np.abs(svm.decision_function(X)).max() <= 1.0 + 1e-12
        with pytest.raises(ValueError, match="X has 3 columns, but the model was fitted on 64"):
            loaded.predict(np.zeros((2, 3)))


def test_learning_goes_on_after_pickling():
    X, y = digits()
    svm = OnlineSVC("rbp", budget=25, random_state=0).fit(X[:200], y[:200])
    other = pickle.loads(pickle.dumps(svm))
    for one in (svm, other):
        one.partial_fit(X[200:], y[200:])
    assert (svm.decision_function(X) == other.decision_function(X)).all()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learner": "dcd"}, "learner='dcd' is not known; the online learners are forgetron, kernel-perceptron, norma"),
        ({"budget": 0}, "budget must be a whole number of vectors, at least 1, or None for no bound; got 0"),
        ({"epochs": 0}, "epochs must be a positive number, got 0"),
        ({"epochs": 1.5}, "epochs must be a whole number, got 1.5"),
        ({"C": -1.0}, "C must be a positive number, got -1.0"),
        ({"fit_intercept": "yes"}, "fit_intercept='yes' is not known; it is True, 'free' or False"),
        ({"fit_intercept": "free"}, "does not treat bias 'free'; solvers that can: "),
        ({"kernel": "precomputed"}, "kernel='precomputed' is SVC's"),
        ({"learner_options": {"size": 3}}, "solver 'forgetron' has no setting 'size'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(options, sentence):
    X, y = digits(50, 2)
    with pytest.raises(ValueError) as refusal:
        OnlineSVC(**options).fit(X, y)
    assert sentence in str(refusal.value)


def test_classes_are_named_once():
    X, y = digits(50, 3)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        OnlineSVC().partial_fit(X, y)
    svm = OnlineSVC().partial_fit(X, y, [0, 1, 2])
    with pytest.raises(ValueError, match="is not the same as on the first call"):
        svm.partial_fit(X, y, [0, 1])
    with pytest.raises(ValueError, match="labels that are none of the classes"):
        svm.partial_fit(X, y + 1)


def test_a_kernel_function_is_a_kernel():
    X, y = digits(60, 3)
    svm = OnlineSVC(kernel=lambda A, B: A @ B.T, budget=10, random_state=0).fit(X, y)
    linear = OnlineSVC(kernel="linear", budget=10, random_state=0).fit(X, y)
    assert svm.decision_function(X) == pytest.approx(linear.decision_function(X), abs=1e-6)
