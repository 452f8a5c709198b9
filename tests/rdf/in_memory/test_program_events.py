"""Graphs from programs: rdflib, N-Triples text and triples of terms all give the same events."""

from __future__ import annotations

import numpy as np
import pyoxigraph as ox
import pytest
import rdflib

from spaseq.errors import InputError
from spaseq.limits import Limits
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events, triples_of
from spaseq.rdf.terms.term import Term
from tests.rdf.streams import STREAM, XSD, Event, events_of

TEXT = f'<http://e/s> <http://e/p> "1"^^<{XSD}integer> .\n<http://e/s> <http://e/q> _:b .\n'
TRIPLES = [
    ("<http://e/s>", "<http://e/p>", f'"1"^^<{XSD}integer>'),
    ("<http://e/s>", "<http://e/q>", "_:b"),
]
E = rdflib.Namespace("http://e/")


def test_ntriples_text() -> None:
    assert triples_of(TEXT) == TRIPLES


def test_an_rdflib_graph() -> None:
    graph = rdflib.Graph()
    graph.add((E.s, E.q, rdflib.BNode("b")))
    graph.add((E.s, E.p, rdflib.Literal(1)))
    assert triples_of(graph) == TRIPLES


def test_triples_of_texts_terms_and_libraries_objects() -> None:
    mixed = [
        (Term("<http://e/s>"), E.p, ox.Literal(1)),
        ox.Triple(ox.NamedNode("http://e/s"), ox.NamedNode("http://e/q"), ox.BlankNode("b")),
    ]
    assert triples_of(mixed) == TRIPLES


def test_texts_become_canonical() -> None:
    triple = ("<http://e/s>", r"<http://e/\u00E9>", f'"\\u0041"^^<{XSD}string>')
    assert triples_of([triple]) == [("<http://e/s>", "<http://e/é>", '"A"')]


def test_random_labels_become_the_same_ones_every_time() -> None:
    def graph() -> rdflib.Graph:
        made = rdflib.Graph()
        one, two = rdflib.BNode(), rdflib.BNode()
        made.add((one, E.p, two))
        made.add((two, E.p, E.s))
        return made

    triples = triples_of(graph())
    assert triples == triples_of(graph())
    assert len({triples[0][0], triples[0][2], triples[1][0]}) == 2


@pytest.mark.parametrize(
    "graph",
    [
        "wrong",
        [("<http://e/s>", "<http://e/p>")],
        [("<http://e/s>", "<http://e/p>", "http://e/o")],
        [("<http://e/s>", "<http://e/p>", '"a" . <http://e/s> <http://e/p> "b"')],
        [("<http://e/s>", "<http://e/p>", '"a" .\n<http://e/s> <http://e/p> "b"')],
        [("<http://e/s>", "<http://e/p>", 1)],
        [("<http://e/s>", "<http://e/p>", rdflib.URIRef("http://e/a b"))],
        ["<http://e/s> <http://e/p> <http://e/o> ."],
    ],
)
def test_what_is_no_graph_is_refused(graph: object) -> None:
    with pytest.raises(InputError, match="not a graph"):
        triples_of(graph)  # type: ignore[arg-type]


def test_a_batch_of_events() -> None:
    one, two = TRIPLES
    given = [(5, "http://e/g", [one, two, one]), (5, None, [two]), (4, None, [])]
    batch = batch_from_events(STREAM, given, InstantCounter())
    assert list(events_of(iter([batch]))) == [
        Event(5, 0, "http://e/g", (one, two)),
        Event(5, 1, None, (two,)),
        Event(4, 0, None, ()),
    ]
    assert batch.s.dtype == np.int32
    assert batch.start.dtype == np.int64


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        (rdflib.Literal("a" * 101), "a literal of 101 bytes; the limit is 100"),
        (rdflib.Literal("\ud800"), "surrogates not allowed"),
        (rdflib.URIRef("http://e/\ud800"), "surrogates not allowed"),
        (rdflib.URIRef("http://e/a b"), "is not an IRI"),
        (rdflib.URIRef("http://e/a> <http://e/b"), "is not an IRI"),
        (rdflib.URIRef("relative"), "No scheme found"),
        (rdflib.BNode("a\n"), "blank node identifier is invalid"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_a_hostile_term_of_a_graph_is_an_input_error(
    term: rdflib.term.Identifier, reason: str
) -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e/s"), rdflib.URIRef("http://e/p"), term))
    with pytest.raises(InputError, match="not a graph") as found:
        triples_of(graph, Limits(literal_bytes=100))
    assert reason in str(found.value)
