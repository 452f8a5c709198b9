"""Reading streams and knowledge bases as plain values, and building expected answers.

This module does not use spaseq. The N-Quads reader supports only what these files contain: IRIs and
literals without escapes, one graph per event, timestamps as `prov:generatedAtTime`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import rdflib

LINE = re.compile(
    r'(<[^>]*>) <([^>]*)> (<[^>]*>|"[^"]*"(?:\^\^<[^>]*>|@[\w-]+)?)(?: <([^>]*)>)? \.'
)
LITERAL = re.compile(r'"(.*)"(?:\^\^<(.*)>|@(.*))?$', re.DOTALL)
GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
MINUTE = 60_000
HOUR = 60 * MINUTE

Terms = dict[str, str]
Answer = dict[str, Any]


@dataclass(eq=False)
class Event:
    """An event: its place in the streamset, and the objects of its triples by predicate."""

    stream: str
    graph: str
    time: int = 0  # ms
    k: int = 0
    facts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def instant(self) -> tuple[int, int]:
        return self.time, self.k

    def one(self, predicate: str) -> str:
        """The only object of a predicate, as an N-Triples term."""
        (value,) = self.facts[predicate]
        return value

    def number(self, predicate: str) -> Decimal:
        """The only object of a predicate as an exact number."""
        return Decimal(lexical(self.one(predicate)))

    def double(self, predicate: str) -> float:
        """The only object of a predicate as a double."""
        return float(lexical(self.one(predicate)))


def lexical(term: str) -> str:
    """The lexical form of a literal, or the IRI of an IRI term."""
    literal = LITERAL.match(term)
    return literal.group(1) if literal else term[1:-1]


def milliseconds(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 time."""
    return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND


def iso(time: int) -> str:
    """A time in the form used in answers."""
    whole = (EPOCH + timedelta(milliseconds=time)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{time % 1000:03d}Z" if time % 1000 else f"{whole}Z"


def read_stream(path: Path, stream: str) -> list[Event]:
    """The events of an N-Quads file in file order, with their instants."""
    events: dict[str, Event] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        subject, predicate, value, graph = match.groups()
        event = events.setdefault(graph or subject[1:-1], Event(stream, graph or subject[1:-1]))
        if predicate == GENERATED_AT:
            event.time = milliseconds(lexical(value))
        if graph:
            event.facts[predicate].append(value)
    ties: Counter[int] = Counter()
    for event in events.values():
        event.k = ties[event.time]
        ties[event.time] += 1
    return list(events.values())


def in_order(*streams: Iterable[Event]) -> list[Event]:
    """The events of several streams by instant."""
    return sorted((e for s in streams for e in s), key=lambda e: (e.instant, e.stream))


def after(events: Sequence[Event], event: Event) -> Iterator[Event]:
    """The events with a later instant than this one's, in order."""
    return (e for e in events if e.instant > event.instant)


def next_instant(events: Sequence[Event], event: Event) -> list[Event]:
    """The events at the first instant after this one's."""
    later = min((e.instant for e in after(events, event)), default=None)
    return [e for e in events if e.instant == later]


def by(events: Iterable[Event], predicate: str) -> dict[str, list[Event]]:
    """Events grouped by the only object of a predicate, in order."""
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        groups[event.one(predicate)].append(event)
    return groups


class Knowledge:
    """The triples of a Turtle file, by predicate."""

    def __init__(self, path: Path) -> None:
        self._graph = rdflib.Graph().parse(path, format="turtle")

    def all(self, predicate: str) -> list[tuple[str, str]]:
        """Subject and object, as N-Triples terms, of the triples with this predicate."""
        triples = self._graph.subject_objects(rdflib.URIRef(predicate))
        return sorted((s.n3(), o.n3()) for s, o in triples)

    def one(self, predicate: str) -> Terms:
        """The only object of each subject."""
        pairs = self.all(predicate)
        assert len({s for s, _ in pairs}) == len(pairs), predicate
        return dict(pairs)


def json_term(term: str) -> dict[str, str]:
    """A term in the form of the SPARQL 1.1 JSON results."""
    literal = LITERAL.match(term)
    if not literal:
        return {"type": "uri", "value": term[1:-1]}
    value, datatype, language = literal.groups()
    out = {"type": "literal", "value": value}
    if datatype:
        out["datatype"] = datatype
    if language:
        out["xml:lang"] = language.lower()
    return out


def answer(query: str, trace: Iterable[tuple[str, Event]], bindings: Terms) -> Answer:
    """An answer in the form of a jsonl line."""
    items = sorted(trace, key=lambda item: (item[1].instant, item[0], item[1].stream))
    return {
        "query": query,
        "start": iso(items[0][1].time),
        "end": iso(items[-1][1].time),
        "bindings": {variable: json_term(term) for variable, term in bindings.items()},
        "trace": [
            {"gpm": gpm, "stream": e.stream, "event": e.graph, "time": iso(e.time), "k": e.k}
            for gpm, e in items
        ],
    }


def sorted_answers(answers: Iterable[Answer]) -> list[Answer]:
    """Answers by end, first instant and trace; here these three identify an answer."""

    def key(answer: Answer) -> tuple[Any, ...]:
        items = [
            ((milliseconds(i["time"]), i["k"]), i["gpm"], i["stream"]) for i in answer["trace"]
        ]
        return items[-1][0], items[0][0], items

    out = sorted(answers, key=key)
    assert all(key(a) < key(b) for a, b in pairwise(out))
    return out
