"""Splits a graph pattern into what reads the event, and what is joined with it from graphs."""

from __future__ import annotations

from collections.abc import Collection

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import expressions
from spaseq.algebra.scope import certain, possible, triple_variables
from spaseq.algebra.triple_terms import PARTS
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, exists_uses, expression_variables
from spaseq.records import record

Names = frozenset[str]


@record
class SplitPattern:
    """A pattern as a join, with conditions on it.

    Attributes:
        own: the part that reads none of the graphs.
        triples: triple patterns, each with the IRI of its graph.
        conditions: they read variables that this join certainly binds.
    """

    own: n.Pattern
    triples: tuple[tuple[str, n.TriplePattern], ...] = ()
    conditions: tuple[ast.Expr, ...] = ()

    @property
    def joined(self) -> Names:
        """The variables of the triple patterns."""
        return frozenset[str]().union(*(triple_variables(triple) for _, triple in self.triples))

    @property
    def handed_on(self) -> Names:
        """The variables of `own` that are needed to join and to test."""
        read = self.joined.union(*map(expression_variables, self.conditions))
        return read & possible(self.own)


def split(pattern: n.Pattern, graphs: Collection[str]) -> SplitPattern | None:
    """A pattern that reads some graphs, split; None if it is no such join."""
    found = _split(pattern, graphs)
    if found is None or not found.joined & possible(found.own) <= certain(found.own):
        return None
    return found


def _split(pattern: n.Pattern, graphs: Collection[str]) -> SplitPattern | None:
    if not reads(pattern, graphs):
        return SplitPattern(pattern)
    match pattern:
        case n.Join(left, right):
            one, other = _split(left, graphs), _split(right, graphs)
            return None if one is None or other is None else _both(one, other)
        case n.LeftJoin(left, right, expr):
            found, read = _split(left, graphs), possible(right)
            if expr is not None:
                read |= expression_variables(expr)
            if found is None or reads(right, graphs) or not _is_apart(found, read, expr):
                return None
            return SplitPattern(n.LeftJoin(found.own, right, expr), found.triples, found.conditions)
        case n.Minus(left, right):
            found = _split(left, graphs)
            if found is None or reads(right, graphs) or not _is_apart(found, possible(right)):
                return None
            return SplitPattern(n.Minus(found.own, right), found.triples, found.conditions)
        case n.Extend(inner, variable, expr):
            found = _split(inner, graphs)
            if found is None or not _is_apart(found, expression_variables(expr), expr):
                return None
            own = n.Extend(found.own, variable, expr)
            return SplitPattern(own, found.triples, found.conditions)
        case n.Filter(expr, inner):
            found = _split(inner, graphs)
            return None if found is None else _filtered(found, expr)
        case n.Graph(str() as name, inner) if name[1:-1] in graphs:
            return _of_graph(name[1:-1], inner)
    return None


def _both(one: SplitPattern, other: SplitPattern) -> SplitPattern:
    own: n.Pattern = n.Join(one.own, other.own)
    if n.UNIT in (one.own, other.own):
        own = other.own if one.own == n.UNIT else one.own
    return SplitPattern(own, one.triples + other.triples, one.conditions + other.conditions)


def _of_graph(graph: str, pattern: n.Pattern) -> SplitPattern | None:
    """The conjunction of triple patterns that stands in GRAPH."""
    match pattern:
        case n.BGP(triples) if not any(triple.predicate in PARTS for triple in triples):
            return SplitPattern(n.UNIT, tuple((graph, triple) for triple in triples))
        case n.Join(left, right):
            one, other = _of_graph(graph, left), _of_graph(graph, right)
            return None if one is None or other is None else _both(one, other)
        case n.Filter(expr, inner):
            found = _of_graph(graph, inner)
            return None if found is None else _filtered(found, expr)
    return None


def _filtered(found: SplitPattern, expr: ast.Expr) -> SplitPattern | None:
    """The pattern under a FILTER; what looks at no graph is tested before the join."""
    own, conditions = found.own, list(found.conditions)
    for part in conjuncts([expr]):
        read = expression_variables(part)
        if _is_apart(found, read, part):
            own = n.Filter(part, own)
        elif read <= certain(found.own) | found.joined and _is_plain(part):
            conditions.append(part)
        else:
            return None
    return SplitPattern(own, found.triples, tuple(conditions))


def _is_apart(found: SplitPattern, read: Names, expr: ast.Expr | None = None) -> bool:
    """Whether something that reads variables has the same result before the join with triples."""
    own = certain(found.own)
    return read.isdisjoint(found.joined - own) and (expr is None or _is_plain(expr))


def _is_plain(expr: ast.Expr) -> bool:
    return not is_volatile(expr) and not exists_uses(expr)


def reads(pattern: n.Pattern, graphs: Collection[str]) -> bool:
    """Whether a pattern may look into one of the graphs."""
    if isinstance(pattern, n.Graph):
        name = pattern.name
        own = not isinstance(name, str) or name[1:-1] in graphs
    else:
        own = any(map(exists_uses, expressions(pattern)))
    return own or any(reads(inner, graphs) for inner in n.children(pattern))
