"""One batch of a followed run: which range of which file it reads, and where time stands."""

from __future__ import annotations

from typing import Any

from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.ranges import FileRange
from spaseq.records import record
from spaseq.runtime.arrivals.horizon import FAR, Horizon
from spaseq.runtime.arrivals.stream_clock import StreamClock


@record
class FileSlice:
    """A range of a file that a batch reads.

    Attributes:
        range: the range.
        clock: where the stream's time stood before it.
        lines: how many lines it has.
        size: the file's size when it was found, all of which is to be read in time.
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
        place = [file.path, file.format.value, self.range.begin, self.range.end, self.range.line]
        return [*place, self.lines, self.size, self.clock.as_json(), self.horizon.as_json()]

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
    """

    slices: tuple[FileSlice, ...]
    clock: StreamClock
    since: int

    def as_json(self) -> list[Any]:
        """The arrivals as JSON values; `of_json` is the inverse."""
        return [[s.as_json() for s in self.slices], self.clock.as_json(), self.since]

    @classmethod
    def of_json(cls, value: list[Any]) -> StreamArrivals:
        """The inverse of `as_json`."""
        slices, clock, since = value
        return cls(tuple(FileSlice.of_json(s) for s in slices), StreamClock.of_json(clock), since)


@record
class ArrivedBatch:
    """The input of a batch.

    Attributes:
        at: when the batch was planned, in milliseconds since the epoch.
        streams: one for each stream of the run.
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
        """The inverse of `as_json`. ValueError for anything else."""
        at, streams, knowledge = value
        return cls(at, tuple(StreamArrivals.of_json(s) for s in streams), knowledge)
