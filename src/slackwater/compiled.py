"""Everything that touches the compiler: ``@compiled``, prefetch, ``exp32``, the random numbers of compiled loops.

numba's own cache looks only at the file that holds a function. After an edit of a file that the function calls into,
old machine code would keep running with old results. ``@compiled`` therefore keeps the cache in a folder named after
a hash of every source file that takes part in compilation.

All of it also runs as plain Python when ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

__all__ = [
    "FAST",
    "JIT",
    "by_type",
    "cache_folder",
    "compiled",
    "LANES",
    "exp32",
    "lane_sums",
    "larger",
    "next_below",
    "prefetch",
    "random_state",
    "shuffle",
]

JIT = not numba.config.DISABLE_JIT

#: Sums may be reordered and fused; NaN and infinity keep their meaning, because thresholds are infinite at times.
FAST = frozenset({"reassoc", "contract", "arcp", "nsz"})

#: Numbers that one call of ``lane_sums`` works on side by side: enough vectors to hide a multiplication's latency.
LANES = 64
_VECTOR = 16  # numbers in a vector; narrower machines split it

_PACKAGE = Path(__file__).resolve().parent
_KEPT_FINGERPRINTS = 4
_KEPT_SECONDS = 86_400  # a process that still runs an older fingerprint may yet write into its folder


# ---------------------------------------------------------------------------------------------------- the cache


def _hash_sources(folder: Path) -> str:
    """A hash of a package's files, or of the loose files of a folder, that define or contain compiled functions."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py") if _is_package(folder) else folder.glob("*.py")):
        text = path.read_bytes()
        if b"compiled" in text:
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + text + b"\0")
    return digest.hexdigest()[:16]


@cache
def _fingerprint(folder: Path) -> str:
    own = _hash_sources(_PACKAGE)
    return own if folder == _PACKAGE else hashlib.sha256((own + _hash_sources(folder)).encode()).hexdigest()[:16]


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _source_folder(function) -> Path:
    """The folder whose sources can change what ``function`` compiles to: the whole package's, or a script's."""
    folder = Path(function.__code__.co_filename).resolve().parent
    while _is_package(folder) and _is_package(folder.parent):
        folder = folder.parent
    return folder


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _candidates():
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"]) / "slackwater"
    yield _PACKAGE / "__pycache__" / "machine-code"
    with contextlib.suppress(RuntimeError):  # no home folder
        yield _user_cache() / "slackwater" / "machine-code"


def _forget_old(base: Path) -> None:
    """Every edit of a compiled source opens a new folder: keep the latest few, and those of the last day."""
    with contextlib.suppress(OSError):
        ages = sorted((time.time() - p.stat().st_mtime, p) for p in base.iterdir() if p.is_dir())
        for age, folder in ages[_KEPT_FINGERPRINTS:]:
            if age > _KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)


@cache
def cache_folder(sources: Path = _PACKAGE) -> Path | None:
    """Where the machine code of ``sources`` lies; None when no folder can be written."""
    # One folder per package: none pushes out another's machine code.
    owner = f"{sources.name}-{hashlib.sha256(str(sources).encode()).hexdigest()[:8]}"
    for base in (candidate / owner for candidate in _candidates()):
        folder = base / _fingerprint(sources)
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder
        if _writable(folder):
            _forget_old(base)
            return folder
    return None


def compiled(function=None, *, fastmath=FAST, inline=False, borrows=False):
    """Compile a function of NumPy arrays and NamedTuples to machine code that runs without the interpreter's lock.

    ``borrows`` promises that it makes no array and returns none. Then no view of a row is counted, which would be two
    locked instructions each: they hold up all memory that is on its way.
    """
    if function is None:
        return lambda f: compiled(f, fastmath=fastmath, inline=inline, borrows=borrows)
    if not JIT:
        return np.errstate(all="ignore")(function)  # machine code does not warn either
    typed_in = not Path(function.__code__.co_filename).is_file()  # at a prompt: nothing to key a cache on
    folder = None if typed_in else cache_folder(_source_folder(function))
    before = numba.config.CACHE_DIR
    try:
        if folder is not None:
            numba.config.CACHE_DIR = str(folder)
        return numba.njit(
            nogil=True,
            fastmath=set(fastmath) if fastmath else False,
            error_model="numpy",
            cache=folder is not None,
            inline="always" if inline else "never",
            _nrt=not borrows,
        )(function)
    finally:
        numba.config.CACHE_DIR = before


def by_type(function):
    """A function that picks its implementation by the type of its first argument, at compile time in compiled code.

    ``function`` gives the name, the arguments and the documentation. Implementations are added with
    ``@function.register(LayoutType)`` and must name their arguments as ``function`` does; they make and
    return no arrays.
    """
    table: dict[Any, Any] = {}

    def interpreted(first, *rest):
        return table[type(first)](first, *rest)

    def choose(first, *rest):
        return table.get(getattr(first, "instance_class", None))

    def register(layout: type):
        def add(implementation):
            table[layout] = implementation
            return implementation

        return add

    dispatch: Any = interpreted
    dispatch.register = register
    dispatch.__name__, dispatch.__doc__ = function.__name__, function.__doc__
    dispatch.__module__ = function.__module__
    if JIT:
        # Inlined by force: a layout is two dozen words, and passing them costs more than a short row.
        options = {"fastmath": set(FAST), "error_model": "numpy", "forceinline": True, "_nrt": False}
        overload(dispatch, strict=False, jit_options=options)(choose)
    return dispatch


# --------------------------------------------------------------------------------------- prefetch and bit casts

if JIT:

    @intrinsic
    def prefetch(typing_context, array, index):
        """Ask for the cache line in which ``array[index]`` begins; an address past the end is harmless."""

        def generate(context, builder, signature, arguments):
            holder = context.make_array(signature.args[0])(context, builder, arguments[0])
            offset = context.cast(builder, arguments[1], signature.args[1], types.intp)
            step = builder.extract_value(holder.strides, 0)
            start = builder.bitcast(holder.data, cgutils.voidptr_t)
            address = builder.gep(start, [builder.mul(offset, step)])
            flag = ir.IntType(32)
            declared = builder.module.declare_intrinsic(
                "llvm.prefetch", (address.type,), ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
            )
            builder.call(declared, [address, flag(0), flag(3), flag(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate

    def _spread(builder, number, vector):
        """A vector that holds ``number`` everywhere."""
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, number, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        return builder.shuffle_vector(one, nothing, everywhere)

    @intrinsic
    def larger(typing_context, a, b):
        """The larger of two float64, neither of them not a number: loops for the largest of many vectorise with it."""

        def generate(context, builder, signature, arguments):
            flags = ("nnan", "nsz")
            above = builder.fcmp_ordered(">", *arguments, flags=flags)
            return builder.select(above, *arguments, flags=flags)

        return types.float64(types.float64, types.float64), generate

    @intrinsic
    def lane_sums(typing_context, values, indices, start, end, table, out, more):
        """out[k] = sum of values[p] table[indices[p], k] over start <= p < end, k < LANES; ``more``: added to it.

        The sums are vectors in registers, which no loop over an array becomes.
        """

        def generate(context, builder, signature, arguments):
            number = context.get_data_type(signature.args[0].dtype)
            vector, count = ir.VectorType(number, _VECTOR), LANES // _VECTOR
            word = ir.IntType(64)

            def data(position):
                return context.make_array(signature.args[position])(context, builder, arguments[position]).data

            def part(address, k):
                moved = builder.gep(address, [word(k * _VECTOR)])
                return builder.bitcast(moved, vector.as_pointer())

            values, indices, table, out = data(0), data(1), data(4), data(5)
            size = number.get_abi_size(context.target_data)
            zero = ir.Constant(vector, [0.0] * _VECTOR)
            old = [builder.load(part(out, k), align=size) for k in range(count)]
            first = [builder.select(arguments[6], was, zero) for was in old]
            before, loop, after = builder.block, builder.append_basic_block("lanes"), builder.append_basic_block("done")
            builder.cbranch(builder.icmp_unsigned("<", arguments[2], arguments[3]), loop, after)

            builder.position_at_end(loop)
            p, sums = builder.phi(word), [builder.phi(vector) for _ in range(count)]
            row = builder.zext(builder.load(builder.gep(indices, [p])), word)
            line = builder.gep(table, [builder.mul(row, word(LANES))])
            factor = _spread(builder, builder.load(builder.gep(values, [p])), vector)
            fused = ("contract",)
            terms = [builder.fmul(factor, builder.load(part(line, k), align=size), flags=fused) for k in range(count)]
            added = [builder.fadd(total, term, flags=fused) for total, term in zip(sums, terms, strict=True)]
            following = builder.add(p, word(1))
            p.add_incoming(arguments[2], before)
            p.add_incoming(following, loop)
            for k in range(count):
                sums[k].add_incoming(first[k], before)
                sums[k].add_incoming(added[k], loop)
            builder.cbranch(builder.icmp_unsigned("<", following, arguments[3]), loop, after)

            builder.position_at_end(after)
            for k in range(count):
                total = builder.phi(vector)
                total.add_incoming(first[k], before)
                total.add_incoming(added[k], loop)
                sums[k] = total
            for k in range(count):
                builder.store(sums[k], part(out, k), align=size)
            return context.get_dummy_value()

        return types.void(values, indices, types.uint64, types.uint64, table, out, types.boolean), generate

    @intrinsic
    def _float_of_bits(typing_context, bits):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], ir.FloatType())

        return types.float32(types.int32), generate

else:

    def prefetch(array, index):
        """Ask for the cache line of ``array[index]``; interpreted code has nothing to ask."""

    def larger(a, b):
        """The larger of two numbers."""
        return max(a, b)

    def lane_sums(values, indices, start, end, table, out, more):
        """out[k] = sum of values[p] table[indices[p], k] over start <= p < end, k < LANES; ``more``: added to it."""
        out[:] = values[start:end] @ table[indices[start:end]] + (out if more else 0.0)

    def _float_of_bits(bits):
        return np.int32(bits).view(np.float32)


# ------------------------------------------------------------------------------------------------ exponential

_LOG2E = np.float32(1.44269504088896341)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_C0, _C1, _C2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C3, _C4, _C5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_HALF, _ONE = np.float32(0.5), np.float32(1.0)
_LOWEST, _HIGHEST = np.float32(-87.33654), np.float32(88.37626)


@compiled(fastmath={"contract"})
def exp32(x):
    """exp of a float32 without a branch, so that loops over it vectorise; relative error about 1e-7.

    Range reduction x = k ln 2 + r with the constants of Cephes (S. Moshier), a polynomial in r, and 2^k by its bits.
    Arguments below -87.3 give the smallest normal number's neighbourhood, above 88.3 the largest.
    """
    x = min(max(x, _LOWEST), _HIGHEST)
    k = np.float32(np.floor(x * _LOG2E + _HALF))
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = ((((_C0 * r + _C1) * r + _C2) * r + _C3) * r + _C4) * r + _C5
    p = p * r * r + r + _ONE
    return p * _float_of_bits(np.int32((np.int32(k) + np.int32(127)) << np.int32(23)))


# ---------------------------------------------------------------------------------------------- random numbers


def random_state(rng: np.random.Generator) -> np.ndarray:
    """The one-word state of the generator used inside compiled loops, seeded from NumPy's."""
    return rng.integers(1, 2**63, size=1, dtype=np.uint64)


@compiled
def next_below(state, bound):
    """A random integer in [0, bound), bound < 2^32: Marsaglia's xorshift, the upper bits scaled (Lemire)."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return ((x >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)


@compiled
def shuffle(order, count, state):
    """Permute the first ``count`` entries of ``order`` uniformly (Fisher, Yates)."""
    for remaining in range(np.uint64(count), np.uint64(1), -1):
        last = np.uint64(remaining) - np.uint64(1)
        other = next_below(state, remaining)
        swapped = order[last]
        order[last] = order[other]
        order[other] = swapped
