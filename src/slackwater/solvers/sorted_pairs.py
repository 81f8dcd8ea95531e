"""Sorting values with their weights, in place and inside compiled loops."""

from __future__ import annotations

import numpy as np

from slackwater.compiled import compiled


@compiled
def sort_pairs(values, weights, count):
    """Values rising, weights with them: quicksort, short pieces by insertion."""
    stack, depth = np.empty((64, 2), dtype=np.int64), 1
    stack[0, 0], stack[0, 1] = 0, np.int64(count) - 1
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        while last - first > 16:
            a, b, c = values[first], values[(first + last) // 2], values[last]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = first, last
            while i <= j:
                while values[i] < pivot:
                    i += 1
                while values[j] > pivot:
                    j -= 1
                if i <= j:
                    values[i], values[j] = values[j], values[i]
                    weights[i], weights[j] = weights[j], weights[i]
                    i += 1
                    j -= 1
            if j - first > last - i:  # the longer piece waits: the stack stays short
                stack[depth, 0], stack[depth, 1] = first, j
                first = i
            else:
                stack[depth, 0], stack[depth, 1] = i, last
                last = j
            depth += 1
        for i in range(first + 1, last + 1):
            value, weight, j = values[i], weights[i], i - 1
            while j >= first and values[j] > value:
                values[j + 1], weights[j + 1] = values[j], weights[j]
                j -= 1
            values[j + 1], weights[j + 1] = value, weight
