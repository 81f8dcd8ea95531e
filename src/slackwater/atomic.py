"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

__all__ = ["atomic_file"]


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """A file to write to, ``"wb"`` or ``"w"`` (UTF-8), that takes its name only once it is complete and on the disk.

    Until then, and after any exception, Ctrl-C included, a file that had the name before stays as it is.
    """
    if mode not in ("wb", "w"):
        raise ValueError(f"mode {mode!r}: a file is written whole, as 'wb' or 'w'")
    target = Path(os.path.realpath(path))  # a link goes on pointing at its file
    draft = target.with_name(f".slackwater-{secrets.token_hex(8)}.part")
    with _named(path, (target, draft)):
        kept = _old_permissions(target)
        if kept is None and target.exists():  # a device or a pipe: it has no content to keep
            with _opened(target, mode) as file:
                yield file
            return
        try:
            with _opened(draft, mode.replace("w", "x")) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if kept is not None:
                draft.chmod(kept)
            draft.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise


def _old_permissions(target: Path) -> int | None:
    """Those of the file that will be replaced; None when there is none, or something else than a file."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder", os.fspath(target))
    return stat.S_IMODE(mode) if stat.S_ISREG(mode) else None


def _opened(path: Path, mode: str) -> IO[Any]:
    return path.open(mode) if "b" in mode else path.open(mode, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def _named(path: str | os.PathLike[str], ours: tuple[Path, Path]) -> Iterator[None]:
    """Say in one sentence which file could not be written; the error keeps its type and number."""
    try:
        yield
    except OSError as error:
        # One with the name of another file is the caller's; writes and flushes carry no name.
        if error.strerror is None or (error.filename is not None and Path(os.fsdecode(error.filename)) not in ours):
            raise
        folder = Path(path).parent
        missing = isinstance(error, FileNotFoundError) and not folder.is_dir()
        reason = f"there is no folder {folder}" if missing else error.strerror
        renamed = type(error)(f"cannot write {os.fspath(path)}: {reason}")
        renamed.errno = error.errno
        raise renamed from error
