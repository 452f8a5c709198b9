"""The file of a bounded run's answers: it gets its name when the run ends, so it is never half."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast

from spaseq.cli.output_files import STDOUT
from spaseq.errors import InputError, RunError
from spaseq.sinks.line_file import lines_over, open_lines, standard_lines

_UNNAMED = getattr(os, "O_TMPFILE", 0)  # Linux
_DESCRIPTORS = "/proc/self/fd"


@contextmanager
def answer_file(path: str) -> Iterator[TextIO]:
    """A file for the answers of a bounded run, or standard output for `-`.

    Until the run ends, the answers are in a file without a name. If the process is killed, the
    system removes it, and the path is as it was before. If the run fails or is interrupted, the
    file has the answers so far. A pipe, a device, a file with several links or of another user, and
    a file in a directory that cannot be written, are written in place.

    Raises:
        InputError: the file cannot be opened.
        RunError: the file cannot be written.
    """
    if path == STDOUT:
        with standard_lines() as file:
            yield file
        return
    target = os.path.realpath(path)
    descriptor = _unnamed(target) if _is_replaceable(target) else None
    if descriptor is None:
        with open_lines(path) as file:
            yield file
        return
    unnamed = lines_over(descriptor, path)
    try:
        yield cast(TextIO, unnamed)
    finally:
        try:
            unnamed.end()
        finally:
            _name(descriptor, target, path)
            unnamed.close()


def _is_replaceable(target: str) -> bool:
    """Whether another file may take this path."""
    try:
        status = os.lstat(target)
    except OSError:
        return True
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_nlink == 1
        and status.st_uid == os.geteuid()
        and os.access(target, os.W_OK)
    )


def _unnamed(target: str) -> int | None:
    """A new file in the directory of a path, with the mode of the file there; None if none can be.

    Raises:
        InputError: the directory does not exist.
    """
    directory = os.path.dirname(target)
    if not os.path.isdir(directory):
        raise InputError(f"cannot write {target}: {os.strerror(errno.ENOENT)}")
    if not _UNNAMED or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        descriptor = os.open(directory, _UNNAMED | os.O_WRONLY, 0o666)
    except OSError:
        return None
    with suppress(OSError):
        os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
    return descriptor


def _name(descriptor: int, target: str, path: str) -> None:
    """Give a file without a name its path."""
    directory, name = os.path.split(target)
    passing = os.path.join(directory, f".{name}.{os.getpid()}")
    descriptors = os.open(_DESCRIPTORS, os.O_RDONLY)  # linkat follows its links
    try:
        with suppress(FileNotFoundError):
            os.unlink(passing)
        os.link(str(descriptor), passing, src_dir_fd=descriptors, follow_symlinks=True)
        os.replace(passing, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(passing)
        raise RunError(f"cannot write {path}: {error.strerror}") from error
    finally:
        os.close(descriptors)
