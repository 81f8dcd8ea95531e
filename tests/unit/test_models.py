"""Models: decision values in every layout, labels, and files that give back what was saved."""

import hashlib
import json
import os
import stat

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open

from problems import quarters
from slackwater.models import LinearModel, ModelFileError, load, save
from slackwater.rows import as_rows, times

pytestmark = pytest.mark.interpreted

LAYOUTS = [
    pytest.param(lambda X, layout=layout, dtype=dtype: layout(X.astype(dtype)), id=f"{name}-{dtype}")
    for name, layout in (("dense", np.asarray), ("fortran", np.asfortranarray), ("csr", sp.csr_array))
    for dtype in ("float32", "float64")
]


def binary(rng, d=23, **facts) -> LinearModel:
    return LinearModel(rng.normal(size=(1, d)), rng.normal(size=1), **facts)


def several(rng, k=3, d=23, **facts) -> LinearModel:
    return LinearModel(rng.normal(size=(k, d)), rng.normal(size=k), **facts)


# --------------------------------------------------------------------------------------------- decision values


@pytest.mark.parametrize("layout", LAYOUTS)
def test_decision_values(layout, rng):
    X = quarters(rng)
    one, many = binary(rng), several(rng)
    assert one.decision_values(layout(X)) == pytest.approx(X @ one.coef[0] + one.intercept[0], rel=1e-13, abs=1e-13)
    assert many.decision_values(layout(X)) == pytest.approx(X @ many.coef.T + many.intercept, rel=1e-13, abs=1e-13)
    assert one.decision_values(layout(X)).shape == (9,)
    assert many.decision_values(layout(X)).dtype == np.float64


@pytest.mark.parametrize("layout", LAYOUTS)
def test_decision_values_of_rows_ignore_their_constant_feature(layout, rng):
    X, model = quarters(rng), binary(rng)
    rows = as_rows(layout(X), bias=3.0)
    assert model.decision_values(rows) == pytest.approx(model.decision_values(X), rel=1e-13, abs=1e-13)


def test_float32_data_lose_nothing_in_the_sum(rng):
    X = (1e4 + rng.normal(size=(300, 400))).astype(np.float32)
    model = binary(rng, d=400)
    exact = X.astype(np.float64) @ model.coef[0] + model.intercept[0]
    assert model.decision_values(X) == pytest.approx(exact, rel=1e-11, abs=1e-7)
    assert model.decision_values(sp.csr_array(X)) == pytest.approx(exact, rel=1e-11, abs=1e-7)


@pytest.mark.parametrize("shape", [(0, 23), (1, 23), (200, 2000)])
def test_blocks_of_rows_fit_together(shape, rng):
    X = rng.normal(size=shape).astype(np.float32)
    model = several(rng, d=shape[1])
    exact = X.astype(float) @ model.coef.T + model.intercept
    assert model.decision_values(X) == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_another_number_of_columns_is_refused(rng):
    for X in (np.zeros((2, 22)), sp.csr_array((2, 24))):
        with pytest.raises(ValueError, match=f"X has {X.shape[1]} columns, but the model was fitted on 23"):
            binary(rng).decision_values(X)


# ------------------------------------------------------------------------------------------- labels and weights


def test_labels_of_two_classes():
    model = LinearModel(np.array([[1.0]]), np.array([0.5]), np.array(["no", "yes"]))
    assert model.predict(np.array([[1.0], [-1.0], [-0.5]])).tolist() == ["yes", "no", "no"]
    bare = LinearModel(np.array([[1.0]]), np.array([0.5]))
    assert bare.predict(np.array([[1.0], [-1.0]])).tolist() == [1.0, -1.0]


def test_labels_of_several_classes():
    coef = np.eye(3)
    X = np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0], [0.0, 0.0, 0.1]])
    assert LinearModel(coef, np.zeros(3), np.array([7, 8, 9])).predict(X).tolist() == [8, 7, 9]
    assert LinearModel(coef, np.zeros(3)).predict(X).tolist() == [1, 0, 2]


@pytest.mark.parametrize("scale", [0.0, 1.0, 4.0])
def test_weights_of_solvers_become_coefficients_and_back(scale, rng):
    w = np.append(rng.normal(size=23), 0.25 if scale else 0.0)
    model = LinearModel.from_weights(w, scale)
    assert model.intercept.tolist() == [0.25 * scale]
    assert (model.weights(scale) == w).all()
    X = quarters(rng)
    scores = np.empty(9)
    times(as_rows(X, bias=scale), w, scores)
    assert model.decision_values(X) == pytest.approx(scores, rel=1e-13, abs=1e-13)


def test_weights_that_do_not_exist_are_refused(rng):
    with pytest.raises(ValueError, match=r"an intercept of 0\.5 needs a constant feature"):
        LinearModel(np.zeros((1, 2)), np.array([0.5])).weights(0.0)


def test_several_outputs_have_a_line_of_weights_each(rng):
    model = several(rng)
    lines = model.weights(2.0)
    again = LinearModel.from_weights(lines, 2.0)
    assert np.array_equal(again.coef, model.coef)
    assert again.intercept == pytest.approx(model.intercept, rel=1e-15)


def test_a_model_keeps_its_own_numbers(rng):
    w = rng.normal(size=4)
    model = LinearModel.from_weights(w, 1.0)
    before = model.coef.copy()
    w[:] = 0.0
    assert (model.coef == before).all()
    with pytest.raises(ValueError, match="read-only"):
        model.coef[0, 0] = 1.0


@pytest.mark.parametrize(
    ("coef", "intercept"), [((3,), (1,)), ((2, 3), (1,)), ((0, 3), (0,)), ((1, 3), (1, 1))], ids=str
)
def test_shapes_that_do_not_fit_are_refused(coef, intercept):
    with pytest.raises(ValueError, match="must have the shapes"):
        LinearModel(np.zeros(coef), np.zeros(intercept))


def test_classes_that_do_not_fit_are_refused(rng):
    with pytest.raises(ValueError, match=r"1 output\(s\) need 2 classes"):
        binary(rng, classes=np.arange(3))
    with pytest.raises(ValueError, match=r"3 output\(s\) need 3 classes"):
        several(rng, classes=np.arange(2))


# ------------------------------------------------------------------------------------------------------- files

CLASSES = [
    None,
    np.array([-1.0, 1.0]),
    np.array([0, 1]),
    np.array([3, 2**62], dtype=np.int64),
    np.array([3, 2**64 - 1], dtype=np.uint64),
    np.array([-5, 7], dtype=np.int8),
    np.array([0.5, 1.5], dtype=np.float32),
    np.array([False, True]),
    np.array(["ham", "spam"]),
    np.array(["", '日本語 \U0001f600 \n \\ "']),
    np.array(["a", "b"], dtype="U20"),
    np.array(["ham", "spam and eggs"], dtype=object),
    np.array([1, 2], dtype=">i4"),
]


@pytest.mark.parametrize("classes", CLASSES, ids=lambda c: "none" if c is None else f"{c.dtype}-{c[1]!a}")
def test_files_give_back_every_kind_of_classes(tmp_path, rng, classes):
    model = binary(rng, classes=classes, meta={"loss": "hinge", "C": np.float64(0.5), "rounds": np.int64(3)})
    save(model, tmp_path / "model.slack")
    again = load(tmp_path / "model.slack")
    assert type(again) is LinearModel
    assert (again.coef == model.coef).all()
    assert (again.intercept == model.intercept).all()
    assert again.meta == {"loss": "hinge", "C": 0.5, "rounds": 3}
    if classes is None:
        assert again.classes is None
    else:
        assert again.classes.dtype == classes.dtype.newbyteorder("=")
        assert again.classes.tolist() == classes.tolist()
    X = quarters(rng)
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_files_give_back_models_of_several_outputs(tmp_path, rng):
    model = several(rng, k=4, classes=np.array(["a", "bb", "ccc", "d"]))
    save(model, str(tmp_path / "model"))
    again = load(str(tmp_path / "model"))
    assert (again.coef == model.coef).all()
    X = quarters(rng)
    assert (again.decision_values(X) == model.decision_values(X)).all()
    assert again.classes.tolist() == ["a", "bb", "ccc", "d"]


def test_files_of_models_without_columns(tmp_path):
    save(LinearModel(np.zeros((1, 0)), np.array([-2.0])), tmp_path / "model")
    assert load(tmp_path / "model").decision_values(np.zeros((2, 0))).tolist() == [-2.0, -2.0]


def test_files_give_back_wide_models(tmp_path, rng):
    """More numbers than a header and a page: they begin at a multiple of eight bytes."""
    model = several(rng, k=7, d=1001, classes=np.array([f"class {k}" for k in range(7)], dtype=object))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.coef == model.coef).all()
    data = (tmp_path / "model").read_bytes()
    assert int.from_bytes(data[:8], "little") % 8 == 0


def test_the_same_model_gives_the_same_bytes(tmp_path, rng):
    model = binary(rng, classes=np.array(["n", "y"]), meta={"b": 1, "a": 2})
    for name in ("one", "two"):
        save(model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_is_safetensors_that_others_can_read(tmp_path, rng):
    model = binary(rng, classes=np.array([4, 5]))
    save(model, tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        metadata = file.metadata()
        assert set(file.keys()) == {"coef", "intercept", "classes"}
        assert (file.get_tensor("coef") == model.coef).all()
    assert (metadata["format"], metadata["format_version"], metadata["kind"]) == ("slackwater-model", "1", "linear")
    assert json.loads(metadata["facts"])["shape"] == [1, 23]
    assert len(bytes.fromhex(metadata["sha256"])) == hashlib.sha256().digest_size


def test_what_cannot_be_saved_is_refused_and_nothing_is_written(tmp_path, rng):
    path = tmp_path / "model"
    with pytest.raises(TypeError, match=r"a dict cannot be saved; what can: .*linear.* models"):
        save({}, path)
    with pytest.raises(ValueError, match="coef holds a value that is not finite; such a model is not saved"):
        save(LinearModel(np.array([[np.nan]]), np.zeros(1)), path)
    with pytest.raises(ValueError, match="intercept holds a value that is not finite"):
        save(LinearModel(np.zeros((1, 1)), np.array([np.inf])), path)
    with pytest.raises(TypeError, match="classes of type object cannot be saved: only numbers, booleans and text can"):
        save(binary(rng, classes=np.array([None, ()], dtype=object)), path)
    with pytest.raises(TypeError, match="object cannot be saved in a model's facts"):
        save(binary(rng, meta={"what": object()}), path)
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path, rng, monkeypatch):
    path = tmp_path / "model"
    first, second = binary(rng), binary(rng)
    save(first, path)
    before = path.read_bytes()

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        save(second, path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    save(second, path)
    assert (load(path).coef == second.coef).all()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_saving_keeps_the_permissions_of_the_old_file(tmp_path, rng):
    path = tmp_path / "model"
    save(binary(rng), path)
    path.chmod(0o640)
    save(binary(rng), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_does_not_exist_is_named(tmp_path, rng):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save(binary(rng), tmp_path / "nowhere" / "model")
    with pytest.raises(ModelFileError, match="there is no file"):
        load(tmp_path / "nothing")
