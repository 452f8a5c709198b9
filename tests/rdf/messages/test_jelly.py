"""Jelly: each frame is a message."""

from __future__ import annotations

import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spaseq.limits import Limits
from tests.rdf.streams import TIME, XSD, read, write

pytest.importorskip("pyjelly")

from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import (
    IRI,
    BlankNode,
    DefaultGraph,
    GenericStatementSink,
    Literal,
    Quad,
    Triple,
)
from pyjelly.integrations.generic.serialize import grouped_stream_to_file
from pyjelly.options import LookupPreset, StreamParameters
from pyjelly.serialize.streams import SerializerOptions

S, P = IRI("http://e/s"), IRI("http://e/p")
AT = IRI(TIME[1:-1])


def time(number: int) -> Any:
    return Literal(str(number), None, f"{XSD}integer")


def quads(number: int, *objects: Any) -> list[Any]:
    """An event: its graph, with these objects, and its time."""
    graph = IRI(f"http://e/{number}")
    return [
        *(Quad(S, P, o, graph) for o in objects),
        Quad(graph, AT, time(number), DefaultGraph),
    ]


def jelly_file(path: Path, messages: Sequence[Sequence[Any]], triples: bool = False) -> Path:
    """A file with a frame for each message."""
    kind = jelly.LOGICAL_STREAM_TYPE_GRAPHS if triples else jelly.LOGICAL_STREAM_TYPE_DATASETS
    options = SerializerOptions(
        logical_type=kind,
        params=StreamParameters(generalized_statements=True, rdf_star=True),
        lookup_preset=LookupPreset.small(),
    )

    def sinks() -> Any:
        for message in messages:
            sink = GenericStatementSink()
            for statement in message:
                sink.add(statement)
            yield sink

    out = io.BytesIO()
    grouped_stream_to_file(sinks(), out, options=options)
    return write(path, out.getvalue())


@pytest.mark.parametrize("name", ["s.jelly", "s.jelly.gz"])
def test_a_frame_is_an_event(tmp_path: Path, name: str) -> None:
    tagged, typed = Literal("chat", "fr", None), Literal("1.5", None, f"{XSD}decimal")
    messages = [
        quads(1, Literal('a "b"\n', None, None), tagged, typed),
        quads(2, BlankNode("b"), BlankNode("no label")),
    ]
    events, bad = read(jelly_file(tmp_path / name, messages))
    assert bad == []
    assert [(event.graph, event.time) for event in events] == [("http://e/1", 1), ("http://e/2", 2)]
    assert [o for _, _, o in events[0].triples] == [
        '"a \\"b\\"\\n"',
        '"chat"@fr',
        f'"1.5"^^<{XSD}decimal>',
    ]
    assert len({o for _, _, o in events[1].triples}) == 2


def test_a_frame_of_triples_is_an_event_without_a_name(tmp_path: Path) -> None:
    messages = [[Triple(S, P, IRI(f"http://e/{n}")), Triple(S, AT, time(n))] for n in (1, 2)]
    events, bad = read(jelly_file(tmp_path / "s.jelly", messages, triples=True))
    assert bad == []
    assert [(event.graph, event.time, len(event.triples)) for event in events] == [
        (None, 1, 2),
        (None, 2, 2),
    ]


def test_a_term_that_is_no_rdf_costs_its_frame(tmp_path: Path) -> None:
    messages = [quads(1, S), quads(2, IRI("no iri")), quads(3, S)]
    events, bad = read(jelly_file(tmp_path / "s.jelly", messages))
    assert [event.time for event in events] == [1, 3]
    assert [one.line for one in bad] == [2]


def test_damage_costs_the_rest_of_the_file(tmp_path: Path) -> None:
    path = jelly_file(tmp_path / "s.jelly", [quads(n, S) for n in range(1, 6)])
    path.write_bytes(path.read_bytes()[:-10])
    events, bad = read(path)
    assert [event.time for event in events] == [1, 2, 3, 4]
    assert len(bad) == 1 and "the rest of the file is not read" in bad[0].reason
    events, bad = read(write(path, b"no Jelly at all"))
    assert (len(events), len(bad)) == (0, 1)
    assert read(write(path, b"")) == ([], [])


def test_a_frame_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    messages = [quads(1, S), quads(2, *(Literal(f"{n:0100}", None, None) for n in range(100)))]
    path = jelly_file(tmp_path / "s.jelly", messages)
    events, bad = read(path, limits=Limits(event_bytes=5000))
    assert [event.time for event in events] == [1]
    assert len(bad) == 1 and "--max-event" in bad[0].reason


def test_packed_jelly_that_breaks_off_keeps_its_events(tmp_path: Path) -> None:
    path = jelly_file(tmp_path / "s.jelly", [quads(n, S) for n in range(1, 2000)])
    packed = gzip.compress(path.read_bytes())
    (tmp_path / "s.jelly.gz").write_bytes(packed[: len(packed) // 2])
    events, bad = read(tmp_path / "s.jelly.gz")
    assert 0 < len(events) < 1999
    assert len(bad) == 1
