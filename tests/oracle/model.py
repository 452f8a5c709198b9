"""Events, instants, bindings and matches (docs/meaning.md#instants and #matches).

Terms are rdflib terms. Everything is immutable and hashable, so that sets of matches are sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rdflib import XSD, Graph, Literal
from rdflib.term import Identifier

from tests.oracle.triple_terms import parts

Instant: TypeAlias = tuple[int, int]
Triple: TypeAlias = tuple[Identifier, Identifier, Identifier]
Streamset: TypeAlias = Mapping[str, Sequence[tuple[int, str | None, Sequence[Triple]]]]


class Refused(Exception):
    """The language refuses the query."""


class TooBig(Exception):
    """The case has more matches than brute force should enumerate."""


class Map(dict[str, Any]):
    """A dictionary that is never changed, only replaced, and therefore hashable."""

    _hash: int | None = None

    def __hash__(self) -> int:  # type: ignore[override]
        if self._hash is None:
            self._hash = hash(frozenset(self.items()))
        return self._hash

    def plus(self, other: Mapping[str, Any]) -> Map:
        return Map({**self, **other})

    def minus(self, names: Iterable[str]) -> Map:
        gone = set(names)
        return Map({name: value for name, value in self.items() if name not in gone})

    def only(self, names: Iterable[str]) -> Map:
        kept = set(names)
        return Map({name: value for name, value in self.items() if name in kept})


EMPTY = Map()


@dataclass(frozen=True)
class Event:
    """An event is identified by (stream, instant), not by its graph's IRI."""

    stream: str
    instant: Instant
    iri: str | None = field(compare=False)
    graph: Graph = field(compare=False, repr=False)


def plain(term: Identifier) -> Identifier:
    """The term without an explicit `xsd:string`, so that equal terms are equal objects."""
    if isinstance(term, Literal) and term.datatype == XSD.string:
        return Literal(str(term))
    return term


def events_of(streams: Streamset) -> list[Event]:
    """All events by instant; k counts earlier arrivals of the same stream with equal time."""
    events = []
    for stream, arrivals in streams.items():
        ties: dict[int, int] = {}
        for time, iri, triples in arrivals:
            k = ties.get(time, 0)
            ties[time] = k + 1
            graph = Graph()
            for s, p, o in triples:
                graph.add((plain(s), plain(p), plain(o)))
                for part in parts(o):
                    graph.add(part)
            events.append(Event(stream, (time, k), iri, graph))
    return sorted(events, key=lambda e: (e.instant, e.stream))


@dataclass(frozen=True)
class Bindings:
    """μ: the bindings that later steps can use.

    `values` has the plain values of the bound variables; for a group variable, its last value.
    `lists` has the group variables' values in the enclosing repetitions. `previous` has the values
    of PREV, and `times` has the values of TIMESTAMP by GPM name. `now` is the value of NOW.
    """

    values: Map = EMPTY
    lists: Map = EMPTY
    previous: Map = EMPTY
    times: Map = EMPTY
    now: int | None = None


@dataclass(frozen=True)
class Item:
    """One event of a match: a member of its trace."""

    instant: Instant
    gpm: str
    stream: str
    event: str | None = field(compare=False)

    @property
    def position(self) -> tuple[Instant, str]:
        return self.instant, self.stream


@dataclass(frozen=True)
class Match:
    """(first, last, μ, trace), and the conditions it must meet. Without events, first is None."""

    first: Instant | None
    last: Instant | None
    mu: Bindings
    trace: frozenset[Item] = frozenset()
    conditions: tuple[Any, ...] = ()  # of conditions.py

    @property
    def positions(self) -> frozenset[tuple[Instant, str]]:
        return frozenset(item.position for item in self.trace)


def nothing(mu: Bindings) -> Match:
    """The match without events, with which every sequence starts."""
    return Match(None, None, mu)
