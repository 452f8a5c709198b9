"""Every stream in `streams/`, written as messages in every syntax, has the same events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.rdf.inputs.formats import MESSAGE_END, VERSION
from tests.rdf.messages.test_jelly import IRI, BlankNode, DefaultGraph, Literal, Quad, jelly_file
from tests.rdf.streams import TIME, Event, at, read, write

STREAMS = sorted((Path(__file__).parents[3] / "streams").glob("*/*.nq"))
XSD_DATE_TIME = at(0).partition("^^")[2]


def quads(events: Sequence[Event]) -> Iterator[list[ox.Quad]]:
    """The quads of each event, its time among them."""
    for event in events:
        graph = f"<{event.graph}>"
        time = f'"{event.time}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines = [f"{' '.join(triple)} {graph} .\n" for triple in event.triples]
        yield list(ox.parse("".join([f"{graph} {TIME} {time} .\n", *lines]), ox.RdfFormat.N_QUADS))


def _text(form: ox.RdfFormat) -> Callable[[Path, list[list[ox.Quad]]], None]:
    def save(path: Path, messages: list[list[ox.Quad]]) -> None:
        texts = [ox.serialize(message, format=form) or b"" for message in messages]
        write(path, VERSION.encode() + MESSAGE_END.encode().join(texts))

    return save


def _json(path: Path, messages: list[list[ox.Quad]]) -> None:
    texts = (ox.serialize(message, format=ox.RdfFormat.JSON_LD) for message in messages)
    objects = [{"@graph": json.loads(text or b"")} for text in texts]
    write(path, "".join(json.dumps(one) + "\n" for one in objects))


def _jelly(path: Path, messages: list[list[ox.Quad]]) -> None:
    def term(given: object) -> object:
        match given:
            case ox.NamedNode():
                return IRI(given.value)
            case ox.BlankNode():
                return BlankNode(given.value)
            case ox.Literal():
                return Literal(given.value, given.language, given.datatype.value)
        return DefaultGraph

    jelly_file(
        path,
        [
            [Quad(*map(term, (q.subject, q.predicate, q.object, q.graph_name))) for q in message]
            for message in messages
        ],
    )


WRITERS = {
    "rdfm": _text(ox.RdfFormat.N_QUADS),
    "nq": _text(ox.RdfFormat.N_QUADS),
    "trig": _text(ox.RdfFormat.TRIG),
    "ndjsonld": _json,
    "jelly": _jelly,
}


@pytest.mark.each_once
@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("stream", STREAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_stream_as_messages_has_the_same_events(
    stream: Path, ending: str, tmp_path: Path
) -> None:
    events, _ = read(stream)
    path = tmp_path / f"s.{ending}"
    WRITERS[ending](path, list(quads(events)))
    again, bad = read(path)
    assert bad == []
    assert len(again) == len(events) > 0
    for one, other in zip(again, events, strict=True):
        assert (one.time, one.k, one.graph) == (other.time, other.k, other.graph)
        assert set(one.triples) == set(other.triples)
