"""A test bench for queries: events in, answers out, the clock by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, Unpack

import pyoxigraph as ox

from spaseq.api.match import Match
from spaseq.api.push import Engine
from spaseq.api.run import run
from spaseq.errors import BadEvents, InputError
from spaseq.lang.parser import parse
from spaseq.lang.scan import blank_comments, scan
from spaseq.lift.lifted import Lifted
from spaseq.options import EngineKeywords, KbInput
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.sources.iterables import Event

Seconds: TypeAlias = float
"""Seconds since 1970-01-01T00:00:00Z."""

Bindings: TypeAlias = dict[str, Any]
"""The projected variables that are bound, with the nearest Python values."""

_PREFIXED = re.compile(r"([A-Za-z][\w-]*)?:[\w-]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Harness:
    """Pushes events into a query and collects its answers.

    As a context manager it closes the streams at the end of the block, unless the block raises.
    That closes all windows and gives the last answers.

    Attributes:
        matches: all answers so far, as `spaseq.Match` objects.
        bad: the events for which a SPARQL endpoint gave no answer.
    """

    def __init__(
        self,
        query: str,
        kb: Mapping[str, KbInput] | None = None,
        lifts: Mapping[str, str | Path] | None = None,
        **options: Unpack[EngineKeywords],
    ) -> None:
        """Compile a query and start it.

        Args:
            query: query text.
            kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
            lifts: by stream: the text of a lift, or the `Path` of its file. Rows, as dicts, are
                pushed to such a stream.
            options: any keywords of `spaseq.Engine`.

        Raises:
            QueryError, InputError, UsageError: as `spaseq.Engine`.
        """
        self.matches: list[Match] = []
        self.bad: list[BadInput] = []
        self._query, self._kb, self._options = query, kb, options
        self._lifts = dict(lifts or {})
        self._engine = Engine(query, kb, on_bad=self.bad.append, lifts=lifts, **options)
        parsed = parse(query)
        self._prefixes = {p.prefix: p.iri for p in parsed.prologue.prefixes}
        self._names = {s.iri.value: s.name for s in parsed.streams}
        self._lifted = {self._name(stream) for stream in self._lifts}
        self._events: dict[str, list[Event | Mapping[str, Any]]] = {}
        self._now: datetime | None = None

    @property
    def now(self) -> datetime | None:
        """The time of the latest event or `advance`; None at the start."""
        return self._now

    @property
    def answers(self) -> list[Bindings]:
        """The bindings of all answers so far, as Python values."""
        return [_values(match) for match in self.matches]

    def push(
        self,
        stream: str,
        graph: object,
        at: Seconds | datetime | None = None,
        iri: str | None = None,
    ) -> None:
        """Push one event.

        Args:
            stream: the query's name for the stream, or its IRI.
            graph: the event's triples: Turtle text, which may use the query's prefixes; a dict of
                one subject's properties; an rdflib.Graph; or an iterable of triples. The keys of a
                dict are as in Turtle (`":speed"`, `"a"`, `"<http://example/speed>"`), and the key
                `"@id"` gives the subject. A value is a Python value, a list of them, or an IRI
                (`":a1"`, `"<http://example/a1>"`). On a stream with a lift, a dict is a row.
            at: the time, in seconds since the epoch or as a datetime; by default one second after
                the event before. A time that the lift makes takes precedence.
            iri: the IRI of the event's graph.

        Raises:
            InputError: the graph is not RDF, or the row is bad.
            UsageError: the query has no such stream, or the time goes back.

        >>> from spaseq.testing import letter_query
        >>> bench = Harness(letter_query("A"))
        >>> bench.push("S", '<http://example/e> <http://example/word> "a1"', at=5)
        >>> bench.push("S", {"@id": ":f", ":word": "a2"})
        >>> [(match.start.second, answer["wA"]) for match, answer in bench.closed()]
        [(5, 'a1'), (6, 'a2')]
        """
        if isinstance(graph, Mapping) and self._name(stream) in self._lifted:
            self._push_row(stream, graph, self._time(at))
            return
        event = Event(self._triples(graph), self._time(at), iri)
        self.push_event(stream, event)

    def _push_row(self, stream: str, row: Mapping[str, Any], time: datetime) -> None:
        """Push one row of a stream with a lift."""
        self.matches += self._engine.push(stream, row, time)
        self._now = self._engine.latest or time
        self._events.setdefault(stream, []).append(row)

    def push_event(self, stream: str, event: Event) -> None:
        """Push an existing event, such as one of `letters`."""
        try:
            self.matches += self._engine.push_many([(stream, event)])
        except BadEvents as error:
            self.matches += error.matches
            raise error.bad[0][1] from None
        self._now = self._engine.latest
        self._events.setdefault(stream, []).append(event)

    def advance(self, to: Seconds | datetime) -> None:
        """Move the clock: no event at or before this time follows."""
        self._now = _datetime(to)
        self.matches += self._engine.advance(self._now)

    def close(self) -> None:
        """End all streams, which closes all windows."""
        self.matches += self._engine.close()

    def closed(self) -> list[tuple[Match, Bindings]]:
        """End all streams; return all matches with their bindings."""
        self.close()
        return list(zip(self.matches, self.answers, strict=True))

    def replay(self, runtime: Literal["spark", "local"] = "local") -> list[Bindings]:
        """The answers of a bounded run over the events that were pushed so far.

        A query gives the same answers, whether its events are pushed or replayed:

        >>> from spaseq.testing import letter_query, letters
        >>> with Harness(letter_query("A; B")) as bench:
        ...     for event in letters("a1 b1"):
        ...         bench.push_event("S", event)
        >>> bench.replay() == bench.answers == [{"wA": "a1", "wB": "b1"}]
        True
        """
        given: dict[str, list[Any]] = {name: [] for name in self._names.values()}
        for stream, events in self._events.items():
            given[self._name(stream)] += events
        lifts = {self._name(stream): lift for stream, lift in self._lifts.items()}
        streams: dict[str, Any] = {
            name: Lifted(events, lifts[name]) if name in lifts else events
            for name, events in given.items()
        }
        matches = run(self._query, streams, self._kb, runtime, **self._options)
        return [_values(match) for match in matches]

    def _name(self, stream: str) -> str:
        """The query's name for a stream, given its name or its IRI."""
        return self._names.get(stream, stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if kind is None:
            self.close()

    def _time(self, at: Seconds | datetime | None) -> datetime:
        if at is not None:
            return _datetime(at)
        return _EPOCH if self._now is None else self._now + timedelta(seconds=1)

    def _triples(self, graph: object) -> Any:
        """The graph in a form that the engine reads."""
        if isinstance(graph, Mapping):
            graph = self._turtle(graph)
        if not isinstance(graph, str):
            return graph
        text = with_full_stop(graph)
        head = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in self._prefixes.items())
        try:
            return [quad.triple for quad in ox.parse(head + text, ox.RdfFormat.TURTLE)]
        except SyntaxError as error:
            before = len(self._prefixes)
            said = re.sub(r"\bline (\d+)", lambda m: f"line {int(m[1]) - before}", str(error))
            raise InputError(f"not a graph: {said}\n{text}") from None

    def _turtle(self, properties: Mapping[Any, Any]) -> str:
        """Properties of one subject as Turtle."""
        parts = []
        for name, value in properties.items():
            values = value if isinstance(value, list | tuple) else [value]
            if name != "@id":
                parts.append(f"{name} {', '.join(map(self._term, values))}")
        subject = self._term(properties["@id"]) if "@id" in properties else "[]"
        return f"{subject} {' ; '.join(parts)} ."

    def _term(self, value: object) -> str:
        """A Python value as Turtle."""
        if isinstance(value, str):
            prefixed = _PREFIXED.fullmatch(value)
            if prefixed is not None and (prefixed[1] or "") in self._prefixes:
                return value
            if value.startswith("<") and value.endswith(">"):
                return value
        import rdflib  # 0.3 s that tests without dicts need not pay

        text: str = rdflib.Literal(value).n3()
        return text


def _datetime(time: Seconds | datetime) -> datetime:
    if isinstance(time, datetime):
        return time
    return _EPOCH + timedelta(seconds=time)


def _values(match: Match) -> Bindings:
    return {name: term.to_python() for name, term in match.bindings.items()}


def with_full_stop(turtle: str) -> str:
    """Turtle, also if its last full stop was left out; comments may follow.

    >>> with_full_stop(":a :b :c # d."), with_full_stop(":a :b :c . # d")
    (':a :b :c # d.\\n.', ':a :b :c . # d')
    """
    bare = blank_comments(turtle, scan(turtle)).rstrip()
    return turtle if bare.endswith(".") else f"{turtle}\n."
