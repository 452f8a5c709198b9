"""Event batches from the files of a stream, in order of arrival."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile, announced, report_after_end, resolve_paths
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, reading_threads

__all__ = [
    "ArrivalClock",
    "InputFile",
    "StreamOptions",
    "read_file",
    "read_stream",
    "reading_threads",
    "resolve_paths",
]


class ArrivalClock:
    """A clock for times of arrival (ms) that never goes back, even if the wall clock does."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._last: int | None = None

    def __call__(self) -> int:
        now = int(self._wall() * 1000)
        self._last = now if self._last is None else max(now, self._last)
        return self._last


def read_stream(
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter | None = None,
    arrival: ArrivalClock | None = None,
) -> Iterator[EventBatch]:
    """The events of a stream in order of arrival: file by file, each from start to end.

    Args:
        options: the stream's paths and how to read them.
        on_bad: called for each part of the input that cannot become an event, before the batch
            that is read along with it.
        counter: numbers the events of equal time, continuing from earlier events.
        arrival: clock for `arrival_time`.

    Raises:
        InputError: a path cannot be resolved. The call raises it, not the iterator.
    """
    files = resolve_paths(options)
    return read_files(
        files, options, on_bad, counter or InstantCounter(), arrival or ArrivalClock()
    )


def read_files(
    files: Sequence[InputFile],
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter,
    arrival: ArrivalClock,
) -> Iterator[EventBatch]:
    """The events of files, in the given order. An event never spans two files."""
    for file in files:
        yield from read_file(file, options, on_bad, counter, arrival)


def read_file(
    file: InputFile,
    options: StreamOptions,
    on_bad: OnBad,
    counter: InstantCounter,
    arrival: ArrivalClock,
) -> Iterator[EventBatch]:
    """The events of one file."""
    with file.open(options.limits) as opened:
        data, file = announced(opened, file)
        if file.format in (Format.NQUADS, Format.NTRIPLES):
            from spaseq.rdf.lines.line_events import line_events  # it loads numba

            yield from line_events(data, file, options, counter, arrival, on_bad)
        elif file.format.is_messages:
            from spaseq.rdf.messages.read_messages import message_file_events

            yield from message_file_events(data, file, options, counter, on_bad)
        else:
            from spaseq.rdf.documents.document_events import document_events

            yield from document_events(data, file, options, counter, arrival, on_bad)
        report_after_end(opened, file.path, on_bad)
