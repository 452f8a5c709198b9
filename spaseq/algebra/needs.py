"""The predicates that a graph pattern reads of an event, and the triples that it needs.

Without the needed triples the event has no solution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import is_part
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import expressions
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses
from spaseq.rdf.schema import Schema
from spaseq.rdf.terms.term import iri_text

Predicates = frozenset[str] | None
"""N-Triples texts of IRIs; None for all there are."""

Need: TypeAlias = tuple[str, "str | None"]
"""The predicate of a triple, and its object: a constant, a parameter's name, or None for any."""


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


def needs(pattern: n.Pattern, parameters: Collection[str] = ()) -> frozenset[Need]:
    """Triples that each event with a solution has; `parameters` are variables for constants.

    >>> from spaseq.lang.ast import Var
    >>> price = n.BGP((n.TriplePattern(Var("s"), "<http://e/p>", '"1"'),))
    >>> sorted(needs(n.LeftJoin(price, n.BGP((n.TriplePattern(Var("s"), Var("p"), Var("o")),)))))
    [('<http://e/p>', '"1"')]
    """
    all_needs = _needs(pattern, parameters)
    told = {predicate for predicate, target in all_needs if target is not None}
    return frozenset(need for need in all_needs if need[1] is not None or need[0] not in told)


def _needs(pattern: n.Pattern, parameters: Collection[str]) -> frozenset[Need]:
    """As `needs`, with any object of a predicate beside each object."""
    while isinstance(pattern, n.LeftJoin | n.Minus):  # a query may have a thousand OPTIONALs
        pattern = pattern.left
    match pattern:
        case n.BGP(triples):
            return frozenset(
                need
                for triple in triples
                if isinstance(triple.predicate, str) and not is_part(triple)
                for need in (
                    (triple.predicate, None),
                    (triple.predicate, _constant(triple.object, parameters)),
                )
            )
        case n.Join(left, right):
            return _needs(left, parameters) | _needs(right, parameters)
        case n.Union(left, right):
            return _needs(left, parameters) & _needs(right, parameters)
        case n.Group(inner, keys) if keys:
            return _needs(inner, parameters)
        case n.Filter(_, inner) | n.Extend(inner) | n.Project(inner) | n.Distinct(inner):
            return _needs(inner, parameters)
        case n.OrderBy(inner) | n.Slice(inner):
            return _needs(inner, parameters)
    return frozenset()


def _constant(term: n.PatternTerm, parameters: Collection[str]) -> str | None:
    """A constant, or the name of the parameter for one."""
    if isinstance(term, str):
        return term
    return term.name if term.name in parameters else None
