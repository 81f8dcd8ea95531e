"""Machine code: it runs beside Python, picks by type, vectorises the exponential, draws sound random numbers."""

import itertools
import math
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import chi2

from slackwater.compiled import (
    JIT,
    by_type,
    compiled,
    exp32,
    next_below,
    prefetch,
    random_state,
    shuffle,
)

interpreted = pytest.mark.interpreted
needs_compiler = pytest.mark.skipif(not JIT, reason="there is no machine code when the compiler is off")


# ------------------------------------------------------------------------------------------------ machine code


def at_a_prompt(text, **names):
    """Compile a function as a prompt would: from no file, so that nothing is cached and all can be inspected."""
    exec(compile(text, "<prompt>", "exec"), names)
    return compiled(names["f"])


@interpreted
def test_functions_typed_at_a_prompt_compile():
    assert at_a_prompt("def f(x):\n    return x + 1\n")(2) == 3


@needs_compiler
def test_compiled_code_lets_python_run():
    spin = at_a_prompt(
        "def f(state, n):\n    t = 0\n    for _ in range(n):\n        t += next_below(state, 3)\n    return t\n",
        next_below=next_below,
    )
    spin(np.ones(1, dtype=np.uint64), 1)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        start = time.perf_counter()
        spin(np.ones(1, dtype=np.uint64), 100_000_000)
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
    assert end - start > 0.05
    assert sum(start + 0.01 < t < end - 0.01 for t in ticks) >= 5


@compiled
def _touch(array, index):
    prefetch(array, index)
    return array.size


@interpreted
@pytest.mark.parametrize("index", [0, 3, 10**9, 2**62, -1])
@pytest.mark.parametrize("size", [0, 4])
def test_prefetch_is_harmless_wherever_it_points(index, size):
    array = np.arange(size, dtype=np.float64)
    assert _touch(array, index) == size
    assert array.tolist() == list(range(size))


@needs_compiler
def test_prefetch_is_an_instruction():
    touch = at_a_prompt("def f(a, i):\n    prefetch(a, i)\n    return a.size\n", prefetch=prefetch)
    touch(np.ones(3), 1)
    assert any("llvm.prefetch" in text for text in touch.inspect_llvm().values())


@interpreted
def test_infinity_and_nan_keep_their_meaning():
    compare = at_a_prompt("def f(x, y):\n    return x < y, x != x, x - x\n")
    assert compare(1.0, math.inf)[:2] == (True, False)
    assert compare(math.nan, math.inf)[:2] == (False, True)
    assert math.isnan(compare(math.inf, 0.0)[2])


@interpreted
def test_division_by_zero_is_not_an_error():
    divide = at_a_prompt("def f(x):\n    return x[0] / x[1]\n")
    assert divide(np.array([1.0, 0.0])) == math.inf
    assert math.isnan(divide(np.zeros(2)))


class One(NamedTuple):
    number: float


class Two(NamedTuple):
    number: float
    other: float


@by_type
def _sum_of(thing, factor):
    """factor times the sum."""


@_sum_of.register(One)
def _sum_of_one(thing, factor):
    return factor * thing.number


@_sum_of.register(Two)
def _sum_of_two(thing, factor):
    return factor * (thing.number + thing.other)


@compiled
def _three_times(thing):
    return _sum_of(thing, 3.0)


@interpreted
def test_dispatch_by_type():
    assert (_sum_of(One(1.0), 2.0), _sum_of(Two(1.0, 5.0), 2.0)) == (2.0, 12.0)
    assert (_three_times(One(1.0)), _three_times(Two(1.0, 5.0))) == (3.0, 18.0)
    assert (_sum_of.__name__, _sum_of.__doc__, _sum_of.__module__) == ("_sum_of", "factor times the sum.", __name__)


@interpreted
def test_types_that_nothing_is_registered_for_are_errors():
    with pytest.raises(KeyError):
        _sum_of(1.0, 2.0)
    with pytest.raises(Exception, match=r"float|No implementation"):
        _three_times(1.0)


# ------------------------------------------------------------------------------------------------- exponential


@compiled
def _exponentials(x, out):
    for i in range(np.uint64(x.size)):
        out[i] = exp32(x[i])


def exponentials(x) -> np.ndarray:
    out = np.empty(len(x), dtype=np.float32)
    _exponentials(x, out)
    return out


@interpreted
def test_exp32_is_accurate_over_its_range():
    count = 2_000_001 if JIT else 2_001
    x = np.linspace(-87.3, 88.3, count).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert (abs(exponentials(x) - exact) / exact).max() <= 1.3e-7


@interpreted
def test_exp32_of_zero_and_beyond_the_range():
    x = np.array([0.0, -0.0, -1e-30, -1000.0, -np.inf, 1000.0, np.inf], dtype=np.float32)
    one, other, near, low, lowest, high, highest = exponentials(x)
    assert one == other == near == 1.0
    assert 0.0 < low == lowest < 1.3e-38
    assert 2.3e38 < high == highest < np.inf


@interpreted
def test_exp32_rises():
    x = np.linspace(-10.0, 0.0, 10_001 if JIT else 501).astype(np.float32)
    values = exponentials(x).astype(np.float64)
    assert (np.diff(values) >= -2e-7 * values[1:]).all()


@needs_compiler
def test_loops_over_exp32_vectorise():
    text = "def f(x, out):\n    for i in range(np.uint64(x.size)):\n        out[i] = exp32(x[i])\n"
    loop = at_a_prompt(text, exp32=exp32, np=np)
    loop(np.ones(64, dtype=np.float32), np.ones(64, dtype=np.float32))
    (machine_code,) = loop.inspect_asm().values()
    if not any(line.lstrip().startswith(("mul", "vmul", "vfmadd")) for line in machine_code.splitlines()):
        pytest.skip("another processor's instructions")
    packed = ("mulps", "vmulps", "vfmadd132ps", "vfmadd213ps", "vfmadd231ps")
    assert sum(line.split()[:1] in ([p] for p in packed) for line in machine_code.splitlines()) >= 5


# ---------------------------------------------------------------------------------------------- random numbers


def surprising(observed, expected) -> bool:
    """Whether a chi-square this large happens once in a thousand samples; seeds are fixed, so never by chance."""
    observed = np.asarray(observed)
    return ((observed - expected) ** 2 / expected).sum() > chi2.ppf(0.999, observed.size - 1)


@compiled
def _tally(state, draws, counts):
    for _ in range(np.uint64(draws)):
        counts[next_below(state, counts.size)] += 1


@interpreted
@pytest.mark.parametrize("bound", [1, 2, 7, 64, 1000])
def test_draws_are_uniform(bound):
    draws = 1000 * bound if JIT else 20 * bound
    counts = np.zeros(bound, dtype=np.int64)
    _tally(random_state(np.random.default_rng(bound)), draws, counts)
    assert counts.sum() == draws
    assert not surprising(counts, draws / bound) or bound == 1


@compiled
def _pairs(state, draws, counts):
    last = next_below(state, counts.shape[0])
    for _ in range(np.uint64(draws)):
        new = next_below(state, counts.shape[0])
        counts[last, new] += 1
        last = new


def test_successive_draws_are_independent(rng):
    counts = np.zeros((16, 16), dtype=np.int64)
    _pairs(random_state(rng), 100_000 if JIT else 5_000, counts)
    assert not surprising(counts.ravel(), counts.sum() / counts.size)


@interpreted
@pytest.mark.parametrize("bound", [1, 3, 2**31, 2**32 - 1])
def test_draws_stay_below_the_bound(bound, rng):
    state = random_state(rng)
    drawn = [int(next_below(state, bound)) for _ in range(50)]
    assert all(0 <= x < bound for x in drawn)
    assert bound == 1 or len(set(drawn)) > 1
    if bound > 2**30:
        assert max(drawn) > bound // 2


@compiled
def _shuffles(order, state, tables, counts):
    for _ in range(np.uint64(tables)):
        for i in range(np.uint64(order.size)):
            order[i] = i
        shuffle(order, order.size, state)
        place = 0
        for i in range(np.uint64(order.size)):
            place = place * order.size + order[i]
        counts[place] += 1


def test_every_permutation_is_equally_likely(rng):
    tables = 48_000 if JIT else 2_400
    order, counts = np.zeros(4, dtype=np.uint32), np.zeros(4**4, dtype=np.int64)
    _shuffles(order, random_state(rng), tables, counts)
    places = [((p[0] * 4 + p[1]) * 4 + p[2]) * 4 + p[3] for p in itertools.permutations(range(4))]
    assert counts.sum() == counts[places].sum() == tables
    assert not surprising(counts[places], tables / 24)


@interpreted
@pytest.mark.parametrize("count", [0, 1, 2, 7, 10])
def test_shuffling_permutes_the_first_entries_only(count, rng):
    order = np.arange(10, dtype=np.uint32)
    state = random_state(rng)
    for _ in range(20):
        shuffle(order, count, state)
        assert sorted(order[:count]) == list(range(count))
        assert order[count:].tolist() == list(range(count, 10))


@interpreted
def test_states_follow_the_seed():
    states = [int(random_state(np.random.default_rng(seed))[0]) for seed in (0, 0, 1)]
    assert states[0] == states[1] != states[2]
    assert all(states)  # xorshift would stay at zero
