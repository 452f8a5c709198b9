"""What a pattern is evaluated over: a graph of the knowledge base, or the events of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.gpm.solutions import Solutions
from spaseq.gpm.triples import TripleSource


@dataclass(frozen=True, slots=True)
class Active:
    """The active graph of SPARQL 1.1 section 18.6, or one per event of `events`."""

    source: TripleSource
    events: int = 0

    @property
    def of_events(self) -> bool:
        return self.source.of_events

    def spread(self, found: Solutions) -> Solutions:
        """The solutions written out for each event, if there are events."""
        return found.spread(self.events, self.source.lexicon) if self.of_events else found
