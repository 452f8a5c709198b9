"""Durable writes, checksums of files, and small JSON files from which a run resumes.

A JSON file is replaced as a whole, with a checksum as last line. Checksums find every single
damaged byte and every cut. They do not protect from forgery: whoever can write the file can write
its checksum.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
import numpy.typing as npt

from spaseq.errors import RunError

T = TypeVar("T")

_WRONG = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The errors that another value than the expected one raises."""


class Damaged(ValueError):
    """Bytes do not agree with their checksum."""

    def __init__(self) -> None:
        super().__init__("its checksum is wrong")


# --- bytes ----------------------------------------------------------------------------------------

_SEAL = struct.Struct("<8sI")
_SEAL_MARK = b"\0crc-32\0"


def sealed(data: bytes) -> bytes:
    """The bytes, followed by their checksum."""
    return data + _SEAL.pack(_SEAL_MARK, zlib.crc32(data))


def unsealed(data: bytes) -> bytes | None:
    """The inverse of `sealed`; None for bytes that have no checksum at their end.

    Raises:
        Damaged: the checksum is wrong.

    >>> unsealed(sealed(b"state")), unsealed(b"state")
    (b'state', None)
    """
    if len(data) < _SEAL.size:
        return None
    body = data[: -_SEAL.size]
    mark, checksum = _SEAL.unpack(data[-_SEAL.size :])
    if mark != _SEAL_MARK:
        return None
    if zlib.crc32(body) != checksum:
        raise Damaged
    return body


# --- text -----------------------------------------------------------------------------------------

_LAST_LINE = re.compile(r'\n\{"crc32": "([0-9a-f]{8})"\}\n\Z')


def with_checksum_line(text: str) -> str:
    """The text, followed by a line with its checksum, as JSON."""
    return f'{text}\n{{"crc32": "{zlib.crc32(text.encode()):08x}"}}\n'


def without_checksum_line(text: str) -> str | None:
    """The inverse of `with_checksum_line`; None for a text without such a line at its end.

    Raises:
        Damaged: the checksum is wrong.

    >>> without_checksum_line(with_checksum_line("[1, 2]"))
    '[1, 2]'
    """
    last_line = _LAST_LINE.search(text)
    if last_line is None:
        return None
    body = text[: last_line.start()]
    if zlib.crc32(body.encode()) != int(last_line[1], 16):
        raise Damaged
    return body


# --- large files ----------------------------------------------------------------------------------

BLOCK_BYTES = 1 << 16
"""A large file has a checksum for each block of this size: the sum of its 64-bit words.

It finds a damaged byte or a lost page as well as CRC-32, and takes a twentieth of the time.
"""

_TAIL = struct.Struct("<8sQI")  # a mark, the size of the file, CRC-32 of the table and this tail
_TAIL_MARK = b"\0blocks\0"


def append_checksums(path: Path) -> None:
    """Append the checksums of a file's blocks to the file."""
    size = path.stat().st_size
    table = _sums(np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)).tobytes()
    head = table + _TAIL.pack(_TAIL_MARK, size, 0)[:-4]
    with path.open("ab") as file:
        file.write(head + struct.pack("<I", zlib.crc32(head)))


def checked_size(data: npt.NDArray[np.uint8]) -> int:
    """The size of a file without its checksums.

    Args:
        data: uint8 [n], all bytes of the file.

    Raises:
        Damaged: a checksum is wrong, or there are none.
    """
    if len(data) < _TAIL.size:
        raise Damaged
    mark, size, checksum = _TAIL.unpack(data[-_TAIL.size :].tobytes())
    table = 8 * -(-size // BLOCK_BYTES)
    if mark != _TAIL_MARK or size + table + _TAIL.size != len(data):
        raise Damaged
    if zlib.crc32(data[size:-4].tobytes()) != checksum:
        raise Damaged
    if _sums(data[:size]).tobytes() != data[size : size + table].tobytes():
        raise Damaged
    return int(size)


def _sums(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """The sum of the words of each block; zeros complete the last one."""
    whole = len(data) // BLOCK_BYTES * BLOCK_BYTES
    rest = np.zeros(BLOCK_BYTES if len(data) > whole else 0, np.uint8)
    rest[: len(data) - whole] = data[whole:]
    parts = [p.view("<u8").reshape(-1, BLOCK_BYTES // 8) for p in (data[:whole], rest)]
    return np.concatenate([part.sum(axis=1, dtype="<u8") for part in parts])


def is_regular(file: TextIO) -> bool:
    """Whether a file can be cut; terminals and pipes cannot."""
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def size_of(file: TextIO) -> int:
    """The size of a file, with the data that waits to be written."""
    file.flush()
    return os.fstat(file.fileno()).st_size


def cut_to(file: TextIO, size: int) -> None:
    """Cut a file that is open for appending; RunError if it is shorter."""
    if size_of(file) < size:
        raise RunError(f"{file.name} has been changed: it is shorter than it was")
    os.ftruncate(file.fileno(), size)
    file.seek(0, os.SEEK_END)


def sync_data(descriptor: int) -> None:
    """Wait until the data written to a file is on disk."""
    getattr(os, "fdatasync", os.fsync)(descriptor)  # macOS has no fdatasync


def sync_file(path: Path) -> None:
    """Wait until the contents of a file are on disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        sync_data(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    if os.name == "nt":  # Windows opens no directories
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file, or leave it as it was, whenever the process or the machine stops.

    Raises:
        OSError: the file cannot be written; the old one is still there.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            sync_data(file.fileno())
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json(path: Path, value: object, indent: int | None = None) -> None:
    """Replace a file, or leave it as it is, whenever the process is killed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(with_checksum_line(json.dumps(value, indent=indent)), "utf-8")
    fresh.replace(path)


def read_json(path: Path, use: Callable[[Any], T]) -> T:
    """The result of `use` for the value in a file that `write_json` wrote.

    Earlier versions wrote no checksum.

    Raises:
        RunError: the file cannot be read, is damaged, or `use` cannot take its value.
    """
    try:
        text = path.read_text("utf-8")
        content = without_checksum_line(text)
        return use(json.loads(text if content is None else content))
    except (OSError, *_WRONG) as error:
        raise damaged(path, error) from error


def damaged(path: Path, reason: object) -> RunError:
    """The error for a file that a run cannot resume from."""
    return RunError(
        f"{path} is damaged, so the run cannot go on: {reason}. Restore its directory from a "
        "copy, or start again with an empty one"
    )
