"""CONSTRUCT: answers as graph events (docs/meaning.md#construct; SPARQL 1.1 section 16.2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from spaseq.algebra.answers import Answer
from spaseq.algebra.constants import TermReader, Terms, composed_text
from spaseq.algebra.graph_changes import deletion, inner, insertion, wildcard
from spaseq.algebra.nodes import PatternTerm, TriplePattern, is_reserved
from spaseq.lang import ast
from spaseq.rdf.terms.term import Triple, is_rdf_term, kind_of
from spaseq.rdf.terms.triple_terms import triple_term_text
from spaseq.records import record

_TERMS = 1 << 14
"""Maximum number of terms whose allowed positions are cached."""


@record
class Template:
    """The triples of CONSTRUCT; its blank nodes are variables whose names begin with `_:`.

    `stream` is the IRI of REGISTER STREAM, if there is one. `composed` has the terms of each
    variable of a triple term. Of MAINTAIN GRAPH, `graph` is the graph's IRI, and the first
    `deleted` triples are patterns of the triples to remove.
    """

    triples: tuple[TriplePattern, ...]
    stream: str | None = None
    composed: tuple[tuple[str, Terms], ...] = ()
    graph: str | None = None
    deleted: int = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables and blank nodes in the triples, each once."""
        terms = [t for triple in self.triples for t in triple.terms]
        terms += [t for _, composed in self.composed for t in composed]
        return tuple(dict.fromkeys(t.name for t in terms if isinstance(t, ast.Var)))


def template_of(form: ast.Construct, stream: str | None) -> Template:
    """The template of a CONSTRUCT query whose answers are the events of `stream`, if given."""
    return Template(*_patterns(form.template, stream))


def change_template_of(form: ast.Maintain) -> Template:
    """The template of a query that maintains a graph."""
    patterns = _patterns((*form.deleted, *form.inserted), None)
    return Template(*patterns, form.graph.value, len(form.deleted))


def _patterns(
    template: Sequence[ast.Triple], stream: str | None
) -> tuple[tuple[TriplePattern, ...], str | None, tuple[tuple[str, Terms], ...]]:
    """The first fields of a `Template`."""
    triples, reader = [], TermReader()
    for triple in template:
        predicate = triple.predicate
        assert isinstance(predicate, ast.Var | ast.Iri), "templates have no property paths"
        terms = (reader.term(t) for t in (triple.subject, predicate, triple.object))
        triples.append(TriplePattern(*terms))
    return tuple(triples), stream, tuple(reader.composed.items())


def constructed(template: Template, query: str, answer: Answer) -> Answer | None:
    """The answer with its graph event, or None if the event would have no triple.

    A group variable has the last of its values. A triple is left out if a variable in it is
    unbound, or if RDF does not allow it (a literal as its subject, for example). The event's IRI
    and the labels of the template's blank nodes are hashes of the query's name and the answer's
    `order_key`. So equal runs give equal text, and no two answers share an IRI or a label.

    >>> template = Template((TriplePattern(ast.Var("x"), "<http://e/p>", ast.Var("y")),))
    >>> answer = Answer((0, 0), (0, 0), (), (), (("x", "<http://e/a>"), ("y", '"b"')))
    >>> constructed(template, "q", answer).graph
    (('<http://e/a>', '<http://e/p>', '"b"'),)
    """
    key = key_of(query, answer)
    values = dict(answer.singles)
    for name, xs in answer.lists:
        values[name] = xs[-1]
    graph: dict[Triple, None] = {}
    composed = dict(template.composed)
    for triple in template.triples[: template.deleted]:
        graph[deletion(*(_wanted(term, values, composed) for term in triple.terms))] = None
    for name, terms in reversed(template.composed):  # inner ones first
        s, p, o = (_value(term, values, key) for term in terms)
        values[name] = composed_text((s, p, o)) or ""
    for triple in template.triples[template.deleted :]:
        s, p, o = [_value(term, values, key) for term in triple.terms]
        if not s or not p or not o:
            continue
        if can_be_subject(s) and can_be_predicate(p) and can_be_object(o):
            graph[(s, p, o) if template.graph is None else insertion(s, p, o)] = None
    if not graph:
        return None
    event = query if template.graph is not None else event_iri(template.stream, key)
    return Answer(*answer[:6], tuple(graph), event)


def key_of(query: str, answer: Answer) -> str:
    """A text that is unique to an answer of the query with this name."""
    return blake2b(f"{query}\0{answer.order_key()}".encode(), digest_size=16).hexdigest()


def _wanted(term: PatternTerm, values: dict[str, str], composed: dict[str, Terms]) -> str:
    """The value of a term of DELETE, or a wildcard: a variable without a value, a blank node."""
    if isinstance(term, str):
        return term
    if term.name in composed:
        s, p, o = (inner(_wanted(each, values, composed)) for each in composed[term.name])
        return triple_term_text(s, p, o)
    return values.get(term.name, wildcard(term.name))


def event_iri(stream: str | None, key: str) -> str:
    """The IRI of the graph of the answer with this key."""
    if stream is None:
        return f"urn:spaseq:{key}"
    return f"{stream}{key}" if stream.endswith(("/", "#")) else f"{stream}/{key}"


@lru_cache(_TERMS)
def can_be_subject(text: str) -> bool:
    """Whether RDF allows a term as a subject."""
    return kind_of(text) in ("iri", "bnode") and is_rdf_term(text)


@lru_cache(_TERMS)
def can_be_predicate(text: str) -> bool:
    """Whether RDF allows a term as a predicate."""
    return kind_of(text) == "iri" and is_rdf_term(text)


can_be_object = lru_cache(_TERMS)(is_rdf_term)
"""Whether RDF allows a term as an object."""


def _value(term: PatternTerm, values: dict[str, str], key: str) -> str | None:
    """The value of a term. New values of the template's blank nodes are added to `values`."""
    if isinstance(term, str):
        return term
    value = values.get(term.name)
    if value is None and is_reserved(term.name):
        value = values[term.name] = label_of(key, term.name)
    return value


def label_of(key: str, name: str) -> str:
    """A blank node of the template in the graph of the answer with this key.

    No blank node of an event or of the knowledge base has such a label.
    """
    return "_:t" + blake2b(f"{key}\0{name}".encode(), digest_size=10).hexdigest()
