"""The edges that a property path can take through a graph, or through the graphs of a batch.

In `(p/q)+` a step along `p` needs a `q` that begins where it ends. Most edges of small events have
no such neighbour. A semi-join drops them before nodes get numbers and a search begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.graphs.path_automaton import STAY, Leaf, PathAutomaton, PathStep, Transitions
from spaseq.gpm.graphs.triple_source import TripleSource, TripleTable
from spaseq.lang import ast
from spaseq.rdf.columns.term_columns import distinct
from spaseq.rdf.terms.term import iri_text, kind_of
from spaseq.records import record

Tables = list[TripleTable | None]

_Need = tuple[bool, frozenset[int]]
"""Whether the edge must end (or begin) where an edge of one of the leaves begins (or ends)."""


def useful_edges(tables: Tables, automaton: PathAutomaton) -> Tables:
    """The tables of an automaton's leaves, without edges that no path takes. None stays None."""
    kept = list(tables)
    stays = {r for r, table in enumerate(tables) if table is None} | {STAY}
    for r, table in enumerate(tables):
        if table is not None:
            for needs in _needs(automaton, r, stays):
                kept[r] = _meeting(kept, r, *needs)
    return kept


def _needs(automaton: PathAutomaton, leaf: int, stays: set[int]) -> Iterator[_Need]:
    """What all transitions of a leaf need."""
    forward, backward = automaton.forward, automaton.backward
    ways = [
        {(True, _next(forward, to, stays)), (False, _next(backward, state, stays))}
        for state, r, to in _transitions(forward)
        if r == leaf
    ]
    for ends, leaves in set.intersection(*ways):
        if leaves is not None:
            yield ends, leaves


def _transitions(moves: Transitions) -> Iterator[tuple[int, int, int]]:
    states = np.repeat(np.arange(moves.states), np.diff(moves.first))
    return zip(states.tolist(), moves.leaf.tolist(), moves.to.tolist(), strict=True)


def _next(moves: Transitions, state: int, stays: set[int]) -> frozenset[int] | None:
    """The leaves of the steps from a state; None if a path may end there, or stay at its node."""
    leaves = frozenset(moves.leaf[moves.first[state] : moves.first[state + 1]].tolist())
    return None if state == moves.accept or leaves & stays else leaves


def _meeting(tables: Tables, leaf: int, ends: bool, leaves: frozenset[int]) -> TripleTable | None:
    """The edges of a leaf that meet an edge of the leaves."""
    table = tables[leaf]
    if table is None:
        return None
    others = [_end_keys(other, not ends) for r in leaves if (other := tables[r]) is not None]
    kept = _among(_end_keys(table, ends), np.concatenate(others))
    return table if kept.all() else table.take(kept)


def _end_keys(table: TripleTable, ends: bool) -> Int64s:
    """The event and the last (or first) node of each edge, as one number."""
    assert table.event is not None
    return table.event << 32 | (table.o if ends else table.s)


def _among(keys: Int64s, others: Int64s) -> Bools:
    if not len(others):
        return np.zeros(len(keys), np.bool_)
    others.sort(kind="stable")  # the fastest for keys in order of events
    places = np.searchsorted(others, keys)
    are_among: Bools = others[np.minimum(places, len(others) - 1)] == keys
    return are_among


MOST_PLACES = 2**28
"""Most entries of one index; a larger one would not fit into memory."""


@record
class Edges:
    """The edges of each leaf of a path.

    `start` int64 [leaves, nodes + 1], `targets` int32 [edges]: a step of leaf r leads from node v
    to `targets[start[r, v]:start[r, v + 1]]`.
    """

    start: Int64s
    targets: Int32s


class PathGraph:
    """The part of a graph, or of the graphs of a batch, that a path can visit.

    Nodes have numbers. `keys` int64 [nodes] has each node's code, ascending; over events the upper
    half of a key is the event.
    """

    def __init__(self, source: TripleSource, automaton: PathAutomaton) -> None:
        self.automaton, self._of_events = automaton, source.of_events
        self.larger_than = -1  # a number of pairs; the path is known to connect more
        tables = [_leaf_table(source, leaf) for leaf in automaton.leaves]
        if source.of_events:
            tables = useful_edges(tables, automaton)
        every = [source.select(None, None, None)] if automaton.zero_length else []
        self.keys = _keys(source, [*tables, *every])
        self._ends = [
            self._themselves(source) if table is None else self._numbered(table) for table in tables
        ]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def forward(self) -> Edges:
        """The edges, from first nodes to last nodes."""
        return _edges(self._ends, len(self))

    @cached_property
    def backward(self) -> Edges:
        """The edges, from last nodes to first nodes."""
        return _edges([(last, first) for first, last in self._ends], len(self))

    def numbers(self, keys: Int64s) -> Int64s:
        """The numbers [n] of the nodes with the keys [n]; -1 where the graph has none."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)

    def with_codes(self, codes: Int32s) -> Int64s:
        """The nodes that have one of the codes, in any event."""
        if self._of_events:
            return np.flatnonzero(np.isin(self.keys & 0xFFFFFFFF, codes))
        numbers = self.numbers(np.unique(codes).astype(np.int64))
        return numbers[numbers >= 0]

    def table(self, first: Int64s, last: Int64s) -> TripleTable:
        """Pairs of nodes, by number, as a table in order of events."""
        first, last = self.keys[first], self.keys[last]
        event = first >> 32 if self._of_events else None
        s, o = (first & 0xFFFFFFFF).astype(np.int32), (last & 0xFFFFFFFF).astype(np.int32)
        table = TripleTable(event, s, None, o)
        if event is None or not len(event) or (event[1:] >= event[:-1]).all():
            return table
        return table.take(np.argsort(event, kind="stable"))

    def _numbered(self, table: TripleTable) -> tuple[Int64s, Int64s]:
        """(first nodes, last nodes) of a leaf's edges."""
        return self._of_codes(table.event, table.s), self._of_codes(table.event, table.o)

    def _themselves(self, source: TripleSource) -> tuple[Int64s, Int64s]:
        """Edges from every IRI and blank node to itself: no other term can be a subject."""
        codes, which = np.unique((self.keys & 0xFFFFFFFF).astype(np.int32), return_inverse=True)
        texts = source.lexicon.take(codes)
        allowed = np.array([kind_of(text) in ("iri", "bnode") for text in texts], np.bool_)
        nodes = np.flatnonzero(allowed[which])
        return nodes, nodes

    @cached_property
    def _by_code(self) -> Int64s:
        """The number of each node by code; only in a graph of the knowledge base."""
        numbers = np.full(int(self.keys[-1]) + 1 if len(self.keys) else 0, -1)
        numbers[self.keys] = np.arange(len(self.keys))
        return numbers

    def _of_codes(self, event: Int64s | None, codes: Int32s) -> Int64s:
        """The numbers of nodes that are in the graph."""
        if event is None:
            return self._by_code[codes]
        return np.searchsorted(self.keys, event << 32 | codes)


def _keys(source: TripleSource, tables: Sequence[TripleTable | None]) -> Int64s:
    """The keys of all nodes of some tables, ascending."""
    columns = [(t.event, codes) for t in tables if t is not None for codes in (t.s, t.o)]
    if not columns:
        return np.empty(0, np.int64)
    if source.of_events:
        keys = np.concatenate([e << 32 | codes for e, codes in columns if e is not None])
        keys.sort(kind="stable")  # five times as fast as others on columns in order of events
        return distinct(keys)
    used = np.zeros(max((int(c.max(initial=-1)) for _, c in columns), default=-1) + 1, np.bool_)
    for _, codes in columns:
        used[codes] = True
    return np.flatnonzero(used)


def _leaf_table(source: TripleSource, leaf: Leaf) -> TripleTable | None:
    """The edges of a leaf, possibly repeated; None for a step that stays at its node."""
    if leaf == (PathStep(None),):
        return None
    return together([_step_table(source, step) for step in leaf])


def _step_table(source: TripleSource, step: PathStep) -> TripleTable:
    match step.path:
        case ast.PathNegated(forward, inverse):
            table = negated(source, forward, inverse)
        case ast.Iri(value):
            table = source.select(iri_text(value), None, None)
    return turned(table) if step.backwards else table


def negated(
    source: TripleSource, forward: tuple[ast.Iri, ...], inverse: tuple[ast.Iri, ...]
) -> TripleTable:
    """The pairs of nodes that a negated property set connects, once for each triple."""
    every = source.select(None, None, None)
    tables = []
    if forward or not inverse:
        tables.append(_without(source, every, forward))
    if inverse:
        tables.append(turned(_without(source, every, inverse)))
    return together(tables)


def _without(
    source: TripleSource, every: TripleTable, predicates: tuple[ast.Iri, ...]
) -> TripleTable:
    assert every.p is not None
    codes = source.lexicon.find([iri_text(p.value) for p in predicates])
    rest = every.take(~np.isin(every.p, codes))
    return TripleTable(rest.event, rest.s, None, rest.o)


def turned(table: TripleTable) -> TripleTable:
    """The pairs with first and last nodes exchanged."""
    return TripleTable(table.event, table.o, None, table.s)


def together(tables: Sequence[TripleTable]) -> TripleTable:
    """The pairs of all tables, in order of events."""
    if len(tables) == 1:
        return tables[0]
    s = np.concatenate([t.s for t in tables])
    o = np.concatenate([t.o for t in tables])
    if tables[0].event is None:
        return TripleTable(None, s, None, o)
    event = np.concatenate([t.event for t in tables if t.event is not None])
    return TripleTable(event, s, None, o).take(np.argsort(event, kind="stable"))


def _edges(ends: Sequence[tuple[Int64s, Int64s]], nodes: int) -> Edges:
    if len(ends) * (nodes + 1) > MOST_PLACES:
        raise MemoryError
    start = np.zeros((len(ends), nodes + 1), np.int64)
    targets = []
    before = 0
    for r, (first, last) in enumerate(ends):
        np.cumsum(np.bincount(first, minlength=nodes), out=start[r, 1:])
        start[r] += before
        before += len(first)
        if len(first) and (first[1:] < first[:-1]).any():
            last = last[np.argsort(first, kind="stable")]
        targets.append(last.astype(np.int32))
    return Edges(start, np.concatenate(targets) if targets else np.empty(0, np.int32))
