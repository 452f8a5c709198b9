"""Searches through the edges of a path, within the budget of the evaluation.

A search from a bound end visits only the nodes that it reaches. Many searches that visit the same
nodes are done once per strong component.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq import thresholds
from spaseq.budget import LimitExceeded, current_budget
from spaseq.compiled import mode
from spaseq.compiled.arrays import Int64s
from spaseq.gpm.graphs.path_automaton import STAY, Transitions
from spaseq.gpm.graphs.path_graph import MOST_PLACES, Edges, PathGraph
from spaseq.gpm.kernels import graph_search as kernels
from spaseq.rdf.columns.term_columns import distinct

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
