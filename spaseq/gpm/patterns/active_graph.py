"""The active graph of a pattern: a graph of the knowledge base, or the graphs of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spaseq.gpm.graphs.triple_source import TripleSource
from spaseq.gpm.solutions.solutions import Solutions


@dataclass(frozen=True, slots=True)
class ActiveGraph:
    """The active graph of SPARQL 1.1 section 18.6, or the active graphs of `events` events.

    `given` are solutions that the pattern's solutions will be joined with, if they are known. A
    request to an endpoint asks only for solutions that are compatible with one of them.
    """

    source: TripleSource
    events: int = 0
    given: Solutions | None = None

    def beside(self, found: Solutions) -> ActiveGraph:
        """The active graph of a pattern whose solutions are joined with `found`."""
        return replace(self, given=found)

    def alone(self) -> ActiveGraph:
        """The active graph of a pattern of which all solutions are needed."""
        return replace(self, given=None)

    def projecting(self, variables: Iterable[str]) -> ActiveGraph:
        """The active graph of a pattern whose other variables are not visible outside."""
        return self if self.given is None else replace(self, given=self.given.only(variables))

    @property
    def of_events(self) -> bool:
        return self.source.of_events

    def spread(self, found: Solutions) -> Solutions:
        """The solutions per event, if the pattern is evaluated over events."""
        return found.spread(self.events, self.source.lexicon) if self.of_events else found
