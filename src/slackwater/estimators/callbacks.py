"""scikit-learn's callback protocol, where its version has one (1.9): fits are trees of tasks, rounds are their leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slackwater.training import Limits, Observer, Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks before scikit-learn 1.9."""

    def with_callbacks(method):
        """No callbacks before scikit-learn 1.9."""
        return method


class CallbackRounds(Observer):
    """Tells an estimator's callbacks of every round; a callback that answers True ends the run.

    ``attributes`` gives the fitted attributes as if training had stopped here, None where one run is not the whole fit.
    """

    def __init__(self, estimator: Any, context: Any, attributes: Callable[[Progress], Any] | None = None) -> None:
        self.estimator, self.context, self.attributes = estimator, context, attributes

    def begin(self, limits: Limits) -> None:
        self.context.call_on_fit_task_begin(estimator=self.estimator)

    def after_round(self, progress: Progress) -> bool:
        best = progress.certificate
        facts = {"primal": best.primal, "dual": best.dual, "relative_gap": best.relative_gap}
        attributes = self.attributes
        fitted = None if attributes is None else (lambda: attributes(progress))
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=self.estimator)
        return task.call_on_fit_task_end(
            estimator=self.estimator, metadata=facts, reconstruction_attributes=fitted
        )

    def finish(self, run: Any) -> None:
        self.context.call_on_fit_task_end(estimator=self.estimator)
