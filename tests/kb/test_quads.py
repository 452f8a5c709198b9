"""Ontologies: axioms that are read or refused, and answers by entailment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rdflib

import spaseq
from spaseq.compile import CompileOptions, check_query
from spaseq.errors import InputError, UsageError
from spaseq.kb.quads import entailing_schema
from spaseq.rdf.schema import Schema
from spaseq.render.explain import explained

ONTOLOGY = """@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:Loop rdfs:subClassOf :RoadSensor . :RoadSensor rdfs:subClassOf :Sensor .
:Camera owl:equivalentClass :Eye . :Eye rdfs:subClassOf :Sensor .
:speed rdfs:subPropertyOf :value ; rdfs:domain :Report .
:seenBy rdfs:range :Sensor ; owl:inverseOf :sees .
:partOf a owl:TransitiveProperty . :near a owl:SymmetricProperty .
:Sensor rdfs:subClassOf [ a owl:Restriction ] .
:someone :knows :somebody .
"""
PROLOGUE = "PREFIX : <http://e/> SELECT * WITHIN 1 HOURS FROM STREAM S <http://e/s>"
NAMED = "FROM NAMED <http://e/kb>"
KB = ":road1 :partOf :town . :town :partOf :land . :road2 :near :road1 . :loop a :Loop ."


def n3(local: str) -> str:
    return f"<http://e/{local}>"


def graph(turtle: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=f"@prefix : <http://e/> . {turtle}", format="turtle")


def query(pattern: str) -> str:
    return f"{PROLOGUE} {NAMED} SEQ(A) {{ DEFINE GPM A ON S {{ {pattern} }} }}"


def answers(pattern: str, event: str) -> list[dict[str, str]]:
    """The bindings of a pattern's answers on one event, with entailment."""
    kb = {"http://e/kb": graph(KB)}
    ontology = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    engine = spaseq.Engine(query(pattern), kb, ontology=ontology, entailment="rdfs")
    engine.push("S", graph(event), 1)
    found = [{v: t.n3() for v, t in m.bindings.items()} for m in engine.close()]
    return sorted(found, key=lambda row: sorted(row.items()))


@pytest.mark.parametrize(
    ("pattern", "event", "expected"),
    [
        ("?x a :Sensor", ":l a :Loop .", [{"x": "l"}]),
        ("?x a :Sensor", ":l a :Camera .", [{"x": "l"}]),
        ("?x a :Loop", ":l a :Sensor .", []),
        ("?x a :Sensor", ":r :seenBy :l . :l a :Loop .", [{"x": "l"}]),
        ("?x a :Sensor", ":l :sees :r .", [{"x": "l"}]),
        ("?x a :Sensor", ':r :seenBy "nobody" .', []),
        ("?x :value ?v", ":r :speed :fast ; :value :fast, :dear .",
         [{"x": "r", "v": "dear"}, {"x": "r", "v": "fast"}]),
        ("?x :seenBy ?y", ":l :sees :r .", [{"x": "r", "y": "l"}]),
        ("?x a ?c", ":l a :Loop .",
         [{"x": "l", "c": c} for c in ("Loop", "RoadSensor", "Sensor")]),
        (":r ?p :fast", ":r :speed :fast .", [{"p": "speed"}, {"p": "value"}]),
        ("?x :speed ?v FILTER EXISTS { ?y a :Sensor }", ":r :speed :v ; :seenBy :l .",
         [{"x": "r", "v": "v"}]),
        ("?x a :Report OPTIONAL { ?x a :Sensor . ?x :speed ?v }", ":r :speed :v .", [{"x": "r"}]),
        ("{ SELECT (COUNT(*) AS ?n) { ?x a :Sensor } } FILTER(?n = 1) ?x a :Loop",
         ":l a :Loop, :RoadSensor ; :sees :r .", None),
        ("?x :value/:next+ ?y", ":r :speed :a . :a :next :b . :b :next :c .",
         [{"x": "r", "y": "b"}, {"x": "r", "y": "c"}]),
        ("?x :value+ ?y", ":a :speed :b . :b :value :c .",
         [{"x": "a", "y": "b"}, {"x": "a", "y": "c"}, {"x": "b", "y": "c"}]),
        ("?x !(:speed|a) ?y", ":a :speed :b .", [{"x": "a", "y": "b"}]),
        ("?r :on ?x GRAPH <http://e/kb> { ?x :partOf :land }", ":r :on :road1 .",
         [{"r": "r", "x": "road1"}]),
        ("?r :on ?x GRAPH <http://e/kb> { ?x :near ?y }", ":r :on :road1 .",
         [{"r": "r", "x": "road1", "y": "road2"}]),
        ("?r :by ?x GRAPH ?g { ?x a :Sensor }", ":r :by :loop .",
         [{"r": "r", "x": "loop", "g": "kb"}]),
    ],
)  # fmt: skip
def test_what_is_entailed(pattern, event, expected):
    found = answers(pattern, event)
    if expected is None:  # one solution for the sensor, however many axioms entail its type
        assert len(found) == 1
    else:
        assert found == [{v: n3(local) for v, local in row.items()} for row in expected]


def test_earlier_bindings_are_substituted_into_what_is_entailed():
    text = f"""{PROLOGUE} {NAMED} SEQ(A; B) {{ DEFINE GPM A ON S {{ ?x a :Sensor }}
        DEFINE GPM B ON S {{ ?r :value ?v MINUS {{ ?r :seenBy ?x }} }} }}"""
    ontology = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    kb = {"http://e/kb": graph(KB)}
    engine = spaseq.Engine(text, kb, ontology=ontology, entailment="rdfs")
    for time, event in enumerate(
        (":l a :Loop .", ":r :speed :a . :l :sees :r .", ":q :speed :b .")
    ):
        engine.push("S", graph(event), time)
    found = [{v: t.n3() for v, t in m.bindings.items()} for m in engine.close()]
    assert {"x": n3("l"), "r": n3("q"), "v": n3("b")} in found
    assert {"x": n3("l"), "r": n3("r"), "v": n3("a")} not in found


def test_without_entailment_patterns_match_what_is_said():
    engine = spaseq.Engine(query("?x a :Sensor"), {"http://e/kb": graph(KB)})
    engine.push("S", graph(":l a :Loop ."), 1)
    assert engine.close() == []


def test_only_axioms_about_named_classes_and_properties_are_read():
    triples = rdflib.Graph().parse(data=ONTOLOGY, format="turtle")
    schema = entailing_schema(triples, "rdfs")
    assert schema is not None
    assert len(schema.axioms) == 10
    assert schema == Schema.of(reversed(schema.axioms))
    assert schema.subclasses(n3("Sensor")) == {
        n3(c) for c in ["Sensor", "RoadSensor", "Loop", "Eye", "Camera"]
    }


def test_files_of_any_format_and_several_of_them(tmp_path: Path):
    first, second = tmp_path / "a.ttl", tmp_path / "b.rdf"
    first.write_text("<http://e/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <B> .")
    rdflib.Graph().parse(data=ONTOLOGY, format="turtle").serialize(second, format="xml")
    schema = entailing_schema([str(first), second], "rdfs")
    assert schema is not None
    assert len(schema.axioms) == 11


@pytest.mark.parametrize(
    ("ontology", "entailment", "error", "message"),
    [
        (None, "rdfs", UsageError, "needs an ontology"),
        ((), "rdfs", UsageError, "needs an ontology"),
        ("o.ttl", None, UsageError, "no effect without entailment"),
        ("o.ttl", "owl", UsageError, "unknown entailment 'owl'; there is: rdfs"),
        ("nowhere.ttl", "rdfs", InputError, "nowhere.ttl"),
        (graph(":a :b :c ."), "rdfs", InputError, "no axiom"),
    ],
)
def test_what_is_refused(ontology: Any, entailment: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        entailing_schema(ontology, entailment)


@pytest.mark.parametrize(
    "axioms",
    [
        ":p a owl:TransitiveProperty ; rdfs:subPropertyOf rdf:type .",
        ":p a owl:TransitiveProperty . rdf:type rdfs:subPropertyOf :p .",
        ":p a owl:TransitiveProperty ; owl:inverseOf :q . :q rdfs:subPropertyOf rdf:type .",
    ],
)
def test_a_transitive_property_above_or_below_rdf_type_is_refused(axioms: str):
    head = "".join(
        f"@prefix {prefix}: <http://www.w3.org/{place}#> . "
        for prefix, place in (
            ("rdf", "1999/02/22-rdf-syntax-ns"),
            ("rdfs", "2000/01/rdf-schema"),
            ("owl", "2002/07/owl"),
        )
    )
    with pytest.raises(InputError, match="<http://e/p> is transitive and above or below rdf:type"):
        entailing_schema(graph(head + axioms), "rdfs")


def test_a_property_that_types_entail_is_not_repeated_in_a_path():
    axioms = f"{ONTOLOGY} <{rdflib.RDF.type}> rdfs:subPropertyOf :about ."
    schema = entailing_schema(rdflib.Graph().parse(data=axioms, format="turtle"), "rdfs")
    [error] = check_query(query("?x :about* ?y"), options=CompileOptions(schema=schema)).errors
    assert "<http://e/about>, which rdf:type entails, cannot be repeated" in error.message
    assert (
        check_query(query("?x :about/:partOf+ ?y"), options=CompileOptions(schema=schema)).errors
        == ()
    )


@pytest.mark.parametrize("path", ["(a|:p)+", "(:p/!:q)*", "(^a)?"])
def test_steps_that_need_more_than_a_property_are_refused_in_repetitions(path):
    schema = entailing_schema(rdflib.Graph().parse(data=ONTOLOGY, format="turtle"), "rdfs")
    text = query(f"?x {path} ?y")
    [error] = check_query(text, options=CompileOptions(schema=schema)).errors
    assert error.code == "entailed-path"
    assert text[error.span.start : error.span.end] in f"?x {path} ?y"
    assert check_query(text).errors == ()


def test_explain_shows_the_rewritten_pattern():
    schema = entailing_schema(rdflib.Graph().parse(data=ONTOLOGY, format="turtle"), "rdfs")
    checked = check_query(query("?x a :Sensor"), options=CompileOptions(schema=schema))
    text = str(explained(checked, full=True))
    assert "entailment rdfs, by 10 axioms" in text
    assert "http://e/Camera" in text
    assert "http://e/seenBy" in text


@pytest.mark.spark
def test_both_runtimes_entail_and_substitute_alike(tmp_path: Path):
    ontology, kb, stream = (tmp_path / name for name in ("o.ttl", "kb.ttl", "s.nq"))
    ontology.write_text(ONTOLOGY)
    graph(KB).serialize(kb, format="turtle")
    lines = []
    for i, event in enumerate(("l a Loop", "r speed fast", "q speed slow", "m a Camera")):
        s, p, o = event.split()
        predicate = f"<{rdflib.RDF.type}>" if p == "a" else n3(p)
        lines.append(f"{n3(s)} {predicate} {n3(o)} {n3(f'g{i}')} .")
        time = f'"1970-01-01T00:00:0{i}Z"^^<{rdflib.XSD.dateTime}>'
        lines.append(f"{n3(f'g{i}')} <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
    stream.write_text("\n".join(lines) + "\n")
    text = f"""{PROLOGUE} {NAMED} SEQ(A: B) {{ DEFINE GPM A ON S {{ ?x a :Sensor }}
        DEFINE GPM B ON S {{ ?r :value ?v
            OPTIONAL {{ GRAPH <http://e/kb> {{ ?k a :Sensor }} FILTER(?x != ?k) }} }} }}"""

    def run(runtime: Any) -> list[dict[str, str]]:
        found = spaseq.run(
            text, {"S": stream}, {"http://e/kb": str(kb)}, runtime,
            ontology=ontology, entailment="rdfs",
        )  # fmt: skip
        return [{v: t.n3() for v, t in m.bindings.items()} for m in found]

    expected = [{"x": n3("l"), "r": n3(r), "v": n3(v), "k": n3("loop")}
                for r, v in (("r", "fast"), ("q", "slow"))]  # fmt: skip
    assert run("local") == expected
    assert run("spark") == expected
