"""Checkpoints: the dual point and the model of a run on disk, from which another run goes on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Self

import numpy as np

from slackwater.models.files import Parts, save, saved_as
from slackwater.training.observers import Observer, Progress


@saved_as("checkpoint")
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A point in the dual box, to be given to ``run`` as ``alpha``, and what was certified with it."""

    alpha: np.ndarray
    primal: float
    dual: float
    round: int

    def parts(self) -> Parts:
        """What goes into a file."""
        facts = {"primal": self.primal, "dual": self.dual, "round": self.round, "shape": list(self.alpha.shape)}
        return Parts({"alpha": self.alpha}, facts)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """The checkpoint that ``parts`` was taken from."""
        alpha, facts = parts.tensors["alpha"], parts.facts
        if list(alpha.shape) != facts["shape"] or alpha.dtype != np.float64:
            raise ValueError(f"alpha has the shape {alpha.shape}, the file's facts say {facts['shape']}")
        return cls(alpha, float(facts["primal"]), float(facts["dual"]), int(facts["round"]))


class Checkpoints(Observer):
    """Writes a checkpoint at certified rounds, at most one every ``seconds``; each replaces the one before whole."""

    def __init__(self, path: str | os.PathLike[str], seconds: float = 60.0) -> None:
        self.path, self.seconds = path, seconds
        self._last = time.monotonic()

    def after_round(self, progress: Progress) -> None:
        if progress.record is None or progress.alpha is None:
            return
        if time.monotonic() - self._last >= self.seconds:
            self._write(progress.alpha, progress.certificate, progress.round)

    def finish(self, run) -> None:
        if run.alpha is not None:
            self._write(run.alpha, run.certificate, run.rounds)

    def _write(self, alpha: np.ndarray, certificate, rounds: int) -> None:
        save(Checkpoint(alpha, certificate.primal, certificate.dual, rounds), self.path)
        self._last = time.monotonic()
