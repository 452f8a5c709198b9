"""CONSTRUCT by its definition: the template filled with the oracle's answers.

SPARQL 1.2 section 16.2: variables are replaced, blank nodes are fresh per solution, and triples
with an unbound variable or an illegal construct are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count

from rdflib import BNode, Graph, Literal, URIRef
from rdflib.term import Identifier

from spaseq.lang import ast
from tests.oracle.model import Streamset, Triple
from tests.oracle.oracle import evaluate
from tests.oracle.patterns import nt
from tests.oracle.triple_terms import TripleTerm

Event = tuple[int, list[Triple]]
"""Time in ms, and the triples in the order of the template."""

Texts = tuple[str, str, str]
"""A triple as N-Triples texts."""

_fresh = count()


def construct(
    query: ast.Query, streams: Streamset, kb: Mapping[str, Graph] | None = None
) -> list[Event]:
    """The events of a CONSTRUCT query, in order; answers without triples make no event.

    Takes the same arguments and raises the same errors as `tests.oracle.oracle.evaluate`.
    """
    assert isinstance(query.form, ast.Construct)
    events = []
    for answer in evaluate(replace(query, form=ast.Select(None)), streams, kb):
        triples = _graph(query.form, answer.mu.values)
        if triples:
            events.append((answer.end[0], triples))
    return events


def _graph(form: ast.Construct, values: Mapping[str, Identifier]) -> list[Triple]:
    nodes: dict[str, BNode] = {}
    triples: dict[Triple, None] = {}
    for triple in form.template:
        assert isinstance(triple.predicate, ast.Var | ast.Iri)
        s, p, o = (
            _term(t, values, nodes) for t in (triple.subject, triple.predicate, triple.object)
        )
        named = not isinstance(s, TripleTerm) and not isinstance(p, TripleTerm)  # only objects are
        if named and isinstance(s, URIRef | BNode) and isinstance(p, URIRef) and o is not None:
            triples[s, p, o] = None
    return list(triples)


def _term(
    term: ast.Term, values: Mapping[str, Identifier], nodes: dict[str, BNode]
) -> Identifier | None:
    match term:
        case ast.Var(name):
            return values.get(name)
        case ast.Iri(iri):
            return URIRef(iri)
        case ast.Literal(lexical, datatype, language):
            typed = None if datatype is None else URIRef(datatype)
            return Literal(lexical, lang=language, datatype=typed, normalize=False)
        case ast.BlankNode(label):
            return nodes.setdefault(label, BNode(f"fresh{next(_fresh)}"))


def texts(events: list[Event]) -> list[tuple[int, list[Texts]]]:
    """The same events as N-Triples texts."""
    return [(time, [(nt(s), nt(p), nt(o)) for s, p, o in triples]) for time, triples in events]


def renamed(graph: Iterable[Texts]) -> list[Texts]:
    """The graph with blank nodes numbered in order of appearance."""
    numbers = count()
    names: dict[str, str] = {}

    def name(text: str) -> str:
        if not text.startswith("_:"):
            return text
        return names.get(text) or names.setdefault(text, f"_:{next(numbers)}")

    return [(name(s), name(p), name(o)) for s, p, o in graph]
