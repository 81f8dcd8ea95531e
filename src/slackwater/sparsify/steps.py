"""Steps of the subgradient method for Problem 4.1, on all rows or on some, until rows are needed that are not there.

numbers_i = y_i f_i - h_i on A, infinite elsewhere: the lowest is the row that falls short most, F is minus it. Under a
learned bias the lowest of either class make up F together, and a step goes to both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from slackwater.compiled import compiled

REACHED, OUTSIDE, MISSING, PAUSED = range(4)
_STRIP = 1024  # numbers looked at together


class Rule(NamedTuple):
    """How steps are taken and where they end."""

    step: float  # eta in the kernel's own units
    eps: float
    learned: bool  # the bias


class Field(NamedTuple):
    """The rows that are looked at."""

    labels: np.ndarray
    ids: np.ndarray  # int64; of equals the smallest is taken
    inside: np.ndarray  # bool: rows of the support, the only ones that steps may go to
    numbers: np.ndarray
    beta: np.ndarray  # coefficients with the labels' signs


@compiled
def descend(values, slots, field, rule, most):
    """Steps while the worst rows are inside, at most ``most``: what ended them, how many, and the worst rows then.

    The row of matrix that belongs to row i is ``values[slots[i]]``. The second of the worst is -1 unless the bias is
    learned; both are where no row is looked at.
    """
    done = 0
    plus, minus = move(field, values[0], values[0], 0.0, 0.0)
    while True:
        a, b, F = worst(field, rule, plus, minus)
        if F <= rule.eps:
            return REACHED, done, a, b
        if not (field.inside[a] and (b < 0 or field.inside[b])):
            return OUTSIDE, done, a, b
        if slots[a] < 0 or (b >= 0 and slots[b] < 0):
            return MISSING, done, a, b
        if done >= most:
            return PAUSED, done, a, b
        share = rule.step if b < 0 else 0.5 * rule.step
        first, second = share * field.labels[a], 0.0
        field.beta[a] += first
        other = values[slots[a]]
        if b >= 0:
            second = share * field.labels[b]
            field.beta[b] += second
            other = values[slots[b]]
        plus, minus = move(field, values[slots[a]], other, first, second)
        done += 1


@compiled
def worst(field, rule, plus, minus):
    """The row that falls short most and -1, or one of each class; and F."""
    if rule.learned:
        if plus < 0 or minus < 0:
            return np.int64(-1), np.int64(-1), -math.inf
        return plus, minus, -0.5 * (field.numbers[plus] + field.numbers[minus])
    a = plus
    if plus < 0 or (minus >= 0 and before(field, minus, field.numbers[plus], plus)):
        a = minus
    return a, np.int64(-1), -field.numbers[a] if a >= 0 else -math.inf


@compiled
def before(field, i, low, where):
    """Whether row i comes before the lowest so far."""
    number = field.numbers[i]
    return number < low or (number == low and where >= 0 and field.ids[i] < field.ids[where])


@compiled
def move(field, row, other, first, second):
    """numbers_i += y_i (first row_i + second other_i); the lowest row of either class then, -1 where there is none."""
    labels, numbers = field.labels, field.numbers
    n, strip = np.uint64(numbers.size), np.uint64(_STRIP)
    low_plus, low_minus, plus, minus = math.inf, math.inf, np.int64(-1), np.int64(-1)
    for start in range(np.uint64(0), n, strip):
        end = min(start + strip, n)
        if second != 0.0:
            for i in range(start, end):
                numbers[i] += labels[i] * (first * row[i] + second * other[i])
        elif first != 0.0:
            for i in range(start, end):
                numbers[i] += labels[i] * (first * row[i])
        up, down = math.inf, math.inf
        for i in range(start, end):
            up = min(up, numbers[i] if labels[i] > 0.0 else math.inf)
            down = min(down, numbers[i] if labels[i] < 0.0 else math.inf)
        if up < math.inf and up <= low_plus:
            for i in range(start, end):
                if labels[i] > 0.0 and before(field, i, low_plus, plus):
                    low_plus, plus = numbers[i], np.int64(i)
        if down < math.inf and down <= low_minus:
            for i in range(start, end):
                if labels[i] < 0.0 and before(field, i, low_minus, minus):
                    low_minus, minus = numbers[i], np.int64(i)
    return plus, minus
