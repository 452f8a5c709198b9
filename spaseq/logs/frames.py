"""Frames, the parts of a segment of a log. A commit writes one frame with all its records.

A frame has a head of 28 bytes and a body. The head has a mark, the body's length, the number of
indexes that its records take, the first one of them, the CRC-32 of the body, and that of the head
itself. In the body each record follows its length. A record that takes several indexes follows its
length with the highest bit set, and their number. The first frame of a segment holds no records but
the segment's notes.

A commit syncs its frame before the next one is written. So only the last frame of a log can be
*torn*: cut short, or with blocks that the file system never wrote, which read as zeros. A torn
frame was never committed. Every other fault is *damage*.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import IO

from spaseq.errors import RunError

RECORDS, NOTES = b"spqr", b"spqn"
"""The marks of a frame with records and of a segment's first frame."""

_HEAD = struct.Struct("<4sIIQII")
_LENGTH = struct.Struct("<I")
_WIDE = 2**31  # in a length: the number of indexes follows
_SECTOR = 512  # bytes that a disk writes at once
_LEAST_ZEROS = 32  # of a part of a sector


class DamagedLog(RunError):
    """A log has bytes that no commit wrote."""


class TornFrame(Exception):
    """The last frame was never committed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A whole frame: its first index, how many there are, its body, and where it ends."""

    index: int
    count: int
    body: bytes
    end: int

    def records(self, begin: int = 0) -> Iterator[tuple[int, bytes]]:
        """Each record with its first index, without those that end at or before `begin`."""
        body, at, index, end = self.body, 0, self.index, self.index + self.count
        while index < end:
            (length,) = _LENGTH.unpack_from(body, at)
            at += _LENGTH.size
            width = 1
            if length & _WIDE:
                length -= _WIDE
                (width,) = _LENGTH.unpack_from(body, at)
                at += _LENGTH.size
            at += length
            if index + width > begin:
                yield index, body[at - length : at]
            index += width


def framed_record(record: bytes, width: int = 1) -> bytes:
    """A record that takes `width` indexes, as a part of a frame's body."""
    if width == 1:
        return _LENGTH.pack(len(record)) + record
    return b"".join((_LENGTH.pack(len(record) | _WIDE), _LENGTH.pack(width), record))


def frame_of(index: int, count: int, records: Sequence[bytes]) -> bytes:
    """The bytes of a frame with framed records, which take `count` indexes from `index` on."""
    return _framed(RECORDS, index, count, b"".join(records))


def notes_frame(index: int, notes: bytes) -> bytes:
    """The first frame of a segment whose first record will have the index."""
    return _framed(NOTES, index, 0, notes)


def _framed(mark: bytes, index: int, count: int, body: bytes) -> bytes:
    head = _HEAD.pack(mark, len(body), count, index, zlib.crc32(body), 0)[: -_LENGTH.size]
    return b"".join((head, _LENGTH.pack(zlib.crc32(head)), body))


def read_frame(file: IO[bytes], at: int, size: int, mark: bytes = RECORDS) -> Frame:
    """The frame at a place in a file.

    Args:
        file: the segment.
        at: where the frame begins; less than `size`.
        size: how many bytes of the file count.
        mark: the mark that the frame must have.

    Raises:
        TornFrame: the frame can be one that was never committed, if it is the last one of its log.
        DamagedLog: it cannot.
    """
    file.seek(at)
    head = file.read(min(_HEAD.size, size - at))
    if len(head) < _HEAD.size:
        if not mark.startswith(head[:4]) and not head.startswith(mark) and any(head):
            raise DamagedLog(_damage(file, at, "no frame begins there"))
        raise TornFrame
    mark_there, length, count, index, checksum, head_checksum = _HEAD.unpack(head)
    if zlib.crc32(head[: -_LENGTH.size]) != head_checksum or mark_there != mark:
        _check_unwritten(file, at, head + file.read(size - at - len(head)), "no frame begins there")
        raise TornFrame
    end = at + _HEAD.size + length
    if end > size:
        raise TornFrame
    body = file.read(length)
    if len(body) != length or zlib.crc32(body) != checksum:
        if end == size:
            _check_unwritten(file, at, head + body, "the checksum of a frame is wrong")
            raise TornFrame
        raise DamagedLog(_damage(file, at, "the checksum of a frame is wrong"))
    return Frame(index, count, body, end)


def _check_unwritten(file: IO[bytes], at: int, data: bytes, reason: str) -> None:
    """DamagedLog unless the bytes from `at` to the end of a file can be a frame's torn write."""
    if not _has_unwritten_sector(at, data) or _has_frame(data[1:]):
        raise DamagedLog(_damage(file, at, reason))


def _has_unwritten_sector(at: int, data: bytes) -> bool:
    """Whether a sector of the data, which begins at `at` in its file, has zeros only."""
    first = -at % _SECTOR
    edges = [0, *range(first, len(data), _SECTOR), len(data)]
    return any(b - a >= _LEAST_ZEROS and not any(data[a:b]) for a, b in pairwise(edges))


def _has_frame(data: bytes) -> bool:
    """Whether a frame with records begins somewhere in the data."""
    places = accumulate(map(len, data.split(RECORDS)), lambda at, n: at + len(RECORDS) + n)
    for at in places:
        head = data[at : at + _HEAD.size]
        if len(head) == _HEAD.size:
            *_, head_checksum = _HEAD.unpack(head)
            if zlib.crc32(head[: -_LENGTH.size]) == head_checksum:
                return True
    return False


def _damage(file: IO[bytes], at: int, reason: str) -> str:
    return (
        f"{file.name} is damaged at byte {at}: {reason}. Restore its directory from a copy, or "
        "start again with an empty one"
    )
