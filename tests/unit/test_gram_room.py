"""Rows that come when the room is nearly full: new slots and old ones, none twice."""

import numpy as np

from slackwater.gram import Gram, gram
from slackwater.objective.kernel_points import Points
from slackwater.objective.kernels import Kernel
from slackwater.rows import as_rows


def test_a_block_may_take_the_last_free_slots_and_the_oldest(rng, monkeypatch):
    monkeypatch.setattr(gram, "_LEAST_ROWS", 6)
    X = rng.normal(size=(20, 3))
    small = Gram(Points.of(as_rows(X), Kernel("linear"), np.float64), 1)
    for ids in ([0, 1, 2, 3], [10, 11, 12, 19], [1, 13, 14, 15, 16, 17], [2, 19]):
        kept = small.keep(np.array(ids))
        slots = kept.slots[ids]
        assert np.unique(slots).size == len(ids) and slots.min() >= 0
        assert np.allclose(kept.values[slots], X[ids] @ X.T)
        assert all(kept.owners[kept.slots[i]] == i for i in range(20) if kept.slots[i] >= 0)
    assert np.allclose(small.times(X[:, 0]), X @ X.T @ X[:, 0])
