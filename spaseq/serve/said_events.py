"""The statements of the events of answers, in words, for the feed: looked up in the logs, and
cached for a while. An event's triples are short statements that people can read.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import unquote

import numpy as np

from spaseq.algebra.answers import Answer, TraceItem, extent_of
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.terms.term import RDF, RDFS, Triple, kind_of, split_literal
from spaseq.rdf.terms.times import format_time
from spaseq.rdf.terms.triple_terms import triple_term_parts
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.logged_events import TraceEvents

Statement = tuple[str, str, str]
"""Words for a subject ("" for a blank node that has no other name), a predicate and an object."""

_TYPE = f"<{RDF}type>"
_LABELS = (f"<{RDFS}label>", "<http://www.w3.org/2004/02/skos/core#prefLabel>")
_POINT = re.compile(r"POINT\s*\(\s*(\S+)\s+(\S+)\s*\)", re.IGNORECASE)
_WORD_BREAKS = re.compile(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DEEPEST = 4

_READ_BYTES = 8 * 2**20
"""Bytes of the end of a stream's log that are searched for the events of the feed."""

_FIRST, _LAST = 2, 3
"""Numbers of first and last events of an answer that are shown, if there are more than both."""

_STATEMENTS = 8
_KEPT = 10_000
_MADE = 1000

Said = list[dict[str, Any]]
"""The statements of the events of an answer, each as {"gpm", "stream", "time", "said", "more"}."""


@dataclass(frozen=True, slots=True)
class EventWords:
    """Makes words of triples; names of things come from the event or the knowledge base."""

    knowledge: KnowledgeBase

    def statements(
        self, triples: Sequence[Triple], event: str | None, time_predicate: str, most: int
    ) -> tuple[list[Statement], int]:
        """The first statements of an event, and the number of the others.

        Its time is left out, since readers see it anyway, and so are labels, which replace the
        named nodes. A blank node is described where it is the object of a statement. The IRI of the
        event's graph is no name for people: a node with it is described like a blank node.

        >>> words, t = EventWords(KnowledgeBase.empty()), "http://e/time"
        >>> words.statements([("<http://e/loop7>", "<http://e/speedLimit>", '"30"')], None, t, 9)
        ([('loop7', 'speed limit', '30')], 0)
        """
        new_names = {} if event is None else {f"<{event}>": "_:event"}
        renamed = [(new_names.get(s, s), p, new_names.get(o, o)) for s, p, o in triples]
        told = [*_Telling(self, renamed, f"<{time_predicate}>")]
        return told[:most], len(told[most:])

    def label(self, iri: str) -> str | None:
        """The label of a thing in the knowledge base, if it has one: in English, or the first."""
        code, labels = self.knowledge.find(iri), list[str]()
        predicates = [self.knowledge.find(label) for label in _LABELS] if code >= 0 else []
        for graph in self.knowledge.graphs.values():
            for relation in filter(None, map(graph.get, predicates)):
                begin, end = np.searchsorted(relation.s, [code, code + 1])
                labels += map(self.knowledge.terms.text, relation.o[begin : min(end, begin + 20)])
        return _best(labels)


class _Telling:
    """Tells one event."""

    def __init__(self, words: EventWords, triples: Sequence[Triple], time: str) -> None:
        self._words = words
        self._of = defaultdict[str, list[tuple[str, str]]](list)
        labels = defaultdict[str, list[str]](list)
        for s, p, o in triples:
            if p in _LABELS:
                labels[s].append(o)
            if p not in (time, *_LABELS):
                self._of[s].append((p, o))
        self._labels = {thing: _best(given) for thing, given in labels.items()}
        self._objects = {o for _, _, o in triples if o.startswith("_:")}
        self._told = set[str]()

    def __iter__(self) -> Iterator[Statement]:
        roots = [s for s in self._of if s not in self._objects]
        for subject in [*roots, *self._of]:  # a circle of blank nodes has no root
            yield from self._about(subject, self._name(subject), "", 0)

    def _about(self, thing: str, name: str, before: str, depth: int) -> Iterator[Statement]:
        """The statements about a node, after the words of the predicates that lead to it."""
        if thing in self._told:
            return
        self._told.add(thing)
        for predicate, value in self._of[thing]:
            words = "is a" if predicate == _TYPE else self._predicate(predicate)
            if predicate == _TYPE and name == self._type_of(thing):
                continue
            words = f"{before} {words}".strip()
            inner = value.startswith("_:") and bool(self._of.get(value))
            if inner and value not in self._told and depth < _DEEPEST:
                yield from self._about(value, name, words, depth + 1)
            else:
                kind = predicate == _TYPE
                yield name, words, self._kind(value) if kind else self._value(value)

    def _name(self, thing: str) -> str:
        """How a subject is called: a blank node by its label or its type."""
        if not thing.startswith("_:"):
            return self._value(thing)
        return self._labels.get(thing) or self._type_of(thing) or ""

    def _type_of(self, thing: str) -> str | None:
        """The words of a blank node's first type, if no label names the node."""
        if not thing.startswith("_:") or self._labels.get(thing):
            return None
        return next((self._kind(o) for p, o in self._of[thing] if p == _TYPE), None)

    def _label(self, iri: str) -> str | None:
        return self._labels.get(iri) or self._words.label(iri)

    def _predicate(self, iri: str) -> str:
        return self._label(iri) or in_words(local_name(iri[1:-1]))

    def _kind(self, term: str) -> str:
        """A class in words."""
        if kind_of(term) != "iri":
            return self._value(term)
        return self._label(term) or in_words(local_name(term[1:-1]))

    def _value(self, term: str) -> str:
        """A subject or an object in words."""
        match kind_of(term):
            case "iri":
                return self._label(term) or local_name(term[1:-1])
            case "literal":
                return _literal(term)
            case "triple":
                s, p, o = triple_term_parts(term)
                return f"\u201c{self._value(s)} {self._predicate(p)} {self._value(o)}\u201d"
            case _:
                return self._labels.get(term) or "something"


def _best(literals: Sequence[str]) -> str | None:
    """The first literal in English or in no language, else the first one."""
    some = [split_literal(text) for text in islice(literals, 20) if text.startswith('"')]
    plain = [text for text, _, language in some if (language or "en").startswith("en")]
    return next(iter([*plain, *(text for text, _, _ in some)]), None)


def _literal(term: str) -> str:
    """A literal's text; of a point its latitude and longitude."""
    text, datatype, _ = split_literal(term)
    point = _POINT.search(text) if datatype.endswith("#wktLiteral") else None
    return f"{point[2]}, {point[1]}" if point else text


def local_name(iri: str) -> str:
    """The end of an IRI, or all of it.

    >>> local_name("http://e/road/A%204"), local_name("http://e/"), local_name("urn:loop:7")
    ('A 4', 'http://e/', '7')
    """
    end = re.split("[#/:]", iri)[-1]
    return unquote(end) or iri


def in_words(name: str) -> str:
    """A name of a predicate or a class as words.

    >>> in_words("madeBySensor"), in_words("has_result"), in_words("RDFGraph"), in_words("NO2")
    ('made by sensor', 'has result', 'RDF graph', 'NO2')
    """
    words = [word for word in _WORD_BREAKS.split(name) if word]
    return " ".join(w if len(w) > 1 and w.upper() == w else w.lower() for w in words) or name


@dataclass(slots=True)
class SaidEvents:
    """The statements of events; any thread may use it.

    Attributes:
        run: has the answers.
        events: finds events that are still logged.
        words: makes words of their triples.
    """

    run: StandingRun
    events: TraceEvents
    words: EventWords
    _known: dict[str, Said] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, answers: Sequence[LoggedAnswer]) -> dict[str, Said]:
        """By an answer's id, the statements of its events; dropped events have none.

        An answer is looked up at its first request: then its events are still logged.
        """
        with self._lock:
            new = [answer for answer in answers if answer.id not in self._known]
            if new:
                self._look_up(new)
            said = {answer.id: self._known[answer.id] for answer in answers}
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]
            return said

    def _look_up(self, answers: Sequence[LoggedAnswer]) -> None:
        told = {answer.id: _told_items(answer.answer) for answer in answers}
        wanted = {item for items in told.values() for item in items}
        logged = self.events.find(wanted, _READ_BYTES)
        made = self._made(wanted)
        for name, items in told.items():
            said = self._known[name] = []
            for item in items:
                if item in logged:
                    said.append(self._as_json(item, _triples(logged[item].event)))
                elif (item.stream, item.event) in made:
                    said.append(self._as_json(item, made[item.stream, item.event]))

    def _made(
        self, items: Iterable[TraceItem]
    ) -> Mapping[tuple[str, str | None], Sequence[Triple]]:
        """The triples of events that queries made, by stream and event."""
        wanted = {
            (item.stream, item.event)
            for item in items
            if item.event and item.stream not in self.events.streams and not extent_of(item.event)
        }
        if not wanted:
            return {}
        newest = self.run.answers.read_all(lambda title: True, None, _MADE)
        events = {(given.query, given.answer.event): given.answer.graph or () for given in newest}
        return {event: events[event] for event in wanted if event in events}

    def _as_json(self, item: TraceItem, triples: Sequence[Triple]) -> dict[str, Any]:
        stream = self.events.streams.get(item.stream)
        time = stream.time_predicate if stream else ""
        said, more = self.words.statements(triples, item.event, time, _STATEMENTS)
        name = stream.name if stream else item.stream
        at = format_time(item.time)
        return {"gpm": item.gpm, "stream": name, "time": at, "said": said, "more": more}


def _told_items(answer: Answer) -> Sequence[TraceItem]:
    trace = answer.trace
    if len(trace) <= _FIRST + _LAST:
        return trace
    return *trace[:_FIRST], *trace[-_LAST:]


def _triples(event: EventBatch) -> list[Triple]:
    codes = zip(event.s.tolist(), event.p.tolist(), event.o.tolist(), strict=True)
    terms = event.terms
    return [(terms[s], terms[p], terms[o]) for s, p, o in codes]
