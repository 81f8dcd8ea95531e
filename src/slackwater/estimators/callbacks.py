"""scikit-learn's callback protocol (from 1.9 on): a fit is a tree of tasks, binary problems and their rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


#: From the models of all problems, None for one that has not begun, to the attributes that show them.
Learnt = Callable[[list[Any]], dict[str, Any]]


class FitTask:
    """The root of the tree. Callbacks are given the data, and on demand the estimator as if training had stopped."""

    def __init__(self, estimator: Any, data: dict[str, Any], learnt: Learnt, problems: int) -> None:
        self.estimator, self.data, self.learnt = estimator, data, learnt
        self.latest: list[SoFar | None] = [None] * problems
        self.context = estimator._init_callback_context(max_subtasks=problems, sequential_subtasks=False)
        self.context.call_on_fit_task_begin(estimator=estimator, **data)

    @classmethod
    def of(cls, estimator: Any, X, y, sample_weight, learnt: Learnt, problems: int) -> FitTask | None:
        """None where nobody has asked to be called back."""
        if not getattr(estimator, "_skl_callbacks", None):
            return None
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        return cls(estimator, {"X": X, "y": y, "metadata": metadata}, learnt, problems)

    def rounds(self, number: int) -> Observer:
        """The observer of one binary problem."""
        return _Rounds(self, number, self.context.subcontext(task_name="problem", task_id=number, max_subtasks=None))

    def end(self) -> None:
        """The estimator is fitted."""
        self.context.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes={}, **self.data)

    def attributes(self, number: int, so_far: SoFar) -> dict[str, Any]:
        """What the estimator would have learnt by now."""
        self.latest[number] = so_far
        models = [None if known is None else known.model for known in self.latest]
        certificates = [known.certificate for known in self.latest if known is not None]
        return {
            **self.learnt(models),
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
