"""What a stream log has, and the bytes of its records.

A block of messages is one record that takes as many indexes as it has messages. Its columns stand
one after the other. A column with the same value in each row has that value once. Logs of earlier
versions have a record for each message.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.errors import RunError
from spaseq.logs.messages import NO_TIME, JoinedTexts, Message, MessageColumns

_HEAD = struct.Struct("<BqIqH")
_MORE = struct.Struct("<qqI")
_MESSAGE, _PARTITIONS, _RAISED, _MESSAGE_WITH_MORE, _MARKS, _BLOCK = 1, 2, 3, 4, 5, 6
_KINDS_BEFORE_BLOCKS = (_MESSAGE, _MESSAGE_WITH_MORE)
_COUNT = struct.Struct("<BI")
_INT = struct.Struct("<q")
_SAME, _EACH = b"\1", b"\0"
_MOST_MEDIA = 1000  # bytes of a media type
_NO_TEXT = -1


@dataclass(frozen=True, slots=True)
class Partitions:
    """The source has this many partitions from here on."""

    count: int

    def to_bytes(self) -> bytes:
        """The number as a record."""
        return _HEAD.pack(_PARTITIONS, 0, self.count, 0, 0)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A heartbeat: no event of a partition before a time (ms) follows."""

    partition: int
    time: int

    def to_bytes(self) -> bytes:
        """The heartbeat as a record."""
        return _HEAD.pack(_RAISED, self.time, self.partition, 0, 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that the messages before this entry have changed."""

    changed: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The marks as a record."""
        return _HEAD.pack(_MARKS, 0, 0, 0, 0) + json.dumps(dict(self.changed)).encode()


Entry: TypeAlias = MessageColumns | Partitions | Heartbeat | Marks
"""What a stream log has."""

T = TypeVar("T")


def entry_of(record: bytes) -> Entry:
    """The entry of a record.

    Raises:
        RunError: a later version wrote the record.
    """
    if record[0] == _BLOCK:
        return _block_of(record)
    kind, time, partition, *_ = _HEAD.unpack_from(record)
    if kind == _PARTITIONS:
        return Partitions(partition)
    if kind == _RAISED:
        return Heartbeat(partition, time)
    if kind == _MARKS:
        return Marks(json.loads(record[_HEAD.size :]))
    if kind in _KINDS_BEFORE_BLOCKS:
        return MessageColumns.of([_message_of(record)])
    raise RunError(f"a stream log has a record of kind {kind}: a later version wrote it")


# --- blocks ---------------------------------------------------------------------------------------


def block_record(block: MessageColumns) -> bytes:
    """The record of a block. Marks are not in it."""
    media = [text.encode()[:_MOST_MEDIA] for text in _distinct(block.media_type)]
    parts = [
        _COUNT.pack(_BLOCK, len(block)),
        _ints(block.partition),
        _ints(block.offset),
        _ints(block.arrival),
        _ints(block.time),
        _texts(media),
        _texts(_distinct(block.key)),
        _texts([text.encode() for text in _distinct(block.topic)]),
        _ints(block.payload.sizes),
        block.payload.joined,
    ]
    return b"".join(parts)


def _distinct(column: Sequence[T]) -> list[T]:
    """A column, or its only value, if all rows have it."""
    return [column[0]] if column.count(column[0]) == len(column) else list(column)


def _ints(column: Int64s) -> bytes:
    if (column == column[0]).all():
        return _SAME + _INT.pack(column[0])
    return _EACH + column.astype("<i8", copy=False).tobytes()


def _texts(column: Sequence[bytes | None]) -> bytes:
    """The sizes of texts, and the texts; one text stands for all rows."""
    sizes = [_NO_TEXT if text is None else len(text) for text in column]
    mark = _SAME if len(column) == 1 else _EACH
    return mark + np.array(sizes, "<i8").tobytes() + b"".join(filter(None, column))


class _Columns:
    """Reads the columns of a record, one after the other."""

    def __init__(self, record: bytes, at: int, count: int) -> None:
        self._record, self._at, self._count = record, at, count

    def _sizes(self) -> tuple[Int64s, bool]:
        """As many numbers as there are rows, or one for all rows; whether it is one."""
        is_same = self._record[self._at : self._at + 1] == _SAME
        count = 1 if is_same else self._count
        found = np.frombuffer(self._record, "<i8", count, self._at + 1).astype(np.int64)
        self._at += 1 + _INT.size * count
        return found, is_same

    def ints(self) -> Int64s:
        """A column of numbers."""
        found, is_same = self._sizes()
        return np.repeat(found, self._count) if is_same else found

    def texts(self) -> list[bytes | None]:
        """A column of texts."""
        sizes, is_same = self._sizes()
        found: list[bytes | None] = []
        for size in sizes.tolist():
            end = self._at + max(size, 0)
            found.append(None if size == _NO_TEXT else self._record[self._at : end])
            self._at = end
        return found * self._count if is_same else found

    def rest(self) -> bytes:
        """What follows the columns."""
        return self._record[self._at :]


def _block_of(record: bytes) -> MessageColumns:
    _, count = _COUNT.unpack_from(record)
    columns = _Columns(record, _COUNT.size, count)
    partition, offset, arrival, time = (columns.ints() for _ in range(4))
    media, key, topic = _decoded(columns.texts()), columns.texts(), _decoded(columns.texts())
    sizes = columns.ints()
    payload = JoinedTexts.of_sizes(columns.rest(), sizes)
    marks = [()] * count
    return MessageColumns(payload, partition, offset, arrival, time, media, key, topic, marks)


def _decoded(texts: Sequence[bytes | None]) -> list[str]:
    known = {text: (text or b"").decode("utf-8", "replace") for text in set(texts)}
    return [known[text] for text in texts]


# --- messages of earlier versions -----------------------------------------------------------------


def _message_of(record: bytes) -> Message:
    kind, arrival, partition, offset, length = _HEAD.unpack_from(record)
    at = _HEAD.size + length
    media = record[_HEAD.size : at].decode("utf-8", "replace")
    if kind == _MESSAGE:
        return Message(record[at:], partition, offset, media, arrival)
    time, size, topic_size = _MORE.unpack_from(record, at)
    at += _MORE.size
    key = None if size < 0 else record[at : at + size]
    at += max(size, 0)
    topic = record[at : at + topic_size].decode("utf-8", "replace")
    payload = record[at + topic_size :]
    given = None if time == NO_TIME else time
    return Message(payload, partition, offset, media, arrival, given, key, topic)
