"""What every sparsifier promises: sizes, true vectors, the same again by seed, and an answer to what is degenerate."""

import numpy as np
import pytest
import scipy.sparse as sp

from slackwater.compiled import JIT
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows
from slackwater.sparsify.contract import Small, Teacher
from slackwater.sparsify.driver import Budget, sparsify
from slackwater.sparsify.holdout import Holdout
from slackwater.sparsify.registry import sparsifier_classes
from sparsifying import matrix_of, teacher, teacher_of, values_of, with_values

CLASSES = sparsifier_classes()
KERNELS = {
    "rbf": Kernel("rbf", gamma=0.3),
    "linear": Kernel("linear"),
    "polynomial": Kernel("polynomial", gamma=0.5, coef0=1.0, degree=2),
    "laplacian": Kernel("laplacian", gamma=0.2),
    "precomputed": Kernel("precomputed"),
}
MOST = 12
LOOKED_AT = 40  # predictors of a sequence


def treats(cls, kernel) -> bool:
    return not cls.kernels or kernel in cls.kernels


methods = pytest.mark.parametrize("method", CLASSES.values(), ids=lambda cls: cls.name)
with_kernels = pytest.mark.parametrize(
    "method, kernel",
    [(cls, kernel) for cls in CLASSES.values() for kernel in KERNELS if treats(cls, kernel)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)


def smallest_grid(method, found):
    """Some of the published settings."""
    grid = method().grid(found)
    return [grid[0], grid[len(grid) // 2], grid[-1]]


def passed(method, found, most=MOST, seed=0) -> list[Small]:
    """The first predictors of a few settings; of one where a run of them takes long."""
    smalls, few = [], smallest_grid(method, found)
    for setting in few if JIT and found.problem.bias == "free" else few[1:2]:
        sequence = setting.sequence(found, most, np.random.default_rng(seed))
        smalls += [small for small, _ in zip(sequence, range(LOOKED_AT), strict=False)]
    return smalls


def of_kernel(kernel, stored=np.asarray, bias="free", n=32) -> Teacher:
    """A teacher on two clouds."""
    if kernel == "precomputed":
        plain = teacher(n=n, bias=bias)
        return teacher_of(matrix_of(plain), plain.problem.labels, KERNELS[kernel], bias)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4)) + np.where(np.arange(n) % 2, 0.7, -0.7)[:, None]
    return teacher_of(stored(np.abs(X)), np.where(np.arange(n) % 2, 1.0, -1.0), KERNELS[kernel], bias)


def check(found: Teacher, small: Small, most: int, virtual: bool):
    """A predictor as the contract has it."""
    assert small.size <= most
    assert small.coefficients.dtype == np.float64 and np.isfinite(small.coefficients).all()
    assert (small.coefficients != 0.0).all() and np.isfinite(small.bias)
    own = small.model(found).decision_values(found.given)
    if small.ids is None:
        assert virtual and small.vectors.n_rows == small.size
        return
    assert small.ids.dtype == np.int64 and np.unique(small.ids).size == small.ids.size == small.size
    assert small.size == 0 or (small.ids.min() >= 0 and small.ids.max() < found.problem.n_rows)
    assert values_of(found, small) == pytest.approx(own, rel=1e-6, abs=1e-6)


@with_kernels
@pytest.mark.parametrize("bias", ["none", "penalised", "free"])
def test_predictors_are_small_and_true(method, kernel, bias):
    found = of_kernel(kernel, bias=bias)
    smalls = passed(method, found)
    assert smalls
    for small in smalls:
        check(found, small, MOST, method.virtual)


@with_kernels
def test_sparse_rows_make_no_difference(method, kernel):
    if kernel == "precomputed":
        pytest.skip("a precomputed kernel has no rows")
    dense, sparse = of_kernel(kernel), of_kernel(kernel, sp.csr_array)
    sparse = Teacher(dense.model, sparse.problem)
    for first, second in zip(passed(method, dense)[:5], passed(method, sparse)[:5], strict=True):
        check(sparse, second, MOST, method.virtual)
        if first.ids is not None:
            assert np.array_equal(first.ids, second.ids)


@methods
def test_the_seed_decides(method):
    kernel = method.kernels[0] if method.kernels else "rbf"
    first, second = (passed(method, of_kernel(kernel), seed=3) for _ in range(2))
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one.coefficients, other.coefficients) and one.bias == other.bias
        assert (one.ids is None) == (other.ids is None)


@methods
@pytest.mark.parametrize("case", ["one row", "one class", "zero teacher", "always wrong", "equal rows"])
def test_degenerate_problems_have_an_answer(method, case):
    kernel = Kernel(method.kernels[0] if method.kernels else "rbf", gamma=0.3)
    X = np.arange(12.0).reshape(6, 2)
    labels = np.array([1.0, -1, 1, -1, 1, 1])
    if case == "one row":
        found = teacher_of(X[:1], labels[:1], kernel)
    elif case == "one class":
        found = teacher_of(X, np.ones(6), kernel)
    elif case == "equal rows":
        found = teacher_of(np.ones((6, 2)), labels, kernel)
    else:
        found = teacher_of(X, labels, kernel)
        K = matrix_of(found)
        found = with_values(
            found, np.zeros(6) if case == "zero teacher" else np.linalg.lstsq(K, -labels, rcond=None)[0]
        )
    holdout = Holdout(as_rows(X), labels)
    result = sparsify(found, method(), holdout, Budget(max_support=3), settings=smallest_grid(method, found), rng=0)
    check(found, result.small, 3, method.virtual)
    assert result.point.support == result.small.size and str(result.status)
    if case == "one class":
        assert (result.small.model(found).decision_values(as_rows(X)) > 0.0).all()


@methods
def test_what_a_method_cannot_treat_is_said(method):
    if not method.kernels:
        assert method().check(of_kernel("linear")) is None
        return
    other = next(kernel for kernel in KERNELS if kernel not in method.kernels)
    with pytest.raises(ValueError, match=f"method '{method.name}' does not treat kernel '{other}'; methods that do: "):
        method().check(of_kernel(other))


@methods
def test_heads_say_what_is_solved(method):
    import inspect
    import re

    head = inspect.getdoc(inspect.getmodule(method))
    for word in ("(Problem|Steps)", "Cost"):
        assert re.search(rf"^{word}\b", head, re.MULTILINE), f"the head of {method.__module__} has no {word}"
    assert re.search(r"\b(19|20)\d\d\b", method.paper) and method.name == method.name.lower()
