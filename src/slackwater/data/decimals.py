"""Decimal text to the nearest float64, in compiled code.

Digits are read eight at a time (D. Lemire, "Quickly parsing eight digits"). A mantissa below 2^53 and a power of ten
up to 10^22 are both exact in float64, so that one multiplication or division rounds correctly (W. Clinger 1990). Up to
19 digits and any power go through one 64 x 128 bit product (D. Lemire, "Number parsing at a gigabyte per second",
2021). What is still undecided, such as subnormal numbers, is left to Python's ``float``.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled

__all__ = ["BAD", "EXACT", "UNDECIDED", "Powers", "decimal", "eight_digits", "leading_digits", "nearest", "powers"]

EXACT, UNDECIDED, BAD = 0, 1, 2

_0, _1, _4, _7, _8, _9, _10 = (np.uint64(k) for k in (0, 1, 4, 7, 8, 9, 10))
_16, _32, _56, _63 = np.uint64(16), np.uint64(32), np.uint64(56), np.uint64(63)
_MOST_DIGITS = np.int64(19)  # 10^19 < 2^64
_EXACT_INTEGERS = np.uint64(2**53)
_LOWEST_POWER, _HIGHEST_POWER = -342, 308

_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_PAIRS = np.uint64(0x000000FF000000FF)
_HUNDREDS = np.uint64(0x000F424000000064)  # 100 + (1000000 << 32)
_UNITS = np.uint64(0x0000271000000001)  # 1 + (10000 << 32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_ROUNDED_OFF = np.uint64(0x1FF)  # bits of a product's upper half that lie below the 55 that matter


class Powers(NamedTuple):
    """Powers of ten: exact as float64 and as integers, and 128 bits of 10^q for -342 <= q <= 308."""

    tens: np.ndarray  # float64, 10^0 .. 10^22
    whole: np.ndarray  # uint64, 10^0 .. 10^19
    high: np.ndarray  # uint64
    low: np.ndarray  # uint64


def _normalised_power(q: int) -> int:
    """10^q as a 128-bit integer with its top bit set; rounded down for q >= 0, up for q < 0."""
    power = 5 ** abs(q)
    if q >= 0:
        return power << (128 - power.bit_length()) if power < 1 << 128 else power >> (power.bit_length() - 128)
    bits = (power - 1).bit_length()
    inverse = (1 << (bits + 127 if q >= -27 else 2 * bits + 128)) // power + 1
    return inverse >> max(0, inverse.bit_length() - 128)


@lru_cache(maxsize=1)
def powers() -> Powers:
    """The tables, built once."""
    wide = [_normalised_power(q) for q in range(_LOWEST_POWER, _HIGHEST_POWER + 1)]
    return Powers(
        np.array([float(10**k) for k in range(23)]),
        np.array([10**k for k in range(20)], dtype=np.uint64),
        np.array([w >> 64 for w in wide], dtype=np.uint64),
        np.array([w & (2**64 - 1) for w in wide], dtype=np.uint64),
    )


# ------------------------------------------------------------------------------------------- eight bytes at once


@compiled(fastmath=None)
def eight_digits(text, p):
    """The eight bytes from ``p`` on, the first one lowest, less '0' each: 0..9 where there is a digit."""
    word = np.uint64(text[p])
    word |= np.uint64(text[p + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(text[p + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(text[p + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(text[p + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(text[p + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(text[p + np.uint64(6)]) << np.uint64(48)
    word |= np.uint64(text[p + np.uint64(7)]) << np.uint64(56)
    return word ^ _ZEROS


@compiled(fastmath=None)
def leading_digits(word):
    """How many of the eight are digits before the first that is not."""
    others = ((word + _ABOVE_NINE) | word) & _TOP_BITS
    below = (others - _1) & ~others
    return (((below & _TOP_BITS) >> _7) * _LOW_BITS) >> _56


@compiled(fastmath=None)
def number_of(word, count):
    """The number that the first ``count`` <= 7 digits spell; anything for 8."""
    word = (word << ((_56 - _8 * count) & _63)) << _8
    word = word * _10 + (word >> _8)
    return ((word & _PAIRS) * _HUNDREDS + ((word >> _16) & _PAIRS) * _UNITS) >> _32


# ------------------------------------------------------------------------------------------------- any decimal


@compiled(fastmath=None)
def _product(a, b):
    """The 128 bits of a * b, as upper and lower half."""
    a_high, a_low = a >> _32, a & _LOW_HALF
    b_high, b_low = b >> _32, b & _LOW_HALF
    low, middle, other = a_low * b_low, a_high * b_low, a_low * b_high
    carry = (low >> _32) + (middle & _LOW_HALF) + (other & _LOW_HALF)
    high = a_high * b_high + (middle >> _32) + (other >> _32) + (carry >> _32)
    return high, (carry << _32) | (low & _LOW_HALF)


@compiled(fastmath=None)
def power_of_ten(power, tables):
    """The 128 bits of 10^power as upper and lower half; those of the nearest power there is, beyond the tables."""
    k = np.uint64(min(max(power, _LOWEST_POWER), _HIGHEST_POWER) - _LOWEST_POWER)
    return tables.high[k], tables.low[k]


@compiled(fastmath=None)
def scaled(mantissa, high, low):
    """The upper 128 bits of mantissa * 10^power, for a mantissa with its top bit set and the halves of the power."""
    upper, lower = _product(mantissa, high)
    carry, _ = _product(mantissa, low)
    lower = lower + carry
    return upper + np.uint64(lower < carry), lower


@compiled(fastmath=None)
def leading_zeros(word):
    """How many zero bits stand before the first one of a word that is not 0."""
    zeros = _0
    for step in (_32, _16, _8, _4, np.uint64(2), _1):
        empty = step * np.uint64(word >> (np.uint64(64) - step) == _0)  # no branch: it could not be predicted
        zeros += empty
        word = word << empty
    return zeros


@compiled(fastmath=None)
def binary_exponent(power):
    """floor(log2(10^power)) for |power| <= 350."""
    return (np.int64(217706) * np.int64(power)) >> np.int64(16)


@compiled(fastmath=None)
def _nearest(mantissa, power, ten, wide):
    """``nearest``, given what the tables hold for this power: 10^|power|, if exact, and the halves of 10^power."""
    if mantissa == _0:
        return 0.0, True
    if mantissa <= _EXACT_INTEGERS and -22 <= power <= 22:
        value = np.float64(mantissa)
        return value / ten if power < 0 else value * ten, True
    if power < _LOWEST_POWER or power > _HIGHEST_POWER:
        return 0.0, False
    zeros = leading_zeros(mantissa)
    high, low = scaled(mantissa << zeros, wide[0], wide[1])
    if low == _ALL_BITS and (power < -27 or power > 55):
        return 0.0, False
    upper = high >> _63
    shift = upper + _9
    bits = high >> shift  # 54 bits: the mantissa and one to round by
    if low <= _1 and -4 <= power <= 23 and (bits & np.uint64(3)) == _1 and (bits << shift) == high:
        bits &= ~_1  # exactly half way: to even
    bits = (bits + (bits & _1)) >> _1
    exponent = binary_exponent(power) + np.int64(63) + np.int64(upper) - np.int64(zeros)
    if exponent < -1022 or exponent > 1022:
        return 0.0, False
    return math.ldexp(np.float64(bits), int(exponent) - 52), True


@compiled(fastmath=None)
def nearest(mantissa, power, tables):
    """mantissa * 10^power rounded to float64, and whether that is certain; uncertain outside the normal numbers.

    Numbers, not arrays, go on from here: arrays passed through branches are counted by reference on every call.
    """
    ten = tables.tens[np.uint64(min(abs(power), 22))]
    return _nearest(mantissa, power, ten, power_of_ten(power, tables))


@compiled(fastmath=None)
def is_digit(byte):
    return 48 <= byte <= 57


@compiled(fastmath=None)
def _exponent_of(text, p):
    """The number after 'e' from ``p`` on, where it ends, and how it was read; beyond a million it is undecided."""
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += _1
    if not is_digit(text[p]):
        return np.int64(0), p, BAD
    exponent = np.int64(0)
    while is_digit(text[p]):
        exponent = min(exponent * np.int64(10) + np.int64(text[p]) - np.int64(48), np.int64(1000000))
        p += _1
    state = UNDECIDED if exponent == 1000000 else EXACT
    return -exponent if negative else exponent, p, state


@compiled(fastmath=None)
def decimal(text, p, tables):
    """The number from ``p`` on, where it ends, and whether it is EXACT, UNDECIDED or BAD (no number there)."""
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += _1
    mantissa, digits, power = _0, np.int64(0), np.int64(0)
    cut, seen, fraction = False, False, False
    while True:
        byte = text[p]
        if is_digit(byte):
            seen = True
            if digits < _MOST_DIGITS:
                mantissa = mantissa * _10 + np.uint64(byte) - np.uint64(48)
                digits += np.int64(mantissa != _0)
                power -= np.int64(fraction)
            else:
                cut = cut or byte != 48
                power += np.int64(not fraction)
        elif byte == 46 and not fraction:
            fraction = True
        else:
            break
        p += _1
    if not seen:
        return 0.0, p, BAD
    state = EXACT
    if text[p] == 101 or text[p] == 69:
        written, p, state = _exponent_of(text, p + _1)
        power += written
    value = 0.0
    if state == EXACT:
        value, certain = nearest(mantissa, power, tables)
        if cut and certain:  # digits were left out: the number lies between two neighbours
            above, certain = nearest(mantissa + _1, power, tables)
            certain = certain and above == value
        state = EXACT if certain else UNDECIDED
    return -value if negative else value, p, state
