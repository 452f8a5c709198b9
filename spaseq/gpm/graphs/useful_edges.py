"""The edges of events that a path can use: each has an edge of its event before and after it.

In `(p/q)+` a step along `p` needs a `q` that begins where it ends. Most edges of small events have
no such neighbour. A semi-join drops them before nodes get numbers and a search begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.compiled.arrays import Bools, Int64s
from spaseq.gpm.graphs.path_automaton import STAY, PathAutomaton, Transitions
from spaseq.gpm.graphs.triple_source import TripleTable

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
    others = [_keys(other, not ends) for r in leaves if (other := tables[r]) is not None]
    kept = _in(_keys(table, ends), np.concatenate(others))
    return table if kept.all() else table.take(kept)


def _keys(table: TripleTable, ends: bool) -> Int64s:
    """The event and the last (or first) node of each edge, as one number."""
    assert table.event is not None
    return table.event << 32 | (table.o if ends else table.s)


def _in(keys: Int64s, others: Int64s) -> Bools:
    if not len(others):
        return np.zeros(len(keys), np.bool_)
    others.sort(kind="stable")  # the fastest for keys in order of events
    places = np.searchsorted(others, keys)
    found: Bools = others[np.minimum(places, len(others) - 1)] == keys
    return found
