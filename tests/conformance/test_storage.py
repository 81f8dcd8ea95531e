"""How the data lie in memory changes nothing: layouts, precisions, maps of files, orders, integer and byte types."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from conformance.problems import CLOUDS, PLAIN, SMALL, STORAGES, WEIGHTED, Storage, build
from conformance.running import close, weights_on_the_way
from slackwater.compiled import JIT
from slackwater.rows import CSRRows, DenseRows

interpreted = pytest.mark.interpreted
pytestmark = pytest.mark.usefixtures("short_rounds")

SPARSE = Storage("csr", "float64")


@interpreted
def test_layouts_and_precisions_take_one_way(case):
    """The entries are numbers of float32: the same order of visits meets the same numbers."""
    ways, kinds = [], set()
    for storage in STORAGES:
        problem = build(case, WEIGHTED if JIT else SMALL, storage)
        kinds.add((type(problem.rows), problem.rows.dtype.name))
        ways.append(weights_on_the_way(case, problem, 5))
    assert kinds == {(layout, dtype) for layout in (DenseRows, CSRRows) for dtype in ("float32", "float64")}
    assert np.abs(ways[0]).max() > 0.0
    for way in ways[1:]:
        assert way == close(ways[0])


def mapped(folder, name, array):
    """The array as a read-only map of a file."""
    array.tofile(folder / name)
    return np.memmap(folder / name, dtype=array.dtype, mode="r", shape=array.shape)


def test_read_only_maps_of_files(case, storage, tmp_path):
    """The numbers of arrays in memory, bit for bit."""
    table = storage(CLOUDS.X)
    if storage.layout == "dense":
        on_disk = mapped(tmp_path, "values", table)
    else:
        parts = {name: mapped(tmp_path, name, getattr(table, name)) for name in ("data", "indices", "indptr")}
        on_disk = sp.csr_array(table.shape, dtype=table.dtype)
        on_disk.data, on_disk.indices, on_disk.indptr = parts["data"], parts["indices"], parts["indptr"]
    problem = build(case, CLOUDS, lambda X: on_disk)
    assert np.shares_memory(problem.rows.values, on_disk if storage.layout == "dense" else on_disk.data)
    here = weights_on_the_way(case, build(case, CLOUDS, storage), 4)
    assert np.array_equal(weights_on_the_way(case, problem, 4), here)


def wide_integers(X):
    matrix = sp.csr_array(X)
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return matrix


def backwards(X):
    """Column numbers that fall within every row."""
    matrix = sp.csr_array(X)
    order = np.concatenate([np.arange(start, end)[::-1] for start, end in pairwise(matrix.indptr)])
    return sp.csr_array((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)


ODDITIES = {
    "int64 indptr and indices": (SPARSE, wide_integers),
    "columns out of order": (SPARSE, backwards),
    "csc": (SPARSE, sp.csc_array),
    "coo": (SPARSE, sp.coo_array),
    "csr_matrix": (SPARSE, sp.csr_matrix),
    "fortran order": (PLAIN, np.asfortranarray),
    "every other column of a wider table": (PLAIN, lambda X: np.repeat(X, 2, axis=1)[:, ::2]),
    "rows from last to first in memory": (PLAIN, lambda X: X[::-1].copy()[::-1]),
    "the other byte order": (PLAIN, lambda X: X.astype(X.dtype.newbyteorder())),
    "lists": (PLAIN, np.ndarray.tolist),
}


@pytest.mark.parametrize("oddity", ODDITIES)
def test_oddities_are_converted(case, oddity):
    plain, convert = ODDITIES[oddity]
    here = weights_on_the_way(case, build(case, CLOUDS, plain), 4)
    assert np.array_equal(weights_on_the_way(case, build(case, CLOUDS, convert), 4), here)


def copies(*arrays):
    return [array.copy() for array in arrays]


def test_what_is_given_is_not_written_to(case, storage):
    """Neither the data nor the labels, the weights or the dual point to start from."""
    X, labels, weights = storage(WEIGHTED.X), WEIGHTED.labels.copy(), WEIGHTED.weights.copy()
    alpha = np.full(len(labels), 0.1)
    parts = [X] if storage.layout == "dense" else [X.data, X.indices, X.indptr]
    given = [*parts, labels, weights, alpha]
    before = copies(*given)
    problem = build(case, WEIGHTED._replace(labels=labels, weights=weights), lambda _: X)
    made = [problem.labels, problem.costs]
    built = copies(*made)
    solver = case.new()
    for start in (None, alpha):
        state = solver.start(problem, np.random.default_rng(0), start)
        for _ in range(3):
            solver.advance(problem, state)
        assert np.isfinite(solver.model(problem, state).coef).all()
    assert all(np.array_equal(*pair) for pair in zip([*given, *made], [*before, *built], strict=True))
    assert all(array.flags.writeable for array in given)
