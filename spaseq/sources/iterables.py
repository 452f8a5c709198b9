"""Events of a program as a source: any iterable of `Event` objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from spaseq.errors import InputError, SpaseqError, UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.graph_times import TimeTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.rdf.terms.term import Triple, iri_text
from spaseq.rdf.terms.times import Time, time_ms
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler

OF_PROGRAM = "events of the program"
"""The name of this input in messages."""

_EVENTS_PER_BATCH = 4096

_EVENT_BYTES = 1000
"""About how many bytes an event has as text."""


@record
class Event:
    """An RDF graph and its time.

    `graph` is an rdflib.Graph, an iterable of triples, or N-Triples text. `time` is a datetime
    (without a zone: UTC), integer milliseconds since the epoch (seconds where
    a call says `time_unit="s"`), ISO 8601 text, `np.datetime64` or
    a pandas Timestamp. `iri` is the event's name, if it has one.
    """

    graph: Any
    time: Time
    iri: str | None = None


@record
class _ProgramSource(Source):
    """Events of a stream that a program gives."""

    stream: str  # IRI

    @property
    def iri(self) -> str:
        return self.stream

    def describe(self) -> str:
        return OF_PROGRAM


@record
class EventSource(_ProgramSource):
    """Events in order of arrival. An iterator can be opened once."""

    events: Iterable[Event]
    time_unit: str = "ms"

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return cls(options.iri, given, options.time_unit) if isinstance(given, Iterable) else None

    def size(self) -> int | None:
        return len(self.events) * _EVENT_BYTES if isinstance(self.events, Sized) else None

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        events, counter = self._readable(on_bad), InstantCounter()
        while some := list(islice(events, _EVENTS_PER_BATCH)):
            yield batch_from_events(self.iri, some, counter)

    def _readable(self, on_bad: OnBad) -> Iterator[tuple[int, str | None, list[Triple]]]:
        """The parts of the events; a bad one is reported."""
        times = TimeTerms.of_file(self.iri, self.time_unit, OF_PROGRAM, on_bad)
        for event in self.events:
            if isinstance(event, Mapping):
                raise rows_without_a_lift("dict is a row", self.iri)
            try:
                yield parts_of_event(event, times=times)
            except SpaseqError as error:
                on_bad(BadInput(OF_PROGRAM, None, str(error), repr(event)[:200]))

    def shared(self, directory: Path) -> Source:
        """The events in a file."""
        path = directory / f"{uuid4().hex}.events"
        bad: list[BadInput] = []
        with path.open("wb") as file:
            for batch in self.open(bad.append):
                SafePickler(file).dump(batch)
        return StoredEventSource(self.iri, str(path), tuple(bad))


class _BatchUnpickler(SafeUnpickler):
    classes = frozenset(
        {
            ("spaseq.rdf.columns.event_batch", "EventBatch"),
            ("spaseq.rdf.columns.event_batch", "EventNames"),
            ("spaseq.rdf.columns.term_tables", "ListedTerms"),
        }
    )


@record
class StoredEventSource(_ProgramSource):
    """Events of a program in a file, where other processes read them.

    The file is a sequence of pickled `EventBatch`es. One run writes it, reads it and removes it.
    `bad` are the events that cannot be read.
    """

    path: str
    bad: tuple[BadInput, ...] = ()

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        for bad in self.bad:
            on_bad(bad)
        with open(self.path, "rb") as file:
            while True:
                try:
                    batch: EventBatch = _BatchUnpickler(file).load()
                except EOFError:
                    return
                yield batch


def rows_without_a_lift(what: str, iri: str | None = None) -> UsageError:
    """The error for a stream of rows."""
    where = "" if iri is None else f"stream <{iri}>: "
    return UsageError(
        f"{where}a {what}, which a lift makes events of: "
        "spaseq.Lifted(data, lift), or lifts={NAME: lift}"
    )


def parts_of_event(
    event: object, limits: Limits = DEFAULT_LIMITS, *, times: TimeTerms | None = None
) -> tuple[int, str | None, list[Triple]]:
    """(time in ms, IRI, triples) of an event.

    Raises:
        UsageError: it is no `Event`, or its time is no time.
        InputError: its graph is not RDF, or exceeds a limit, or its IRI is none.
    """
    if isinstance(event, Mapping):
        raise rows_without_a_lift("dict is a row")
    if not isinstance(event, Event):
        kind = type(event).__name__
        raise UsageError(f"a stream is paths or spaseq.Event objects, not {kind}")
    time = time_ms(event.time) if times is None else times.given(event.time)
    return time, name_of_event(event), triples_of(event.graph, limits)


def name_of_event(event: Event) -> str | None:
    """The IRI of an event, if it has one; InputError if it is none, such as `<http://e/1>`."""
    try:
        return event.iri and iri_text(event.iri)[1:-1]
    except (ValueError, TypeError) as error:
        raise InputError(f"the iri of an event: {error}") from None
