"""The text of a file, compressed or not, in pieces that end where lines end, for threads to read side by side."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import stat
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from slackwater.data.errors import DataFileError, MissingDataFile

__all__ = ["MARGIN", "PIECE", "Text", "open_text", "packing", "reading_errors", "text_in_memory"]

#: Bytes after the text of a piece that may be read without meaning.
MARGIN = 32

#: Bytes of a piece: large beside the cost of handing it to a thread, small beside the caches.
PIECE = 2**21

_WINDOW = 2**12
_MARK = b"\xef\xbb\xbf"  # UTF-8 files from some editors begin with it
_COMPRESSORS: dict[str, Any] = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


class Text(Protocol):
    """Pieces of text as read-only bytes: whole lines, each with its line break, then ``MARGIN`` bytes more."""

    source: str

    def __len__(self) -> int: ...

    def piece(self, k: int) -> np.ndarray:
        """Piece ``k``; valid until the same thread asks for another one."""


@contextlib.contextmanager
def reading_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong with a file as such into one sentence that names it."""
    source = os.fspath(path)
    try:
        yield
    except DataFileError:
        raise
    except FileNotFoundError as error:
        raise MissingDataFile(source, "there is no such file") from error
    except IsADirectoryError as error:
        raise DataFileError(source, "this is a folder, not a file") from error
    except _DAMAGE as error:
        raise DataFileError(source, f"the compressed file is damaged or cut short ({error})") from error
    except OSError as error:
        if error.strerror is None:  # bz2 raises it so
            raise DataFileError(source, f"the compressed file is damaged or cut short ({error})") from error
        raise DataFileError(source, f"the file cannot be read: {error.strerror}") from error


def open_text(path: str | os.PathLike[str], piece: int = PIECE) -> Text:
    """The text of a file; what is compressed or no regular file is read into memory here."""
    with reading_errors(path):
        compressor = _compressor(path)
        if compressor is not None:
            with compressor.open(path, "rb") as file:
                return _TextInMemory(os.fspath(path), file, piece)
        with open(path, "rb", buffering=0) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _TextOnDisk(os.fspath(path), file, piece)
            return _TextInMemory(os.fspath(path), file, piece)


def text_in_memory(source: str, data: bytes) -> Text:
    """A text that is there already; ``source`` is what errors call it."""
    return _TextInMemory(source, io.BytesIO(data), PIECE)


def packing(file: IO[bytes], path: str | os.PathLike[str]) -> contextlib.AbstractContextManager[Any]:
    """A file to write text to, which goes on to ``file`` compressed as the extension of ``path`` tells."""
    compressor = _compressor(path)
    if compressor is None:
        return contextlib.nullcontext(file)
    if compressor is gzip:
        return gzip.GzipFile("", "wb", 6, file, 0)  # no name and no time: equal data make equal files
    return compressor.open(file, "wb")


def _compressor(path: str | os.PathLike[str]) -> Any | None:
    return _COMPRESSORS.get(Path(path).suffix.lower())


def _view(buffer: np.ndarray, size: int) -> np.ndarray:
    """The text of ``size`` bytes at the start of ``buffer``, its last line ended, as compiled code wants it."""
    if buffer[size - 1] != ord("\n"):
        buffer[size] = ord("\n")
        size += 1
    buffer[size : size + MARGIN] = 0
    view = buffer[: size + MARGIN]
    view.flags.writeable = False  # one machine-code version for all pieces
    return view


class _TextOnDisk:
    """Pieces are read when asked for, into one buffer per thread that stays in its cache."""

    def __init__(self, source: str, file: Any, piece: int) -> None:
        self.source = source
        self._ends = list(_ends(file, piece))
        self._own = threading.local()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def piece(self, k: int) -> np.ndarray:
        start, size = self._ends[k], self._ends[k + 1] - self._ends[k]
        buffer = getattr(self._own, "buffer", None)
        if buffer is None or buffer.size < size + 1 + MARGIN:
            buffer = self._own.buffer = np.empty(size + size // 8 + 1 + MARGIN, dtype=np.uint8)
        with reading_errors(self.source), open(self.source, "rb", buffering=0) as file:
            file.seek(start)
            done = 0
            while done < size:
                got = file.readinto(buffer.data[done:size])
                if not got:
                    raise DataFileError(self.source, "the file became shorter while it was read")
                done += got
        return _view(buffer, size)


def _ends(file: Any, piece: int) -> Iterator[int]:
    """Where pieces of about ``piece`` bytes begin and end: after line breaks."""
    size = os.fstat(file.fileno()).st_size
    end = len(_MARK) if file.read(len(_MARK)) == _MARK else 0
    yield end
    while end < size:
        end = _after_break(file, end + piece, size)
        yield end


def _after_break(file: Any, position: int, size: int) -> int:
    """The first line's start from ``position`` on, or the end of the file."""
    position -= 1
    while position < size:
        file.seek(position)
        window = file.read(_WINDOW)
        found = window.find(b"\n")
        if found >= 0:
            return position + found + 1
        if not window:
            break
        position += len(window)
    return size


class _TextInMemory:
    """Pieces of a stream, kept."""

    def __init__(self, source: str, file: IO[bytes], piece: int) -> None:
        self.source = source
        self._pieces = list(_stream(file, piece))

    def __len__(self) -> int:
        return len(self._pieces)

    def piece(self, k: int) -> np.ndarray:
        return self._pieces[k]


def _stream(file: IO[bytes], piece: int) -> Iterator[np.ndarray]:
    block = file.read(piece)
    waiting = [block.removeprefix(_MARK)]
    while block:
        block = file.read(piece)
        cut = block.rfind(b"\n") + 1
        if cut or not block:
            whole = b"".join([*waiting, block[:cut]])
            waiting = []
            if whole:
                buffer = np.empty(len(whole) + 1 + MARGIN, dtype=np.uint8)
                buffer[: len(whole)] = np.frombuffer(whole, dtype=np.uint8)
                yield _view(buffer, len(whole))
        waiting.append(block[cut:])
