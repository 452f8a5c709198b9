"""The first events of a user's RDF file: their predicates with types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.diagnosis.time_predicates import misplaced_time, time_predicate
from spaseq.errors import InputError
from spaseq.first_steps.field_types import INTEGER, NUMBER, TEXT, FieldType
from spaseq.first_steps.samples import SUBJECT, Sample, Seen
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.formats import Format, format_of
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import GENERATED_AT_TIME, XSD, Triple, split_literal
from spaseq.sources import source_of

_EVENTS = 2000
_NUMBERS = ("integer", "decimal", "double", "float", "int", "long")
_IRI = FieldType("iri", ".*", "{0}")
_ABOUT = ".ngsild", ".cloudevents"
"""Endings of files whose events are each about one thing, with values behind blank nodes."""

_TOLD = {Format.NGSILD: "ngsild", Format.SOSA: "sosa"}
"""Formats that no media type tells a server."""

Paths: TypeAlias = "list[tuple[str, str]]"
"""(predicate or path in angle brackets, term) of an event."""


def sampled_events(path: Path) -> Sample:
    """The first events of a file.

    Raises:
        InputError: none of them has a time, or it cannot be read.
    """
    predicate, bad = None, list[BadInput]()
    seen, types = _seen(path, GENERATED_AT_TIME, bad)
    if not seen:
        predicate = time_predicate(str(path))
        if predicate is not None:
            seen, types = _seen(path, predicate, [])
    if not seen:
        cause = misplaced_time(str(path)) or (bad[0].reason if bad else None)
        reason = "" if cause is None else f": {cause}"
        raise InputError(f"no named graph of {path} has a time, so none is an event{reason}")
    form = _TOLD.get(format_of(path.name) or Format.NQUADS, "")
    few = tuple(seen[:_EVENTS])
    return Sample(str(path), few, types, (), time_predicate=predicate, format=form)


def _is_about(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(_ABOUT)


def _about(triples: Sequence[Triple], event: str) -> Paths:
    """What an event says of the first thing in it that is neither the event nor a blank node."""
    thing = next((s for s, _, _ in triples if s[0] == "<" and s != event), event)
    subjects = dict.fromkeys(s for s, _, _ in triples)
    paths, waiting = [(f"<{SUBJECT}>", thing)], [(thing, "")]
    while waiting:
        subject, before = waiting.pop(0)
        for s, predicate, term in triples:
            path = f"{before}/{predicate}" if before else predicate
            if s == subject and term.startswith("_:") and term in subjects and path.count("/<") < 3:
                waiting.append((term, path))
            elif s == subject:
                paths.append((path, term))
    return paths


def _seen(
    path: Path, time_predicate: str, bad: list[BadInput]
) -> tuple[list[Seen], dict[str, FieldType]]:
    """The first events whose times are those of a predicate, and the types of the other ones."""
    options = StreamOptions("http://example/s", (str(path),), time_predicate=time_predicate)
    source = source_of([str(path)], options)
    source.check()
    seen: list[Seen] = []
    types: dict[str, FieldType] = {}
    for batch in source.open(bad.append):
        for event in range(len(batch)):
            rows = range(int(batch.start[event]), int(batch.start[event + 1]))
            triples = [_triple(batch, row) for row in rows]
            values: dict[str, Any] = {}
            said = [(p, o) for _, p, o in triples]
            if _is_about(path):
                said = _about(triples, f"<{batch.graph[event]}>")
            for predicate, term in said:
                kind, value = _value(term)
                if predicate not in types or types[predicate] is kind:
                    values.setdefault(predicate[1:-1], value)
                    types.setdefault(predicate, kind)
            turtle = "\n".join(f"{s} {p} {o} ." for s, p, o in triples)
            seen.append(Seen(len(seen) + 1, int(batch.time[event]), values, turtle))
        if len(seen) >= _EVENTS:
            break
    return seen, {p[1:-1]: kind for p, kind in types.items() if p[1:-1] != time_predicate}


def _triple(batch: EventBatch, row: int) -> Triple:
    s, p, o = (str(batch.terms[column[row]]) for column in (batch.s, batch.p, batch.o))
    return s, p, o


def _value(term: str) -> tuple[FieldType, Any]:
    """(type, value) of a term; a term that is no literal is its own value."""
    if not term.startswith('"'):
        return _IRI, term
    text, datatype, _ = split_literal(term)
    local = str(datatype).removeprefix(XSD)
    kind = INTEGER if local == "integer" else NUMBER if local in _NUMBERS else TEXT
    return kind, kind.value(text) if kind is not TEXT else term
