"""Numbers to the shortest decimal text that reads back as the same number, in compiled code.

The leading digits come from one 64 x 128 bit product. Of these, 9 suffice for float32 and 17 for float64; a bisection
finds how few ``nearest`` still reads as the same number.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.compiled import compiled
from slackwater.data.decimals import binary_exponent, nearest, power_of_ten, scaled

__all__ = ["LONGEST", "write_number", "write_whole"]

#: Bytes of the longest number: a sign, 17 digits, a point, an exponent such as e-308 or the zeros in its place.
LONGEST = 26

_0, _1, _10 = np.uint64(0), np.uint64(1), np.uint64(10)
_SUFFICE_SINGLE, _SUFFICE = 9, 17  # digits
_MORE = 1  # digits, so that none is rounded twice from a tie
_SMALLEST, _WHOLE_BELOW = 1e-290, 1e7
_MOST_ZEROS = 3  # written out; beyond it there is an exponent
_LONGEST_PLAIN = 16


@compiled(fastmath=None)
def write_whole(number, out, p):
    """The digits of a whole number from ``p`` on; where they end."""
    end, rest = p + _1, number
    while rest >= _10:
        rest //= _10
        end += _1
    for k in range(end - p):
        out[end - _1 - k] = np.uint8(48 + number % _10)
        number //= _10
    return end


@compiled(fastmath=None)
def _rounded(number, dropped, tables):
    """The number without its last ``dropped`` digits."""
    if dropped == 0:
        return number
    unit = tables.whole[np.uint64(dropped)]
    return (number + (unit >> _1)) // unit


@compiled(fastmath=None)
def _leading(x, digits, tables):
    """About ``digits`` leading digits of x > 0 as a whole number, and the power of ten that it is to be taken times."""
    fraction, exponent = math.frexp(x)
    power = math.floor(math.log10(x)) + 1 - digits
    mantissa = np.uint64(math.ldexp(fraction, 53)) << np.uint64(11)
    wide = power_of_ten(-power, tables)
    high, _ = scaled(mantissa, wide[0], wide[1])
    shift = np.uint64(62 - binary_exponent(-power) - exponent)
    return ((high >> shift) + _1) >> _1, power


@compiled(fastmath=None)
def _is(reading, x, single):
    """Whether a reading of ``nearest`` is certain, and x."""
    value, certain = reading
    return certain & ((np.float32(value) == np.float32(x)) if single else (value == x))


@compiled(fastmath=None)
def _shortest(x, single, tables):
    """x > 0 as a whole number and a power of ten; 0 when it cannot be found here."""
    enough = _SUFFICE_SINGLE if single else _SUFFICE
    if not _SMALLEST <= x < np.inf:
        return _0, 0
    most = enough + _MORE
    number, power = _leading(x, most, tables)
    if not _is(nearest(_rounded(number, _MORE, tables), power + _MORE, tables), x, single):
        return _0, 0
    short = 0
    while enough - short > 1:
        middle = (enough + short) // 2
        dropped = most - middle
        if _is(nearest(_rounded(number, dropped, tables), power + dropped, tables), x, single):
            enough = middle
        else:
            short = middle
    number, power = _rounded(number, most - enough, tables), power + most - enough
    while number % _10 == _0:  # rounded up to the next power of ten
        number //= _10
        power += 1
    return number, power


@compiled(fastmath=None)
def _zeros(count, out, p):
    for _ in range(count):
        out[p] = 48
        p += _1
    return p


@compiled(fastmath=None)
def _insert_point(out, start, end, whole):
    """A point after the first ``whole`` of the digits from ``start`` to before ``end``, if any follow it."""
    if end - start <= np.uint64(whole):
        return end
    for k in range(end - start - np.uint64(whole)):
        out[end - k] = out[end - k - _1]
    out[start + np.uint64(whole)] = 46
    return end + _1


@compiled(fastmath=None)
def _write_decimal(number, power, out, p):
    """number * 10^power, with an exponent where zeros would take more room; where it ends."""
    digits = np.int64(write_whole(number, out, p) - p)
    whole = digits + power  # digits before the point
    if -_MOST_ZEROS <= whole <= 0:
        out[p], out[p + _1] = 48, 46
        return write_whole(number, out, _zeros(-whole, out, p + np.uint64(2)))
    end = p + np.uint64(digits)
    if digits <= whole <= _LONGEST_PLAIN:
        return _zeros(whole - digits, out, end)
    if 0 < whole < digits:
        return _insert_point(out, p, end, whole)
    p = _insert_point(out, p, end, 1)
    out[p] = 101
    p += _1
    if whole < 1:
        out[p] = 45
        p += _1
    return write_whole(np.uint64(abs(whole - 1)), out, p)


@compiled(fastmath=None)
def write_number(x, single, out, p, tables):
    """A finite number from ``p`` on; where it ends, ``p`` itself when its digits cannot be found here.

    ``single`` tells that it is a float32, which fewer digits name.
    """
    start = p
    if math.copysign(1.0, x) < 0.0:
        out[p] = 45
        p += _1
    x = abs(np.float64(x))
    if x < _WHOLE_BELOW and x == math.floor(x):
        return write_whole(np.uint64(x), out, p)
    number, power = _shortest(x, single, tables)
    if number == _0:
        return start
    return _write_decimal(number, power, out, p)
