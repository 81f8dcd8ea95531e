"""Kernel models: decision values by definition, votes as scikit-learn counts them, files that give back the same."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.metrics.pairwise import pairwise_kernels

from problems import quarters
from slackwater.models import Expansion, KernelModel, load, save
from slackwater.models import kernel as kernel_module
from slackwater.models.kernel import pairs_of, votes
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import DenseRows, as_matrix, as_rows

pytestmark = pytest.mark.interpreted
RBF = Kernel("rbf", gamma=0.2)
NOTHING = DenseRows(np.zeros((4, 0)), 0.0)


def model(rng, outputs=1, layout=np.asarray, kernel=RBF, **more) -> KernelModel:
    vectors = as_rows(layout(quarters(rng, n=6, d=23)))
    return KernelModel(kernel, vectors, rng.normal(size=(outputs, 6)), rng.normal(size=outputs), np.arange(6), **more)


def paired(rng, layout=np.asarray, **more) -> KernelModel:
    """Three classes with 3, 1 and 2 vectors."""
    vectors = as_rows(layout(quarters(rng, n=6, d=23)))
    coef, intercept = rng.normal(size=(2, 6)), rng.normal(size=3)
    return KernelModel(RBF, vectors, coef, intercept, np.arange(6), blocks=np.array([3, 1, 2]), **more)


# --------------------------------------------------------------------------------------------- decision values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("outputs", [1, 3])
def test_decision_values_are_sums_over_the_vectors(outputs, layout, dtype, rng):
    X = quarters(rng)
    found = model(rng, outputs, layout)
    vectors = found.vectors.values if layout is np.asarray else as_matrix(found.vectors).toarray()
    for other in (np.asarray, sp.csr_array):
        values = found.decision_values(other(X.astype(dtype)))
        assert values.dtype == np.float64 and values.shape == ((9,) if outputs == 1 else (9, outputs))
        K = pairwise_kernels(X, vectors, metric="rbf", gamma=0.2)
        assert values.reshape(9, -1) == pytest.approx(K @ found.coef.T + found.intercept, rel=1e-10, abs=1e-10)


def test_decision_values_of_pairs(rng):
    found, X = paired(rng), quarters(rng)
    K = pairwise_kernels(X, found.vectors.values, metric="rbf", gamma=0.2)
    of = [slice(0, 3), slice(3, 4), slice(4, 6)]
    values = found.decision_values(X)
    for pair, (a, b) in enumerate(pairs_of(3)):
        sums = K[:, of[a]] @ found.coef[b - 1, of[a]] + K[:, of[b]] @ found.coef[a, of[b]]
        assert values[:, pair] == pytest.approx(sums + found.intercept[pair], rel=1e-10)


def test_a_shift_is_part_of_the_kernel(rng):
    found, X = model(rng, shift=1.0), quarters(rng)
    K = pairwise_kernels(X, found.vectors.values, metric="rbf", gamma=0.2) + 1.0
    assert found.decision_values(X) == pytest.approx(K @ found.coef[0] + found.intercept[0], rel=1e-10)


def test_precomputed_models_look_at_the_columns_of_their_vectors(rng):
    found = KernelModel(
        Kernel("precomputed"), NOTHING, rng.normal(size=(1, 4)), rng.normal(size=1), np.array([1, 2, 5, 8]), shift=0.5
    )
    K = rng.normal(size=(3, 11))
    expected = (K[:, [1, 2, 5, 8]] + 0.5) @ found.coef[0] + found.intercept[0]
    assert found.decision_values(K) == pytest.approx(expected, rel=1e-12)
    for wrong in (K[:, :8], sp.csr_array(K)):
        with pytest.raises(ValueError, match="needs kernel values with all training rows, as a dense array"):
            found.decision_values(wrong)


def test_blocks_of_rows_fit_together(rng, monkeypatch):
    found, X = model(rng, 3), quarters(rng)
    whole = found.decision_values(X)
    monkeypatch.setattr(kernel_module, "_MOST_LINES", 4)
    assert found.decision_values(X) == pytest.approx(whole, rel=1e-12)


def test_models_without_vectors_give_their_intercepts():
    found = KernelModel(RBF, DenseRows(np.zeros((0, 3)), 0.0), np.zeros((1, 0)), np.array([2.5]), np.zeros(0, np.int64))
    assert found.decision_values(np.zeros((2, 3))).tolist() == [2.5, 2.5]
    assert found.predict(np.zeros((1, 3))).tolist() == [1.0]


def test_another_number_of_columns_is_refused(rng):
    with pytest.raises(ValueError, match="X has 22 columns, but the model was fitted on 23"):
        model(rng).decision_values(np.zeros((2, 22)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"coef": np.zeros((1, 5))}, "do not fit together"),
        ({"coef": np.zeros((1, 5)), "support": np.arange(5)}, "5 coefficients a line need as many support vectors"),
        ({"intercept": np.zeros(2)}, "do not fit together"),
        ({"support": np.arange(5)}, "do not fit together"),
        ({"coef": np.zeros((2, 6)), "intercept": np.zeros(3), "blocks": np.array([3, 3])}, "blocks .* do not fit"),
        ({"coef": np.zeros((2, 6)), "intercept": np.zeros(3), "blocks": np.array([3, 3, 1])}, "blocks .* do not fit"),
        ({"coef": np.zeros((2, 6)), "intercept": np.zeros(3), "blocks": np.array([7, 0, -1])}, "blocks .* do not fit"),
        ({"classes": np.arange(3)}, r"1 output\(s\) need 2 classes"),
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(rng, changes, sentence):
    found = model(rng)
    parts = {name: getattr(found, name) for name in ("kernel", "vectors", "coef", "intercept", "support")}
    with pytest.raises(ValueError, match=sentence):
        KernelModel(**parts | changes)


# ------------------------------------------------------------------------------------------------------- labels


def test_votes_are_those_of_scikit_learn(rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0.2)
    peer = sklearn.svm.SVC(break_ties=True).fit(X, y)
    pairs = peer.set_params(decision_function_shape="ovo").decision_function(X)
    expected = peer.set_params(decision_function_shape="ovr").decision_function(X)
    assert votes(pairs, 4) == pytest.approx(expected, rel=1e-12)
    assert pairs_of(4) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_labels(rng):
    X = quarters(rng)
    found = model(rng, classes=np.array(["no", "yes"]))
    assert found.predict(X).tolist() == ["yes" if value > 0 else "no" for value in found.decision_values(X)]
    rest = model(rng, 3, classes=np.array([5, 6, 7]))
    assert (rest.predict(X) == rest.decision_values(X).argmax(axis=1) + 5).all()
    pairs = paired(rng, classes=np.array(["a", "b", "c"]))
    expected = np.array(["a", "b", "c"])[votes(pairs.decision_values(X), 3).argmax(axis=1)]
    assert (pairs.predict(X) == expected).all()
    assert (pairs.labels_of(pairs.decision_values(X)) == expected).all()


def test_weights_of_the_linear_kernel(rng):
    for found in (model(rng, 2, kernel=Kernel("linear")), paired(rng)):
        found = KernelModel(
            Kernel("linear"), found.vectors, found.coef, found.intercept, found.support, blocks=found.blocks
        )
        X = quarters(rng)
        values = X @ found.primal_weights().T + found.intercept
        assert found.decision_values(X) == pytest.approx(values, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [0.0, 4096.0])
def test_from_points_gives_back_the_rows_as_they_were(layout, offset, rng):
    """Points centre rows far from the origin."""
    X = quarters(rng) + offset
    points = Points.of(as_rows(layout(X)), RBF, np.float64)
    coefficients = np.where(np.arange(9) % 2, rng.normal(size=9), 0.0)
    found = KernelModel.from_points(points, coefficients, 0.25)
    assert found.support.tolist() == [1, 3, 5, 7] and found.n_support == 4
    K = pairwise_kernels(X, metric="rbf", gamma=0.2)
    assert found.decision_values(layout(X)) == pytest.approx(K @ coefficients + 0.25, rel=1e-9)


def test_expansions_become_weights():
    assert Expansion(np.array([1.0, -2.0]), 0.5).weights().tolist() == [1.0, -2.0, 0.5]


# -------------------------------------------------------------------------------------------------------- files

CLASSES = [None, np.array([-1, 7]), np.array(["ham", "spam"]), np.array(["a", "bb"], dtype=object)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", CLASSES, ids=str)
def test_files_give_back_what_was_saved(tmp_path, rng, classes, layout, dtype):
    found = model(rng, 1, lambda X: layout(X.astype(dtype)), Kernel("polynomial", 0.25, 1.5, 4), classes=classes,
                  meta={"C": 2.0}, shift=1.0)  # fmt: skip
    save(found, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is KernelModel and again.kernel == found.kernel and again.meta == {"C": 2.0}
    assert again.vectors.dtype == dtype and type(again.vectors) is type(found.vectors)
    X = quarters(rng)
    assert (again.decision_values(X) == found.decision_values(X)).all()
    assert again.predict(X).tolist() == found.predict(X).tolist()
    assert (again.support == found.support).all() and again.shift == 1.0


def test_files_of_pairs_and_of_precomputed_kernels(tmp_path, rng):
    found, X = paired(rng, sp.csr_array, classes=np.array(["x", "yy", "z"])), quarters(rng)
    save(found, tmp_path / "pairs")
    again = load(tmp_path / "pairs")
    assert (again.decision_values(X) == found.decision_values(X)).all() and again.blocks.tolist() == [3, 1, 2]
    assert (again.predict(X) == found.predict(X)).all()
    one = KernelModel(Kernel("precomputed"), NOTHING, rng.normal(size=(1, 4)), np.zeros(1), np.array([0, 2, 3, 9]))
    save(one, tmp_path / "precomputed")
    K = rng.normal(size=(5, 10))
    assert (load(tmp_path / "precomputed").decision_values(K) == one.decision_values(K)).all()


def test_parts_of_larger_tables_are_saved_as_they_are(tmp_path, rng):
    """Compressed rows whose first entry is not the first of their arrays."""
    rows = as_rows(sp.csr_array(quarters(rng)))
    part = rows._replace(indptr=rows.indptr[3:])
    found = KernelModel(RBF, part, np.ones((1, 6)), np.zeros(1), np.arange(6))
    save(found, tmp_path / "model")
    X = quarters(rng)
    assert (load(tmp_path / "model").decision_values(X) == found.decision_values(X)).all()


def test_functions_are_not_saved(tmp_path, rng):
    found = model(rng, kernel=Kernel("callable", function=np.minimum))
    with pytest.raises(TypeError, match="a kernel function of your own cannot be saved: files hold numbers only"):
        save(found, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
