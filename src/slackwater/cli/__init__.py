"""The ``slackwater`` command: ``main`` runs it and turns every error into one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

_NEEDED = ("typer", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with ``arguments``, those of the process where None; the exit code."""
    try:
        from slackwater.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        print("slackwater: the command needs typer and rich: pip install 'slackwater[cli]'", file=sys.stderr)
        return 1
    from slackwater.cli.errors import guarded

    return guarded(lambda: app(args=arguments, prog_name="slackwater", standalone_mode=False))
