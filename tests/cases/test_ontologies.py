"""The ontologies declare every term that the cases use, as the cases use it."""

from __future__ import annotations

import re
from pathlib import Path

import pyoxigraph
import pytest
import rdflib
from rdflib.namespace import OWL, RDF, RDFS

from .expected import ROOT, STREAMS

XSD = "http://www.w3.org/2001/XMLSchema#"
ONTOLOGIES = {
    "smart-grid": "smart-grid",
    "vessel": "vessel",
    "card-fraud": "cards",
    "stocks": "stocks",
    "traffic": "traffic",
}


def ontology(case: str) -> rdflib.Graph:
    return rdflib.Graph().parse(ROOT / "ontologies" / f"{ONTOLOGIES[case]}.ttl")


def namespace(graph: rdflib.Graph) -> str:
    (iri,) = graph.subjects(RDF.type, OWL.Ontology)
    return f"{iri}#"


def instance_data(case: str) -> rdflib.Graph:
    """All triples of the case's streams and KB in one graph."""
    data = rdflib.Graph().parse(STREAMS / case / "kb.ttl")
    for path in (STREAMS / case).glob("*.nq"):
        for quad in pyoxigraph.parse(path=str(path)):
            triple = f"{quad.subject} {quad.predicate} {quad.object} ."
            data.parse(data=triple, format="nt")
    return data


def own(terms: set[rdflib.term.Node], prefix: str) -> set[str]:
    return {str(t) for t in terms if isinstance(t, rdflib.URIRef) and t.startswith(prefix)}


@pytest.mark.parametrize("case", ONTOLOGIES)
def test_every_term_used_is_declared(case: str) -> None:
    graph = ontology(case)
    prefix = namespace(graph)
    declared = own(set(graph.subjects()), prefix)
    data = instance_data(case)
    used = own({term for triple in data for term in triple}, prefix)
    assert used
    assert used <= declared


@pytest.mark.parametrize("case", ONTOLOGIES)
def test_queries_name_declared_terms_only(case: str) -> None:
    graph = ontology(case)
    prefix = namespace(graph)
    declared = own(set(graph.subjects()), prefix)
    for path in (STREAMS / case).glob("*.rq"):
        text = path.read_text()
        short = re.search(rf"PREFIX (\w+): <{re.escape(prefix)}>", text)
        assert short, path
        names = re.findall(rf"(?<![\w?]){short.group(1)}:(\w+)", text)
        assert names
        assert {prefix + name for name in names} <= declared


@pytest.mark.parametrize("case", ONTOLOGIES)
def test_declarations_are_complete(case: str) -> None:
    graph = ontology(case)
    prefix = namespace(graph)
    for term in own(set(graph.subjects()), prefix):
        subject = rdflib.URIRef(term)
        assert graph.value(subject, RDFS.label), term
        assert graph.value(subject, RDFS.comment), term
        if (subject, RDF.type, RDF.Property) in graph:
            assert graph.value(subject, RDFS.domain), term
            assert graph.value(subject, RDFS.range), term
    for predicate in (RDFS.domain, RDFS.range, RDFS.subClassOf, RDFS.subPropertyOf):
        for target in own(set(graph.objects(predicate=predicate)), prefix):
            assert (rdflib.URIRef(target), RDF.type, None) in graph, target


@pytest.mark.parametrize("case", ONTOLOGIES)
def test_literals_have_the_declared_datatype(case: str) -> None:
    graph, data = ontology(case), instance_data(case)
    checked = 0
    for prop, datatype in graph.subject_objects(RDFS.range):
        for value in data.objects(predicate=prop):
            if str(datatype).startswith(XSD):
                assert isinstance(value, rdflib.Literal)
                assert str(value.datatype or f"{XSD}string") == str(datatype), prop
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("path", sorted((ROOT / "ontologies").glob("*.ttl")), ids=lambda p: p.stem)
def test_both_parsers_read_the_same_triples(path: Path) -> None:
    ours = len(rdflib.Graph().parse(path))
    assert ours == len({str(t) for t in pyoxigraph.parse(path=str(path))}) > 20
