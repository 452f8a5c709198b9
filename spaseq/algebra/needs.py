"""What a graph pattern needs of an event: triples without which the event has no solution."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.triple_terms import is_part

Need: TypeAlias = tuple[str, "str | None"]
"""The predicate of a triple, and its object: a constant, a parameter's name, or None for any."""


def needs(pattern: n.Pattern, parameters: Collection[str] = ()) -> frozenset[Need]:
    """Triples of which each event with a solution has one each; `parameters` stand for constants.

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
    """A constant, or the name of a parameter that stands for one."""
    if isinstance(term, str):
        return term
    return term.name if term.name in parameters else None
