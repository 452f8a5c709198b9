"""Counts the matches of a compact set exactly, without enumerating them."""

from __future__ import annotations

from spaseq.automaton.sets.python.compact_set import NIL, UNION, CompactSet


def count(matches: CompactSet, roots: list[int]) -> int:
    """How many matches of some disjoint roots lie in the window, however large the number.

    It visits each node of the window once.
    """
    nodes, base, floor = matches.nodes, matches.base, matches.floor
    counts: dict[int, int] = {NIL: 1}
    for node in matches.reachable(roots):
        before, rest, _, kind, _ = nodes[node - base]
        number = counts[before]
        assert kind != UNION or before != NIL
        if rest >= base and nodes[rest - base][2] >= floor:
            number += counts[rest]
        counts[node] = number
    return sum(counts[root] for root in roots if matches.lives(root))
