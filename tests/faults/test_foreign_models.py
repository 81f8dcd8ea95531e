"""Broken models of LIBSVM and LIBLINEAR, and in JSON: one sentence with the file, and the line where there is one."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from slackwater import import_model
from slackwater.export.json_file import json_text
from slackwater.models import KernelModel, LinearModel, ModelFileError
from slackwater.models.files import MissingModelFile
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

LIBSVM = """\
svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 3
total_sv 4
rho 0.1 0.2 0.3
label 1 2 3
nr_sv 2 1 1
SV
0.5 0.25 1:1 3:0.5
0.5 -1 2:1
-1 1e-1 1:0.25 2:.5
-1 1 3:-1
"""
LIBLINEAR = """\
solver_type L2R_L2LOSS_SVC_DUAL
nr_class 3
label 1 2 3
nr_feature 2
bias 1
w
1 2 3
0.5 -1 2e-1
1 1 1
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.txt"


def refused(path, content: str | bytes) -> str:
    """The one sentence with which a file is refused."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelFileError) as refusal:
        import_model(path)
    sentence = str(refusal.value)
    assert "\n" not in sentence and str(path) in sentence and len(sentence) < 600
    return sentence.replace(str(path), "FILE")


def test_whole_files_are_read(path):
    path.write_text(LIBSVM)
    assert import_model(path, 5).n_columns == 5 and import_model(path).n_columns == 3
    path.write_text(LIBLINEAR)
    assert import_model(path).intercept.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ModelFileError, match="of 2 columns, not of 3"):
        import_model(path, 3)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("svm_type c_svc", "svm_type one_class", "FILE, line 1: one_class is not read"),
        ("svm_type c_svc", "svm_type c_svm", "FILE, line 1: expected one of c_svc"),
        ("kernel_type rbf", "kernel_type precomputed", "FILE, line 2: precomputed is not read"),
        ("gamma 0.5", "gamma nan", "FILE, line 3: expected a number after gamma, found 'nan'"),
        ("gamma 0.5", "gamma 1e999", "FILE, line 3: a number is too large"),
        ("gamma 0.5", "gamma 0.5 1", "FILE, line 3: expected 1 value"),
        ("gamma 0.5\n", "", "FILE: there is no line 'gamma'"),
        ("gamma 0.5", "gama 0.5", "FILE, line 3: expected one of svm_type"),
        ("nr_class 3", "nr_class 3\nnr_class 3", "FILE, line 5: nr_class is there for the second time"),
        ("nr_class 3", "nr_class 1", "FILE, line 4: nr_class must be from 2"),
        ("nr_class 3", "nr_class 3.5", "FILE, line 4: expected a whole number"),
        ("nr_class 3", "nr_class 4", "FILE, line 6: expected 6 value"),
        ("total_sv 4", "total_sv 5", "FILE, line 13: the file ends after 4 vectors, total_sv is 5"),
        ("total_sv 4", "total_sv -4", "FILE, line 5: total_sv must be from 0"),
        ("label 1 2 3", "label 1 2 2", "FILE, line 7: a label occurs twice"),
        ("label 1 2 3", "label 1 2 x", "FILE, line 7: expected a whole number"),
        ("nr_sv 2 1 1", "nr_sv 2 1 2", "FILE, line 8: the numbers of vectors must add up"),
        ("\nSV\n", "\nVS\n", "FILE, line 9: expected one of"),
        ("0.5 -1 2:1", "0.5 2:1", "FILE, line 11: expected 2 coefficient"),
        ("0.5 -1 2:1", "0.5 inf 2:1", "FILE, line 11: expected a coefficient, found 'inf'"),
        ("0.5 -1 2:1", "0.5 1_0 2:1", "FILE, line 11: expected a coefficient, found '1_0'"),
        ("0.5 -1 2:1", "0.5 -1 2:x", "FILE, line 11: expected a number, found 'x'"),
        ("0.5 -1 2:1", "0.5 -1 2:1 2:2", "FILE, line 11: expected every column once"),
        ("0.5 -1 2:1", "0.5 -1 1 2:1", "FILE, line 11: expected column:value"),
        ("0.5 -1 2:1", "", "FILE, line 11: expected 2 coefficient"),
        ("0.5 -1 2:1", "0.5 -1 qid:1 2:1", "FILE, line 11: expected 2 coefficient"),
    ],
)
def test_broken_libsvm_files_name_the_line(path, old, new, sentence):
    assert old in LIBSVM
    assert sentence in refused(path, LIBSVM.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("L2R_L2LOSS_SVC_DUAL", "ONECLASS_SVM", "FILE, line 1: ONECLASS_SVM is not read"),
        ("L2R_L2LOSS_SVC_DUAL", "L3R", "FILE, line 1: expected one of L2R_LR"),
        ("nr_feature 2", "nr_feature 0", "FILE, line 4: nr_feature must be from 1"),
        ("nr_feature 2", "nr_feature 9", "FILE, line 9: the file ends after 3 lines of weights, expected 10"),
        ("bias 1\n", "", "FILE: there is no line 'bias'"),
        ("bias 1", "bias -1", "FILE, line 9: the file ends after 3 lines of weights, expected 2"),
        ("label 1 2 3", "label 1 2", "FILE, line 3: expected 3 value"),
        ("0.5 -1 2e-1", "0.5 -1", "FILE, line 8: expected 3 weight(s), found 2"),
        ("0.5 -1 2e-1", "0.5 -1 nan", "FILE, line 8: expected a weight, found 'nan'"),
        ("0.5 -1 2e-1", "0.5 -1 1_1", "FILE, line 8: expected a weight, found '1_1'"),
        ("0.5 -1 2e-1", "0.5 -1 1e999", "FILE, line 8: expected a weight, found '1e999'"),
        ("\nw\n", "\n", "FILE, line 6: expected one of"),
    ],
)
def test_broken_liblinear_files_name_the_line(path, old, new, sentence):
    assert old in LIBLINEAR
    assert sentence in refused(path, LIBLINEAR.replace(old, new, 1))


@pytest.mark.parametrize("text", [LIBSVM, LIBLINEAR], ids=["libsvm", "liblinear"])
def test_no_truncation_is_a_model_of_another_size(path, text):
    """Whole lines that are missing are missed; in the last line only a shorter number may go unseen."""
    for length in range(len(text.rstrip())):
        path.write_text(text[:length])
        try:
            import_model(path)
        except ModelFileError as error:
            assert "\n" not in str(error)
        else:
            assert length > text.rstrip().rfind("\n")


def test_other_files_are_refused(path):
    assert "is not a model of LIBSVM or LIBLINEAR, nor one in JSON" in refused(path, b"\x00\xff\x01")
    assert "is not a model" in refused(path, "")
    with pytest.raises(MissingModelFile):
        import_model(path.with_name("nothing"))
    with pytest.raises(ModelFileError, match="cannot be read"):
        import_model(path.parent)


# ---------------------------------------------------------------------------------------------------------- JSON

KERNEL = KernelModel(
    Kernel("rbf", 0.5), as_rows(np.eye(3)), np.ones((2, 3)), np.zeros(3), np.arange(3), np.array(["a", "b", "c"]),
    np.array([1, 1, 1]),
)  # fmt: skip
LINEAR = LinearModel(np.eye(3), np.zeros(3))


def changed(model, **changes) -> str:
    facts = json.loads(json_text(model))
    for key, value in changes.items():
        if value is ...:
            del facts[key]
        else:
            facts[key] = value
    return json.dumps(facts)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "x"}, 'its "format" is not'),
        ({"version": 2}, "written by a newer slackwater"),
        ({"version": True}, '"version" is True'),
        ({"intercept": ...}, "'intercept' is missing"),
        ({"more": 1}, "'more' is not known"),
        ({"columns": 2}, "line 0 of vectors has 3 numbers, expected 2"),
        ({"columns": -1}, "columns must be a whole number"),
        ({"decide": "sign"}, "'blocks' is not known"),
        ({"decide": ["votes"]}, "'blocks' is not known"),
        ({"decide": "largest", "blocks": ..., "intercept": [0.0]}, "there are 1 intercepts"),
        ({"decide": [], "blocks": ...}, '"decide" is []'),
        ({"intercept": []}, "there are 0 intercepts"),
        ({"intercept": [0.0, 1.0]}, "do not fit together"),
        ({"intercept": [0.0, 1.0, "2"]}, "intercept must be a list of numbers"),
        ({"intercept": [0.0, 1.0, True]}, "intercept must be a list of numbers"),
        ({"intercept": [0.0, 1.0, 10**400]}, "too large"),
        ({"classes": ["a", "b"]}, "classes"),
        ({"classes": ["a", "b", 3]}, "all numbers, all texts or all booleans"),
        ({"classes": []}, "not a list of labels"),
        ({"coef": [[1, 2, 3], [1, 2]]}, "line 1 of coef has 2 numbers"),
        ({"coef": [[1, 2, 3]]}, "fit"),
        ({"coef": 3}, '"coef" is not a list'),
        ({"kernel": {"name": "rbf"}}, "needs name, gamma, coef0 and degree"),
        ({"kernel": {"name": "rbg", "gamma": 1, "coef0": 0, "degree": 3}}, "'rbg' is not one of linear, rbf"),
        ({"kernel": {"name": "rbf", "gamma": "1", "coef0": 0, "degree": 3}}, "must be a list of numbers"),
        ({"kernel": {"name": "rbf", "gamma": 1, "coef0": 0, "degree": -3}}, "degree must be a whole number"),
        ({"vectors": {"columns": [[0], [1], [2]], "values": [[1.0], [1.0]]}}, "more lines of one kind"),
        ({"vectors": {"columns": [[0], [1], [3]], "values": [[1.0]] * 3}}, "are not below 3"),
        ({"vectors": {"columns": [[0], [1], [2, 1]], "values": [[1.0], [1.0], [1.0, 1.0]]}}, "do not rise"),
        ({"vectors": {"columns": [[0], [1], [2]]}}, "columns and values"),
        ({"vectors": 3}, '"vectors" is not a list'),
        ({"precision": "float16"}, "precision"),
        ({"blocks": [1, 1, 2]}, "blocks"),
        ({"blocks": [1, 1.0, 1]}, "whole numbers"),
        ({"meta": []}, '"meta" is an object'),
    ],
)
def test_broken_json_is_refused(path, changes, sentence):
    assert re.search(re.escape(sentence), refused(path, changed(KERNEL, **changes)))


def test_json_that_is_none(path):
    text = json_text(LINEAR)
    for length in range(1, len(text) - 2):
        assert "is not JSON, or cut short" in refused(path, text[:length])
    assert "NaN is not a number" in refused(path, text.replace("1.0", "NaN", 1))
    assert "too large" in refused(path, text.replace("1.0", "1e999", 1))
    assert "occurs twice" in refused(path, text.replace('"coef"', '"intercept": [1], "coef"'))
    assert "not UTF-8" in refused(path, b'{"\xff": 1}')
    assert refused(path, '{"a": ' + "[" * 100_000)
    assert "too large for float32" in refused(
        path, changed(KERNEL, precision="float32", vectors=[[1e300, 0, 0]] + [[0, 0, 0]] * 2)
    )
