"""Rows of the kernel matrix on demand: what is kept, what is counted, what the oldest make room for."""

import numpy as np
import pytest

from slackwater.gram import Gram, cache_bytes, gram, memory
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows

interpreted = pytest.mark.interpreted
N = 60


def points(n=N, dtype=np.float64, kernel=None, shift=0.0):
    X = np.random.default_rng(n).normal(size=(n, 4))
    return Points.of(as_rows(X), kernel or Kernel("rbf", gamma=0.3), dtype, shift)


def matrix(of: Points) -> np.ndarray:
    return of.values(of.own_lines(np.arange(of.n_rows)), np.empty((of.n_rows, of.n_rows), dtype=of.dtype))


@pytest.fixture
def small(monkeypatch):
    """Room for eight rows, computed at most five at a time."""
    monkeypatch.setattr(gram, "_LEAST_ROWS", 8)
    monkeypatch.setattr(gram, "_BLOCK", 5)
    return Gram(points(), 1)


def check(found: Gram) -> None:
    """Slots and owners belong to each other, and every row in memory is the matrix's."""
    kept, K = found.kept, matrix(found.points)
    for i in np.flatnonzero(kept.slots >= 0):
        assert kept.owners[kept.slots[i]] == i
        assert kept.values[kept.slots[i]] == pytest.approx(K[i], rel=1e-12, abs=1e-12)
    taken = kept.owners[kept.owners >= 0]
    assert taken.size == np.unique(taken).size == np.count_nonzero(kept.slots >= 0)


def in_memory(found: Gram) -> set[int]:
    return set(np.flatnonzero(found.kept.slots >= 0).tolist())


@interpreted
def test_capacity_follows_from_room_and_type():
    assert Gram(points(), 2**30).capacity == N and Gram(points(), 2**30).whole
    big = points(200)
    assert Gram(big, 100 * 200 * 8).capacity == 100
    assert Gram(points(200, np.float32), 100 * 200 * 4).capacity == 100
    assert Gram(big, 0).capacity == gram._LEAST_ROWS
    assert not Gram(big, 0).whole
    assert Gram(big, 100 * 200 * 8).kept.values.nbytes <= 100 * 200 * 8


@interpreted
def test_rows_are_computed_once(small):
    assert small.rows(np.array([3, 1, 4])).shape == (3, N)
    assert (small.requests, small.evaluations) == (3, 3 * N)
    small.keep(np.array([4, 3]))
    assert (small.requests, small.evaluations) == (5, 3 * N)
    small.keep(np.array([5, 4]))
    assert (small.requests, small.evaluations) == (7, 4 * N)
    check(small)


@interpreted
def test_the_rows_asked_for_longest_ago_make_room(small):
    small.keep(np.arange(8))
    small.keep(np.array([0, 2]))
    small.keep(np.array([10, 11, 12]))
    assert in_memory(small) >= {0, 2, 10, 11, 12} and len(in_memory(small)) == 8
    check(small)


@interpreted
def test_a_block_that_straddles_the_last_free_slots(small):
    small.keep(np.arange(6))
    small.keep(np.array([20, 21, 22, 23]))
    assert in_memory(small) >= {20, 21, 22, 23} and len(in_memory(small)) == 8
    check(small)
    small.keep(np.array([30, 31, 32, 33, 34, 35, 36, 37]))
    assert in_memory(small) == set(range(30, 38))
    check(small)


@interpreted
def test_any_sequence_of_requests_keeps_the_rows_right(small):
    draws = np.random.default_rng(5)
    for _ in range(60):
        ids = draws.choice(N, draws.integers(1, 9), replace=False)
        small.keep(ids)
        assert in_memory(small) >= set(ids.tolist())
    check(small)
    assert len(in_memory(small)) == 8


@interpreted
def test_a_row_named_twice_is_computed_once(small):
    block = small.rows(np.array([7, 7, 2, 7]))
    assert small.evaluations == 2 * N and small.requests == 4
    assert (block[0] == block[1]).all() and (block[0] == block[3]).all()
    check(small)


def test_more_rows_than_there_is_room_for_are_refused(small):
    with pytest.raises(ValueError, match="9 rows were asked for, but there is room for 8"):
        small.keep(np.arange(9))


@interpreted
def test_the_square(small):
    ids = np.array([9, 1, 30])
    found = small.square(ids)
    assert found.dtype == np.float64
    assert found == pytest.approx(matrix(small.points)[np.ix_(ids, ids)], rel=1e-12)


@interpreted
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_diagonal_is_exact_in_float32(shift):
    of = points(dtype=np.float32, shift=shift)
    found = Gram(of, 2**20)
    assert (np.diagonal(found.rows(np.arange(N))) == np.float32(1.0 + shift)).all()
    assert (found.diagonal == 1.0 + shift).all()


@interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("nonzeros", [0, 1, 3, 4, 7, 8, 9, 33, N])
def test_times_is_the_product(monkeypatch, nonzeros, dtype, rng):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 8)
    monkeypatch.setattr(gram, "_BLOCK", 5)
    of = points(dtype=dtype)
    coefficients = np.zeros(N)
    coefficients[rng.choice(N, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    expected = matrix(of).astype(float) @ coefficients
    near = 1e-6 if dtype == np.float32 else 1e-12
    for room in (1, 2**30):
        found = Gram(of, room)
        found.keep(np.array([1, 40]))
        for _ in range(2):
            product = found.times(coefficients)
            assert product.dtype == np.float64 and product == pytest.approx(expected, rel=near, abs=near)
        check(found) if dtype == np.float64 else None


def test_times_keeps_rows_while_there_is_room(small):
    half = np.zeros(N)
    half[:6] = 1.0
    small.times(half)
    assert in_memory(small) == set(range(6)) and small.evaluations == 6 * N
    small.times(half)
    assert small.evaluations == 6 * N
    half[[6, 7]] = 1.0
    small.times(half)
    assert in_memory(small) == set(range(8)) and small.evaluations == 8 * N


def test_times_without_room_leaves_what_is_kept(small):
    small.keep(np.arange(8))
    small.times(np.ones(N))
    assert in_memory(small) == set(range(8))
    assert small.evaluations == 8 * N + (N - 8) * N and small.requests == 8 + N


@interpreted
@pytest.mark.parametrize("count", [0, 1, 4, 5, 8])
def test_add(small, count, rng):
    ids, coefficients, out = rng.choice(N, count, replace=False), rng.normal(size=count), rng.normal(size=N)
    small.keep(ids)
    expected = out + coefficients @ matrix(small.points)[ids]
    small.add(ids, coefficients, out)
    assert out == pytest.approx(expected, rel=1e-12)


def test_sums_over_many_columns_are_split_between_threads(rng):
    """More columns than a strip, more work than one thread is given."""
    of = points(5000, np.float32)
    found = Gram(of, 64 * 5000 * 4)
    ids, coefficients, out = np.arange(0, 5000, 100), rng.normal(size=50), np.zeros(5000)
    expected = coefficients @ found.rows(ids).astype(float)
    found.add(ids, coefficients, out)
    assert out == pytest.approx(expected, rel=1e-9, abs=1e-9)


# -------------------------------------------------------------------------------------------------------- memory


def test_megabytes():
    assert cache_bytes(1) == 2**20 and cache_bytes(0.5) == 2**19 and cache_bytes(np.float32(2)) == 2**21
    assert 0 < cache_bytes("auto") == pytest.approx(0.5 * memory.free_memory(), rel=0.2)


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, "much", None, True, [1]], ids=str)
def test_what_is_no_size_is_refused(wrong):
    with pytest.raises(ValueError, match="cache_mb must be 'auto' or a positive number, got "):
        cache_bytes(wrong)


def test_free_memory_where_the_system_does_not_tell(monkeypatch):
    def missing(*arguments, **options):
        raise OSError

    monkeypatch.setattr("builtins.open", missing)
    assert memory.free_memory() > 0.0
    monkeypatch.setattr(memory.os, "sysconf", missing)
    assert memory.free_memory() == 2.0**31
