"""Property paths over events and graphs, in columns (SPARQL 1.1 sections 9 and 18.4).

The algebra has turned sequences, inverses and alternatives outside of repetitions into joins and
unions. This module evaluates negated property sets, and repetitions by a search from a bound end.

A search stays within the budget of the evaluation, and visits only the nodes that it reaches. Many
searches that visit the same nodes are done once per strong component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.budget import LimitExceeded, current_budget
from spaseq.compiled import mode
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.gpm.graphs.path_automaton import STAY, PathAutomaton, Transitions
from spaseq.gpm.graphs.path_graph import MOST_PLACES, Edges, PathGraph, negated, together
from spaseq.gpm.graphs.triple_source import TripleSource, TripleTable
from spaseq.gpm.kernels import graph_search as kernels
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


STEPS = 2**26
"""Steps that one call of a kernel takes before the time is checked: about a second."""
ROOM = 2**14
"""Pairs of nodes that one call of a kernel can return, beyond one for each node."""

Pairs = tuple[Int64s, Int64s]
_NONE = np.empty(0, np.int64)


def reachable(graph: PathGraph, seeds: Int64s, *, backwards: bool) -> Pairs:
    """Pairs (seed, node) that the path connects, distinct, in order of seeds.

    With `backwards` the search goes from the path's last node to its first.

    Raises:
        LimitExceeded: there are too many pairs, or the search takes too long.
    """
    first, last = _collected(_Search(graph, backwards).from_each(seeds))
    return seeds[first], last


def everywhere(graph: PathGraph, shared: bool) -> Pairs:
    """All pairs that the path connects, distinct, in order of their first nodes.

    Raises:
        LimitExceeded: there are too many pairs, or the search takes too long. The error is
            `shared` if the graph is.
    """
    budget = current_budget()
    try:
        if graph.larger_than >= budget.rows:
            budget.too_many()
        search = _Search(graph, backwards=False)
        seeds = search.starts()
        first, last = _collected(search.from_each(seeds))
    except LimitExceeded as error:
        graph.larger_than = max(graph.larger_than, budget.rows)
        raise LimitExceeded(error.reason, shared) from error
    return seeds[first], last


def connected(graph: PathGraph, first: Int64s, last: Int64s) -> Pairs:
    """The pairs (first[i], last[i]), all distinct, that the path connects.

    Raises:
        LimitExceeded: the search takes too long.
    """
    seeds, sinks = distinct(first), distinct(last)
    if len(first) < thresholds.current.path_pairs * min(len(seeds), len(sinks)) or not len(first):
        return _met(graph, first, last)
    if len(sinks) < len(seeds):
        last, first = _selected(_Search(graph, True), last, first)
    else:
        first, last = _selected(_Search(graph, False), first, last)
    return first, last


def _selected(search: _Search, first: Int64s, last: Int64s) -> Pairs:
    order = np.argsort(first, kind="stable")
    seeds, start = np.unique(first[order], return_index=True)
    wanted_start = np.append(start, len(first))
    seed, nodes = _collected(search.for_wanted(seeds, wanted_start, last[order]))
    return seeds[seed], nodes


def _met(graph: PathGraph, first: Int64s, last: Int64s) -> Pairs:
    """One search from both ends for each pair."""
    one, other = _Search(graph, False), _Search(graph, True)
    marks, back_marks = one.marks(), other.marks()
    queue, back_queue = one.queue(), other.queue()
    is_met = np.zeros(len(first), np.int64)
    ends = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(last, np.int64)
    budget, at = current_budget(), 0
    while at < len(first):
        at = kernels.met(
            one.way,
            other.way,
            *ends,
            at,
            mode.steps(STEPS),
            marks,
            back_marks,
            queue,
            back_queue,
            is_met,
        )
        budget.check()
    rows = is_met == 1
    return first[rows], last[rows]


def _collected(blocks: Iterator[Pairs]) -> Pairs:
    budget, pieces, size = current_budget(), [(_NONE, _NONE)], 0
    for block in blocks:
        size += len(block[0])
        budget.spend(size)
        budget.check()
        pieces.append(block)
    return np.concatenate([a for a, _ in pieces]), np.concatenate([b for _, b in pieces])


class _Search:
    """A path's automaton and its edges, in one direction."""

    def __init__(self, graph: PathGraph, backwards: bool) -> None:
        automaton = graph.automaton
        self._moves: Transitions = automaton.backward if backwards else automaton.forward
        self._edges: Edges = graph.backward if backwards else graph.forward
        self._nodes = len(graph)
        self._everywhere = automaton.zero_length
        self._places = self._moves.states * self._nodes
        if self._places > MOST_PLACES:
            raise MemoryError
        moves, edges = self._moves, self._edges
        states = moves.first, moves.leaf, moves.to, moves.begin, moves.accept
        self.way = kernels.SearchGraph(*states, edges.start, edges.targets)

    def marks(self) -> np.ndarray:
        return np.zeros(self._places, np.int32)

    def queue(self) -> Int64s:
        return np.empty(self._places, np.int64)

    def starts(self) -> Int64s:
        """All nodes at which a path may begin."""
        if self._everywhere:
            return np.arange(self._nodes)
        start = self._edges.start
        return np.flatnonzero((start[:, 1:] > start[:, :-1]).any(axis=0))

    def from_each(self, seeds: Int64s) -> Iterator[Pairs]:
        """Blocks of pairs (number of a seed, node that it reaches)."""
        marks, queue = self.marks(), self.queue()
        at, mark, budgeted = (
            0,
            0,
            thresholds.current.path_overlap * self._size() + thresholds.current.path_steps,
        )
        while at < len(seeds):
            block = self._block(len(seeds) - at)
            found, at, mark = kernels.reached(
                self.way, seeds, _NONE, _NONE, at, mark, budgeted,
                marks, marks, queue, *block,
            )  # fmt: skip
            yield block[0][:found], block[1][:found]
            if at < len(seeds) and found + self._nodes < len(block[0]):
                yield from self._by_component(seeds, at)
                return

    def for_wanted(self, seeds: Int64s, wanted_start: Int64s, wanted: Int64s) -> Iterator[Pairs]:
        """Blocks of pairs (number of a seed, wanted node that it reaches)."""
        marks, queue, wanted_marks = self.marks(), self.queue(), np.zeros(self._nodes, np.int32)
        at, mark = 0, 0
        while at < len(seeds):
            block = self._block(len(wanted) - int(wanted_start[at]))
            found, at, mark = kernels.reached(
                self.way, seeds, wanted_start, wanted, at, mark, mode.steps(STEPS),
                marks, wanted_marks, queue, *block,
            )  # fmt: skip
            yield block[0][:found], block[1][:found]

    def _block(self, wished: int) -> Pairs:
        room = self._nodes + min(wished, ROOM)
        return np.empty(room, np.int64), np.empty(room, np.int64)

    def _size(self) -> int:
        """Approximate number of steps between all places."""
        moves, leaves = self._moves, len(self._edges.start)
        per_leaf = -(-len(moves.leaf) // max(leaves, 1))
        return self._places + per_leaf * len(self._edges.targets)

    def _by_component(self, seeds: Int64s, at: int) -> Iterator[Pairs]:
        """`from_each` from seed number `at` on, by strong components."""
        budget, places = current_budget(), self._places
        component = np.zeros(places, np.int32)
        count = kernels.components(
            self.way, seeds[at:], np.zeros(places, np.int32), np.zeros(places, np.int32),
            component, self.queue(), np.empty((places, 3), np.int64),
        )  # fmt: skip
        budget.check()
        below_start, below = self._below(component, count)
        own = component[self._moves.accept * self._nodes :][: self._nodes]
        members = np.argsort(own, kind="stable")
        members = members[np.count_nonzero(own == 0) :]
        member_start = np.searchsorted(own[members], np.arange(count + 2))
        begins = component[self._moves.begin * self._nodes + seeds].astype(np.int64)
        same, marks = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
        queue, first = np.empty(count + 1, np.int64), at
        begins, done = begins[first:], 0
        while done < len(begins):
            block = self._block(ROOM)
            found, done = kernels.spread(
                below_start, below, member_start, members, begins, done, mode.steps(STEPS),
                same, marks, queue, *block,
            )  # fmt: skip
            yield block[0][:found] + first, block[1][:found]

    def _below(self, component: np.ndarray, count: int) -> Pairs:
        """(start int64 [components + 2], components [n]): the components that each one leads to."""
        moves, nodes = self._moves, self._nodes
        state = np.repeat(np.arange(moves.states), np.diff(moves.first))
        pairs = [_NONE]
        for q, r, to in zip(state.tolist(), moves.leaf.tolist(), moves.to.tolist(), strict=True):
            here, there = component[q * nodes :][:nodes], component[to * nodes :][:nodes]
            if r == STAY:
                first, last = here, there
            else:
                start = self._edges.start[r]
                first = np.repeat(here, np.diff(start))
                last = there[self._edges.targets[start[0] : start[-1]]]
            apart = (first != last) & (first > 0)
            pairs.append(distinct(first[apart].astype(np.int64) << 32 | last[apart]))
        every = distinct(np.concatenate(pairs))
        return np.searchsorted(every >> 32, np.arange(count + 2)), every & 0xFFFFFFFF
