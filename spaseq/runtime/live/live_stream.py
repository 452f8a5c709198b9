"""A stream of a live run."""

from __future__ import annotations

from dataclasses import dataclass, field

from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import ARRIVAL
from spaseq.sources.broker_stream import BrokerStream


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A stream of a live run: where it comes from, and how late its events may be."""

    name: str
    source: BrokerStream
    settings: FileSourceSettings = field(default_factory=FileSourceSettings)

    @property
    def iri(self) -> str:
        """Its IRI."""
        return self.source.iri

    @property
    def takes_clock(self) -> bool:
        """Whether it takes its times from the clock."""
        return self.source.options.messages.time == ARRIVAL
