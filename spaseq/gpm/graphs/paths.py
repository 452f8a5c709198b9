"""Property paths over events and graphs, in columns (SPARQL 1.1 sections 9 and 18.4).

The algebra has turned sequences, inverses and alternatives outside of repetitions into joins and
unions. This module evaluates negated property sets, and repetitions by a search from a bound end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.algebra import nodes as n
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.path_automaton import PathAutomaton
from spaseq.gpm.graphs.path_graph import PathGraph, negated, together
from spaseq.gpm.graphs.path_search import connected, everywhere, reachable
from spaseq.gpm.graphs.triple_source import TripleSource, TripleTable
from spaseq.gpm.solutions.lazy_columns import translated
from spaseq.gpm.solutions.solutions import Solutions
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import distinct
from spaseq.records import record


def path_solutions(
    source: TripleSource, pattern: n.Path, events: int = 0, given: Sequence[Solutions] = ()
) -> Solutions:
    """The solutions of a path pattern over a source with `events` events (0 for a graph).

    `given` are solutions that these will be joined with. A repetition is searched from their
    values, so incompatible solutions may be left out.
    """
    match pattern.path:
        case ast.PathNegated(forward, inverse):
            table = negated(source, forward, inverse)
        case ast.PathRepeat() as path:
            table = _Repetition(source, path, events).ends(pattern, given)
        case path:
            raise AssertionError(f"{type(path).__name__} is no path of the algebra")
    keep = np.ones(len(table), np.bool_)
    columns: dict[str, Int32s] = {}
    for term, codes in ((pattern.subject, table.s), (pattern.object, table.o)):
        if not isinstance(term, ast.Var):
            keep &= codes == source.lexicon.code(term)
        elif term.name in columns:
            keep &= columns[term.name] == codes
        else:
            columns[term.name] = codes
    solutions = Solutions(len(table), table.event, columns, source.lexicon)
    return solutions if keep.all() else solutions.take(keep)


_CODE = 0xFFFFFFFF
"""The lower half of a node's key."""


@record
class _Ends:
    """Nodes by number at which a path may begin or end, or pairs of both."""

    first: Int64s | None
    last: Int64s | None


class _Repetition:
    """The search of one repetition over a source."""

    def __init__(self, source: TripleSource, path: ast.PathRepeat, events: int) -> None:
        self._source, self._events = source, events
        self._graph: PathGraph = source.remembered(
            ("path", path), lambda: PathGraph(source, PathAutomaton.of(path))
        )

    def ends(self, pattern: n.Path, given: Sequence[Solutions]) -> TripleTable:
        """Pairs of nodes that the path connects, compatible with constants and given solutions."""
        graph = self._graph
        known = self._known(pattern.subject, pattern.object, given)
        if known.first is not None and known.last is not None:
            first, last = connected(graph, known.first, known.last)
        elif known.first is not None:
            first, last = reachable(graph, known.first, backwards=False)
        elif known.last is not None:
            last, first = reachable(graph, known.last, backwards=True)
        else:
            first, last = everywhere(graph, shared=not self._source.of_events)
        table = graph.table(first, last)
        return self._with_absent(table, pattern) if graph.automaton.zero_length else table

    def _known(
        self, subject: n.PatternTerm, object_: n.PatternTerm, given: Sequence[Solutions]
    ) -> _Ends:
        """The known nodes at both ends, or at the end with fewer."""
        for solutions in sorted(given, key=lambda each: each.size):
            pairs = self._pairs(subject, object_, solutions)
            if pairs is not None:
                return pairs
        if subject == object_ and isinstance(subject, ast.Var):
            every = np.arange(len(self._graph), dtype=np.int64)
            return _Ends(every, every)
        first, last = self._nodes(subject, given), self._nodes(object_, given)
        if isinstance(subject, str) and isinstance(object_, str):
            return self._constants(first, object_)
        if first is None or (last is not None and len(last) < len(first)):
            return _Ends(None, last)
        return _Ends(first, None)

    def _constants(self, first: Int64s | None, object_: str) -> _Ends:
        """The nodes of two constants, in events that have both."""
        assert first is not None
        events = self._graph.keys[first] & ~_CODE
        last = self._graph.numbers(events | self._code(object_))
        return _Ends(first[last >= 0], last[last >= 0])

    def _nodes(self, term: n.PatternTerm, given: Sequence[Solutions]) -> Int64s | None:
        """The possible nodes of a term, None if any."""
        if isinstance(term, str):
            return self._graph.with_codes(np.array([self._code(term)], np.int32))
        known = [self._values(term.name, solutions) for solutions in given]
        return min((nodes for nodes in known if nodes is not None), key=len, default=None)

    def _values(self, name: str, solutions: Solutions) -> Int64s | None:
        """The nodes that are values of a variable, None if it may be unbound."""
        if name not in solutions.columns or solutions.may_be_unbound(name):
            return None
        codes = translated(
            solutions.columns[name], solutions.lexicon, self._source.lexicon, add=False
        )
        if self._source.of_events and solutions.event is None:
            return self._graph.with_codes(codes)
        nodes = self._graph.numbers(distinct(self._keys(solutions, codes)))
        return nodes[nodes >= 0]

    def _pairs(
        self, subject: n.PatternTerm, object_: n.PatternTerm, solutions: Solutions
    ) -> _Ends | None:
        """The pairs of nodes if the solutions bind all variables, else None."""
        ends = subject, object_
        names = {term.name for term in ends if isinstance(term, ast.Var)}
        if not names or (self._source.of_events and solutions.event is None):
            return None
        if any(v not in solutions.columns or solutions.may_be_unbound(v) for v in names):
            return None
        columns = [
            np.full(solutions.size, self._code(term), np.int32)
            if isinstance(term, str)
            else translated(
                solutions.columns[term.name], solutions.lexicon, self._source.lexicon, add=False
            )
            for term in ends
        ]
        first, last = (self._graph.numbers(self._keys(solutions, codes)) for codes in columns)
        both = (first >= 0) & (last >= 0)
        size = max(len(self._graph), 1)
        pairs: Int64s = distinct(first[both] * size + last[both])
        return _Ends(pairs // size, pairs % size)

    def _keys(self, solutions: Solutions, codes: Int32s) -> Int64s:
        """The keys of codes [found.size]; negative where no node has the code."""
        if not self._source.of_events:
            return codes.astype(np.int64)
        assert solutions.event is not None
        return np.where(codes < 0, -1, solutions.event << 32 | codes)

    def _code(self, constant: str) -> int:
        return self._source.lexicon.code(constant)

    def _with_absent(self, table: TripleTable, pattern: n.Path) -> TripleTable:
        """The pairs, and the paths of length zero from a constant where no triple has it."""
        constants = {t for t in (pattern.subject, pattern.object) if isinstance(t, str)}
        if len(constants) != 1:
            return table
        code = self._source.lexicon.encode(list(constants))
        if not self._source.of_events:
            absent = self._graph.numbers(code.astype(np.int64)) < 0
            absent_pairs = TripleTable(None, code[absent], None, code[absent])
        else:
            events = np.arange(self._events, dtype=np.int64)
            events = events[self._graph.numbers(events << 32 | code) < 0]
            codes = np.repeat(code, len(events))
            absent_pairs = TripleTable(events, codes, None, codes)
        return together([table, absent_pairs]) if len(absent_pairs) else table
