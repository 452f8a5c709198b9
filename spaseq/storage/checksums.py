"""Checksums that tell a damaged file from a whole one.

They find every single damaged byte and every cut. They are no protection from somebody who forges a
file: whoever can write the file can write its checksum.
"""

from __future__ import annotations

import re
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt


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
