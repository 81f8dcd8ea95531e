"""What all estimators have: a predictor of one row at a time."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from slackwater.models.single_row import RowPredictor


class Compiling:
    """Base of the estimators whose ``model_`` has a predictor of single rows."""

    model_: Any

    def compile(self) -> RowPredictor:
        """A predictor of one row at a time, without the checks that ``predict`` makes of a table.

        ``predictor(x)`` is what ``predict`` says of the row x, ``predictor.decision(x)`` its decision value or values.
        x is an array of one dimension, or ``(indices, values)`` of the entries of a sparse row. The model stays as it
        is now, whatever is fitted later.
        """
        check_is_fitted(self)
        return self.model_.compile()
