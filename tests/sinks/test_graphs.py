"""The formats with named graphs; spaseq's reader reads them back as events."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from spaseq.algebra.answers import AFTER_ALL, Answer
from spaseq.errors import UsageError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.ranges import read_stream
from spaseq.rdf.terms.term import Triple
from spaseq.sinks import SINKS, open_sink

ONE: tuple[Triple, ...] = (
    ("<http://e/é>", "<http://e/p>", '"a \\"b\\"\\n"@en'),
    ("<http://e/é>", "<http://e/q>", "_:t0"),
    ("_:t0", "<http://e/p>", '"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
    ("<http://e/é>", "<http://e/p>", '"x"'),
)
TWO: tuple[Triple, ...] = (("_:t1", "<http://e/p>", "_:t1"),)
ANSWERS = [
    Answer((0, 0), (1500, 1), (), (), graph=ONE, event="urn:spaseq:1"),
    Answer((0, 0), (1500, AFTER_ALL), (), (), graph=TWO, event="http://e/s/2"),
    Answer((7, 0), (-62135596800001, 0), (), (), graph=TWO, event="http://e/s/3"),
]


def written(form: str, *answers: Answer) -> str:
    out = io.StringIO()
    with open_sink(form, out, ()) as sink:
        for answer in answers:
            sink.write("q", answer)
    return out.getvalue()


def events(batch: EventBatch) -> list[tuple[int, int, str | None, set[Triple]]]:
    """Time, k, graph IRI and triples of each event."""
    found = []
    for i in range(len(batch)):
        rows = range(batch.start[i], batch.start[i + 1])
        terms = ([batch.terms[column[r]] for r in rows] for column in (batch.s, batch.p, batch.o))
        triples = set(zip(*terms, strict=True))
        found.append((int(batch.time[i]), int(batch.k[i]), batch.graph[i], triples))
    return found


@pytest.mark.parametrize(
    ("form", "extension"),
    [("nquads", "nq"), ("trig", "trig"), ("rdfm", "rdfm"), ("jsonld", "jsonld")],
)
def test_our_reader_reads_the_events_back(form: str, extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"events.{extension}"
    path.write_text(written(form, *ANSWERS), encoding="utf-8")
    bad: list[BadInput] = []
    batches = list(read_stream(StreamOptions("http://e/s", (str(path),)), bad.append))
    assert bad == []
    assert [event for batch in batches for event in events(batch)] == [
        (1500, 0, "urn:spaseq:1", set(ONE)),
        (1500, 1, "http://e/s/2", set(TWO)),
        (-62135596800001, 0, "http://e/s/3", set(TWO)),
    ]


def test_nquads() -> None:
    assert written("nquads", ANSWERS[1]) == (
        "_:t1 <http://e/p> _:t1 <http://e/s/2> .\n"
        "<http://e/s/2> <http://www.w3.org/ns/prov#generatedAtTime>"
        ' "1970-01-01T00:00:01.500Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
    )


def test_trig() -> None:
    assert written("trig", ANSWERS[0]) == (
        "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
        "\n"
        "<urn:spaseq:1> {\n"
        '  <http://e/é> <http://e/p> "a \\"b\\"\\n"@en ;\n'
        "    <http://e/q> _:t0 .\n"
        '  _:t0 <http://e/p> "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
        '  <http://e/é> <http://e/p> "x" .\n'
        "}\n"
        '<urn:spaseq:1> prov:generatedAtTime "1970-01-01T00:00:01.500Z"^^xsd:dateTime .\n'
    )


def test_jsonl_has_the_event_and_its_triples() -> None:
    assert written("jsonl", ANSWERS[1]) == (
        '{"query": "q", "start": "1970-01-01T00:00:00Z", "end": "1970-01-01T00:00:01.500Z",'
        ' "event": "http://e/s/2", "graph": [{"subject": {"type": "bnode", "value": "t1"},'
        ' "predicate": {"type": "uri", "value": "http://e/p"},'
        ' "object": {"type": "bnode", "value": "t1"}}], "trace": []}\n'
    )


def of(kind: str) -> list[str]:
    """The formats for only one kind of answers."""
    return [form for form, sink in SINKS.items() if sink.holds == kind]


@pytest.mark.parametrize("form", of("graphs"))
def test_a_solution_is_no_graph(form: str) -> None:
    with pytest.raises(UsageError, match="q is a SELECT query"):
        written(form, Answer((0, 0), (0, 0), (), (("x", '"1"'),)))


@pytest.mark.parametrize(
    "form", [form for form, sink in SINKS.items() if sink.holds == "solutions"]
)
def test_a_graph_is_no_row_of_a_table(form: str) -> None:
    with pytest.raises(UsageError, match="q is a CONSTRUCT query"):
        written(form, ANSWERS[0])
