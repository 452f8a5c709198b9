"""Observations of SOSA, the core of the Semantic Sensor Network ontology, as events.

A document may have several, and collections of them. An observation's graph has its triples, the
triples of the nodes that it names, as far as the document has them, and the properties of its
collections.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from spaseq.limits import Limits
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.sizes import long_event
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.messages.described_events import (
    TYPE,
    DescribedEvent,
    Description,
    described,
    format_of_text,
    message_of,
)
from spaseq.rdf.messages.message_lines import MessageLines, MessageText, Report
from spaseq.rdf.messages.wrapped_events import json_documents
from spaseq.rdf.terms.term import Triple
from spaseq.rdf.terms.times import parse_time

_SOSA, _SSN = "<http://www.w3.org/ns/sosa/", "<http://www.w3.org/ns/ssn/"
_TIME = "<http://www.w3.org/2006/time#"
OBSERVATION, COLLECTION = f"{_SOSA}Observation>", f"{_SOSA}ObservationCollection>"
_HAS_MEMBER, _IS_MEMBER = f"{_SOSA}hasMember>", f"{_SOSA}isMemberOf>"
_RESULT_TIME, _PHENOMENON_TIME = f"{_SOSA}resultTime>", f"{_SOSA}phenomenonTime>"
_ENDS = f"{_TIME}hasEnd>", f"{_TIME}hasBeginning>"
_INSTANTS = tuple(f"{_TIME}{name}>" for name in ("inXSDDateTimeStamp", "inXSDDateTime"))
_OF_OTHERS = f"{_SOSA}madeObservation>", f"{_SOSA}isFeatureOfInterestOf>"
_LISTS = frozenset((_HAS_MEMBER, _IS_MEMBER, *_OF_OTHERS))


_MOST_BYTES = 1 << 30
"""A larger document is not read."""


def observation_messages(
    data: IO[bytes], options: StreamOptions, report: Report
) -> Iterator[MessageLines]:
    """The observations of a file: a document, or a document of JSON-LD on each line."""
    for message in _documents(data, options.limits):
        line = message.first_line

        def in_file(inner: int | None, reason: str, text: str, line: int = line) -> None:
            report(line if inner is None else line + inner - 1, reason, text)

        if message.refusal is not None:
            in_file(None, message.refusal, message.shown)
            continue
        given = message.text, in_file, options.base, options.limits, options.contexts
        document = described(*given)
        if document is None:
            continue
        events = [*observations(document, options.time_predicate)]
        if not events:
            in_file(None, "no sosa:Observation is in it", message.shown)
        events.sort(key=lambda event: _instant(event.time))
        yield message_of(events, options.time_predicate, line)


def _documents(data: IO[bytes], limits: Limits) -> Iterator[MessageText]:
    text = data.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        yield MessageText(text[:1000], 1, long_event(limits))
    elif format_of_text(text) is not Format.JSONLD:
        yield MessageText(text, 1)
    else:
        for lines in json_documents(io.BytesIO(text), limits):
            yield from lines.messages(0, len(lines))


def _instant(time: str | None) -> float:
    time_ms = None if time is None else parse_time(time)
    return float("inf") if time_ms is None else time_ms


def observations(document: Description, time_predicate: str) -> Iterator[DescribedEvent]:
    """The observations of a document, in its order.

    The time is that of `time_predicate`, if the observation has it. Else it is its resultTime, or
    the end of its phenomenonTime.
    """
    above = _collections(document)
    names = {s for s in document.about if OBSERVATION in document.objects(s, TYPE)}
    names |= above.keys() - {s for s in above if COLLECTION in document.objects(s, TYPE)}
    for name in document.about:
        if name in names:
            yield _event(name, document, above, names, f"<{time_predicate}>")


def _collections(document: Description) -> dict[str, list[str]]:
    """The collections that each member is directly in."""
    above: dict[str, list[str]] = {}
    for subject, triples in document.about.items():
        for _, predicate, node in triples:
            if predicate == _HAS_MEMBER and COLLECTION in document.objects(subject, TYPE):
                above.setdefault(node, []).append(subject)
            elif predicate == _IS_MEMBER:
                above.setdefault(subject, []).append(node)
    return above


def _event(
    name: str,
    document: Description,
    above: dict[str, list[str]],
    others: set[str],
    time_predicate: str,
) -> DescribedEvent:
    said = [*document.about[name], *_inherited(name, document, above)]
    named = [o for _, _, o in said if o[0] in "<_" and o in document.about and o not in others]
    triples = dict.fromkeys(said)
    for triple in document.closure(named):
        if triple[1] not in _LISTS and triple[0] not in others:
            triples[triple] = None
    return DescribedEvent(name, _time(said, document, time_predicate), [*triples])


def _inherited(name: str, document: Description, above: dict[str, list[str]]) -> Iterator[Triple]:
    """The properties of an observation's collections that it lacks, the nearest first."""
    known = {p for _, p, _ in document.about[name]}
    seen, waiting = {name}, list(above.get(name, ()))
    while waiting:
        collection = waiting.pop(0)
        if collection in seen:
            continue
        seen.add(collection)
        waiting += above.get(collection, ())
        more = [
            (name, p, o)
            for _, p, o in document.about.get(collection, ())
            if p.startswith((_SOSA, _SSN)) and p not in known and p not in _LISTS
        ]
        known |= {p for _, p, _ in more}
        yield from more


def _time(said: list[Triple], document: Description, time_predicate: str) -> str | None:
    """The literal of an observation's time."""
    for predicate in (time_predicate, _RESULT_TIME):
        literal = next((o for _, p, o in said if p == predicate), None)
        if literal is not None:
            return literal
    for _, predicate, node in said:
        if predicate == _PHENOMENON_TIME:
            return node if node[0] == '"' else _end_of(node, document)
    return None


def _end_of(node: str, document: Description) -> str | None:
    """The literal of an instant, or of an interval's end, or else its beginning."""
    for predicate in _INSTANTS:
        for literal in document.objects(node, predicate):
            if parse_time(literal) is not None:
                return literal
    for predicate in _ENDS:
        for instant in document.objects(node, predicate):
            for each in _INSTANTS:
                for literal in document.objects(instant, each):
                    return literal
    return None
