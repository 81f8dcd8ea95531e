"""The one training loop, its limits, its history, and those who watch it."""

from slackwater.training.checkpoint import Checkpoint, Checkpoints
from slackwater.training.history import History, Record
from slackwater.training.observers import Observer, Progress, ProgressLine, Screen, SoFar
from slackwater.training.run import Holdout, Run, run
from slackwater.training.stopping import ADVICE, Limits, Status, interruptible

__all__ = [
    "ADVICE",
    "Checkpoint",
    "Checkpoints",
    "History",
    "Holdout",
    "Limits",
    "Observer",
    "Progress",
    "ProgressLine",
    "Record",
    "Run",
    "Screen",
    "SoFar",
    "Status",
    "interruptible",
    "run",
]
