"""Splits a graph pattern into the part that reads the event, and joins with graphs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal, TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.constants import PARTS
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import translate_group
from spaseq.algebra.nodes import certain, expressions, possible, triple_variables, visible
from spaseq.expr.uses import is_volatile
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, exists_uses, expression_variables
from spaseq.rdf.schema import Schema
from spaseq.records import record

Names = frozenset[str]

GraphTriples: TypeAlias = "tuple[tuple[str, n.TriplePattern], ...]"
"""Triple patterns, each with the IRI of its graph."""


def _variables(triples: GraphTriples) -> Names:
    return frozenset[str]().union(*(triple_variables(triple) for _, triple in triples))


@record
class GraphStep:
    """A step after the join with graphs.

    Attributes:
        kind: `optional` keeps rows without a match, and leaves variables unbound. `exists` keeps
            rows with a match, `not exists` rows without one. `filter` has conditions only.
        triples: their variables in common with the join are certainly bound there.
        conditions: conditions of a match.
    """

    kind: Literal["optional", "exists", "not exists", "filter"]
    triples: GraphTriples
    conditions: tuple[ast.Expr, ...]

    @property
    def read(self) -> Names:
        """The variables of its triple patterns and conditions."""
        return _variables(self.triples).union(*map(expression_variables, self.conditions))


@record
class SplitPattern:
    """A pattern as a join, with conditions on it, and steps after it.

    Attributes:
        own: the part that reads none of the graphs.
        triples: triple patterns, each with the IRI of its graph.
        conditions: they read variables that this join certainly binds.
        steps: OPTIONAL, EXISTS and NOT EXISTS, and the FILTERs after them, in order.
    """

    own: n.Pattern
    triples: GraphTriples = ()
    conditions: tuple[ast.Expr, ...] = ()
    steps: tuple[GraphStep, ...] = ()

    @property
    def joined(self) -> Names:
        """The variables of the triple patterns."""
        return _variables(self.triples)

    @property
    def bound(self) -> Names:
        """The variables that the join certainly binds."""
        return certain(self.own) | self.joined

    @property
    def added(self) -> Names:
        """The variables that only steps have."""
        return (
            frozenset[str]().union(*(_variables(step.triples) for step in self.steps)) - self.bound
        )

    @property
    def handed_on(self) -> Names:
        """The variables of `own` that the join and the conditions need."""
        read = self.joined.union(*map(expression_variables, self.conditions))
        return read.union(*(step.read for step in self.steps)) & possible(self.own)


def split(
    pattern: n.Pattern, graphs: Collection[str], schema: Schema | None = None
) -> SplitPattern | None:
    """Split a pattern that reads some graphs; None if it is no such join.

    EXISTS is entailed by `schema`, as the rest of the pattern is already.
    """
    divided = _GraphSplitting(graphs, schema).split(pattern)
    if divided is None or not divided.joined & possible(divided.own) <= certain(divided.own):
        return None
    return divided


@record
class _GraphSplitting:
    """Splits patterns that read some graphs."""

    graphs: Collection[str]
    schema: Schema | None

    def split(self, pattern: n.Pattern) -> SplitPattern | None:
        """Split a pattern; None if that may be incorrect."""
        if not reads(pattern, self.graphs):
            return SplitPattern(pattern)
        match pattern:
            case n.Join(left, right):
                one, other = self.split(left), self.split(right)
                return None if one is None or other is None else _both(one, other)
            case n.LeftJoin(left, right, expr):
                divided = self.split(left)
                return None if divided is None else self._optional(divided, right, expr)
            case n.Minus(left, right):
                divided = self.split(left)
                if divided is None or reads(right, self.graphs):
                    return None
                if not _is_apart(divided, possible(right)):
                    return None
                return replace(divided, own=n.Minus(divided.own, right))
            case n.Extend(inner, variable, expr):
                divided = self.split(inner)
                read = expression_variables(expr) | {variable}
                if divided is None or not _is_apart(divided, read, expr):
                    return None
                return replace(divided, own=n.Extend(divided.own, variable, expr))
            case n.Filter(expr, inner):
                divided = self.split(inner)
                for part in conjuncts([expr]):
                    if divided is not None:
                        divided = self._filtered(divided, part)
                return divided
            case n.Graph(str() as name, inner) if name[1:-1] in self.graphs:
                return _of_graph(name[1:-1], inner)
        return None

    def _optional(
        self, so_far: SplitPattern, right: n.Pattern, expr: ast.Expr | None
    ) -> SplitPattern | None:
        """The pattern with OPTIONAL after it."""
        if reads(right, self.graphs):
            conditions = () if expr is None else tuple(conjuncts([expr]))
            return _with_step(so_far, "optional", self.split(right), conditions)
        read = possible(right)
        if expr is not None:
            read |= expression_variables(expr)
        if not _is_apart(so_far, read, expr):
            return None
        return replace(so_far, own=n.LeftJoin(so_far.own, right, expr))

    def _filtered(self, so_far: SplitPattern, part: ast.Expr) -> SplitPattern | None:
        """The pattern under a FILTER that is no conjunction."""
        if isinstance(part, ast.Exists):
            inner = self.split(entailed(translate_group(part.pattern), self.schema))
            return _with_step(so_far, "not exists" if part.negated else "exists", inner, ())
        early = _with_condition(so_far, part)
        read = expression_variables(part)
        if early is None and read <= so_far.bound | so_far.added and _is_plain(part):
            return replace(so_far, steps=(*so_far.steps, GraphStep("filter", (), (part,))))
        return early


def _with_step(
    so_far: SplitPattern,
    kind: Literal["optional", "exists", "not exists"],
    inner: SplitPattern | None,
    conditions: tuple[ast.Expr, ...],
) -> SplitPattern | None:
    """The pattern with another step, if the step reads graphs alone."""
    if inner is None or inner.own != n.UNIT or inner.steps or not all(map(_is_plain, conditions)):
        return None
    step = GraphStep(kind, inner.triples, (*inner.conditions, *conditions))
    names = _variables(step.triples)
    known = names & (possible(so_far.own) | so_far.bound | so_far.added)
    if not (
        known <= so_far.bound and step.read <= so_far.bound | names and known == visible(known)
    ):
        return None
    return replace(so_far, steps=(*so_far.steps, step))


def _both(one: SplitPattern, other: SplitPattern) -> SplitPattern | None:
    for first, second in ((one, other), (other, one)):
        if not first.added.isdisjoint(possible(second.own) | second.bound | second.added):
            return None
    joined: n.Pattern = n.Join(one.own, other.own)
    if n.UNIT in (one.own, other.own):
        joined = other.own if one.own == n.UNIT else one.own
    conditions, steps = one.conditions + other.conditions, one.steps + other.steps
    return SplitPattern(joined, one.triples + other.triples, conditions, steps)


def _of_graph(graph: str, pattern: n.Pattern) -> SplitPattern | None:
    """The conjunction of triple patterns in GRAPH."""
    match pattern:
        case n.BGP(triples) if not any(triple.predicate in PARTS for triple in triples):
            return SplitPattern(n.UNIT, tuple((graph, triple) for triple in triples))
        case n.Join(left, right):
            one, other = _of_graph(graph, left), _of_graph(graph, right)
            return None if one is None or other is None else _both(one, other)
        case n.Filter(expr, inner):
            so_far = _of_graph(graph, inner)
            for part in conjuncts([expr]):
                so_far = None if so_far is None else _with_condition(so_far, part)
            return so_far
    return None


def _with_condition(so_far: SplitPattern, part: ast.Expr) -> SplitPattern | None:
    """The pattern under a FILTER; a condition that reads no graph is tested before the join."""
    read = expression_variables(part)
    if _is_apart(so_far, read, part):
        return replace(so_far, own=n.Filter(part, so_far.own))
    if read <= so_far.bound and _is_plain(part):
        return replace(so_far, conditions=(*so_far.conditions, part))
    return None


def _is_apart(so_far: SplitPattern, read: Names, expr: ast.Expr | None = None) -> bool:
    """Whether an operator that reads variables has the same result before the join with triples."""
    made = (so_far.joined | so_far.added) - certain(so_far.own)
    return read.isdisjoint(made) and (expr is None or _is_plain(expr))


def _is_plain(expr: ast.Expr) -> bool:
    return not is_volatile(expr) and not exists_uses(expr)


def reads(pattern: n.Pattern, graphs: Collection[str]) -> bool:
    """Whether a pattern may read one of the graphs."""
    if isinstance(pattern, n.Graph):
        name = pattern.name
        here = not isinstance(name, str) or name[1:-1] in graphs
    else:
        here = any(map(exists_uses, expressions(pattern)))
    return here or any(reads(inner, graphs) for inner in n.children(pattern))
