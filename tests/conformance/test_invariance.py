"""What must not change the answer, and what must change it in a known way: weights, labels, orders, sizes."""

import numpy as np
import pytest

from conformance.problems import CASES, CLOUDS, PLAIN, SMALL, WEIGHTED, Table, build, in_turn
from conformance.running import agree, at_zero, close, path, settle, weights_on_the_way
from slackwater.compiled import JIT

interpreted = pytest.mark.interpreted
short_rounds = pytest.mark.usefixtures("short_rounds")

TIMES = np.arange(30) % 3 + 1


# ------------------------------------------------------------------------------------------------------ weights


def test_weights_equal_repetitions(case, stored):
    weighted = settle(case, build(case, CLOUDS._replace(weights=TIMES), stored))
    repeated = settle(case, build(case, CLOUDS.take(np.repeat(np.arange(30), TIMES)), stored))
    assert agree(weighted, repeated)


@interpreted
@short_rounds
def test_weights_of_zero_equal_removal(case, storage):
    weights = np.where(np.arange(9) % 4 == 1, 0.0, SMALL.X[:, 0] ** 2 + 0.5)
    marked = build(case, SMALL._replace(weights=weights), storage)
    removed = build(case, SMALL._replace(weights=weights).take(weights > 0.0), storage)
    assert marked.n_rows == 7
    assert np.array_equal(weights_on_the_way(case, marked, 4), weights_on_the_way(case, removed, 4))


@short_rounds
def test_weights_and_C_are_one_factor(case):
    """Four times the weights at a quarter of C."""
    one = weights_on_the_way(case, build(case, CLOUDS._replace(weights=TIMES), C=0.75), 4)
    other = weights_on_the_way(case, build(case, CLOUDS._replace(weights=4 * TIMES), C=0.1875), 4)
    assert np.array_equal(one, other)


def test_doubled_rows_at_half_of_C(case):
    """The same P of the same w."""
    once = settle(case, build(case, CLOUDS))
    twice = settle(case, build(case, CLOUDS.take(np.repeat(np.arange(30), 2)), C=0.35))
    assert agree(once, twice)


# ----------------------------------------------------------------------------------------------- signs and orders


@interpreted
@short_rounds
def test_turning_all_labels_turns_the_weights(case, storage):
    """z_i = y_i x_i all change sign, and rounding is the same on both sides of zero."""
    table = WEIGHTED if JIT else SMALL
    problems = build(case, table, storage), build(case, table._replace(labels=-table.labels), storage)
    there, back = (weights_on_the_way(case, problem, 4) for problem in problems)
    assert np.array_equal(there, -back)
    certificates = [path(case, problem, 4).certificate for problem in problems]
    for field in ("primal", "dual"):
        one, other = (getattr(found, field) for found in certificates)
        assert one == pytest.approx(other, rel=1e-12, abs=1e-15)


@short_rounds
@pytest.mark.parametrize("case", [case for case in CASES if case.bias == "none"], ids=str)
def test_turning_all_rows_and_labels_changes_nothing(case):
    """Without a constant feature, which would not turn with the rows."""
    turned = SMALL._replace(X=-SMALL.X, labels=-SMALL.labels)
    there, back = (weights_on_the_way(case, build(case, table), 4) for table in (SMALL, turned))
    assert np.array_equal(there, back)


def test_the_order_of_rows_does_not_matter(case, stored):
    orders = [np.arange(30), np.arange(30)[::-1], np.random.default_rng(5).permutation(30)]
    assert agree(*(settle(case, build(case, WEIGHTED.take(order), stored)) for order in orders))


@short_rounds
def test_the_order_of_columns_is_that_of_the_weights(case, storage):
    """For those that visit columns in the end only: they take another way."""
    order = np.array([3, 0, 4, 1, 2])
    problems = [build(case, WEIGHTED._replace(X=X), storage) for X in (WEIGHTED.X, WEIGHTED.X[:, order])]
    if case.cls.visits == "columns":
        assert agree(*(settle(case, problem) for problem in problems))
        return
    here, there = (weights_on_the_way(case, problem, 4) for problem in problems)
    assert there == close(here[:, [*order, 5]])


@short_rounds
def test_turning_a_column_turns_its_weight(case, stored):
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    here = weights_on_the_way(case, build(case, CLOUDS, stored), 4)
    there = weights_on_the_way(case, build(case, CLOUDS._replace(X=CLOUDS.X * signs), stored), 4)
    assert there == close(here * [*signs, 1.0])


@short_rounds
def test_empty_columns_get_no_weight_and_change_nothing(case, storage):
    wide = np.zeros((30, 12))
    wide[:, [1, 4, 5, 9, 10]] = CLOUDS.X
    here = weights_on_the_way(case, build(case, CLOUDS, storage), 4)
    there = weights_on_the_way(case, build(case, CLOUDS._replace(X=wide), storage), 4)
    empty = [0, 2, 3, 6, 7, 8, 11]
    assert (there[:, empty] == 0.0).all()
    assert np.delete(there, empty, axis=1) == close(here)


# ----------------------------------------------------------------------------------------------------- sizes


def sized(size: float) -> Table:
    return CLOUDS._replace(X=CLOUDS.X * size)


#: Powers of two change no digit, so float32 data can be measured too.
SIZES = [2.0**-27, 2.0**27, 2.0**27, 2.0**-27]


@short_rounds
@pytest.mark.parametrize("size, storage", in_turn(SIZES))
def test_rows_of_any_size_with_C_to_match_take_the_same_path(case, storage, size):
    """x -> s x, w -> w / s: the margins stay, P and D with them if C follows the penalty: C / s^2, C / s for l1."""
    if case.penalty.square and case.penalty.absolute:
        pytest.skip("a mixture of penalties follows no size")
    degree = 2 if case.penalty.square else 1
    here = path(case, build(case, CLOUDS, storage), 8)
    there = path(case, build(case, sized(size), storage, C=0.7 / size**degree, scale=size), 8)
    assert len(here.history) == len(there.history) > 1
    for one, other in zip(here.history, there.history, strict=True):
        assert (one.primal, one.dual) == pytest.approx((other.primal, other.dual), rel=1e-9, abs=1e-12)
        assert (one.updates, one.inner_products) == (other.updates, other.inner_products)
    constant = 1.0 if case.bias == "none" else size
    scales = here.model.weights(constant / size), there.model.weights(constant)
    assert scales[1] * size == close(scales[0])


@short_rounds
@pytest.mark.parametrize("size, storage", in_turn([1e-8, 1e8, 1e8, 1e-8, 1e-3, 1e4]))
def test_rows_of_any_size_without_C_to_match_have_valid_bounds(case, storage, size):
    trained = path(case, build(case, sized(size), storage), 12)
    slack = 1e-9 * at_zero(case.loss)
    for record in trained.history:
        assert np.isfinite([record.primal, record.dual]).all()
        assert record.dual <= record.primal + slack
    found = trained.certificate
    assert 0.0 <= found.dual <= found.primal + slack
    assert found.primal <= at_zero(case.loss) + slack
    assert np.isfinite(trained.model.coef).all()
    assert np.isfinite(trained.model.intercept).all()


@pytest.mark.parametrize("size", [1e-8, 1e-4])
def test_tiny_rows_do_as_well_as_rows_of_zeros(case, size):
    """Up to what sum C_i ||x_i||^2 allows, the intercept decides alone."""
    tiny, nothing = (settle(case, build(case, sized(s), PLAIN)).certificate for s in (size, 0.0))
    slack = 4.0 * 0.7 * (sized(size).X ** 2).sum() + 1e-9
    assert tiny.dual <= nothing.primal + slack
    assert nothing.dual <= tiny.primal + slack
