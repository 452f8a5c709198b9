"""Terms of patterns and templates: constants as texts, and triple terms with variables.

In a pattern a triple term with variables becomes a variable, and its terms become triples about
that variable with the predicates `PARTS`. A basic graph pattern that has these predicates is
evaluated over the graph and the *parts* of its triple terms: three triples for each. So a triple
term is a node like any other, and a join finds what is inside it (SPARQL 1.2 section 18.1.6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import count
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.variables import exists_uses, leaves
from spaseq.rdf.terms.triple_terms import triple_term_text

IN_A_ROW = 16
"""Up to this number of operands a tree leans to the left, as the specification writes it."""

SUBJECT, PREDICATE, OBJECT = PARTS = tuple(
    f"<triple {part}>" for part in ("subject", "predicate", "object")
)
"""The predicates of the parts of a triple term. No IRI has a space, so no graph has them."""

Terms: TypeAlias = tuple[n.PatternTerm, n.PatternTerm, n.PatternTerm]


def folded(
    make: Callable[[n.Pattern, n.Pattern], n.Pattern], operands: Sequence[n.Pattern]
) -> n.Pattern:
    """At least one operand, combined by an associative operator.

    The depth is logarithmic, so that code which recurs into patterns can read thousands of them.

    >>> a, b, c = (n.Table((name,), ()) for name in "abc")
    >>> folded(n.Union, [a, b, c]) == n.Union(n.Union(a, b), c)
    True
    """
    if len(operands) <= IN_A_ROW:
        return reduce(make, operands)
    half = len(operands) // 2
    return make(folded(make, operands[:half]), folded(make, operands[half:]))


def all_joined(operands: Sequence[n.Pattern]) -> n.Pattern:
    """The join of the operands. The empty pattern joined with another is the other (18.2.2.8)."""
    rest = [operand for operand in operands if operand != n.UNIT]
    return folded(n.Join, rest) if rest else n.UNIT


def is_constant(pattern: n.Pattern) -> bool:
    """Whether a pattern's solutions do not depend on the event."""
    waiting = [pattern]
    while waiting:
        match waiting.pop():
            case n.Graph() | n.Table() | n.BGP(()):
                continue
            case n.BGP() | n.Path() | n.EventBlock() | n.EventName() | n.Given():
                return False
            case n.Filter(expr) | n.Extend(expr=expr) | n.LeftJoin(expr=ast.Node() as expr) as node:
                if exists_uses(expr):
                    return False
                waiting += n.children(node)
            case node:
                waiting += n.children(node)
    return True


def is_part(triple: n.TriplePattern) -> bool:
    """Whether a triple pattern is about a part of a triple term."""
    return triple.predicate in PARTS


class TermReader:
    """Reads the terms of one pattern or template.

    `composed` has the terms of each variable of a triple term, outer ones first.
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
