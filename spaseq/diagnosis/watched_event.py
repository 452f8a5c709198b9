"""One event of the input: where it is, whether it is bad, and its stream without other events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.sources.base import Source, Split


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event: its instant, the IRI of its stream, and how late it is (ms).

    An event is late if a later one came before it in its stream.
    """

    time: int
    k: int
    stream: str
    late_ms: int = 0


@dataclass(slots=True)
class EventWatch:
    """Looks for an event by its IRI while the streams are read.

    `seen` is the first event with the IRI; `bad` is the first bad input that names it.
    """

    iri: str
    seen: SeenEvent | None = None
    bad: BadInput | None = None
    _latest: dict[str, int] = field(default_factory=dict)

    def take(self, batch: EventBatch) -> None:
        """Look at a batch."""
        if self.seen is not None or not len(batch):
            return
        place = _place(batch, self.iri)
        latest = self._latest.get(batch.stream, int(batch.time[0]))
        if place is not None:
            time = int(batch.time[place])
            before = int(batch.time[: place + 1].max())
            late = max(before, latest) - time
            self.seen = SeenEvent(time, int(batch.k[place]), batch.stream, late)
        self._latest[batch.stream] = max(latest, int(batch.time.max()))

    def take_bad(self, bad: BadInput) -> None:
        """Look at bad input."""
        if self.bad is None and (bad.text == self.iri or f"<{self.iri}>" in bad.text):
            self.bad = bad


def _place(batch: EventBatch, iri: str) -> int | None:
    """The place of an event in a batch."""
    place = int(pc.index(batch.names(np.arange(len(batch))), iri).as_py())
    return None if place < 0 else place


@dataclass(frozen=True, slots=True)
class _Wrapped(Source):
    """A source that is read for one event."""

    source: Source
    watch: EventWatch

    @property
    def iri(self) -> str:
        return self.source.iri

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # no user gives one

    def describe(self) -> str:
        return self.source.describe()


@dataclass(frozen=True, slots=True)
class WatchedSource(_Wrapped):
    """A source that shows all that it reads to a watch."""

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        def both(bad: BadInput) -> None:
            self.watch.take_bad(bad)
            on_bad(bad)

        for batch in self.source.keeping(None).open(both, split):
            self.watch.take(batch)
            yield batch


@dataclass(frozen=True, slots=True)
class OneEventSource(_Wrapped):
    """A source without all events but the first one of the watch's IRI."""

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        for batch in self.source.keeping(None).open(_ignore, split):
            place = _place(batch, self.watch.iri)
            if place is not None:
                yield batch.take(np.array([place]))
                return


def _ignore(bad: BadInput) -> None:
    """The first reading counted the bad input."""
