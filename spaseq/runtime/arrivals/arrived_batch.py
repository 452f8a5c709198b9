"""One batch of a followed run: the file ranges that each task reads, and the stream clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.errors import InputError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.ranges import ArrivalClock, FileRange, read_range
from spaseq.rdf.terms.times import format_time
from spaseq.records import record
from spaseq.runtime.arrivals.stream_clock import FAR, Horizon, StreamClock


@record
class FileSlice:
    """A range of a file that a batch reads.

    Attributes:
        range: the range.
        clock: the stream's clock before it.
        lines: its number of lines.
        size: the file's size when it was found; all of it will be read.
        horizon: how far ahead its events may be.
    """

    range: FileRange
    clock: StreamClock
    lines: int
    size: int
    horizon: Horizon = FAR

    def as_json(self) -> list[Any]:
        """The slice as JSON values; `of_json` is the inverse."""
        file = self.range.file
        part = [file.path, file.format.value, self.range.begin, self.range.end, self.range.line]
        return [*part, self.lines, self.size, self.clock.as_json(), self.horizon.as_json()]

    @classmethod
    def of_json(cls, value: list[Any]) -> FileSlice:
        """The inverse of `as_json`."""
        path, form, begin, end, line, lines, size, clock, *rest = value
        horizon = Horizon.of_json(rest[0]) if rest else FAR
        part = FileRange(InputFile(path, Format(form)), begin, end, line)
        return cls(part, StreamClock.of_json(clock), lines, size, horizon)


@record
class StreamArrivals:
    """The input of a batch from one stream.

    Attributes:
        slices: the parts of files, in reading order.
        clock: the stream's clock after the batch.
        since: when the stream last had new input, in milliseconds since the epoch.
        accepted: number of the stream's events that were in time so far; None if unknown.
    """

    slices: tuple[FileSlice, ...]
    clock: StreamClock
    since: int
    accepted: int | None = None

    def as_json(self) -> list[Any]:
        """The arrivals as JSON values; `of_json` is the inverse."""
        slices = [s.as_json() for s in self.slices]
        return [slices, self.clock.as_json(), self.since, self.accepted]

    @classmethod
    def of_json(cls, value: list[Any]) -> StreamArrivals:
        """The inverse of `as_json`."""
        slices, clock, since, *accepted = value  # earlier versions end there
        parsed = tuple(FileSlice.of_json(s) for s in slices)
        return cls(parsed, StreamClock.of_json(clock), since, *accepted)


@record
class ArrivedBatch:
    """The input of a batch.

    Attributes:
        at: when the batch was planned, in milliseconds since the epoch.
        streams: the arrivals of each stream of the run.
        knowledge: the name of the knowledge base that was current then.
    """

    at: int
    streams: tuple[StreamArrivals, ...]
    knowledge: str = ""

    def as_json(self) -> list[Any]:
        """The batch as JSON values; `of_json` is the inverse."""
        return [self.at, [s.as_json() for s in self.streams], self.knowledge]

    @classmethod
    def of_json(cls, value: list[Any]) -> ArrivedBatch:
        """The inverse of `as_json`. ValueError for any other value."""
        at, streams, knowledge = value
        return cls(at, tuple(StreamArrivals.of_json(s) for s in streams), knowledge)


@record
class ArrivedSplit:
    """The part of one stream that one task reads in a batch.

    Attributes:
        number: counts the splits of the batch.
        stream: the stream's number.
        at: when the batch was planned, in milliseconds since the epoch.
        slices: the parts of files to read, in order.
        knowledge: the name of the knowledge base that the events are matched with.
    """

    number: int
    stream: int
    at: int
    slices: tuple[FileSlice, ...]
    knowledge: str = ""


@record
class StreamProgress:
    """The clock of a stream after a batch.

    Attributes:
        stream: the stream's number.
        watermark: in milliseconds; None before any event.
        knowledge: the name of the batch's knowledge base.
        ties: the name of the file that numbers events of equal time in the partitions of a topic;
            "" if there is none.
    """

    stream: int
    watermark: int | None
    knowledge: str = ""
    ties: str = ""


def arrived_splits(batches: Sequence[ArrivedBatch]) -> list[ArrivedSplit]:
    """The splits of batches that are run together, one for each slice."""
    splits: list[ArrivedSplit] = []
    for batch in batches:
        for stream, arrivals in enumerate(batch.streams):
            for one in arrivals.slices:
                splits.append(ArrivedSplit(len(splits), stream, batch.at, (one,), batch.knowledge))
    return splits


def bytes_of(splits: Sequence[ArrivedSplit]) -> float:
    """The bytes of splits; infinite if a split is a file that is read whole."""
    total = 0.0
    for part in (one.range for split in splits for one in split.slices):
        total += float("inf") if part.end is None else part.end - part.begin
    return total


def read_slice(
    piece: FileSlice, options: StreamOptions, at: int, on_bad: OnBad
) -> Iterator[tuple[EventBatch, Int64s]]:
    """All events of a slice, each with its lateness (ms, int64[n], 0 if it is not late).

    A late event has k = -1. An event that is too far ahead, and a file that cannot be read, are bad
    input.

    Args:
        piece: the slice.
        options: the reading options of its stream.
        at: when the batch was planned (ms): the time of arrival.
        on_bad: called for input that cannot become an event.
    """
    clock = StreamClock.of_json(piece.clock.as_json())  # a copy: the task may be run again
    arrival = ArrivalClock(lambda: at / 1000)
    try:
        for batch in read_range(piece.range, options, on_bad, InstantCounter(), arrival):
            name = piece.range.file.path
            yield clock.judge(before_horizon(batch, piece.horizon, clock, name, on_bad))
    except InputError as error:
        on_bad(BadInput(piece.range.file.path, None, str(error)))


def before_horizon(
    batch: EventBatch, horizon: Horizon, clock: StreamClock, name: str, on_bad: OnBad
) -> EventBatch:
    """The events that are not too far ahead; the others are reported as bad input of `name`."""
    admitted = horizon.admits(clock.latest, batch.time)
    if admitted.all():
        return batch
    ahead = np.flatnonzero(~admitted)
    reason = (
        f"more than {horizon.ahead_ms} ms ahead of its arrival and of all streams (--max-ahead)"
    )
    for event, time in zip(batch.names(ahead).texts(), batch.time[ahead].tolist(), strict=True):
        text = f"event at {format_time(time)}, {reason}"
        on_bad(BadInput(name, None, text, "" if event is None else f"<{event}>"))
    return batch.take(np.flatnonzero(admitted))
