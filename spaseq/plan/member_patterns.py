"""The graph patterns of a family, with the constants of one row of its table in their places.

A family evaluates a pattern for all members, and then joins the solutions with the table. So it
needs more solutions on the way than a member, whose pattern has its constants from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.algebra.mapping import mapped, with_expressions
from spaseq.lang import ast
from spaseq.lang.shapes import QUERY, Constant
from spaseq.lang.variables import rewritten
from spaseq.rdf.terms.term import split_literal
from spaseq.rdf.terms.vocabulary import XSD_STRING


def with_constants(pattern: n.Pattern, known: Mapping[str, Constant], table: n.Table) -> n.Pattern:
    """A pattern of a family with `table` as its table.

    The constants in `known`, by name of the parameter, stand where the parameters stood.
    """
    match pattern:
        case n.Table(variables):
            return table if QUERY in variables else pattern
        case n.BGP(triples):
            return n.BGP(tuple(_triple(own, known) for own in triples))
    own = with_expressions(pattern, lambda expr: rewritten(expr, lambda node: _in(known, node)))
    return mapped(own, lambda operand: with_constants(operand, known, table))


def constant_of(text: str) -> Constant:
    """The constant with a canonical N-Triples text.

    >>> constant_of('"1"^^<http://e/t>')
    Literal(lexical='1', datatype='http://e/t', language=None)
    """
    if text.startswith("<"):
        return ast.Iri(text[1:-1])
    lexical, datatype, language = split_literal(text)
    kind = None if datatype == XSD_STRING or language else datatype
    return ast.Literal(lexical, kind, language)


def _triple(triple: n.TriplePattern, known: Mapping[str, Constant]) -> n.TriplePattern:
    return n.TriplePattern(*(_term(term, known) for term in triple.terms))


def _term(term: n.PatternTerm, known: Mapping[str, Constant]) -> n.PatternTerm:
    constant = None if isinstance(term, str) else known.get(term.name)
    return term if constant is None else constant_text(constant)


def _in(known: Mapping[str, Constant], node: ast.Node) -> ast.Node | None:
    """The constant of a parameter."""
    return known.get(node.name) if isinstance(node, ast.Var) else None
