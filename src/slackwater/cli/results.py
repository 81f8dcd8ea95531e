"""How the result of a fit is shown, by every command that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slackwater.cli.labels import label_text
from slackwater.cli.output import count, fact, gap_text, show_table

if TYPE_CHECKING:
    from slackwater.estimators import SVC, LinearSVC

_CLASSES_SHOWN = 20


def problem_labels(machine: Any, problems: int) -> list[Any]:
    """What each problem of a model tells from what: a class from the others, or two classes; None for all at once."""
    if machine.classes is None or problems < machine.n_outputs:
        return [None] * problems
    labels = machine.classes.tolist()
    if getattr(machine, "blocks", None) is None:
        return labels[-machine.n_outputs :]
    names = [label_text(label) for label in labels]
    return [f"{a} or {b}" for place, a in enumerate(names) for b in names[place + 1 :]]


def show_classes(svm: LinearSVC | SVC) -> None:
    """One line per class or pair, those with the largest gaps where there are many."""
    labels = problem_labels(svm.model_, len(svm.certificates_))
    parts = list(zip(labels, svm.certificates_, svm.statuses_, svm.histories_, strict=True))
    hidden = len(parts) - _CLASSES_SHOWN
    if hidden > 0:
        parts = sorted(parts, key=lambda part: -part[1].relative_gap)[:_CLASSES_SHOWN]
    lines = [
        (label_text(label), f"{c.primal:.6g}", f"{c.dual:.6g}", gap_text(c.relative_gap),
         str(history[-1].round), status.code)
        for label, c, status, history in parts
    ]  # fmt: skip
    show_table(("class", "primal", "lower bound", "gap", "rounds", "status"), lines, text=("status",))
    if hidden > 0:
        fact("", f"and {count(hidden, 'problem')} with smaller gaps; --json lists all")


def certificate_facts(certificate: Any) -> dict[str, Any]:
    """A certificate as JSON shows it."""
    return {
        "primal": certificate.primal,
        "lower_bound": certificate.dual,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
        "rule": certificate.rule,
    }
