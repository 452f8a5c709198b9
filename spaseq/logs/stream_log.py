"""The log of a stream: each message that was accepted, once, with its arrival and its place.

The place is what the source reads from: a partition's number, and an offset in it. The log knows
the last place of each partition, so a source goes on behind it, whatever its broker believes. The
messages of a source without places are numbered here. A source whose places are no numbers has
them in *marks*: names with texts, of which the log knows the last one each.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from spaseq.errors import RunError
from spaseq.logs.frames import DamagedLog
from spaseq.logs.segment_log import SEGMENT_BYTES, LogReader, SegmentLog
from spaseq.storage.durable_files import write_durably

_HEAD = struct.Struct("<BqIqH")
_MORE = struct.Struct("<qqI")
_MESSAGE, _PARTITIONS, _RAISED, _MESSAGE_WITH_MORE, _MARKS = 1, 2, 3, 4, 5
_NONE = -(2**63)

UNNUMBERED = -1
"""The offset of a message whose source has no places: the log numbers it, from 1."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a source brought.

    Attributes:
        payload: its bytes.
        partition: the partition of the source; 0 if it has none.
        offset: the place in the partition; it grows, perhaps with gaps. Or it is `UNNUMBERED`.
        media_type: what the message says that its bytes are; "" if it does not.
        arrival: when it came, ms since the epoch.
        time: the time that the broker gives it, ms since the epoch; None if there is none.
        key: its key, if it has one.
        topic: the topic or subject that it was sent to.
        marks: (name, text) of the marks that change with the message; an empty text takes a mark
            away. A message that is read from a log has none.
    """

    payload: bytes
    partition: int
    offset: int
    media_type: str = ""
    arrival: int = 0
    time: int | None = None
    key: bytes | None = None
    topic: str = ""
    marks: tuple[tuple[str, str], ...] = ()

    def to_bytes(self, arrival: int | None = None) -> bytes:
        """The message as a record, with another arrival if given; `entry_of` is the inverse."""
        media = self.media_type.encode()[:1000]
        at = self.arrival if arrival is None else arrival
        if self.time is None and self.key is None and not self.topic:
            head = _HEAD.pack(_MESSAGE, at, self.partition, self.offset, len(media))
            return head + media + self.payload
        head = _HEAD.pack(_MESSAGE_WITH_MORE, at, self.partition, self.offset, len(media))
        time = _NONE if self.time is None else self.time
        key, topic = self.key or b"", self.topic.encode()
        size = -1 if self.key is None else len(key)
        return head + media + _MORE.pack(time, size, len(topic)) + key + topic + self.payload


@dataclass(frozen=True, slots=True)
class Partitions:
    """The source has this many partitions from here on."""

    count: int

    def to_bytes(self) -> bytes:
        """The number as a record."""
        return _HEAD.pack(_PARTITIONS, 0, self.count, 0, 0)


@dataclass(frozen=True, slots=True)
class Raised:
    """The watermark of a partition rises to a time (ms), because the partition is idle."""

    partition: int
    time: int

    def to_bytes(self) -> bytes:
        """The decision as a record."""
        return _HEAD.pack(_RAISED, self.time, self.partition, 0, 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that the messages before this entry have changed."""

    changed: Mapping[str, str]

    def to_bytes(self) -> bytes:
        """The marks as a record."""
        return _HEAD.pack(_MARKS, 0, 0, 0, 0) + json.dumps(dict(self.changed)).encode()


Entry: TypeAlias = Message | Partitions | Raised | Marks
"""What a stream log has."""


def entry_of(record: bytes) -> Entry:
    """The inverse of `to_bytes`.

    Raises:
        RunError: a later version wrote the record.
    """
    kind, arrival, partition, offset, length = _HEAD.unpack_from(record)
    if kind == _PARTITIONS:
        return Partitions(partition)
    if kind == _RAISED:
        return Raised(partition, arrival)
    if kind == _MARKS:
        return Marks(json.loads(record[_HEAD.size :]))
    if kind not in (_MESSAGE, _MESSAGE_WITH_MORE):
        raise RunError(f"a stream log has a record of kind {kind}: a later version wrote it")
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
    given = None if time == _NONE else time
    return Message(payload, partition, offset, media, arrival, given, key, topic)


class StreamLog:
    """The messages of one stream in a directory, which must not be open twice.

    Raises:
        DamagedLog: see `SegmentLog`.
    """

    def __init__(self, directory: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._places: dict[int, int] = {}  # of committed messages
        self._pending: dict[int, int] = {}
        self._marks: dict[str, str] = {}
        self._pending_marks: dict[str, str] = {}
        self._partitions = self._pending_partitions = 1
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

    def note_raised(self, partition: int, time: int) -> None:
        """Hand in that the watermark of an idle partition rises."""
        self.log.append([Raised(partition, time).to_bytes()])

    def append(self, messages: Sequence[Message], arrival: int | None = None) -> int:
        """Hand in messages for the next `commit`, but those that are in the log; how many are new.

        A message is in the log if its partition has one with the same or a later offset. They get
        the `arrival` (ms), if it is given.
        """
        records, marks = [], dict[str, str]()
        for message in messages:
            last = self._pending.get(message.partition, self._places.get(message.partition))
            if message.offset == UNNUMBERED:
                message = replace(message, offset=1 if last is None else last + 1)
            if last is None or message.offset > last:
                self._pending[message.partition] = message.offset
                records.append(message.to_bytes(arrival))
                marks.update(message.marks)
        self.log.append(records)
        if marks:
            self._pending_marks.update(marks)
            self.log.append([Marks(marks).to_bytes()])
        return len(records)

    def commit(self) -> int:
        """Write what was appended; see `SegmentLog.commit`."""
        end = self.log.commit()
        self._places.update(self._pending)
        self._pending.clear()
        self._mark(self._pending_marks)
        self._pending_marks.clear()
        self._partitions = self._pending_partitions
        return end

    def discard(self) -> None:
        """Give up what was appended since the last commit."""
        self.log.discard()
        self._pending.clear()
        self._pending_marks.clear()
        self._pending_partitions = self._partitions

    def reader(self, index: int = 0) -> MessageReader:
        """Reads committed messages from an index on, while the log grows."""
        return MessageReader(self.log, index)

    def close(self) -> None:
        """Close the files."""
        self.log.close()

    def _notes(self) -> bytes:
        """The places of all messages before a segment; those of its own commit are not in it."""
        return json.dumps([self._partitions, sorted(self._places.items()), self._marks]).encode()

    def _mark(self, changed: Mapping[str, str]) -> None:
        self._marks.update(changed)
        for name in [name for name, text in changed.items() if not text]:
            del self._marks[name]

    def _find_places(self) -> None:
        notes, first = self.log.last_notes()
        try:
            self._partitions, places, *marks = json.loads(notes)
            self._places = {int(partition): int(offset) for partition, offset in places}
            self._marks = dict(*marks)  # earlier versions have none
        except (ValueError, TypeError) as error:
            raise DamagedLog(f"{self.log.directory} is damaged: {error}") from error
        reader = self.reader(first)
        while some := reader.read():
            for entry in some:
                if isinstance(entry, Partitions):
                    self._partitions = entry.count
                elif isinstance(entry, Marks):
                    self._mark(entry.changed)
                elif isinstance(entry, Message):
                    self._places[entry.partition] = entry.offset
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
        return [entry_of(record) for _, record in self._reader.read(most_bytes, until)]

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
