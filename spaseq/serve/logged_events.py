"""The events of a stream that are still in its log, as a source that ends: for `why`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.live.partition_clocks import PartitionClocks
from spaseq.serve.posted_events import MessageReading
from spaseq.sources.base import Source, Split


@dataclass(frozen=True, slots=True)
class LoggedEvents(Source):
    """What a run has logged of one stream, without events that were late.

    Attributes:
        stream: the stream's IRI.
        events: makes the events of messages, as the run does.
        records: the logged messages.
        delay_ms: how late an event may be.
    """

    stream: str
    events: MessageReading
    records: Callable[[], Sequence[Message]]
    delay_ms: int

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
        for message in self.records():
            for batch in self.events([message], on_bad):
                yield clocks.admit(message.partition, batch)[0]
