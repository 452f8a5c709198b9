"""Updates that name what they change: they read few triples, and do what they do with all."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.algebra.graph_changes import GraphChange
from spaseq.errors import InputError
from spaseq.kb.changing_graph import ChangingGraph
from spaseq.kb.graph_updates import graph_triples, updated, updating
from spaseq.kb.knowledge import KbGraph
from spaseq.kb.touched_triples import touched_triples
from spaseq.rdf.columns.term_tables import ExtendedTerms, ListedTerms
from spaseq.rdf.terms.term import Triple
from tests.sizes import sizes
from tests.thresholds import forced

IRI = "http://e/"
TERMS = ["<http://e/a>", "<http://e/b>", '"}"', '"# {"', '"1"^^<http://e/t>', "_:k1"]
NODES = [*TERMS[:2], TERMS[5]]
VERBS = ["<http://e/p>", "<http://e/q>"]


def graph_of(triples: Iterable[Triple]) -> tuple[KbGraph, ExtendedTerms]:
    terms = ExtendedTerms(ListedTerms([]))
    graph = ChangingGraph(terms, {})
    graph.apply(GraphChange((), tuple(triples)))
    return graph.relations(), terms


def of(*parts: str) -> Triple:
    s, p, o = (f"<http://e/{part}>" for part in parts)
    return s, p, o


OWNED = [of(f"d{n}", "owner", f"o{n % 7}") for n in range(1000)]
DEVICE = [of("d1", "owner", "o1")]


@pytest.mark.parametrize(
    ("text", "come", "gone"),
    [
        ("DELETE { :d1 :owner ?o } INSERT { :d1 :owner :x } WHERE { :d1 :owner ?o }", "x", DEVICE),
        ("DELETE WHERE { :d1 :owner ?o } ; INSERT DATA { :d1 :owner :x }", "x", DEVICE),
        ("delete where { :d1 ?p $o . };\ninsert data{:d1 :owner <x>}", "x", DEVICE),
        ("DELETE { :d1 :owner :o2 } INSERT { :d1 :owner :x } WHERE { ?d :owner :nobody }", "", []),
        ("INSERT { :d1 :owner :x } WHERE { # the } of a comment\n :d1 :owner ?o }", "x", []),
        ("DELETE { ?d :owner :o1 } WHERE { ?d :owner :o1 . ?d :owner :o2 }", "", []),
    ],
)  # fmt: skip
def test_an_update_of_one_device_reads_no_others(text: str, come: str, gone: list[Triple]) -> None:
    def general(now: Iterable[Triple], text: str, iri: str) -> GraphChange:
        raise AssertionError("it reads the graph")

    change = updating(*graph_of(OWNED), f"PREFIX : <http://e/> {text}", IRI, "", general)
    inserted = [of("d1", "owner", come)] if come else []
    assert (sorted(change.deleted), sorted(change.inserted)) == (gone, inserted)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE WHERE { ?s ?p ?o . ?t :owner ?q }",  # a million solutions
        "INSERT { ?s :is :there } WHERE { :d1 :owner|:lender ?s }",
        "INSERT { :d1 :is :there } WHERE { :d1 :owner ?s FILTER (?s != :o1) }",
        "INSERT { :d1 :is ?o } WHERE { :d1 :owner ?o } ; DELETE WHERE { :d1 :is ?o }",
        "INSERT { << :d1 :owner ?o >> :is :there } WHERE { :d1 :owner ?o }",
        "INSERT DATA { :d1 :is :there } ; CLEAR DEFAULT",
        "INSERT { :d1 :is :there } WHERE { }  LIMIT",
    ],
)
def test_other_updates_read_the_graph(text: str) -> None:
    assert touched_triples(*graph_of(OWNED), f"PREFIX : <http://e/> {text}", IRI) is None


def _patterns(verbs: list[str], nodes: list[str], terms: list[str]) -> st.SearchStrategy[str]:
    parts = (st.sampled_from(part) for part in (nodes, verbs, terms))
    return st.lists(st.tuples(*parts).map(" ".join), max_size=3).map(" . ".join)


_variables = ["?x", "?y", "$z"]
_where = _patterns([*VERBS, "?v"], [*NODES, *_variables], [*TERMS, *_variables])
_gone = _patterns([*VERBS, "?v"], [*NODES[:2], *_variables], [*TERMS[:5], *_variables])
_ground = _patterns(VERBS, NODES[:2], TERMS[:5])
_some = _ground.filter(bool)
_operation = st.one_of(
    st.builds("DELETE {{ {} }} INSERT {{{}.}} WHERE {{ {} }}".format, _gone, _some, _where),
    st.builds("DELETE{{ {} }}where{{ {} #}}\n }}".format, _gone, _where),
    st.builds("INSERT {{ {} }} WHERE {{ {} }}".format, _gone, _where),
    st.builds("DELETE WHERE {{ {} }}".format, _gone),
    st.builds("INSERT DATA {{ {} }}".format, _ground),
    st.builds("DELETE # {{\n DATA {{ {} }}".format, _ground),
)
_triple = st.tuples(*map(st.sampled_from, (NODES, VERBS, TERMS)))


@sizes(100, 1000, 10_000)
def test_what_it_does_with_them_it_does_with_the_graph(examples: int) -> None:
    read = list[bool]()

    def check(triples: set[Triple], operations: list[str], least: bool) -> None:
        graph, terms = graph_of(triples)
        text = " ;\n".join(operations)
        with forced(f"touched_triples={'least' if least else 'never'}"):
            touched = touched_triples(graph, terms, text, IRI)
        read.append(touched is None)
        if touched is not None:
            assert updated(touched, text, IRI) == updated(graph_triples(graph, terms), text, IRI)

    several = st.lists(_operation, min_size=1, max_size=3)
    settings(max_examples=examples, deadline=None)(
        given(st.sets(_triple, max_size=12), several, st.booleans())(check)
    )()
    assert {*read} == {True, False}


def test_a_wrong_update_is_said_to_be_wrong() -> None:
    with pytest.raises(InputError, match="the update is wrong"):
        updating(*graph_of(OWNED), "DELETE WHERE { } WHERE { }", IRI, "")


def test_an_undeclared_prefix_is_named() -> None:
    """The parser says "expected GRAPH", at the prefix."""
    with pytest.raises(InputError, match="the update is wrong: the prefix : is not declared"):
        updated([], "INSERT DATA { :d1 :owner :bob }", "http://e/g")
