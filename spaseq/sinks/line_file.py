"""A text file that gets whole lines, and names itself when it cannot be written."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, cast

from spaseq.errors import InputError, RunError

_CHUNK = 1 << 16
"""Characters that are written at once."""

_GZIP = 31
"""What zlib calls the form of a gzip file with the largest window."""


class LineFile(io.TextIOBase):
    """A UTF-8 text file over a descriptor.

    Text is written in whole lines, many at a time, by one call. If the disk is full, the file is
    cut to its last whole line.

    Args:
        descriptor: where bytes go.
        name: the file in messages.
        owned: whether `close` closes the descriptor.
    """

    def __init__(self, descriptor: int, name: str, owned: bool = True) -> None:
        super().__init__()
        self._descriptor, self.name, self._owned = descriptor, name, owned
        self._parts: list[str] = []
        self._size = 0
        self._failed = False
        self._chunk = 1 if os.isatty(descriptor) else _CHUNK

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        """Take text; RunError if the file cannot be written."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._chunk:
            self._send(whole_lines=True)
        return len(text)

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Write bytes after the text so far; RunError if the file cannot be written."""
        self.flush()
        if not self._failed:
            self._put(data)

    def flush(self) -> None:
        """Write everything; RunError if the file cannot be written."""
        if self._size and not self.closed:
            self._send(whole_lines=False)

    def truncate(self, size: int | None = None) -> int:
        """Cut the file, like `os.ftruncate`."""
        self.flush()
        os.ftruncate(self._descriptor, size or 0)
        return size or 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset, like `os.lseek`."""
        self.flush()
        return os.lseek(self._descriptor, offset, whence)

    def end(self) -> None:
        """Write everything, up to the end of the file; RunError if it cannot be written."""
        self.flush()

    def close(self) -> None:
        """Write everything and close the file; RunError if it cannot be written."""
        if self.closed:
            return
        try:
            self.end()
            super().close()
        finally:
            if self._owned:
                try:
                    os.close(self._descriptor)  # some file systems report a full disk here
                except OSError as error:
                    raise self._error(error) from error

    def _send(self, whole_lines: bool) -> None:
        text = "".join(self._parts)
        end = text.rfind("\n") + 1 if whole_lines else len(text)
        self._parts, self._size = [text[end:]], len(text) - end
        if end and not self._failed:
            self._put(text[:end].encode("utf-8", "backslashreplace"))

    def _put(self, data: bytes | memoryview) -> None:
        done, data = 0, memoryview(data)
        while done < len(data):
            try:
                done += os.write(self._descriptor, data[done:])
            except BlockingIOError:
                select.select((), (self._descriptor,), ())
            except OSError as error:
                self._failed = True
                self._keep_whole_lines(bytes(data[:done]))
                raise self._error(error) from error

    def _keep_whole_lines(self, written: bytes) -> None:
        """Cut the part of a line at the end of what was just written."""
        part = len(written) - (written.rfind(b"\n") + 1)
        with suppress(OSError):
            status = os.fstat(self._descriptor)
            if part and stat.S_ISREG(status.st_mode):
                os.ftruncate(self._descriptor, status.st_size - part)

    def _error(self, error: OSError) -> Exception:
        if isinstance(error, BrokenPipeError):  # the reader has gone, which is no failure
            return error
        return RunError(f"cannot write {self.name}: {error.strerror}")


class GzipLines(LineFile):
    """A gzip file of UTF-8 text over a descriptor."""

    def __init__(self, descriptor: int, name: str, owned: bool = True) -> None:
        super().__init__(descriptor, name, owned)
        self._compress = zlib.compressobj(wbits=_GZIP)
        self._is_ended = False

    def end(self) -> None:
        """Write what the compression holds back, and the end of the file."""
        self.flush()
        if not self._is_ended and not self._failed:
            self._is_ended = True
            super()._put(self._compress.flush())

    def _put(self, data: bytes | memoryview) -> None:
        super()._put(self._compress.compress(data))

    def _keep_whole_lines(self, written: bytes) -> None:
        """Leave the file as it is: readers of gzip find its last whole line."""


def open_lines(path: str, mode: int = os.O_TRUNC) -> TextIO:
    """A file for whole lines; `mode` is `os.O_TRUNC` or `os.O_APPEND`.

    Raises:
        InputError: the file cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | mode, 0o666)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    return cast(TextIO, lines_over(descriptor, path))


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, and make its directory; the line is on disk when this returns.

    Raises:
        RunError: the disk is full, or fails.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        with open_lines(str(path), os.O_APPEND) as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def lines_over(descriptor: int, path: str) -> LineFile:
    """A file for whole lines over an open descriptor; `.gz` at the end of its path packs it."""
    return GzipLines(descriptor, path) if path.endswith(".gz") else LineFile(descriptor, path)


@contextmanager
def standard_lines() -> Iterator[TextIO]:
    """Standard output for whole lines; it stays open."""
    if sys.stdout is not sys.__stdout__ or sys.stdout is None:  # a program has replaced it
        yield sys.stdout
        return
    sys.stdout.flush()
    with LineFile(sys.stdout.fileno(), "standard output", owned=False) as file:
        yield cast(TextIO, file)
