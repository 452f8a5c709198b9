"""What an event must have, so that a graph pattern can have a solution on it.

A run of many queries looks up the events that have the rarest of these triples, in one index for
all queries. A pattern is evaluated on these events only, and not at all if there are none.
"""

from __future__ import annotations

from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.triple_terms import is_part

Marks: TypeAlias = "frozenset[tuple[str, str]]"
"""Pairs of a predicate and an object (N-Triples texts)."""

_NONE: Marks = frozenset()


def required_marks(pattern: n.Pattern) -> Marks:
    """Predicates and objects of triples that each event with a solution has.

    >>> from spaseq.lang import ast
    >>> kind = n.TriplePattern(ast.Var("s"), "<kind>", "<k1>")
    >>> speed = n.TriplePattern(ast.Var("s"), "<speed>", ast.Var("v"))
    >>> [*required_marks(n.LeftJoin(n.BGP((kind, speed)), n.BGP()))]
    [('<kind>', '<k1>')]
    """
    match pattern:
        case n.BGP(triples):
            pairs = ((triple.predicate, triple.object) for triple in triples if not is_part(triple))
            return frozenset((p, o) for p, o in pairs if isinstance(p, str) and isinstance(o, str))
        case n.Join(left, right):
            return required_marks(left) | required_marks(right)
        case n.Union(left, right):
            return required_marks(left) & required_marks(right)
        case n.LeftJoin(left) | n.Minus(left):
            return required_marks(left)
        case (
            n.Filter(pattern=inner)
            | n.Extend(inner)
            | n.Project(inner)
            | n.Distinct(inner)
            | n.OrderBy(inner)
            | n.Slice(inner)
        ):
            return required_marks(inner)
        case n.Group(inner, keys) if keys:
            return required_marks(inner)
        case _:
            return _NONE
