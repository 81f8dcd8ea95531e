"""The public faces of sparsifiers: the function, SVC(max_support=), SparseSVC, the command."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slackwater
from slackwater import SVC, SVR, LinearSVC, SparseSVC, load, save
from slackwater.cli import main
from slackwater.estimators import sparsify, sparsifying
from slackwater.estimators.dense_models import dense_of
from slackwater.models import KernelModel
from slackwater.sparsify.registry import sparsifier_classes
from slackwater.sparsify.slant import Slant
from sparsifying import clouds

from .test_cli import folder, ran, two_blobs  # noqa: F401

FAST = {"method_options": {"eta": 0.25, "eps": 0.25}, "random_state": 0}


@pytest.fixture(scope="module")
def blobs():
    table = clouds(300, 4, 3, weighted=False)
    return table.X, np.where(table.labels > 0, "yes", "no")


@pytest.fixture(scope="module")
def svm(blobs):
    return SVC(gamma=0.3).fit(*blobs)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:500] / 16.0, y[:500]


ORDERS = [
    "from slackwater import sparsify; import slackwater.sparsify.slant as slant; f = sparsify",
    "import slackwater.sparsify.slant as slant; from slackwater import sparsify as f",
    "import slackwater; f = slackwater.sparsify; import slackwater.sparsify.slant; slant = slackwater.sparsify.slant",
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_function_and_the_folder_have_one_name(order):
    call = "try: f(3, [[1.0]], [1])\nexcept TypeError as e: print(e)"
    text = f"{order}\nassert callable(f) and slant.Slant.name == 'slant'\n{call}"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("only classifiers with a kernel can be made sparse: ")


def test_a_small_model_predicts_like_the_dense_one(svm, blobs):
    X, y = blobs
    small = slackwater.sparsify(svm, X, y, max_support=20, random_state=0)
    assert small.n_support <= 20 < svm.model_.n_support
    assert np.mean(small.predict(X) == svm.predict(X)) > 0.85
    assert small.model.classes.tolist() == ["no", "yes"]
    assert (small.decision_function(X) > 0).tolist() == (small.predict(X) == "yes").tolist()
    assert small.before.support == svm.model_.n_support and small.point in small.curve
    assert small.method == "slant-aggressive" and set(small.settings) == {"eta", "eps", "bias"}
    assert np.asarray(small.model.vectors.values) == pytest.approx(X[small.model.support])
    again = sparsify(svm, X, y, max_support=20, random_state=0)
    assert np.array_equal(again.model.coef, small.model.coef)


def test_scikit_learns_machines_are_taken_as_they_are(blobs, digits):
    for X, y in (blobs, digits):
        for stored in (np.asarray, sp.csr_array):
            theirs = sklearn.svm.SVC(gamma=0.1, decision_function_shape="ovo").fit(stored(X), y)
            values = dense_of(theirs).model.decision_values(X)
            assert values == pytest.approx(theirs.decision_function(stored(X)), abs=1e-6)
    X, y = blobs
    for theirs in (sklearn.svm.SVC(kernel="poly", coef0=1.0), sklearn.svm.NuSVC(nu=0.6)):
        small = sparsify(theirs.fit(X, y), X, y, max_support=10, **FAST)
        assert 0 < small.n_support <= 10


@pytest.mark.parametrize("kind", ["ovo", "ovr"])
def test_several_classes_share_their_vectors(digits, kind, tmp_path):
    X, y = digits
    svm = SVC(gamma=0.05, C=10.0, multi_class=kind).fit(X, y)
    small = sparsify(svm, X, y, max_support=30, **FAST)
    assert 5 < small.n_support <= 30 and np.unique(small.model.support).size == small.n_support
    assert max(point.support for point in small.curve) <= 30
    assert np.mean(small.predict(X) != y) < 0.05
    assert small.point.holdout_error == min(point.holdout_error for point in small.curve)
    save(small.model, tmp_path / "small.model")
    assert np.array_equal(load(tmp_path / "small.model").predict(X), small.predict(X))
    if kind == "ovo":
        assert np.array_equal(small.model.blocks, np.bincount(y[small.model.support]))


def test_short_memory_changes_nothing_but_the_work(digits, monkeypatch):
    X, y = digits
    svm = SVC(gamma=0.05, C=10.0).fit(X, y)
    roomy = sparsify(svm, X, y, max_support=30, **FAST)
    monkeypatch.setattr(sparsifying, "_SHARE_FOR_ROWS", 0.0)
    short = sparsify(svm, X, y, max_support=30, **FAST)
    assert np.array_equal(short.model.support, roomy.model.support)
    assert short.model.coef == pytest.approx(roomy.model.coef, abs=1e-9)
    assert short.curve[-1].evaluations > roomy.curve[-1].evaluations > 0


def test_bytes_and_increase_of_several_classes(digits):
    X, y = digits
    svm = SVC(gamma=0.05, C=10.0, multi_class="ovr").fit(X, y)
    by_bytes = sparsify(svm, X, y, max_bytes=12_000, **FAST)
    assert by_bytes.model.n_bytes == by_bytes.point.n_bytes <= 12_000
    increase = sparsify(svm, X, y, max_error_increase=0.05, **FAST)
    assert increase.point.holdout_error <= increase.before.holdout_error + 0.05 + 1e-12
    assert increase.n_support < svm.model_.n_support
    none = sparsify(svm, X, y, max_time=1e-3, max_support=30, random_state=0)
    assert none.status.code == "max_time" and none.n_support <= 30


@pytest.mark.parametrize(("classes", "bias"), [(2, True), (3, True), (2, "penalised"), (3, "penalised")])
def test_precomputed_kernels(classes, bias, digits):
    X, y = digits
    X, y = X[:150], y[:150] % classes
    K = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(-1))
    svm = SVC(kernel="precomputed", C=10.0, fit_intercept=bias).fit(K, y)
    small = sparsify(svm, K, y, max_support=15, **FAST)
    assert small.n_support <= 15 and np.mean(small.predict(K) != y) < 0.2
    plain = sparsify(SVC(gamma=0.05, C=10.0, fit_intercept=bias).fit(X, y), X, y, max_support=15, **FAST)
    assert np.mean(plain.predict(X) == small.predict(K)) > 0.9
    given = sparsify(svm, K, y, max_support=15, validation=(K[::2], y[::2]), **FAST)
    assert given.n_support <= 15


def test_a_model_that_is_small_enough_is_kept(svm, blobs):
    X, y = blobs
    kept = sparsify(svm, X, y, max_support=300)
    assert kept.model is svm.model_ and kept.status.code == "kept" and len(kept.curve) == 1
    assert str(kept.status).startswith("small enough already: ")


def test_errors_are_weighted(svm, blobs):
    X, y = blobs
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, y.size).astype(float)
    held = clouds(50, 4, 9, weighted=False)
    other = held.X, np.where(held.labels > 0, "yes", "no")
    weighted = sparsify(svm, X, y, max_support=10, sample_weight=weights, validation=other, **FAST)
    wrong = svm.predict(X) != y
    assert weighted.before.train_error == pytest.approx(wrong @ weights / weights.sum())
    assert (weights[weighted.model.support] > 0).all()
    classes = SVC(gamma=0.3, class_weight={"yes": 3.0}).fit(X, y)
    found = sparsify(classes, X, y, max_support=10, validation=other, **FAST)
    counts = np.where(other[1] == "yes", 3.0, 1.0)
    assert found.before.holdout_error == pytest.approx(
        (classes.predict(other[0]) != other[1]) @ counts / counts.sum()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"method": "slent"}, "method='slent' is not known"),
        ({"method_options": {"epsilon": 1}}, "method 'slant-aggressive' has no setting 'epsilon'"),
        ({"max_support": 0.5}, "max_support must be a whole number"),
        ({"validation": 1.0}, "validation must be a share of at least 0 and below 1, or"),
        ({"validation": (1, 2, 3)}, r"validation must be a share or a pair \(X, y\), got 3 things"),
        ({"sample_weight": np.zeros(300)}, "at least one non-zero"),
        ({"cache_mb": -1}, "cache_mb must be 'auto' or a positive number"),
    ],
)
def test_what_cannot_be_is_said(svm, blobs, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        sparsify(svm, *blobs, **{"max_support": 5} | change)


def test_what_cannot_be_made_sparse_is_said(svm, blobs, digits):
    X, y = blobs
    with pytest.raises(TypeError, match=r"only classifiers with a kernel .* got LinearSVC"):
        sparsify(LinearSVC().fit(X, y), X, y)
    with pytest.raises(TypeError, match="got SVR"):
        sparsify(SVR().fit(X, X[:, 0]), X, y)
    with pytest.raises(ValueError, match="X has 3 columns, but the model was fitted on 4"):
        sparsify(svm, X[:, :3], y)
    with pytest.raises(ValueError, match="X has 300 rows, y 299 labels"):
        sparsify(svm, X, y[1:])
    with pytest.raises(ValueError, match=r"labels that are none of the classes \('no', 'yes'\): 'perhaps'"):
        sparsify(svm, X, np.where(np.arange(300) == 7, "perhaps", y))
    several = SVC(gamma=0.05).fit(*digits)
    kept = digits[1] != 3
    with pytest.raises(ValueError, match="y holds no row of class 3, which the model knows"):
        sparsify(several, digits[0][kept], digits[1][kept], max_support=10)


def test_a_bare_model_and_a_method_of_ones_own(svm, blobs):
    X, y = blobs
    model = svm.model_
    bare = KernelModel(model.kernel, model.vectors, model.coef, model.intercept, model.support)
    seen = []
    small = sparsify(bare, X, np.where(y == "yes", 1, -1), method=Slant(eta=0.25), watchers=[seen.append])
    assert small.settings["eta"] == 0.25 and small.model.classes is None and seen == list(small.curve)
    everything = sparsify(bare, X, np.where(y == "yes", 1, -1), method=Slant(), validation=0)
    assert everything.point.holdout_error == pytest.approx(everything.point.train_error)


# ------------------------------------------------------------------------------------------------- the estimators


@pytest.mark.parametrize("kind", ["ovo", "ovr"])
def test_svc_tells_the_price(digits, kind):
    X, y = digits
    svm = SVC(gamma=0.05, C=10.0, multi_class=kind, max_support=40, random_state=0, tol=1e-4).fit(X, y)
    dense = clone(svm).set_params(max_support=None).fit(X, y)
    price = svm.price_
    assert price.support == svm.support_.size <= 40 < price.support_before == dense.support_.size
    assert svm.n_support_.sum() == svm.support_vectors_.shape[0] == price.support
    assert price.objective_before == pytest.approx(np.mean([c.primal for c in dense.certificates_]), rel=1e-3)
    assert price.objective > price.objective_before
    assert svm.score(X, y) > 0.95 and not hasattr(dense, "price_")
    assert svm.curve_.front()[-1].support <= 40


def test_the_price_is_the_objective(blobs):
    X, y = blobs
    svm = SVC(gamma=0.3, max_support=15, random_state=0, tol=1e-6).fit(X, y, sample_weight=np.full(300, 2.0))
    signs, f = np.where(y == "yes", 1.0, -1.0), svm.decision_function(X)
    square = svm.dual_coef_[0] @ (f[svm.support_] - svm.intercept_[0])
    expected = (0.5 * square + 2.0 * np.maximum(0.0, 1.0 - signs * f).sum()) / 600.0
    assert svm.price_.objective == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="max_support must be a whole number"):
        SVC(max_support="few").fit(X, y)


def test_sparse_svc_in_a_pipeline_and_a_search(blobs, tmp_path):
    X, y = blobs
    inner = SparseSVC(SVC(gamma=0.3), max_support=12, random_state=0, method_options={"eta": 0.25, "eps": 0.25})
    search = GridSearchCV(make_pipeline(StandardScaler(), inner), {"sparsesvc__estimator__C": [0.1, 1.0]}, cv=2)
    best = search.fit(X, y).best_estimator_[-1]
    assert best.model_.n_support <= 12 < best.estimator_.model_.n_support
    assert best.estimator_.C in (0.1, 1.0) and search.score(X, y) > 0.7
    assert str(best.status_) and best.point_ in best.curve_ and best.before_.support > 12
    assert best.support_vectors_.shape == (best.support_.size, 4)
    save(best.model_, tmp_path / "small.model")
    assert np.array_equal(load(tmp_path / "small.model").predict(X), best.predict(X))


# ---------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def trained(folder, capsys):  # noqa: F811
    ran(capsys, "train", "two.svm", "--kernel", "rbf", "--gamma", "0.3", "-q")
    return folder


def test_the_command_prints_saves_and_draws(trained, capsys):
    pytest.importorskip("matplotlib")
    out = ran(
        capsys, "sparsify", "two.model", "two.svm", "--max-support", "10", "--figure", "trade.svg", "-o", "s.model"
    )
    model = load("s.model")
    assert model.n_support <= 10 and model.meta["sparsified"]["method"] == "slant-aggressive"
    assert "(dense)" in out and "vectors" in out and "holdout error" in out and "kernel values" in out
    drawn = (trained / "trade.svg").read_text()
    assert drawn.startswith("<?xml") and "svg" in drawn
    X, _ = two_blobs()
    assert ran(capsys, "predict", "s.model", "two.svm").split() == [
        f"{v:.0f}" for v in model.predict(X.astype(np.float32))
    ]
    ran(capsys, "sparsify", "two.model", "two.svm", "--max-support", "10", "--figure", "trade.png", "-q")
    assert (trained / "trade.png").read_bytes().startswith(b"\x89PNG") and (trained / "two-small.model").is_file()
    assert "rbf gamma=0.3" in ran(capsys, "info", "two-small.model")


def test_the_commands_options_reach_the_search(trained, capsys):
    answer = json.loads(
        ran(capsys, "sparsify", "two.model", "two.svm", "--method", "slant", "--set", "eta=0.5", "--set", "eps=0.25",
            "--max-bytes", "300", "--validation", "two.svm", "--json")
    )  # fmt: skip
    assert answer["settings"] == {"eta": 0.5, "eps": 0.25, "bias": "fixed"} and answer["small"]["n_bytes"] <= 300
    assert answer["small"]["support"] == load("two-small.model").n_support
    out = ran(capsys, "sparsify", "two.model", "two.svm", "--max-error-increase", "0.2", "--max-time", "60", "-q")
    assert out.startswith("status ")
    assert "time limit" in ran(capsys, "sparsify", "two.model", "two.svm", "--max-time", "1e-9")


def test_the_command_lists_the_methods(capsys):
    out = ran(capsys, "sparsify", "--list-methods")
    assert all(name in out for name in sparsifier_classes()) and "eta" in out


def test_words_as_labels(trained, capsys):
    ran(capsys, "train", "three.svm", "--kernel", "rbf", "--gamma", "0.3", "-q")
    ran(capsys, "sparsify", "three.model", "three.svm", "--max-support", "20", "-q")
    assert set(load("three-small.model").classes) == {"milk", "rum", "tea"}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--method", "slent"], 2, "method='slent' is not known; the methods are "),
        (["--set", "epsilon=1"], 2, "has no setting 'epsilon'"),
        (["--set", "eta=-1"], 2, "eta must be positive"),
        (["--validation", "1.5"], 2, "--validation 1.5 is neither a share between 0 and 1 nor a file"),
        (["--validation", "none.svm"], 1, "none.svm"),
        (["--figure", "trade.gif"], 2, "--figure trade.gif: the file must end in .png, .svg, .pdf"),
        (["-o", "two.svm"], 2, "two.svm is the input"),
        (["--max-support", "0"], 2, "--max-support"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_of_the_command(trained, capsys, arguments, code, sentence):
    assert main(["sparsify", "two.model", "two.svm", *arguments]) == code
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_a_linear_model_and_strange_labels_are_refused(trained, capsys):
    ran(capsys, "train", "two.svm", "-o", "linear.model", "-q")
    assert main(["sparsify", "linear.model", "two.svm"]) == 2
    assert "is no classifier with a kernel" in capsys.readouterr().err
    assert main(["sparsify", "two.model", "three.svm"]) == 1
    assert "has rows of the label" in capsys.readouterr().err


def test_a_missing_matplotlib_is_said_before_the_work(trained, capsys, monkeypatch):
    monkeypatch.setattr("slackwater.cli.figures.find_spec", lambda name: None)
    assert main(["sparsify", "two.model", "two.svm", "--figure", "trade.png"]) == 2
    assert capsys.readouterr().err.strip().endswith('--figure needs matplotlib: pip install "slackwater[plots]"')


def test_ctrl_c_saves_the_best_so_far(trained, capsys, monkeypatch):
    original = Slant.sequence

    def pressed(self, *arguments):
        for small in original(self, *arguments):
            yield small
            if small.size == 4:
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Slant, "sequence", pressed)
    assert main(["sparsify", "two.model", "two.svm", "--max-support", "50"]) == 130
    told = capsys.readouterr()
    assert "interrupted" in told.out and load("two-small.model").n_support <= 6
