"""The events of a stream that are still in its log, as a source that ends: for `why`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions, ignore
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.serve.posted_events import MessageReading
from spaseq.sources.base import Source, Split


@dataclass(frozen=True, slots=True)
class LoggedEvents(Source):
    """What a run has logged of one stream, without events that were late.

    Attributes:
        stream: the stream's IRI.
        events: makes the events of messages, as the run does.
        records: the logged messages from one place to another.
        delay_ms: how late an event may be.
        place: messages before it are read for the clocks only.
        since: so are events before this time (ms), if there is one.
    """

    stream: str
    events: MessageReading
    records: Callable[[int, int | None], Sequence[Message]]
    delay_ms: int
    place: int = 0
    since: int | None = None

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None

    @property
    def iri(self) -> str:
        return self.stream

    def describe(self) -> str:
        return f"the log of <{self.stream}>"

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        clocks = PartitionClocks(self.delay_ms)
        for message in self.records(0, self.place) if self.place else ():
            for batch in self.events([message], ignore):
                clocks.admit(message.partition, batch)
        for message in self.records(self.place, None):
            for batch in self.events([message], on_bad):
                admitted = clocks.admit(message.partition, batch)[0]
                if self.since is not None:
                    admitted = admitted.take(np.flatnonzero(admitted.time >= self.since))
                yield admitted
