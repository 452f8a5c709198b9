"""CONSTRUCT: answers as graph events (LANGUAGE section 3, Answers; SPARQL 1.1 section 16.2)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from spaseq.algebra.answers import Answer
from spaseq.algebra.groups import pattern_term
from spaseq.algebra.nodes import PatternTerm, TriplePattern, is_reserved
from spaseq.lang import ast
from spaseq.rdf.events import Triple
from spaseq.rdf.terms import is_rdf_term, kind_of


@dataclass(frozen=True, slots=True)
class Template:
    """The triples of CONSTRUCT; its blank nodes are variables whose names begin with `_:`.

    `stream` is the IRI of REGISTER STREAM, if there is one.
    """

    triples: tuple[TriplePattern, ...]
    stream: str | None = None


def template_of(form: ast.Construct, stream: str | None) -> Template:
    """The template of a CONSTRUCT query whose answers are the events of `stream`, if given."""
    triples = []
    for triple in form.template:
        predicate = triple.predicate
        assert isinstance(predicate, ast.Var | ast.Iri), "templates have no property paths"
        terms = (pattern_term(t) for t in (triple.subject, predicate, triple.object))
        triples.append(TriplePattern(*terms))
    return Template(tuple(triples), stream)


def constructed(template: Template, query: str, answer: Answer) -> Answer | None:
    """The answer with its graph event, or None if no triple of the template comes about.

    A group variable stands for the last of its values. A triple with an unbound variable, or one
    that RDF does not allow (a literal as its subject, say), is left out. The event's IRI and the
    labels of the template's blank nodes come from the name of the query and the answer's place in
    the order of answers: equal runs give equal text, and no two answers share any.

    >>> template = Template((TriplePattern(ast.Var("x"), "<http://e/p>", ast.Var("y")),))
    >>> answer = Answer((0, 0), (0, 0), (), (), (("x", "<http://e/a>"), ("y", '"b"')))
    >>> constructed(template, "q", answer).graph
    (('<http://e/a>', '<http://e/p>', '"b"'),)
    """
    key = blake2b(f"{query}\0{answer.order_key()}".encode(), digest_size=16).hexdigest()
    values = {**dict(answer.singles), **{name: xs[-1] for name, xs in answer.lists}}
    triples = (_instance(triple, values, key) for triple in template.triples)
    graph = tuple(dict.fromkeys(t for t in triples if t is not None))
    if not graph:
        return None
    return answer._replace(graph=graph, event=_event_iri(template.stream, key))


def _event_iri(stream: str | None, key: str) -> str:
    if stream is None:
        return f"urn:spaseq:{key}"
    return f"{stream}{key}" if stream.endswith(("/", "#")) else f"{stream}/{key}"


def _instance(triple: TriplePattern, values: dict[str, str], key: str) -> Triple | None:
    """`values` are given those of the template's blank nodes when they first come up."""
    s, p, o = (_value(term, values, key) for term in triple.terms)
    if s is None or p is None or o is None:
        return None
    allowed = kind_of(s) != "literal" and kind_of(p) == "iri"
    return (s, p, o) if allowed and all(map(is_rdf_term, (s, p, o))) else None


def _value(term: PatternTerm, values: dict[str, str], key: str) -> str | None:
    if isinstance(term, str):
        return term
    value = values.get(term.name)
    if value is None and is_reserved(term.name):
        digest = blake2b(f"{key}\0{term.name}".encode(), digest_size=10).hexdigest()
        # No event's blank node, and none of the KB, has such a label.
        value = values[term.name] = f"_:t{digest}"
    return value
