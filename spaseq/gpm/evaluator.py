"""Evaluates a graph pattern on whole batches of events (SPARQL 1.1 section 18.6, by columns)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.algebra.scope import possible, visible
from spaseq.expr.columns import extend_column, filter_rows
from spaseq.gpm.conjunction import Condition, Conjunction, conjunction
from spaseq.gpm.graphs import GraphSource
from spaseq.gpm.joins import join, left_join, minus, union
from spaseq.gpm.lexicon import KbLexicon
from spaseq.gpm.partitions import VerticalPartition
from spaseq.gpm.solutions import Bools, Solutions, none, unit
from spaseq.gpm.triples import TripleSource, triple_solutions
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang import ast
from spaseq.rdf.batches import UNBOUND, EventBatch, Int32s, Int64s


@dataclass(frozen=True, slots=True)
class Bindings:
    """The r solutions of a pattern on a batch of events.

    `event` [r] is the row of each solution's event in the batch, ascending. `columns` has codes
    [r] into `terms` for every variable that the pattern may bind, -1 where it is unbound. Codes
    below the batch's number of terms are the batch's own.
    """

    event: Int64s
    columns: Mapping[str, Int32s]
    terms: Sequence[str]


class GpmEvaluator:
    """One graph pattern, ready for many batches.

    What depends on the knowledge base alone is evaluated once, and then only joined.
    """

    def __init__(self, pattern: n.Pattern, knowledge: KnowledgeBase) -> None:
        self._pattern = pattern
        self._variables = sorted(visible(possible(pattern)))
        self._knowledge = knowledge
        self._lexicon = KbLexicon(knowledge.terms)
        self._constants: dict[int, Solutions] = {}
        self._conjunctions: dict[int, Conjunction] = {}

    def evaluate(self, events: EventBatch | VerticalPartition) -> Bindings:
        """The solutions on each event, as a multiset.

        Blank nodes of the pattern are no variables, but count for multiplicity. Give a
        `VerticalPartition` where several patterns are evaluated on one batch.
        """
        index = events if isinstance(events, VerticalPartition) else VerticalPartition(events)
        found = self._solutions(self._pattern, index).spread(len(index.batch), index.lexicon)
        assert found.event is not None
        columns = {v: found.column(v) for v in self._variables}
        return Bindings(found.event, columns, index.lexicon.texts)

    # --- patterns -------------------------------------------------------------------------------

    def _solutions(self, pattern: n.Pattern, source: TripleSource) -> Solutions:
        """The pattern's solutions over the active graph; what holds for every event is kept."""
        if source.of_events and is_constant(pattern):
            found = self._constants.get(id(pattern))
            if found is None:
                nothing = GraphSource({}, self._lexicon)
                found = self._constants[id(pattern)] = self._evaluate(pattern, nothing)
            return found
        return self._evaluate(pattern, source)

    def _evaluate(self, pattern: n.Pattern, source: TripleSource) -> Solutions:
        match pattern:
            case n.BGP() | n.Join() | n.Filter():
                return self._conjunction(pattern, source)
            case n.Graph(str() as name, inner):
                graph = self._knowledge.graphs.get(name[1:-1])
                if graph is None:
                    return none(self._lexicon, possible(inner))
                return self._solutions(inner, GraphSource(graph, self._lexicon))
            case n.Union(left, right):
                return union(*self._alike(left, right, source))
            case n.Minus(left, right):
                return minus(*self._on_left(left, right, source))
            case n.LeftJoin(left, right, expr):
                test = None if expr is None else self._test(expr)
                return left_join(*self._on_left(left, right, source), test)
            case n.Table(variables, rows):
                return self._table(variables, rows)
            case n.Extend(inner, variable, expr):
                return self._extend(self._solutions(inner, source), variable, expr)
            case n.Project(inner, variables):
                return self._solutions(inner, source).only(variables)
            case _:
                raise NotImplementedError(f"{type(pattern).__name__} is not evaluated")

    def _alike(
        self, left: n.Pattern, right: n.Pattern, source: TripleSource
    ) -> tuple[Solutions, Solutions]:
        """The solutions of both, of events if one is."""
        first, second = self._solutions(left, source), self._solutions(right, source)
        if (first.event is None) == (second.event is None):
            return first, second
        return _spread(first, source), _spread(second, source)

    def _on_left(
        self, left: n.Pattern, right: n.Pattern, source: TripleSource
    ) -> tuple[Solutions, Solutions]:
        """The solutions of both, those on the left of events if those on the right are."""
        first, second = self._solutions(left, source), self._solutions(right, source)
        return first if second.event is None else _spread(first, source), second

    def _table(
        self, variables: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]
    ) -> Solutions:
        columns: dict[str, Int32s] = {}
        for i, variable in enumerate(variables):
            texts = [row[i] for row in rows]
            codes = np.full(len(rows), UNBOUND, np.int32)
            bound = [j for j, text in enumerate(texts) if text is not None]
            codes[bound] = self._lexicon.encode([t for t in texts if t is not None])
            columns[variable] = codes
        return Solutions(len(rows), None, columns, self._lexicon)

    def _extend(self, found: Solutions, variable: str, expr: ast.Expr) -> Solutions:
        results, which = extend_column(expr, found.columns, found.lexicon.texts, rows=found.size)
        codes = np.full(len(results), UNBOUND, np.int32)
        bound = [i for i, text in enumerate(results) if text is not None]
        codes[bound] = found.lexicon.encode([t for t in results if t is not None])
        return found.with_column(variable, codes[which])

    # --- conjunctions ---------------------------------------------------------------------------

    def _conjunction(self, pattern: n.Pattern, source: TripleSource) -> Solutions:
        parts = self._conjunctions.get(id(pattern))
        if parts is None:
            parts = self._conjunctions[id(pattern)] = conjunction(pattern)
        pool = []
        for triple in parts.triples:
            found = triple_solutions(source, triple)
            if not found.size:
                return none(source.lexicon, of_events=source.of_events)
            pool.append(found)
        work = _Work(list(parts.conditions), self._test)
        result = work.joined(None, pool) if pool else None
        if parts.operands and (result is None or result.size):
            rest = [self._solutions(operand, source) for operand in parts.operands]
            result = work.joined(result, rest)
        return work.finished(unit(self._lexicon) if result is None else result)

    def _test(self, expr: ast.Expr) -> Callable[[Solutions], Bools]:
        def test(found: Solutions) -> Bools:
            return filter_rows(expr, found.columns, found.lexicon.texts, rows=found.size)

        return test


class _Work:
    """One evaluation of a conjunction: conditions that are still to be tested."""

    def __init__(
        self,
        conditions: list[Condition],
        tester: Callable[[ast.Expr], Callable[[Solutions], Bools]],
    ) -> None:
        self._conditions = conditions
        self._tester = tester

    def joined(self, result: Solutions | None, pool: list[Solutions]) -> Solutions:
        """All of the pool joined, smaller ones and those that share variables first."""
        while pool:
            i = min(range(len(pool)), key=lambda i: self._rank(result, pool[i]))
            part = pool.pop(i)
            result = self._tested(part if result is None else join(result, part))
            if not result.size:
                break
        assert result is not None
        return result

    def finished(self, result: Solutions) -> Solutions:
        """The result after all remaining conditions."""
        for condition in self._conditions:
            if result.size:
                result = result.take(self._tester(condition.expr)(result))
        return result

    def _rank(self, result: Solutions | None, part: Solutions) -> tuple[bool, bool, int]:
        """Small ranks come first."""
        if result is None:
            return (
                part.event is None,
                not any(self._ready(c, part) for c in self._conditions),
                part.size,
            )
        shares = any(v in result.columns for v in part.columns)
        return not shares, part.event is None, part.size

    def _ready(self, condition: Condition, found: Solutions) -> bool:
        return condition.early and all(
            v in found.columns and not found.may_be_unbound(v) for v in condition.variables
        )

    def _tested(self, result: Solutions) -> Solutions:
        ready = [c for c in self._conditions if self._ready(c, result)]
        self._conditions = [c for c in self._conditions if c not in ready]
        for condition in ready:
            if result.size:
                result = result.take(self._tester(condition.expr)(result))
        return result


def is_constant(pattern: n.Pattern) -> bool:
    """Whether a pattern's solutions do not depend on the event."""
    match pattern:
        case n.Graph() | n.Table() | n.BGP(()):
            return True
        case n.BGP() | n.Path():
            return False
        case _:
            return all(map(is_constant, n.children(pattern)))


def _spread(found: Solutions, source: TripleSource) -> Solutions:
    if found.event is not None or not isinstance(source, VerticalPartition):
        return found
    return found.spread(len(source.batch), source.lexicon)
