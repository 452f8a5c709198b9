"""Measures how often solutions pass the checks of an edge, to choose the order of steps."""

from __future__ import annotations

from spaseq.automaton.lazy.tree_nodes import TreeEdge

_MEMORY = 1024
"""After this many checks of an edge the counts are halved, so that rates may change."""


class PassRates:
    """Pass rates by edge, over all partitions. They are not part of a snapshot."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[TreeEdge, list[int]] = {}  # checked, passed

    def note(self, edge: TreeEdge, checked: int, passed: int) -> None:
        """Count solutions that were checked, and those that passed."""
        counts = self._counts.setdefault(edge, [0, 0])
        counts[0] += checked
        counts[1] += passed
        if counts[0] > _MEMORY:
            counts[0] //= 2
            counts[1] //= 2

    def rank(self, edge: TreeEdge, count: int) -> float:
        """The rank p - 1/n of n solutions with pass rate p; the edge of least rank goes first.

        This order needs the fewest checks in total if rates are independent ("Optimization of
        Nonrecursive Queries", VLDB 1986). Without checks it is the rarest first. An edge without
        counts has the rate one half, so that it will be tried.
        """
        checked, passed = self._counts.get(edge, (0, 0))
        rate = (passed + 1) / (checked + 2) if edge.is_checked else 1.0
        return rate - 1 / count
