"""What a pattern is evaluated over: a graph of the knowledge base, or the events of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spaseq.gpm.graphs.triple_source import TripleSource
from spaseq.gpm.solutions.solutions import Solutions


@dataclass(frozen=True, slots=True)
class ActiveGraph:
    """The active graph of SPARQL 1.1 section 18.6, or one per event of `events`.

    `given` are solutions that those of the pattern will be joined with, where that is known: what
    an endpoint is asked for need only fit one of them.
    """

    source: TripleSource
    events: int = 0
    given: Solutions | None = None

    def beside(self, found: Solutions) -> ActiveGraph:
        """For a pattern that is joined with solutions found before."""
        return replace(self, given=found)

    def alone(self) -> ActiveGraph:
        """For a pattern all of whose solutions count."""
        return replace(self, given=None)

    def projecting(self, variables: Iterable[str]) -> ActiveGraph:
        """For a pattern of whose variables others know only these."""
        return self if self.given is None else replace(self, given=self.given.only(variables))

    @property
    def of_events(self) -> bool:
        return self.source.of_events

    def spread(self, found: Solutions) -> Solutions:
        """The solutions written out for each event, if there are events."""
        return found.spread(self.events, self.source.lexicon) if self.of_events else found
