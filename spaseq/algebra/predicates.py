"""The predicates of the triples of an event that a graph pattern reads."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.algebra.schema import Schema
from spaseq.algebra.triple_terms import is_part
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.rdf.terms.term import iri_text

Predicates = frozenset[str] | None
"""N-Triples texts of IRIs; None for all there are."""


def together(parts: Iterable[Predicates]) -> Predicates:
    """The predicates of all parts."""
    predicates: set[str] = set()
    for part in parts:
        if part is None:
            return None
        predicates |= part
    return frozenset(predicates)


def predicates_read(pattern: n.Pattern, schema: Schema | None = None) -> Predicates:
    """The predicates of the triples of the default graph on which the solutions may depend.

    Triples with other predicates can be left out of the graph. A variable as predicate and a
    negated property set depend on all triples. So does a path of length zero, as every node of the
    graph is one. The pattern itself has been rewritten with `schema`; the patterns of EXISTS have
    not.
    """
    match pattern:
        case n.BGP(triples):
            return together(_of_term(triple.predicate) for triple in triples if not is_part(triple))
        case n.Path(_, path, _):
            return _of_path(path)
        case n.Graph() | n.Service() | n.EventName():
            return frozenset()
        case _:
            inner = (predicates_read(p, schema) for p in n.children(pattern))
            tested = (predicates_of_expression(e, schema) for e in expressions(pattern))
            return together([*inner, *tested])


def predicates_of_expression(expr: ast.Expr, schema: Schema | None = None) -> Predicates:
    """The predicates that the patterns of EXISTS in an expression read."""
    patterns = (entailed(translate_group(use.pattern), schema) for use in exists_uses(expr))
    return together(predicates_read(pattern, schema) for pattern in patterns)


def _of_term(predicate: n.PatternTerm) -> Predicates:
    return frozenset([predicate]) if isinstance(predicate, str) else None


def _of_path(path: ast.Path) -> Predicates:
    match path:
        case ast.Iri(value):
            return frozenset([iri_text(value)])
        case ast.PathInverse(inner) | ast.PathFromNode(inner):
            return _of_path(inner)
        case ast.PathSequence(parts) | ast.PathAlternative(parts):
            return together(map(_of_path, parts))
        case ast.PathRepeat(inner, modifier):
            return _of_path(inner) if modifier == "+" else None
        case ast.PathNegated():
            return None
