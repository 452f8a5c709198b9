"""Constants of the syntax tree as canonical N-Triples texts."""

from __future__ import annotations

from spaseq.lang import ast
from spaseq.rdf.terms.term import XSD_STRING, iri_text, literal_text
from spaseq.rdf.terms.triple_terms import triple_term_text


def constant_text(term: ast.Term) -> str:
    """The canonical N-Triples text of an IRI, a literal or a triple term without variables."""
    match term:
        case ast.Iri(value):
            return iri_text(value)
        case ast.Literal(lexical, datatype, language):
            return literal_text(lexical, datatype or XSD_STRING, language)
        case ast.TripleTerm(subject, predicate, object_):
            s, p, o = map(constant_text, (subject, predicate, object_))
            return triple_term_text(s, p, o)
    raise AssertionError(f"{term} is no constant")
