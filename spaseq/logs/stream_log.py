"""The log of a stream: each accepted message once, with its arrival and its position.

The position in the source is a partition's number, and an offset in it. The log knows the last
position of each partition, so a source continues after it, whatever the broker's state. The log
numbers the messages of a source without positions. A source whose positions are no numbers has them
in *marks*: names with texts, of which the log knows the last one each. Messages are appended and
read in blocks.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.errors import RunError
from spaseq.logs.frames import DamagedLog
from spaseq.logs.messages import (
    NO_TIME,
    UNNUMBERED,
    JoinedTexts,
    Message,
    MessageColumns,
    arrived_at,
)
from spaseq.logs.segment_log import SEGMENT_BYTES, LogReader, SegmentLog
from spaseq.storage.checksums import write_durably

_HEAD = struct.Struct("<BqIqH")
_MORE = struct.Struct("<qqI")
_MESSAGE, _PARTITIONS, _RAISED, _MESSAGE_WITH_MORE, _MARKS, _BLOCK = 1, 2, 3, 4, 5, 6
_KINDS_BEFORE_BLOCKS = (_MESSAGE, _MESSAGE_WITH_MORE)
_COUNT = struct.Struct("<BI")
_INT = struct.Struct("<q")
_SAME, _EACH = b"\1", b"\0"
_MOST_MEDIA = 1000  # bytes of a media type
_NO_TEXT = -1
_PIECE, _MOST_RECORDS = 2**22, 4096  # bytes and records that are read together


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
"""The format of a stream log."""

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
    """The sizes of texts, and the texts; one text may be for all rows."""
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
        sizes = np.frombuffer(self._record, "<i8", count, self._at + 1).astype(np.int64)
        self._at += 1 + _INT.size * count
        return sizes, is_same

    def ints(self) -> Int64s:
        """A column of numbers."""
        numbers, is_same = self._sizes()
        return np.repeat(numbers, self._count) if is_same else numbers

    def texts(self) -> list[bytes | None]:
        """A column of texts."""
        sizes, is_same = self._sizes()
        column: list[bytes | None] = []
        for size in sizes.tolist():
            end = self._at + max(size, 0)
            column.append(None if size == _NO_TEXT else self._record[self._at : end])
            self._at = end
        return column * self._count if is_same else column

    def rest(self) -> bytes:
        """The bytes after the columns."""
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


class StreamLog:
    """The messages of one stream in a directory, which must not be open twice.

    Attributes:
        last_arrival: the greatest time (ms) at which a message of the log arrived, as far as
            messages have been found or handed in.

    Raises:
        DamagedLog: see `SegmentLog`.
    """

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._places: dict[int, int] = {}  # of committed messages
        self._pending: dict[int, int] = {}
        self._marks: dict[str, str] = {}
        self._pending_marks: dict[str, str] = {}
        self._partitions = self._pending_partitions = 1
        self.last_arrival: int | None = None
        self.log = SegmentLog(directory, segment_bytes, self._notes)
        self._find_places()
        self._pending_partitions = self._partitions

    @property
    def places(self) -> dict[int, int]:
        """The offset of the last committed message of each partition."""
        return dict(self._places)

    @property
    def marks(self) -> dict[str, str]:
        """The last text of each mark of the committed messages."""
        return dict(self._marks)

    def identity(self) -> str:
        """A random name of the log, which it keeps; RunError if it cannot be written."""
        path = self.log.directory / "identity"
        try:
            if not path.exists():
                write_durably(path, secrets.token_hex(8).encode())
            return path.read_text()
        except OSError as error:
            raise RunError(f"cannot use {path}: {error.strerror}") from error

    def note_partitions(self, count: int) -> None:
        """Hand in how many partitions there are, if they have become more."""
        if count > self._pending_partitions:
            self._pending_partitions = count
            self.log.append([Partitions(count).to_bytes()])

    def note_heartbeat(self, partition: int, time: int) -> None:
        """Hand in a heartbeat of a partition: no event before a time (ms) follows."""
        self.log.append([Heartbeat(partition, time).to_bytes()])

    def append(self, messages: Sequence[Message], arrival: int | None = None) -> int:
        """Append messages for the next `commit`, without those already in the log; return the
        number of new ones.

        A message is in the log if its partition has one with the same or a later offset. They get
        the `arrival` (ms), if it is given. All messages are `UNNUMBERED`, or none.
        """
        block = self._numbered(MessageColumns.of(messages))
        block = block.rows(np.flatnonzero(self._are_new(block)))
        if not len(block):
            return 0
        if arrival is not None:
            block = arrived_at(block, arrival)
        last_rows = len(block) - 1 - np.unique(block.partition[::-1], return_index=True)[1]
        for row in last_rows.tolist():
            self._pending[int(block.partition[row])] = int(block.offset[row])
        self._arrived(block)
        self.log.append([block_record(block)], len(block))
        marks = {name: text for changed in block.marks for name, text in changed}
        if marks:
            self._pending_marks.update(marks)
            self.log.append([Marks(marks).to_bytes()])
        return len(block)

    def _arrived(self, block: MessageColumns) -> None:
        last = int(block.arrival.max())
        self.last_arrival = last if self.last_arrival is None else max(last, self.last_arrival)

    def _last(self, partition: int) -> int | None:
        """The offset of the last message of a partition that was handed in."""
        return self._pending.get(partition, self._places.get(partition))

    def _numbered(self, block: MessageColumns) -> MessageColumns:
        """The messages, with offsets if they have none."""
        if not len(block) or block.offset[0] != UNNUMBERED:
            return block
        offset = np.empty_like(block.offset)
        for partition in np.unique(block.partition).tolist():
            of_partition, last = block.partition == partition, self._last(partition)
            first = 1 if last is None else last + 1
            offset[of_partition] = np.arange(first, first + np.count_nonzero(of_partition))
        return replace(block, offset=offset)

    def _are_new(self, block: MessageColumns) -> Bools:
        """Which messages are behind all of their partition before."""
        new = np.ones(len(block), bool)
        for partition in np.unique(block.partition).tolist():
            rows = np.flatnonzero(block.partition == partition)
            offsets, last = block.offset[rows], self._last(partition)
            new[rows[1:]] = offsets[1:] > np.maximum.accumulate(offsets)[:-1]
            if last is not None:
                new[rows] &= offsets > last
        return new

    def commit(self) -> int:
        """Write the appended messages; see `SegmentLog.commit`."""
        end = self.log.commit()
        self._places.update(self._pending)
        self._pending.clear()
        self._mark(self._pending_marks)
        self._pending_marks.clear()
        self._partitions = self._pending_partitions
        return end

    def discard(self) -> None:
        """Drop the messages appended since the last commit."""
        self.log.discard()
        self._pending.clear()
        self._pending_marks.clear()
        self._pending_partitions = self._partitions

    def messages(self, begin: int, end: int | None = None) -> list[Message]:
        """The committed messages from an index on, before another one, or to the end."""
        reader, collected = self.reader(begin), list[Message]()
        while some := reader.read(until=end):
            collected.extend(chain.from_iterable(e for e in some if isinstance(e, MessageColumns)))
        reader.close()
        return collected

    def newest_messages(self, most_bytes: int) -> Iterator[list[Message]]:
        """The last committed messages, piece by piece, the last piece first.

        After the first messages that the log ever had, an empty piece follows.
        """
        end, taken, size = self.log.end, 0, 64  # records
        while end > self.log.first and taken < most_bytes:
            begin = max(end - size, self.log.first)
            messages = self.messages(begin, end)
            yield messages
            read = sum(len(message.payload) for message in messages)
            size = max(1, min(_MOST_RECORDS, _PIECE * (end - begin) // max(read, 1)))
            end, taken = begin, taken + read
        if end == 0:
            yield []

    def reader(self, index: int = 0) -> MessageReader:
        """Reads committed messages from an index on, while the log grows."""
        return MessageReader(self.log, index)

    def close(self) -> None:
        """Close the files."""
        self.log.close()

    def _notes(self) -> bytes:
        """The positions of all messages before a segment, without its first commit."""
        places = sorted(self._places.items())
        notes = [self._partitions, places, self._marks, self.last_arrival]
        return json.dumps(notes).encode()

    def _mark(self, changed: Mapping[str, str]) -> None:
        self._marks.update(changed)
        for name in [name for name, text in changed.items() if not text]:
            del self._marks[name]

    def _find_places(self) -> None:
        notes, first = self.log.last_notes()
        try:
            self._partitions, places, *further = json.loads(notes)
            self._places = {int(partition): int(offset) for partition, offset in places}
            self._marks = dict(*further[:1])  # earlier versions have none
            self.last_arrival = further[1] if len(further) > 1 else None
        except (ValueError, TypeError) as error:
            raise DamagedLog(f"{self.log.directory} is damaged: {error}") from error
        reader = self.reader(first)
        while some := reader.read():
            for entry in some:
                if isinstance(entry, Partitions):
                    self._partitions = entry.count
                elif isinstance(entry, Marks):
                    self._mark(entry.changed)
                elif isinstance(entry, MessageColumns):
                    self._arrived(entry)
                    self._places.update(
                        zip(entry.partition.tolist(), entry.offset.tolist(), strict=True)
                    )
        reader.close()


class MessageReader:
    """Reads the committed messages of a stream log; compare `LogReader`."""

    def __init__(self, log: SegmentLog, index: int) -> None:
        self._reader = LogReader(log, index)

    @property
    def next(self) -> int:
        """The index of the message that is read next."""
        return self._reader.next

    def read(self, most_bytes: int = 2**20, until: int | None = None) -> list[Entry]:
        """The next entries, whole commits of about `most_bytes`; see `LogReader.read`."""
        first, entries = self.next, list[Entry]()
        for index, record in self._reader.read(most_bytes, until):
            entry = entry_of(record)
            if isinstance(entry, MessageColumns) and index < first:
                entry = entry[first - index :]
            entries.append(entry)
        return entries

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
