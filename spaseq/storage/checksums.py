"""Checksums that tell a damaged file from a whole one.

CRC-32 finds every single damaged byte and every cut. It is no protection from somebody who forges a
file: whoever can write the file can write its checksum.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


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

_LAST_LINE = re.compile(r"\ncrc-32 ([0-9a-f]{8})\n\Z")


def with_checksum_line(text: str) -> str:
    """The text, followed by a line with its checksum."""
    return f"{text}\ncrc-32 {zlib.crc32(text.encode()):08x}\n"


def without_checksum_line(text: str) -> str | None:
    """The inverse of `with_checksum_line`; None for a text without such a line at its end.

    Raises:
        Damaged: the checksum is wrong.

    >>> without_checksum_line(with_checksum_line("[1, 2]"))
    '[1, 2]'
    """
    found = _LAST_LINE.search(text)
    if found is None:
        return None
    body = text[: found.start()]
    if zlib.crc32(body.encode()) != int(found[1], 16):
        raise Damaged
    return body


# --- files ----------------------------------------------------------------------------------------

BLOCK_BYTES = 1 << 24
"""A large file has a checksum for each block of this size, so that threads can share the work."""

_TAIL = struct.Struct("<8sQI")
_TAIL_MARK = b"\0blocks\0"


def append_checksums(path: Path) -> None:
    """Append the checksums of a file's blocks to the file."""
    with path.open("r+b") as file:
        sums = []
        while block := file.read(BLOCK_BYTES):
            sums.append(zlib.crc32(block))
        size = file.tell()
        table = struct.pack(f"<{len(sums)}I", *sums)
        tail = _TAIL.pack(_TAIL_MARK, size, 0)[:-4]
        file.write(table + tail + struct.pack("<I", zlib.crc32(table + tail)))


def checked_size(data: memoryview) -> int:
    """The size of a file without its checksums, from all bytes of the file.

    Raises:
        Damaged: a checksum is wrong, or there are none.
    """
    view = data.cast("B")
    if len(view) < _TAIL.size:
        raise Damaged
    mark, size, own = _TAIL.unpack(view[-_TAIL.size :])
    count = -(-size // BLOCK_BYTES)
    if mark != _TAIL_MARK or size + 4 * count + _TAIL.size != len(view):
        raise Damaged
    if zlib.crc32(view[size:-4]) != own:
        raise Damaged
    sums = struct.unpack(f"<{count}I", view[size : size + 4 * count])
    blocks = [view[i : i + BLOCK_BYTES] for i in range(0, size, BLOCK_BYTES)]
    blocks[-1:] = [block[: size - BLOCK_BYTES * (count - 1)] for block in blocks[-1:]]
    with ThreadPoolExecutor(min(max(count, 1), os.cpu_count() or 1)) as pool:
        if tuple(pool.map(zlib.crc32, blocks)) != sums:
            raise Damaged
    return int(size)
