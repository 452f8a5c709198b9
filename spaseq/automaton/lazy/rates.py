"""How often solutions pass the tests of an edge: with their number, what the order is chosen by."""

from __future__ import annotations

from spaseq.automaton.lazy.tree import TreeEdge

_MEMORY = 1024
"""After so many tests of an edge half of them are forgotten, so that rates may change."""


class Rates:
    """Pass rates by edge, over all partitions; they belong to the process, not to a snapshot."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[TreeEdge, list[int]] = {}  # tested, passed

    def note(self, edge: TreeEdge, tested: int, passed: int) -> None:
        """Some solutions have been tested."""
        counts = self._counts.setdefault(edge, [0, 0])
        counts[0] += tested
        counts[1] += passed
        if counts[0] > _MEMORY:
            counts[0] //= 2
            counts[1] //= 2

    def rank(self, edge: TreeEdge, count: int) -> float:
        """The edge of least rank goes first: p - 1/n for n solutions with pass rate p.

        This order makes the least tests in total if rates are independent ("Optimization of
        Nonrecursive Queries", VLDB 1986); without tests it is the rarest first. What has not been
        tested yet is taken to pass half of the time, so that it will be tested.
        """
        tested, passed = self._counts.get(edge, (0, 0))
        rate = (passed + 1) / (tested + 2) if edge.is_tested else 1.0
        return rate - 1 / count
