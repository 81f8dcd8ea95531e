"""scikit-learn's callback protocol (from 1.9 on): a fit is a tree of tasks, binary problems and their rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.training import Limits, Observer, Progress, SoFar

__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks before scikit-learn 1.9."""

    def with_callbacks(method):
        """No callbacks before scikit-learn 1.9."""
        return method


class FitTask:
    """The root of the tree. Callbacks are given the data, and on demand the estimator as if training had stopped."""

    def __init__(self, estimator: Any, data: dict[str, Any], classes: np.ndarray | None, problems: int) -> None:
        self.estimator, self.data, self.classes = estimator, data, classes
        self.latest: list[SoFar | None] = [None] * problems
        self.context = estimator._init_callback_context(max_subtasks=problems, sequential_subtasks=False)
        self.context.call_on_fit_task_begin(estimator=estimator, **data)

    @classmethod
    def of(cls, estimator: Any, X, y, sample_weight, classes: np.ndarray | None, problems: int) -> FitTask | None:
        """None where nobody has asked to be called back; ``classes`` is None for regression."""
        if not getattr(estimator, "_skl_callbacks", None):
            return None
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        return cls(estimator, {"X": X, "y": y, "metadata": metadata}, classes, problems)

    def rounds(self, number: int) -> Observer:
        """The observer of one binary problem."""
        return _Rounds(self, number, self.context.subcontext(task_name="problem", task_id=number, max_subtasks=None))

    def end(self) -> None:
        """The estimator is fitted."""
        self.context.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes={}, **self.data)

    def attributes(self, number: int, so_far: SoFar) -> dict[str, Any]:
        """What the estimator would have learnt by now. Problems that have not begun contribute zeros."""
        self.latest[number] = so_far
        zero = self.estimator._model_class(np.zeros_like(so_far.model.coef), np.zeros_like(so_far.model.intercept))
        models = [zero if known is None else known.model for known in self.latest]
        model = replace(
            zero,
            coef=np.vstack([m.coef for m in models]),
            intercept=np.concatenate([m.intercept for m in models]),
            classes=self.classes,
        )
        certificates = [known.certificate for known in self.latest if known is not None]
        return {
            **self.estimator._reported(model),
            "certificates_": certificates,
            "certificate_": max(certificates, key=lambda certificate: certificate.relative_gap),
        }


class _Rounds(Observer):
    """Tells callbacks of every round of a problem; one that answers True ends the problem's run."""

    def __init__(self, fit: FitTask, number: int, context: Any) -> None:
        self.fit, self.number, self.context = fit, number, context

    def begin(self, limits: Limits) -> None:
        self.context.call_on_fit_task_begin(estimator=self.fit.estimator, **self.fit.data)

    def after_round(self, progress: Progress) -> bool:
        fit = self.fit
        task = self.context.subcontext(task_name="round")
        task.call_on_fit_task_begin(estimator=fit.estimator, **fit.data)
        return task.call_on_fit_task_end(
            estimator=fit.estimator,
            reconstruction_attributes=lambda: fit.attributes(self.number, progress.so_far()),
            **fit.data,
        )

    def finish(self, run: Any) -> None:
        self.context.call_on_fit_task_end(estimator=self.fit.estimator, **self.fit.data)
