"""TriG, Turtle, JSON-LD and RDF/XML streams: events, labels of blank nodes, errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spaseq.errors import UsageError
from tests.rdf.streams import XSD, read, write

PREFIXES = f"""@prefix : <http://e/> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <{XSD}> .
"""
ONE = ':1 { :s :p 1, 2 . }  :1 prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .\n'
TWO = ':2 prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime . :2 { :s :p 3 . }\n'


@pytest.mark.parametrize("name", ["s.trig", "s.trig.gz"])
def test_trig(tmp_path: Path, name: str) -> None:
    events, bad = read(write(tmp_path / name, PREFIXES + ONE + TWO))
    assert [(e.graph, e.time, len(e.triples)) for e in events] == [
        ("http://e/1", 1000, 2),
        ("http://e/2", 2000, 1),
    ]
    assert events[1].triples == (("<http://e/s>", "<http://e/p>", f'"3"^^<{XSD}integer>'),)
    assert bad == []


def test_jsonld(tmp_path: Path) -> None:
    def event(number: int) -> dict[str, object]:
        at = {"@value": f"1970-01-01T00:00:0{number}Z", "@type": XSD + "dateTime"}
        return {
            "@id": f"http://e/{number}",
            "http://www.w3.org/ns/prov#generatedAtTime": at,
            "@graph": [{"@id": "http://e/s", "http://e/p": number}],
        }

    text = json.dumps([event(1), event(2)])
    events, bad = read(write(tmp_path / "s.jsonld", text))
    assert [(e.graph, e.time) for e in events] == [("http://e/1", 1000), ("http://e/2", 2000)]
    assert events[0].triples == (("<http://e/s>", "<http://e/p>", f'"1"^^<{XSD}integer>'),)
    assert bad == []


def test_a_syntax_error_keeps_the_events_before_it(tmp_path: Path) -> None:
    text = PREFIXES + ONE + ":2 { :s :p 3 . \n :s wrong }\n" + TWO
    events, bad = read(write(tmp_path / "s.trig", text))
    assert [e.graph for e in events] == ["http://e/1"]
    assert [(b.line, b.reason.split(":")[0]) for b in bad] == [
        (6, "the rest of the file is not read")
    ]


def test_relative_iris_are_relative_to_the_base(tmp_path: Path) -> None:
    path = write(tmp_path / "s.trig", PREFIXES + ONE.replace("{ :s :p", "{ <s> <#p>"))
    events, bad = read(path, base="http://base/d/x")
    assert events[0].triples[0][:2] == ("<http://base/d/s>", "<http://base/d/x#p>")
    assert bad == []
    own = write(tmp_path / "own.trig", "@base <http://own/> . " + path.read_text())
    events, _ = read(own, base="http://base/d/x")
    assert events[0].triples[0][0] == "<http://own/s>"
    events, bad = read(path)
    assert events == []
    assert "relative IRIs need a base (--base IRI, or base= in Python)" in bad[0].reason
    with pytest.raises(UsageError, match="the base here is not an absolute IRI"):
        read(path, base="here")


def test_an_error_in_one_file_does_not_cost_the_next(tmp_path: Path) -> None:
    first = write(tmp_path / "1.trig", "wrong")
    second = write(tmp_path / "2.trig", PREFIXES + ONE)
    events, bad = read(first, second)
    assert [e.graph for e in events] == ["http://e/1"]
    assert [b.file for b in bad] == [str(first)]


ANONYMOUS = PREFIXES + (
    ':1 prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime .\n'
    ":1 { :s :p [ :q _:x ], [ :q _:anon0 ] . _:x :p :o . }\n"
    ':2 prov:generatedAtTime "1970-01-01T00:00:02Z"^^xsd:dateTime .\n'
    ":2 { :s :p [ :q 1 ] . }\n"
)


def test_equal_input_gives_equal_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "s.trig", ANONYMOUS)
    assert read(path) == read(path)


def test_unlabelled_blank_nodes_are_numbered_within_their_event(tmp_path: Path) -> None:
    (one, two), _ = read(write(tmp_path / "s.trig", ANONYMOUS))
    labels = {t for triple in one.triples for t in triple if t.startswith("_:")}
    assert labels == {"_:x", "_:anon0", "_:anon1", "_:anon2"}
    assert ("_:x", "<http://e/p>", "<http://e/o>") in one.triples
    inner = {(p, o) for s, p, o in one.triples if s in ("_:anon1", "_:anon2")}
    assert inner == {("<http://e/q>", "_:x"), ("<http://e/q>", "_:anon0")}
    assert {s for s, _, _ in two.triples} == {"_:anon0", "<http://e/s>"}


def test_labels_do_not_depend_on_the_predicates_that_queries_read(tmp_path: Path) -> None:
    path = write(tmp_path / "s.trig", ANONYMOUS)
    assert read(path, predicates=("http://e/q",)) == read(path)


def test_short_names_of_long_iris_are_written_piece_by_piece(tmp_path: Path) -> None:
    long = f"http://e/{'v' * 100_000}"
    text = f"@prefix l: <{long}> . @prefix prov: <http://www.w3.org/ns/prov#> .\n" + "".join(
        f'l:{i} {{ l:{i} l:p {i} }} l:{i} prov:generatedAtTime "{i}"^^<{XSD}long> .\n'
        for i in range(60)
    )
    events, bad = read(write(tmp_path / "s.trig", text))
    assert [(e.graph, e.time) for e in events] == [(f"{long}{i}", i) for i in range(60)]
    assert bad == []


def test_turtle_in_threes(tmp_path: Path) -> None:
    one = ':a :p 1 ; prov:generatedAtTime "1970-01-01T00:00:01Z"^^xsd:dateTime . :b :p 2 .\n'
    two = ':a :p 3 . :b :p 4 ; prov:generatedAtTime "2000"^^xsd:long .\n'
    path = write(tmp_path / "s.ttl", PREFIXES + one + two)
    events, bad = read(path, triples_per_event=3)
    assert [(e.graph, e.time, len(e.triples)) for e in events] == [(None, 1000, 3), (None, 2000, 3)]
    assert bad == []


def test_rdfxml(tmp_path: Path) -> None:
    text = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
        ' xmlns:prov="http://www.w3.org/ns/prov#"><rdf:Description rdf:about="http://e/s">'
        "<e:p>x</e:p>"
        f'<prov:generatedAtTime rdf:datatype="{XSD}long">7</prov:generatedAtTime>'
        "</rdf:Description></rdf:RDF>"
    )
    events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2)
    assert [e.time for e in events] == [7]
    assert events[0].triples[0] == ("<http://e/s>", "<http://e/p>", '"x"')
    assert bad == []
