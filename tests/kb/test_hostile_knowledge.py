"""Knowledge bases that are malformed, or that would exhaust the stack or the memory: each is an
InputError with its file, and with the line where the format gives one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import rdflib

from spaseq.errors import InputError
from spaseq.kb.load import load_kb
from spaseq.kb.quads import entailing_schema
from spaseq.limits import Limits
from spaseq.options import RunOptions, ServiceOptions
from tests.hostile import run_bounded

GRAPH = "http://e/g"
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">\n'
QUERY = """
SELECT ?x WITHIN 1 HOURS FROM STREAM S <http://example/s> FROM NAMED <http://e/g>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?y GRAPH <http://e/g> { ?x <http://e/p> ?z } } }
"""
NESTED = "nested more than 200 deep; that is the limit (--max-nesting)"
DEEP = 20_000
BIG = 17 << 20


def deep(opening: str, inside: str, closing: str) -> str:
    return opening * DEEP + inside + closing * DEEP


HOSTILE = {
    "terms.ttl": ("\n<a:s> <a:p> " + deep("<<( <a:s> <a:p> ", "1", " )>>") + " .", f":2: {NESTED}"),
    "lists.ttl": ("\n<a:s> <a:p> " + deep("( ", "1", " )") + " .", f":2: {NESTED}"),
    "terms.trig": ("<a:g> {<a:s> <a:p> " + deep("<<( <a:s> <a:p> ", "1", " )>>"), f":1: {NESTED}"),
    "terms.nt": (
        "<a:s> <a:p> " + deep("<<( <a:s> <a:p> ", "<a:o>", " )>>") + " .",
        ":1: triple terms are nested more than 200 deep",
    ),
    "objects.jsonld": (deep('{"http://e/p":', "1", "}"), f":1: {NESTED}"),
    "elements.rdf": (RDF + deep("<e:D><e:p>", "", "</e:p></e:D>") + "</rdf:RDF>", f":2: {NESTED}"),
    "entity.rdf": (
        '<!DOCTYPE x [<!ENTITY a "lol">]>' + RDF + "<e:D><e:p>&a;</e:p></e:D></rdf:RDF>",
        ":1: entity declarations are refused",
    ),
    "literal.ttl": (
        '<a:s> <a:p> "' + "a" * BIG + '" .',
        "over 16 MiB, which is not read (--max-li",
    ),
    "literal.nt": (
        '<a:s> <a:p> "' + "a" * BIG + '" .',
        ":1: a literal of 17825792 bytes; the limit",
    ),
    "literal.jsonld": ('{"http://e/p":"' + "a" * BIG + '"}', "not read (--max-literal)"),
    "literal.rdf": (RDF + "<e:D><e:p>" + "a" * BIG + "</e:p></e:D></rdf:RDF>", "--max-literal"),
    "comment.ttl": ("#" + "a" * BIG, "a literal, name or comment over 16 MiB"),
    "surrogate.jsonld": ('{"http://e/p":"\\udc00"}', ":1: "),
    "remote.jsonld": (
        '{"@context":"http://127.0.0.1:9/c","p":1}',
        "remote, and nothing is fetched; write it",
    ),
    "cycle.jsonld": ('{"@context":{"a":"b:c","b":"a:d"},"a":1}', "Cyclic"),
    "twice.jsonld": ('{"@id":"http://a","@id":"http://b","http://e/p":2}', "@id is defined twice"),
    "end.ttl": ("<a:s> <a:p> ", ":1: "),
    "end.rdf": (RDF + "<e:D>\n", ":3: the document ends within an element"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_an_input_error(tmp_path: Path, name: str) -> None:
    text, reason = HOSTILE[name]
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    done = run_bounded(
        "from spaseq.errors import InputError; from spaseq.kb.load import load_kb\n"
        "from spaseq.limits import Limits; from spaseq.options import ServiceOptions\n"
        "services = ServiceOptions(limits=Limits(inflation=100_000))\n"
        f"try: load_kb([({GRAPH!r}, {str(tmp_path / f'{name}.gz')!r})], services)\n"
        "except InputError as error: print(error)",
        seconds=150,  # the first run compiles the kernels
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{name}.gz" in done.stdout
    assert reason in done.stdout
    assert len(done.stdout) < 1_000


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["terms.ttl", "entity.rdf", "literal.ttl"])
def test_a_run_ends_with_status_3(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(HOSTILE[name][0])
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nq").touch()
    done = run_bounded(
        ["run", "q.rq", "--runtime", "local", "--stream", "S=s.nq", "--kb", f"{GRAPH}={name}"],
        seconds=150,
        cwd=tmp_path,
    )
    assert done.returncode == 3, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert name in done.stderr


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl.gz"
    path.write_bytes(gzip.compress(b" " * (80 << 20)))
    services = RunOptions(limits=Limits(event_bytes=1 << 30)).knowledge.services
    with pytest.raises(InputError, match=r"kb\.ttl\.gz.*--max-inflation"):
        load_kb([(GRAPH, path)], services)


def test_the_limits_of_a_run_bound_its_knowledge_base_and_its_ontology(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(f'<a:s> <a:p> "{"a" * 11}" .')
    limits = Limits(literal_bytes=10)
    services = RunOptions(limits=limits).knowledge.services
    with pytest.raises(InputError, match=r"kb\.ttl: a literal of 11 bytes; the limit is 10"):
        load_kb([(GRAPH, path)], services)
    planning = RunOptions(limits=limits).planning
    with pytest.raises(InputError, match=r"kb\.ttl: a literal of 11 bytes; the limit is 10"):
        entailing_schema(str(path), "rdfs", planning.limits)
    (tmp_path / "kb.nt").write_text(path.read_text())
    with pytest.raises(InputError, match=r"kb\.nt:1: a literal of 11 bytes"):
        load_kb([(GRAPH, tmp_path / "kb.nt")], services)


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (rdflib.Literal("a" * 101), "a literal of 101 bytes; the limit is 100 (--max-literal)"),
        (rdflib.Literal("\ud800"), "surrogates not allowed"),
        (rdflib.URIRef("http://e/a b"), "is not an IRI"),
        (rdflib.URIRef("http://e/\ud800"), "surrogates not allowed"),
        (rdflib.URIRef("http://e/a> <http://e/b"), "is not an IRI"),
        (rdflib.URIRef("relative"), "is not an absolute IRI"),
        (rdflib.Literal("1", datatype=rdflib.URIRef("a b")), "is not an IRI"),
        (rdflib.BNode("a b"), "blank node"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_a_hostile_term_of_an_rdflib_graph_is_an_input_error(
    term: rdflib.term.Identifier, reason: str
) -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e/s"), rdflib.URIRef("http://e/p"), term))
    services = ServiceOptions(limits=Limits(literal_bytes=100))
    with pytest.raises(InputError, match="the graph contains a term that is not RDF") as found:
        load_kb([(GRAPH, graph)], services)
    assert reason in str(found.value)
    assert len(str(found.value)) < 1_000


def test_a_huge_number_in_json_stays_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "kb.jsonld"
    path.write_text('{"@id":"http://e/s","http://e/p":[1e999, -1e999, 1e-999]}')
    kb = load_kb([(GRAPH, path)])
    double = "http://www.w3.org/2001/XMLSchema#double"
    assert {f'"{sign}1.0E{exponent}"^^<{double}>' for sign, exponent in (
        ("", "999"), ("-", "999"), ("", "-999"),
    )} <= set(kb.terms)  # fmt: skip
