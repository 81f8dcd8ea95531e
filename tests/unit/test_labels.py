"""Labels of any kind to class numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.data import LabelMap

KINDS = {
    "numbers": ([3.5, -1.0, 3.5, 0.0], [-1.0, 0.0, 3.5], [2, 0, 2, 1]),
    "whole numbers": ([7, 1, 7], [1, 7], [1, 0, 1]),
    "strings": (["b", "a", "b", "é"], ["a", "b", "é"], [1, 0, 1, 2]),
    "booleans": ([True, False, True], [False, True], [1, 0, 1]),
    "objects": (np.array(["x", "y", "x"], dtype=object), ["x", "y"], [0, 1, 0]),
    "a column": ([[2], [1]], [1, 2], [1, 0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_sorted_and_codes_are_their_numbers(kind):
    y, classes, codes = KINDS[kind]
    labels = LabelMap.of(y)
    assert labels.classes.tolist() == classes
    assert labels.codes.tolist() == codes
    assert labels.codes.dtype == np.int64
    assert labels.encode(y).tolist() == codes
    assert labels.n_classes == len(classes)


def test_classes_keep_their_type():
    assert LabelMap.of(np.array([1, 2], dtype=np.int8)).classes.dtype == np.int8
    assert LabelMap.of(np.array([True, False])).classes.dtype == bool
    assert LabelMap.of(np.array(["a", "b"], dtype=object)).classes.dtype == object


@given(
    y=st.lists(st.one_of(st.integers(-5, 5), st.sampled_from([0.5, -2.5])), min_size=2).filter(
        lambda y: len(set(y)) > 1
    )
)
def test_codes_lead_back_to_the_labels(y):
    labels = LabelMap.of(y)
    assert labels.classes[labels.codes].tolist() == y
    assert sorted(set(y)) == labels.classes.tolist()
    assert np.array_equal(labels.encode(y), labels.codes)


def test_signs_set_one_class_against_the_rest():
    labels = LabelMap.of(["b", "a", "c", "b"])
    assert labels.signs(1).tolist() == [1.0, -1.0, -1.0, 1.0]
    assert labels.signs(2).tolist() == [-1.0, -1.0, 1.0, -1.0]
    assert labels.signs(0).dtype == np.float64
    with pytest.raises(IndexError, match="class number 3: there are 3 classes"):
        labels.signs(3)


def test_signs_of_two_classes_are_opposites():
    labels = LabelMap.of([4, 9, 4])
    assert np.array_equal(labels.signs(1), -labels.signs(0))
    assert labels.signs(1).tolist() == [-1.0, 1.0, -1.0]


@pytest.mark.parametrize(
    ("y", "told"),
    [
        ([1, 1, 1], "one class only, 1: a classifier needs examples of at least two classes"),
        (["a", "a"], "one class only, 'a'"),
        ([], "no labels"),
        ([1.0, np.nan], "label 1 is not finite"),
        ([[1, 2], [3, 4]], "got an array of shape (2, 2)"),
        (3, "got an array of shape ()"),
        (np.array([1, "a", 2], dtype=object), "labels of different kinds cannot be put in order: int, str"),
    ],
)
def test_labels_without_classes_are_named(y, told):
    with pytest.raises(ValueError) as caught:
        LabelMap.of(y)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("y", "others", "told"),
    [
        ([1, 2], [2, 3, 0, 3], "none of the classes (1, 2): 3, 0"),
        ([1, 2], [1.5], "none of the classes (1, 2): 1.5"),
        (["a", "b"], ["a", "ab", "z"], "none of the classes ('a', 'b'): 'ab', 'z'"),
        (["a", "b"], [1, 2], "none of the classes ('a', 'b'): 1, 2"),
        ([1, 2], ["a"], "none of the classes (1, 2): 'a'"),
        (np.array(["a", "b"], dtype=object), [1], "none of the classes ('a', 'b'): 1"),
        (range(9), [10], "none of the classes (0, 1, 2, 3, 4, ...): 10"),
    ],
)
def test_labels_of_no_class_are_named(y, others, told):
    with pytest.raises(ValueError) as caught:
        LabelMap.of(y).encode(others)
    assert told in str(caught.value)
