"""Messages of a stream: single ones, and blocks of messages that arrived together, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from typing import overload

import numpy as np

from spaseq.compiled.arrays import Int64s

UNNUMBERED = -1
"""The offset of a message whose source has no places: the log numbers it, from 1."""

NO_TIME = -(2**63)
"""The time, in a column, of a message without a broker's time."""

MarkChanges = tuple[tuple[str, str], ...]
"""(name, text) of marks; an empty text takes a mark away."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a source.

    Attributes:
        payload: its bytes.
        partition: the partition of the source; 0 if it has none.
        offset: the position in the partition; it grows, perhaps with gaps. Or it is `UNNUMBERED`.
        media_type: the media type of the payload; "" if unknown.
        arrival: time of arrival, ms since the epoch.
        time: the broker's time, ms since the epoch; None if there is none.
        key: its key, if it has one.
        topic: the topic or subject that it was sent to.
        marks: the marks that change with the message. A message that is read from a log has none.
    """

    payload: bytes
    partition: int
    offset: int
    media_type: str = ""
    arrival: int = 0
    time: int | None = None
    key: bytes | None = None
    topic: str = ""
    marks: MarkChanges = ()


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTexts:
    """Texts one after the other in `data`, with a line end between two.

    Text i is `data[begins[i]:ends[i]]`. Before the first one and after the last one may be others.
    """

    data: bytes
    begins: Int64s
    ends: Int64s

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> JoinedTexts:
        """The texts."""
        return cls.of_sizes(b"\n".join(texts), np.fromiter(map(len, texts), np.int64, len(texts)))

    @classmethod
    def of_sizes(cls, data: bytes, sizes: Int64s) -> JoinedTexts:
        """Joined texts of these sizes (bytes)."""
        ends = np.cumsum(sizes + 1) - 1
        return cls(data, ends - sizes, ends)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> Int64s:
        """The sizes (bytes) of the texts."""
        return self.ends - self.begins

    @property
    def joined(self) -> bytes:
        """The texts, with a line end between two, and nothing else."""
        return self.data[self.begins[0] : self.ends[-1]] if len(self) else b""

    def each(self) -> list[bytes]:
        """All of them."""
        bounds = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [self.data[begin:end] for begin, end in bounds]

    def part(self, which: slice) -> JoinedTexts:
        """A part of them, which shares their bytes."""
        return JoinedTexts(self.data, self.begins[which], self.ends[which])


@dataclass(frozen=True, slots=True, eq=False)
class MessageColumns(Sequence[Message]):
    """Messages in order of arrival, as columns: row i of each belongs to message i.

    The columns are the fields of `Message`; a message without a time has `NO_TIME`. Slices share
    their columns' memory. Blocks and their parts are also sequences of single messages.
    """

    payload: JoinedTexts
    partition: Int64s
    offset: Int64s
    arrival: Int64s
    time: Int64s
    media_type: Sequence[str]
    key: Sequence[bytes | None]
    topic: Sequence[str]
    marks: Sequence[MarkChanges]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> MessageColumns:
        """The messages as a block."""
        if isinstance(messages, MessageColumns):
            return messages
        times = [NO_TIME if message.time is None else message.time for message in messages]
        return cls(
            JoinedTexts.of([message.payload for message in messages]),
            np.array([message.partition for message in messages], np.int64),
            np.array([message.offset for message in messages], np.int64),
            np.array([message.arrival for message in messages], np.int64),
            np.array(times, np.int64),
            [message.media_type for message in messages],
            [message.key for message in messages],
            [message.topic for message in messages],
            [message.marks for message in messages],
        )

    @classmethod
    def concat(cls, blocks: Sequence[MessageColumns]) -> MessageColumns:
        """The messages of blocks, in their order."""
        if len(blocks) == 1:
            return blocks[0]
        sizes = [block.payload.sizes for block in blocks]
        data = b"\n".join(block.payload.joined for block in blocks if len(block))
        return cls(
            JoinedTexts.of_sizes(data, np.concatenate(sizes or [_NONE])),
            np.concatenate([_NONE, *(block.partition for block in blocks)]),
            np.concatenate([_NONE, *(block.offset for block in blocks)]),
            np.concatenate([_NONE, *(block.arrival for block in blocks)]),
            np.concatenate([_NONE, *(block.time for block in blocks)]),
            [*chain.from_iterable(block.media_type for block in blocks)],
            [*chain.from_iterable(block.key for block in blocks)],
            [*chain.from_iterable(block.topic for block in blocks)],
            [*chain.from_iterable(block.marks for block in blocks)],
        )

    def __len__(self) -> int:
        return len(self.payload)

    @overload
    def __getitem__(self, which: int) -> Message: ...
    @overload
    def __getitem__(self, which: slice) -> MessageColumns: ...
    def __getitem__(self, which: int | slice) -> Message | MessageColumns:
        if isinstance(which, int):
            at, time = range(len(self))[which], int(self.time[which])
            return Message(
                self.payload.data[self.payload.begins[at] : self.payload.ends[at]],
                int(self.partition[at]),
                int(self.offset[at]),
                self.media_type[at],
                int(self.arrival[at]),
                None if time == NO_TIME else time,
                self.key[at],
                self.topic[at],
                self.marks[at],
            )
        return MessageColumns(
            self.payload.part(which),
            self.partition[which],
            self.offset[which],
            self.arrival[which],
            self.time[which],
            self.media_type[which],
            self.key[which],
            self.topic[which],
            self.marks[which],
        )

    def __iter__(self) -> Iterator[Message]:
        times = [None if time == NO_TIME else time for time in self.time.tolist()]
        columns = (
            *(self.payload.each(), self.partition.tolist(), self.offset.tolist()),
            *(self.media_type, self.arrival.tolist(), times, self.key, self.topic, self.marks),
        )
        return map(Message, *columns)

    def apart(self) -> MessageColumns:
        """The same messages, without the bytes of others that a slice has beside them."""
        payload = self.payload
        return replace(self, payload=JoinedTexts.of_sizes(payload.joined, payload.sizes))

    def rows(self, rows: Int64s) -> MessageColumns:
        """Some of the messages, by their numbers in ascending order."""
        if len(rows) == len(self):
            return self
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = [run for run in np.split(rows, breaks) if len(run)]
        return MessageColumns.concat([self[int(run[0]) : int(run[-1]) + 1] for run in runs])

    def runs(self, *columns: Int64s) -> list[MessageColumns]:
        """Runs of messages that have the same value in each of some columns."""
        differ = np.zeros(max(len(self) - 1, 0), bool)
        for column in columns:
            differ |= column[1:] != column[:-1]
        return self.split(np.flatnonzero(differ) + 1)

    def runs_of_types(self) -> list[MessageColumns]:
        """Runs of messages with the same media type."""
        types = self.media_type
        if not len(self) or types.count(types[0]) == len(types):
            return [self] if len(self) else []
        sizes = [sum(1 for _ in some) for _, some in groupby(types)]
        return self.split(np.cumsum(sizes)[:-1])

    def split(self, at: Int64s) -> list[MessageColumns]:
        """The parts that begin with the first message and with the messages of some numbers."""
        bounds = [0, *at.tolist(), len(self)]
        return [self[a:b] for a, b in pairwise(bounds) if a < b]


_NONE = np.empty(0, np.int64)


def by_partition(blocks: Sequence[MessageColumns]) -> MessageColumns:
    """The messages of blocks, partition by partition, in their order."""
    if len(blocks) == 1 and not np.any(blocks[0].partition[1:] < blocks[0].partition[:-1]):
        return blocks[0]
    runs = [run for block in blocks for run in block.runs(block.partition)]
    return MessageColumns.concat(sorted(runs, key=_partition))


def _partition(run: MessageColumns) -> int:
    return int(run.partition[0])


def arrived_at(block: MessageColumns, arrival: int) -> MessageColumns:
    """The messages with another time of arrival (ms)."""
    return replace(block, arrival=np.full(len(block), arrival, np.int64))
