"""Triple terms with variables, in patterns and templates.

In a pattern such a term becomes a variable, and its terms become triples about that variable with
the predicates `PARTS`. A basic graph pattern that has these predicates is evaluated over the graph
and the *parts* of its triple terms: three triples for each. So a triple term is a node like any
other, and a join finds what is inside it (SPARQL 1.2 section 18.1.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.lang import ast
from spaseq.lang.variables import leaves
from spaseq.rdf.terms.triple_terms import triple_term_text

SUBJECT, PREDICATE, OBJECT = PARTS = tuple(
    f"<triple {part}>" for part in ("subject", "predicate", "object")
)
"""The predicates of the parts of a triple term. No IRI has a space, so no graph has them."""

Terms: TypeAlias = tuple[n.PatternTerm, n.PatternTerm, n.PatternTerm]


def is_part(triple: n.TriplePattern) -> bool:
    """Whether a triple pattern is about a part of a triple term."""
    return triple.predicate in PARTS


class TermReader:
    """Reads the terms of one pattern or template.

    `composed` has the terms of each variable that stands for a triple term, outer ones first.
    """

    def __init__(self) -> None:
        self.composed: dict[str, Terms] = {}
        self._fresh = count()

    def term(self, term: ast.Term) -> n.PatternTerm:
        """A term of the syntax tree as a term of a pattern."""
        match term:
            case ast.Var(name):
                return ast.Var(name)
            case ast.BlankNode(label):
                return ast.Var(n.RESERVED + label)
            case ast.TripleTerm() if any(map(_is_open, leaves(term))):
                name = f"{n.RESERVED}<<{next(self._fresh)}"
                self.composed[name] = ("", "", "")  # keeps its place before the terms inside it
                self.composed[name] = tuple(map(self.term, term.terms))  # type: ignore[assignment]
                return ast.Var(name)
            case ast.Iri() | ast.Literal() | ast.TripleTerm():
                return constant_text(term)

    def take_parts(self) -> Iterator[n.TriplePattern]:
        """The triples about the variables in `composed`, which forgets them."""
        for name, terms in self.composed.items():
            for predicate, term in zip(PARTS, terms, strict=True):
                yield n.TriplePattern(ast.Var(name), predicate, term)
        self.composed = {}


def _is_open(term: ast.Node) -> bool:
    return isinstance(term, ast.Var | ast.BlankNode)


def composed_text(texts: tuple[str | None, str | None, str | None]) -> str | None:
    """The text of a triple term; None if a term is unbound or RDF does not allow it in its place.

    >>> composed_text(('<http://e/s>', '<http://e/p>', '"o"'))
    '<<( <http://e/s> <http://e/p> "o" )>>'
    """
    s, p, o = texts
    if not s or not p or not o:
        return None
    if s[0] == '"' or s.startswith("<<") or p[0] != "<" or p.startswith("<<"):
        return None
    return triple_term_text(s, p, o)
