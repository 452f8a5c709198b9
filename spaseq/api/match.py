"""Answers as users of the Python API see them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spaseq.algebra.answers import Answer, PartialAnswer, TraceItem, extent_of
from spaseq.message_text import one_line
from spaseq.rdf.terms.term import Term
from spaseq.rdf.terms.times import format_time
from spaseq.records import record
from spaseq.sinks.answer_json import answer_json, partial_json

if TYPE_CHECKING:
    import rdflib

_SHOWN = 8
_CHARACTERS = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@record
class TracedEvent:
    """One event of a match.

    `gpm` names the graph pattern that it matched, `stream` is the IRI of its stream, `event` the
    IRI of its graph (or None). `k` numbers the events of its stream that have its time, from 0. For
    a window event `stream` is the window's name; `begin` is when its range begins, `events` the
    number of events in it.
    """

    gpm: str
    stream: str
    event: str | None
    time: datetime
    k: int
    begin: datetime | None = None
    events: int | None = None


@dataclass(frozen=True, init=False)
class Match:
    """One answer of a query.

    `bindings` has the projected variables that are bound; the terms have `.n3()`, `.to_python()`
    and `.to_rdflib()`. `start` is the time of the first event. `end` is the time of the last event,
    or the close of the window if the query ends in a negation. An answer of a CONSTRUCT query has
    no bindings but a `graph`: an event with the IRI `event` and the time `end`.
    """

    query: str
    answer: Answer

    def __init__(self, query: str, answer: Answer) -> None:
        # A frozen dataclass would take three times as long, which every match pays.
        fields = self.__dict__
        fields["query"], fields["answer"] = query, answer

    def __repr__(self) -> str:
        """Short: the query, the times, and the first bindings."""
        shown = [f"{name}={_shortened(text)}" for name, text in self.answer.bindings[:_SHOWN]]
        if len(self.answer.bindings) > _SHOWN:
            shown.append("...")
        if self.answer.event is not None:
            shown = [f"event={_shortened(self.answer.event)}"]
        start, end = format_time(self.answer.first[0]), format_time(self.answer.end[0])
        times = start if start == end else f"{start} to {end}"
        return f"<{type(self).__name__} of {self.query}: {times}; {', '.join(shown)}>"

    @cached_property
    def bindings(self) -> Mapping[str, Term]:
        """The projected variables that are bound, in order of projection."""
        return {name: Term(text) for name, text in self.answer.bindings}

    @cached_property
    def trace(self) -> tuple[TracedEvent, ...]:
        """The events of the match, in order."""
        return tuple(_traced(item) for item in self.answer.trace)

    @cached_property
    def start(self) -> datetime:
        """The time of the first event."""
        return to_datetime(self.answer.first[0])

    @cached_property
    def end(self) -> datetime:
        """The time of the last event, or the close of the window."""
        return to_datetime(self.answer.end[0])

    @property
    def event(self) -> str | None:
        """The IRI of the event that CONSTRUCT made; None for a SELECT query."""
        return self.answer.event

    @property
    def graph(self) -> rdflib.Graph | None:
        """The graph that CONSTRUCT made, a new object each time; None for a SELECT query."""
        if self.answer.graph is None:
            return None
        import rdflib  # 0.3 s that most runs need not pay

        graph = rdflib.Graph(identifier=rdflib.URIRef(str(self.answer.event)))
        for triple in self.answer.graph:
            s, p, o = (Term(text).to_rdflib() for text in triple)
            graph.add((s, p, o))
        return graph

    def to_json(self) -> dict[str, Any]:
        """The object that the jsonl format writes."""
        fields: dict[str, Any] = json.loads(answer_json(self.query, self.answer))
        return fields


@dataclass(frozen=True, repr=False)
class PartialMatch(Match):
    """A partial match of a query: its first steps, when the window has closed without the rest.

    It has what a match has. `end` is the time of its last event, and `reached` names the graph
    pattern of that event. `waiting` are the patterns that the next step begins with. `closed` is
    when the window closed; None under WITHIN n EVENTS if the streams ended first.
    """

    partial: PartialAnswer

    @classmethod
    def of(cls, query: str, partial: PartialAnswer) -> PartialMatch:
        """Make the partial match of the query with this name."""
        return cls(query, partial.answer, partial)

    @property
    def reached(self) -> str:
        """The name of the last event's graph pattern."""
        return self.partial.reached

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of the graph patterns that the next step begins with, sorted."""
        return self.partial.waiting

    @cached_property
    def closed(self) -> datetime | None:
        """When the window closed."""
        closed = self.partial.closed
        return None if closed is None else to_datetime(closed[0])

    def to_json(self) -> dict[str, Any]:
        """The JSON object of a line of `spaseq run --partial`."""
        fields: dict[str, Any] = json.loads(partial_json(self.query, self.partial))
        return fields


def to_datetime(time_ms: int) -> datetime:
    """Milliseconds since the epoch as a UTC datetime."""
    return _EPOCH + timedelta(milliseconds=time_ms)


def _shortened(text: str) -> str:
    """A text on one line, cut to a few characters."""
    return one_line(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}...")


def _traced(item: TraceItem) -> TracedEvent:
    extent = extent_of(item.event)
    if extent is not None:
        fields = item.gpm, item.stream, None, to_datetime(item.time), item.k
        return TracedEvent(*fields, to_datetime(extent[0]), extent[1])
    return TracedEvent(item.gpm, item.stream, item.event, to_datetime(item.time), item.k)
