"""A generated set of texts, as they look to a linear classifier: many rows, few of very many columns in each.

Words follow Zipf's law, rows have different lengths, values are tf-idf in float32 with rows of length 1. Labels are the
sides of a hidden hyperplane that looks at some of the words, with noise. The same seed gives the same set.
"""

from __future__ import annotations

import math

import numpy as np

from slackwater.rows import CSRRows, times

_BLOCK = 20_000  # rows drawn at a time
_SHORTEST, _USUAL, _LONGEST = 24, 72.0, 160  # words per row, repetitions counted
_TOPIC = 2_000  # words that the hidden hyperplane looks at, from the more frequent fifth
_NOISE = 0.25  # standard deviations of the hidden scores


def text_like(n_rows: int = 200_000, n_columns: int = 50_000, seed: int = 0) -> tuple[CSRRows, np.ndarray]:
    """Rows with about 64 entries, and labels -1 and 1."""
    rng = np.random.default_rng(seed)
    counts, indices, repeats = zip(
        *(_block(rng, min(_BLOCK, n_rows - start), n_columns) for start in range(0, n_rows, _BLOCK)), strict=True
    )
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    np.cumsum(np.concatenate(counts), out=indptr[1:])
    columns, repeated = np.concatenate(indices), np.concatenate(repeats)
    values = _tf_idf(indptr, columns, repeated, n_columns)
    rows = CSRRows(indptr, columns, values, n_columns, 0.0)
    return rows, _labels(rng, rows)


def _block(rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some rows: how many different words each has, the words in order, how often each occurs."""
    lengths = np.clip(rng.lognormal(math.log(_USUAL), 0.4, n_rows), _SHORTEST, _LONGEST).astype(np.int64)
    # exp of a uniform number has the density 1/x: Zipf's law by one exponential per word
    words = np.exp(rng.random((n_rows, _LONGEST), dtype=np.float32) * np.float32(math.log(n_columns + 1)))
    words = np.minimum(words.astype(np.uint32) - 1, np.uint32(n_columns - 1))
    words[np.arange(_LONGEST) >= lengths[:, None]] = n_columns  # beyond the end of the row: sorted last
    words.sort(axis=1)
    first = np.ones(words.shape, dtype=bool)
    np.not_equal(words[:, 1:], words[:, :-1], out=first[:, 1:])
    places = np.flatnonzero(first)
    repeats = np.diff(places, append=words.size)
    columns = words.ravel()[places]
    kept = columns < n_columns
    counts = (first & (words < n_columns)).sum(axis=1)
    return counts, columns[kept], repeats[kept].astype(np.float32)


def _tf_idf(indptr: np.ndarray, columns: np.ndarray, repeats: np.ndarray, n_columns: int) -> np.ndarray:
    """(1 + log tf) log(n / df), every row scaled to length 1; float32."""
    n_rows = indptr.size - 1
    frequency = np.bincount(columns, minlength=n_columns)
    rarity = np.log((1.0 + n_rows) / (1.0 + frequency)).astype(np.float32) + np.float32(1e-3)
    values = (1.0 + np.log(repeats)) * rarity[columns]
    lengths = np.sqrt(np.add.reduceat(values * values, indptr[:-1]))
    values /= np.repeat(lengths, np.diff(indptr))
    return values


def _labels(rng: np.random.Generator, rows: CSRRows) -> np.ndarray:
    """The side of a hidden hyperplane through the median, with noise."""
    hidden = np.zeros(rows.n_columns + 1)
    frequent = max(1, rows.n_columns // 5)
    topic = rng.choice(frequent, min(_TOPIC, frequent), replace=False)
    hidden[topic] = rng.standard_normal(topic.size)
    scores = np.empty(rows.n_rows)
    times(rows, hidden, scores)
    scores += _NOISE * scores.std() * rng.standard_normal(rows.n_rows)
    return np.where(scores > np.median(scores), 1.0, -1.0)
