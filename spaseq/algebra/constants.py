"""Constants of the syntax tree as canonical N-Triples texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from spaseq.algebra import nodes as n
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.rdf.terms.term import XSD_STRING, iri_text, literal_text
from spaseq.rdf.terms.triple_terms import triple_term_text

IN_A_ROW = 16
"""Up to this number of operands a tree leans to the left, as the specification writes it."""


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
            case n.BGP() | n.Path() | n.EventBlock() | n.EventName():
                return False
            case n.Filter(expr) | n.Extend(expr=expr) | n.LeftJoin(expr=ast.Node() as expr) as node:
                if exists_uses(expr):
                    return False
                waiting += n.children(node)
            case node:
                waiting += n.children(node)
    return True


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
