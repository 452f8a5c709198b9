"""The graph of a run's units: who reads the streams that queries register, and how far each may go.

Drivers have nodes of different kinds, but the same edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.chaining import RegisteredStream
from spaseq.stages.query_units import EventReader


class UnitNode(EventReader, Protocol):
    """What is evaluated as one: a query by itself, or a family of queries.

    `feed` is the edge to what reads the stream that the query registers, or the graph that it
    maintains. A family has none.
    """

    @property
    def plan(self) -> QueryPlan: ...

    @property
    def feed(self) -> RegisteredStream | None: ...


UnitT = TypeVar("UnitT", bound=UnitNode)


class UnitGraph(Generic[UnitT]):
    """Units in reading order, each after those whose streams it reads."""

    def __init__(self, units: Iterable[UnitT]) -> None:
        self._units: list[UnitT] = []
        self._readers: dict[str, list[UnitT]] = {}
        self._sources: dict[UnitT, frozenset[str]] | None = None  # see `sources`
        self._groups: dict[frozenset[str], list[UnitT]] | None = None  # see `groups`
        for unit in units:
            self.add(unit)
        for unit in self:
            if unit.feed is not None:
                unit.feed.readers = [*self.readers(unit.feed.iri)]

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[UnitT]:
        return iter(self._units)

    def add(self, unit: UnitT) -> None:
        """Take a unit after all others; none of these has an edge to it."""
        self._units.append(unit)
        self._sources = self._groups = None
        for iri in unit.plan.inputs.streams:
            self._readers.setdefault(iri, []).append(unit)

    def readers(self, iri: str) -> Sequence[UnitT]:
        """What reads a stream."""
        return [*self._readers.get(iri, ())]

    # --- time -------------------------------------------------------------------------------------

    def sources(self) -> Mapping[UnitT, frozenset[str]]:
        """The streams that each unit reads, or that those read whose streams it reads."""
        if self._sources is None:
            made: dict[str, frozenset[str]] = {}  # of registered streams
            self._sources = {}
            for unit in self._units:
                streams = (made.get(iri, {iri}) for iri in unit.plan.inputs.streams)
                self._sources[unit] = streams_read = frozenset(chain.from_iterable(streams))
                if unit.feed is not None:  # several may maintain one graph
                    made[unit.feed.iri] = streams_read | made.get(unit.feed.iri, frozenset())
        return self._sources

    def groups(self) -> Mapping[frozenset[str], Sequence[UnitT]]:
        """The units that have the same `sources`, in reading order."""
        if self._groups is None:
            self._groups = {}
            for unit, sources in self.sources().items():
                self._groups.setdefault(sources, []).append(unit)
        return self._groups

    def due(self, marks: Mapping[str, int]) -> dict[UnitT, int]:
        """The watermark (ms) of each unit, in reading order.

        A unit waits for the streams that it reads only. A stream that nobody makes any more is
        where the least of all streams is.

        Args:
            marks: by stream IRI the time (ms) at or before which no event follows.
        """
        least = min(marks.values())
        of_sources = {
            sources: min(marks.get(iri, least) for iri in sources) for sources in self.groups()
        }
        return {unit: of_sources[sources] for unit, sources in self.sources().items()}
