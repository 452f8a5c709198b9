"""Events of a program as a source: any iterable of `Event` objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from spaseq.errors import UsageError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.in_memory.program_events import batch_from_events, triples_of
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.terms.program_times import Time, time_ms
from spaseq.rdf.terms.term import Triple
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler

OF_PROGRAM = "events of the program"
"""What messages call this input."""

_EVENTS_PER_BATCH = 4096

_EVENT_BYTES = 1000
"""About how many bytes an event has as text."""


@record
class Event:
    """An RDF graph and its time.

    `graph` is an rdflib.Graph, an iterable of triples, or N-Triples text. `time` is a datetime
    (without a zone: UTC), integer milliseconds since the epoch, ISO 8601 text, `np.datetime64` or
    a pandas Timestamp. `iri` is the event's name, if it has one.
    """

    graph: Any
    time: Time
    iri: str | None = None


@record
class _ProgramSource(Source):
    """Events that a program gives for a stream."""

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

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return cls(options.iri, given) if isinstance(given, Iterable) else None

    def size(self) -> int | None:
        return len(self.events) * _EVENT_BYTES if isinstance(self.events, Sized) else None

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        events, counter = map(parts_of_event, self.events), InstantCounter()
        while some := list(islice(events, _EVENTS_PER_BATCH)):
            yield batch_from_events(self.iri, some, counter)

    def shared(self, directory: Path) -> Source:
        """The events in a file."""
        path = directory / f"{uuid4().hex}.events"
        with path.open("wb") as file:
            for batch in self.open(_nothing_is_bad):
                SafePickler(file).dump(batch)
        return StoredEventSource(self.iri, str(path))


class _BatchUnpickler(SafeUnpickler):
    classes = frozenset(
        {
            ("spaseq.rdf.columns.event_batch", "EventBatch"),
            ("spaseq.rdf.columns.term_tables", "ListedTerms"),
        }
    )


@record
class StoredEventSource(_ProgramSource):
    """Events of a program in a file, where other processes read them.

    The file is a sequence of pickled `EventBatch`es. One run writes it, reads it and removes it.
    """

    path: str

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # no user has such a file

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        with open(self.path, "rb") as file:
            while True:
                try:
                    batch: EventBatch = _BatchUnpickler(file).load()
                except EOFError:
                    return
                yield batch


def parts_of_event(
    event: object, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, str | None, list[Triple]]:
    """(time in ms, IRI, triples) of an event.

    Raises:
        UsageError: it is no `Event`, or its time is no time.
        InputError: its graph is not RDF, or exceeds a limit.
    """
    if not isinstance(event, Event):
        kind = type(event).__name__
        raise UsageError(f"a stream is paths or spaseq.Event objects, not {kind}")
    return time_ms(event.time), event.iri, triples_of(event.graph, limits)


def _nothing_is_bad(_: object) -> None:
    """Events that cannot be read raise errors; there is no bad input."""
