"""Documents that describe events in one graph, and the triples of each event.

Also pages of linked data event streams (LDES, TREE): their members, and their links to pages.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH
from spaseq.rdf.documents.document_events import DocumentLines, document_statements
from spaseq.rdf.inputs.contexts import NO_CONTEXTS, JsonLdContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import REST, BadInput
from spaseq.rdf.messages.message_lines import MessageLines, Report
from spaseq.rdf.terms.term import RDF, Triple, split_literal
from spaseq.rdf.terms.times import parse_time
from spaseq.records import record

TYPE = f"<{RDF}type>"

_JSON = re.compile(rb"\s*(?:\{|\[\s*(?:\{|\]\s*\Z))")
_QUADS = re.compile(
    rb"\s*(?:\#[^\n]*\n\s*)*(?:<[^>]*>|_:\S+)\s*<[^>]*>\s*"
    rb'(?:<[^>]*>|_:\S+|"(?:[^"\\\n]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?)\s*(?:<[^>]*>|_:\S+)\s*\.'
)
_XML = re.compile(rb"\s*<(?:\?xml|rdf:RDF|!DOCTYPE)")

_TREE, _LDES = "<https://w3id.org/tree#", "<https://w3id.org/ldes#"
_MEMBER, _VIEW, _RELATION = f"{_TREE}member>", f"{_TREE}view>", f"{_TREE}relation>"
_NODE, _PATH, _VALUE = f"{_TREE}node>", f"{_TREE}path>", f"{_TREE}value>"
_FROM = frozenset(
    f"{_TREE}{name}Relation>" for name in ("GreaterThan", "GreaterThanOrEqualTo", "EqualTo")
)
_TIME_PATH, _ORDER_PATH = f"{_LDES}timestampPath>", f"{_LDES}sequencePath>"
_INVERSE = "<http://www.w3.org/ns/shacl#inversePath>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_LONGEST_PATH = 100

Path: TypeAlias = tuple[tuple[bool, str], ...]
"""A SHACL property path: (whether it is inverse, predicate) of each step."""


@record
class DescribedEvent:
    """An event: its name and its triples, and the literal of its time; all as N-Triples texts.

    `name` is an IRI or a blank node; `time` is None if the document says none.
    """

    name: str
    time: str | None
    triples: list[Triple]

    def nquads(self, time_predicate: str) -> str:
        """The event as N-Quads, with its time in the default graph."""
        time = "" if self.time is None else f"{self.name} <{time_predicate}> {self.time} .\n"
        return time + "".join(f"{s} {p} {o} {self.name} .\n" for s, p, o in self.triples)


@dataclass(slots=True)
class Description:
    """The quads of a document, by subject and by graph.

    Attributes:
        about: the triples of each subject, in order.
        graphs: the triples of each named graph.
    """

    about: dict[str, list[Triple]] = field(default_factory=dict)
    graphs: dict[str, list[Triple]] = field(default_factory=dict)

    def objects(self, subject: str, predicate: str) -> list[str]:
        """The objects of a subject's predicate."""
        return [o for _, p, o in self.about.get(subject, ()) if p == predicate]

    def closure(self, names: Iterable[str]) -> list[Triple]:
        """The triples of some subjects, and of the blank nodes below them; each subject once."""
        triples, seen, waiting = list[Triple](), set[str](), list(names)[::-1]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            said = self.about.get(name, ())
            triples += said
            waiting += [o for _, _, o in said if o[0] == "_"]
        return triples


def described(
    data: bytes,
    report: Report,
    base: str | None,
    limits: Limits,
    contexts: JsonLdContexts = NO_CONTEXTS,
    form: Format | None = None,
    united: bool = True,
) -> Description | None:
    """The quads of a document; None if it cannot be read to its end, which is reported.

    Args:
        data: the document.
        report: called for unreadable input.
        base: of relative IRIs.
        limits: bounds.
        contexts: the contexts of JSON-LD.
        form: the format; None to find out.
        united: whether triples of named graphs count as triples of the default graph.
    """
    form = form or format_of_text(data)
    if form is Format.JSONLD and contexts.own is not None:
        data = _with_context(data, contexts.own)
        contexts = JsonLdContexts(None, contexts.named)
    description = Description()
    bad = list[BadInput]()
    document = DocumentLines(io.BytesIO(data), form, base, limits, contexts)
    for read in document_statements(document, "", limits, bad.append):
        terms, about = list(read.terms), description.about
        columns = (read.s.tolist(), read.p.tolist(), read.o.tolist(), read.g.tolist())
        for s, p, o, g in zip(*columns, strict=True):
            triple = terms[s], terms[p], terms[o]
            if g == DEFAULT_GRAPH or united:
                about.setdefault(triple[0], []).append(triple)
            else:
                description.graphs.setdefault(terms[g], []).append(triple)
    for each in bad:
        report(each.line, each.reason.removeprefix(REST), each.text)
    return None if bad else description


def format_of_text(data: bytes) -> Format:
    """The format of an RDF document, by its begin."""
    head = data[: 1 << 14].removeprefix(b"\xef\xbb\xbf")
    if _JSON.match(head):
        return Format.JSONLD
    if _XML.match(head):
        return Format.RDFXML
    return Format.NQUADS if _QUADS.match(head) else Format.TRIG


def _with_context(data: bytes, context: str) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data  # the parser says what is wrong
    items = value if isinstance(value, list) else [value]
    whole = items[0] if len(items) == 1 and isinstance(items[0], dict) else {"@graph": items}
    return json.dumps({**whole, "@context": json.loads(context)}).encode()


def message_of(events: Iterable[DescribedEvent], time_predicate: str, line: int) -> MessageLines:
    """The quads of events as one message, each event in its graph."""
    return MessageLines("".join(each.nquads(time_predicate) for each in events).encode(), [line])


@record
class FeedDescription:
    """The description of a feed on its root page.

    Attributes:
        time: the path to a member's time; None if it has none.
        order: the path to the order of members of one time.
        polling_s: the polling interval of open pages; None if it is not given.
    """

    time: Path | None
    order: Path | None
    polling_s: float | None


@record
class Relation:
    """A link to a page. No member there has a time (ms) below `least`, if that is known."""

    node: str
    least: int | None


@record
class Member:
    """A member of a feed. `time_ms` is its time if readable, and `order` the order of ties."""

    event: DescribedEvent
    time_ms: int | None
    order: tuple[int, str]


@record
class TreePage:
    """A page of a feed.

    Attributes:
        iri: the address of the page.
        document: its contents.
    """

    iri: str
    document: Description

    @property
    def _own(self) -> str:
        return f"<{self.iri}>"

    def streams(self) -> list[tuple[str, str]]:
        """(stream, its view) of each stream that the page describes."""
        return [
            (s, o[1:-1]) for s, own in self.document.about.items() for _, p, o in own if p == _VIEW
        ]

    def description(self) -> FeedDescription | None:
        """The description of the feed, if the page is its root; else None."""
        names = [stream for stream, view in self.streams() if view == self.iri]
        return self._described(names[0]) if names else None

    def any_description(self) -> FeedDescription | None:
        """The description of a stream, of whichever root page."""
        for name in self.document.about:
            if self.document.objects(name, _TIME_PATH):
                return self._described(name)
        return None

    def _described(self, stream: str) -> FeedDescription:
        paths = [
            self._path(nodes[0]) if (nodes := self.document.objects(stream, predicate)) else None
            for predicate in (_TIME_PATH, _ORDER_PATH)
        ]
        polling = self.document.objects(stream, f"{_LDES}pollingInterval>")
        return FeedDescription(paths[0], paths[1], _number(polling[0]) if polling else None)

    @property
    def is_immutable(self) -> bool:
        """Whether the page says that it never changes."""
        said = self.document.objects(self._own, f"{_LDES}immutable>")
        return any(split_literal(text)[0] in ("true", "1") for text in said if text[0] == '"')

    def relations(self, feed: FeedDescription) -> list[Relation]:
        """The pages that this one leads to."""
        least: dict[str, int | None] = {}
        for relation in self.document.objects(self._own, _RELATION):
            for node in self.document.objects(relation, _NODE):
                bound = self._bound(relation, feed)
                known = least.setdefault(node[1:-1], bound)
                if known is None or (bound is not None and bound > known):
                    least[node[1:-1]] = bound
        return [Relation(node, bound) for node, bound in least.items()]

    def _bound(self, relation: str, feed: FeedDescription) -> int | None:
        """The least time (ms) behind a relation."""
        paths = [self._path(path) for path in self.document.objects(relation, _PATH)]
        if feed.time is None or feed.time not in paths:
            return None
        if _FROM.isdisjoint(self.document.objects(relation, TYPE)):
            return None
        times = [parse_time(text) for text in self.document.objects(relation, _VALUE)]
        return max((time for time in times if time is not None), default=None)

    def members(self, feed: FeedDescription) -> Iterator[Member]:
        """The members of the page."""
        names = dict.fromkeys(
            o for said in self.document.about.values() for _, p, o in said if p == _MEMBER
        )
        for name in names:
            triples = dict.fromkeys(self.document.closure([name]))
            triples |= dict.fromkeys(self.document.graphs.get(name, ()))
            times = _reached(name, feed.time, [*triples])
            event = DescribedEvent(name, times[0] if times else None, [*triples])
            orders = _reached(name, feed.order, [*triples])
            yield Member(event, parse_time(times[0]) if times else None, _order(orders))

    def _path(self, term: str) -> Path | None:
        """The path of a term; None for alternatives and repetitions."""
        if term[0] == "<" and term != _NIL:
            return ((False, term),)
        inverse = self.document.objects(term, _INVERSE)
        if inverse:
            return ((True, inverse[0]),) if inverse[0][0] == "<" else None
        steps: list[tuple[bool, str]] = []
        while term != _NIL and len(steps) < _LONGEST_PATH:
            first, rest = (self.document.objects(term, p) for p in (_FIRST, _REST))
            step = self._path(first[0]) if first and first[0] != term else None
            if step is None or not rest:
                return None
            steps += step
            term = rest[0]
        return tuple(steps)


def _reached(name: str, path: Path | None, triples: Sequence[Triple]) -> list[str]:
    """The nodes that a path reaches from a node."""
    if path is None:
        return []
    nodes = [name]
    for inverse, predicate in path:
        ends = [(o, s) if inverse else (s, o) for s, p, o in triples if p == predicate]
        nodes = [end for node in nodes for begin, end in ends if begin == node]
    return nodes


def _order(values: Sequence[str]) -> tuple[int, str]:
    """The order of members of one time: numbers by value, then texts."""
    text = split_literal(values[0])[0] if values and values[0][0] == '"' else "".join(values[:1])
    try:
        return int(text), ""
    except ValueError:
        return 0, text


def _number(text: str) -> float | None:
    try:
        return max(float(split_literal(text)[0]), 0.0)
    except ValueError:
        return None
